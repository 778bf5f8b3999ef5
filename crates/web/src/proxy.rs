//! The page of the proxy: what was sent through it, and what that cost.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use epitome::models::catalogue;
use epitome::wire::comparison::Comparison;
use epitome::wire::ledger::Ledger;
use epitome::wire::stats::{CutSum, ProxyReport, RequestSum, StatsBy, StatsRow, report};
use epitome_model::{MicroDollars, Tokens, percent, percent_change, plural};
use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde::Deserialize;

use crate::chart::{Bar, Chart};
use crate::page::{Here, Query, bar, page as frame, run_blocking};
use crate::problem::Problem;
use crate::sums::Period;
use crate::viewer::Viewer;

/// The maximum number of cuts that are listed. From a cut on, the proxy sends the old messages of a
/// conversation in fewer tokens.
const CUTS: usize = 20;

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct ProxyQuery {
    days: Option<Period>,
}

/// What the page shows.
struct Shown {
    by_day: ProxyReport,
    by_model: ProxyReport,
    by_agent: ProxyReport,
    prices_of: String,
}

pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Query(query): Query<ProxyQuery>,
) -> Response {
    let page = run_blocking(viewer, move |viewer| {
        let period = query.days.unwrap_or(Period::All);
        let shown = read(viewer, period)?;
        Ok(frame("Proxy", "./", &body(viewer, period, &shown)).into_response())
    });
    page.await.unwrap_or_else(|problem| problem)
}

fn read(viewer: &Viewer, period: Period) -> Result<Shown, Problem> {
    let config = &viewer.options.config;
    let today = config.now().to_zoned(TimeZone::UTC).date();
    let days = match period {
        Period::Month => Some(30),
        Period::Quarter => Some(90),
        Period::All => None,
    };
    let since = days.and_then(|days: i32| {
        let first = today.checked_sub((days - 1).days()).ok()?;
        Some(first.to_zoned(TimeZone::UTC).ok()?.timestamp())
    });
    let read = Ledger::new(&config.wire_memo()).read(since)?;
    let [by_day, by_model, by_agent] = StatsBy::ALL.map(|by| report(&read, by));
    let prices_of = catalogue(config)?.date().to_owned();
    Ok(Shown { by_day, by_model, by_agent, prices_of })
}

fn body(viewer: &Viewer, period: Period, shown: &Shown) -> Markup {
    let Shown { by_day, by_model, by_agent, prices_of } = shown;
    let total = &by_day.total;
    html! {
        a.skip href="#content" { "To the numbers" }
        (bar("./", Here::Proxy))
        main #content.index.wide.overview {
            div.head {
                h1 { "Proxy" }
                nav.choices aria-label="Period" {
                    @for choice in Period::ALL {
                        a href={ "proxy?days=" (choice.value()) }
                            aria-current=[(choice == period).then_some("page")] {
                            (choice.label())
                        }
                    }
                }
            }
            @if total.requests == 0 { (nothing(period)) }
            @else {
                (figures(total))
                div.charts { (cost_chart(by_day)) (tokens_chart(by_day)) }
                (notes(total, by_day.skipped, prices_of))
                div.tables.two {
                    (sums(viewer, "By model", &by_model.rows))
                    (sums(viewer, "By agent", &by_agent.rows))
                }
                (cuts(viewer, &by_day.cuts))
                @if let Some(comparison) = &by_day.comparison { (groups(comparison)) }
            }
        }
    }
}

fn nothing(period: Period) -> Markup {
    html! {
        p.none {
            @if period == Period::All {
                "Nothing was sent through the proxy yet: " code { "epitome wrap claude" }
                " runs an agent behind it."
            } @else {
                "No request in the last " (period.label()) ": "
                a href="proxy?days=all" { "show all" } "."
            }
        }
    }
}

fn figures(total: &RequestSum) -> Markup {
    let input = total.all_input();
    let cached = percent(total.cached_tokens.0, input.0);
    html! {
        dl.figures {
            (figure("conversations", total.conversations))
            (figure("requests", total.requests))
            div { dt { "input tokens, " (cached) "% from a cache" } dd { (input) } }
            div { dt { "output tokens" } dd { (total.output_tokens) } }
            @if total.has_price() {
                div {
                    dt { "cost, " (percent_change(total.unchanged_cost.0, total.cost.0)) }
                    dd { (total.cost) }
                }
                (figure("if unchanged, estimated", total.unchanged_cost))
            } @else { (figure("cost", "not known")) }
        }
    }
}

fn figure(name: &str, value: impl std::fmt::Display) -> Markup {
    html! { div { dt { (name) } dd { (value.to_string()) } } }
}

/// A chart of the cost of each day. The upper part of a bar is what the requests would have cost in
/// addition without the proxy.
fn cost_chart(by_day: &ProxyReport) -> Markup {
    let most = by_day.rows.iter().map(|row| row.sum.unchanged_cost.max(row.sum.cost)).max();
    let chart = chart(by_day, "Cost", most.unwrap_or_default().to_string(), |sum| {
        let more = sum.unchanged_cost - sum.cost;
        let text = format!("{}, unchanged {}", sum.cost, sum.unchanged_cost);
        (vec![sum.cost.0, more.0], text)
    });
    html! {
        div.drawn {
            (Chart { total: by_day.total.cost.to_string(), ..chart }.draw())
            @if most.unwrap_or_default() > MicroDollars(0) {
                p.legend { span.key0 { "cost" } span.key1 { "more if unchanged" } }
            }
        }
    }
}

fn tokens_chart(by_day: &ProxyReport) -> Markup {
    let most = by_day.rows.iter().map(|row| tokens(&row.sum)).max().unwrap_or_default();
    let chart = chart(by_day, "Tokens", most.to_string(), |sum| {
        let fresh = sum.input_tokens + sum.cache_written_tokens;
        let (output, cached) = (sum.output_tokens, sum.cached_tokens);
        let text = format!("{output} written, {fresh} read, {cached} read from a cache");
        (vec![output.0, fresh.0, cached.0], text)
    });
    html! {
        div.drawn {
            (Chart { total: tokens(&by_day.total).to_string(), ..chart }.draw())
            @if most > Tokens(0) {
                p.legend {
                    span.key0 { "written" } span.key1 { "read" } span.key2 { "read from a cache" }
                }
            }
        }
    }
}

fn tokens(sum: &RequestSum) -> Tokens {
    sum.all_input() + sum.output_tokens
}

/// A chart with a bar for each day with requests.
fn chart(
    by_day: &ProxyReport,
    title: &'static str,
    most: String,
    bar: impl Fn(&RequestSum) -> (Vec<u64>, String),
) -> Chart {
    let bars = by_day.rows.iter().map(|row| {
        let (parts, words) = bar(&row.sum);
        Bar { when: row.name.clone().unwrap_or_default(), parts, words }
    });
    Chart { title, total: String::new(), most, bars: bars.collect() }
}

/// Says what was done to the requests, and what is not in the numbers.
fn notes(total: &RequestSum, skipped: u64, prices_of: &str) -> Markup {
    let RequestSum { passed, known, shortened, cut, .. } = total;
    let shortfalls = total.shortfalls();
    html! {
        p.soft.notes {
            (passed) " requests were sent as they came, " (known) " as decided before, "
            (shortened) " with new results shortened, " (cut) " with a cut: about "
            (total.saved_tokens) " tokens less. Tokens are those that the services counted; costs "
            "are at list prices of " (prices_of) ". What unchanged requests would have cost is "
            "estimated, the prices of the cache included. Days are in UTC."
            @if total.recalled > 0 {
                " Models asked " (plural(total.recalled, "removed text")) " back."
            }
            @if skipped > 0 { " " (plural(skipped, "line")) " of the ledger cannot be read." }
        }
        @if !shortfalls.is_empty() {
            ul.soft.notes {
                @for (requests, what) in shortfalls {
                    li { (plural(requests, "request")) " " (what) }
                }
            }
        }
    }
}

fn sums(viewer: &Viewer, title: &str, rows: &[StatsRow]) -> Markup {
    html! {
        section.block {
            h2 { (title) }
            ol.sums {
                @for row in rows {
                    li {
                        p.name {
                            @match &row.name {
                                Some(name) => bdi { (viewer.redacted(name)) },
                                None => span.soft { "not named" },
                            }
                        }
                        p.values {
                            span { (plural(row.sum.requests, "request")) }
                            span { (tokens(&row.sum)) " tokens" }
                            @if row.sum.has_price() {
                                span { (row.sum.cost) " instead of " (row.sum.unchanged_cost) }
                            } @else { span { "price not known" } }
                        }
                    }
                }
            }
        }
    }
}

fn cuts(viewer: &Viewer, cuts: &[CutSum]) -> Markup {
    let money = |amount: Option<MicroDollars>| {
        amount.map_or("not known".to_owned(), |amount| amount.to_string())
    };
    html! {
        section.block {
            h2 { "Cuts" }
            @if cuts.is_empty() { p.soft { "No conversation was cut." } }
            @else {
                div.scroll tabindex="0" role="group" aria-label="Cuts" {
                    table.grid {
                        thead {
                            tr {
                                th scope="col" { "made" }
                                th scope="col" { "model" }
                                th.number scope="col" { "written again" }
                                th.number scope="col" { "price" }
                                th.number scope="col" { "requests since" }
                                th.number scope="col" { "not sent" }
                                th.number scope="col" { "saved so far" }
                            }
                        }
                        tbody {
                            @for cut in cuts.iter().take(CUTS) {
                                tr {
                                    td { (cut.time.strftime("%Y-%m-%d %H:%M")) }
                                    td {
                                        bdi {
                                            @if let Some(model) = &cut.model {
                                                (viewer.redacted(model))
                                            }
                                        }
                                    }
                                    td.number { (cut.rewritten_tokens) }
                                    td.number { (money(cut.price)) }
                                    td.number { (cut.requests) }
                                    td.number { (cut.saved_tokens) }
                                    td.number { (money(cut.saved)) }
                                }
                            }
                        }
                    }
                }
                @if cuts.len() > CUTS { p.soft { "and " (cuts.len() - CUTS) " older ones" } }
            }
        }
    }
}

/// A table that compares the conversations that the proxy deliberately left unchanged with the
/// others.
fn groups(comparison: &Comparison) -> Markup {
    html! {
        section.block {
            h2 { "Conversations held out" }
            div.scroll tabindex="0" role="group" aria-label="Conversations held out" {
                table.grid {
                    thead {
                        tr {
                            td {}
                            th.number scope="col" { "treated" }
                            th.number scope="col" { "held out" }
                            th.number scope="col" { "difference (95%)" }
                        }
                    }
                    tbody {
                        @for row in comparison.rows() {
                            tr {
                                th scope="row" { (row.title) }
                                td.number { (row.treated) }
                                td.number { (row.holdout) }
                                td.number { (row.difference) }
                            }
                        }
                    }
                }
            }
            @for note in comparison.notes() { p.soft { (note) "." } }
        }
    }
}
