//! The overview: the usage of all sessions, the savings of compactions, and nearly full contexts.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use epitome::list::SessionInfo;
use epitome::ops::Change;
use epitome::render::ListPrices;
use epitome_model::{Bytes, Tokens, percent, plural};
use epitome_render::Prices as _;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde::Deserialize;

use crate::chart::Chart;
use crate::empty::looked_in;
use crate::page::{Here, Query, bar, page as frame, run_blocking};
use crate::session::{page_of, plan_of};
use crate::session_cache::{CachedSession, key};
use crate::sums::{Period, Slot, Sum, Sums, Used};
use crate::viewer::Viewer;

/// The maximum number of rows of a table (without the last row, which is for all others), and of
/// sessions in a list.
const ROWS: usize = 8;
/// The share of the window, in per cent, from which on a session counts as nearly full.
const NEARLY: u64 = 70;
/// The maximum number of characters of a title.
const TITLE: usize = 100;

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct OverviewQuery {
    days: Option<Period>,
}

pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Query(asked): Query<OverviewQuery>,
) -> Response {
    let response = run_blocking(viewer, move |viewer| {
        viewer.session_cache.refresh(viewer.files());
        let sessions = viewer.session_cache.list(|kept| (0..kept.len()).collect());
        Ok(frame("Overview", "./", &body(viewer, asked, &sessions)).into_response())
    });
    response.await.unwrap_or_else(|problem| problem)
}

fn body(viewer: &Viewer, asked: OverviewQuery, sessions: &[CachedSession]) -> Markup {
    let today = viewer.options.config.now().to_zoned(TimeZone::UTC).date();
    let used: Vec<Used<'_>> = sessions.iter().filter_map(CachedSession::used).collect();
    let usages = used.iter().flat_map(|it| it.usage);
    let period = asked.days.unwrap_or_else(|| Period::fitting(usages, today));
    let sums = Sums::from_sessions(&used, period, today);
    let unread = sessions.iter().filter(|it| it.seen.is_none()).count();
    html! {
        a.skip href="#content" { "To the overview" }
        (bar("./", Here::Overview))
        main #content.index.wide.overview {
            div.head {
                h1 { "Overview" }
                nav.choices aria-label="Period" {
                    @for it in Period::ALL {
                        a href={ "overview?days=" (it.value()) }
                            aria-current=[(it == period).then_some("page")] { (it.label()) }
                    }
                }
            }
            @if unread > 0 {
                p.soft #unread role="status" {
                    "Reading sessions: " (sessions.len() - unread) " of " (sessions.len())
                    " are in these figures. The page is loaded again until all are."
                }
            }
            @if sums.all.requests == 0 { (nothing(viewer, sessions, &used, period)) }
            @else { (used_up(viewer, &sums, (sessions.len(), used.len()))) }
            (saving(viewer, sessions))
            (nearly_full(viewer, sessions))
        }
    }
}

/// Says why there is no usage to sum up.
fn nothing(
    viewer: &Viewer,
    sessions: &[CachedSession],
    used: &[Used<'_>],
    period: Period,
) -> Markup {
    let last = used.iter().flat_map(|it| it.usage).filter_map(|usage| usage.day).max();
    html! {
        p.none {
            @if sessions.is_empty() { (looked_in(viewer)) }
            @else if used.is_empty() {
                "None of " (sessions.len()) " sessions records the tokens of its requests."
            } @else {
                "No request in the last " (period.label()) "."
                @if let Some(last) = last {
                    " The last was on " (last) ": "
                    a href="overview?days=all" { "show all" } "."
                }
            }
        }
    }
}

/// Tokens and cost: the total, over time, and by project, agent and model.
fn used_up(viewer: &Viewer, sums: &Sums, (all, recording): (usize, usize)) -> Markup {
    let sum = &sums.all;
    let project = |name: &str| {
        let address = (!name.is_empty()).then(|| format!("./?project={}", key(name.as_ref())));
        let name = if name.is_empty() { "no folder".to_owned() } else { viewer.redacted(name) };
        (name, address)
    };
    let agent = |name: &str| (name.to_owned(), Some(format!("./?agent={name}")));
    let model = |name: &str| {
        let name = if name.is_empty() { "not recorded" } else { name };
        (viewer.redacted(name), None)
    };
    html! {
        (totals(sum))
        div.charts { (tokens_chart(&sums.slots, sum)) (cost_chart(&sums.slots, sum)) }
        p.soft.notes {
            (cost_coverage(viewer, sum))
            @if recording < all {
                " " (all - recording) " of " (all)
                " sessions record no tokens and are not in these figures."
            }
            @if sums.undated > 0 {
                " " (sums.undated) " requests record no time: they are in the sums alone."
            }
            " Days are in UTC. Sub-agents with files of their own are not counted."
        }
        div.tables {
            (table("By project", &sums.by_project, project))
            (table("By agent", &sums.by_agent, agent))
            (table("By model", &sums.by_model, model))
        }
    }
}

fn totals(sum: &Sum) -> Markup {
    let cached = percent(sum.cached.0, sum.input.0);
    html! {
        dl.figures {
            (figure("sessions", sum.sessions))
            (figure("requests", sum.requests))
            div {
                dt { "tokens read" @if sum.cached.0 > 0 { ", " (cached) "% from a cache" } }
                dd { (sum.input) }
            }
            div { dt { "tokens written" } dd { (sum.output) } }
            div { dt { "cost" } dd { (sum.cost()) } }
        }
    }
}

/// Says for how many sessions the cost is known.
fn cost_coverage(viewer: &Viewer, sum: &Sum) -> Markup {
    let date = ListPrices::from_config(&viewer.options.config).ok().map(|it| it.date().to_owned());
    let unknown = sum.sessions - sum.priced - sum.partly;
    html! {
        "The cost is known for " (sum.priced) " of " (sum.sessions) " sessions"
        @if sum.partly > 0 { ", in part for " (sum.partly) }
        @if unknown > 0 { ", not for " (unknown) }
        @if let Some(date) = date {
            ": what a session records, or else list prices of " (date)
        }
        "."
    }
}

fn tokens_chart(slots: &[Slot], sum: &Sum) -> Markup {
    let most = slots.iter().map(|slot| slot.sum.tokens()).max().unwrap_or_default();
    let totals = (sum.tokens().to_string(), most.to_string());
    let chart = Chart::over(slots, "Tokens", totals, |sum| {
        let written = sum.output;
        let fresh = sum.input - sum.cached;
        let cached = sum.cached;
        let words = format!("{written} written, {fresh} read, {cached} read from a cache");
        (vec![written.0, fresh.0, cached.0], words)
    });
    html! {
        div.drawn {
            (chart.draw())
            @if most.0 > 0 {
                p.legend {
                    span.key0 { "written" } span.key1 { "read" } span.key2 { "read from a cache" }
                }
            }
        }
    }
}

fn cost_chart(slots: &[Slot], sum: &Sum) -> Markup {
    let most = slots.iter().map(|slot| slot.sum.cost).max().unwrap_or_default();
    let totals = (sum.cost(), most.to_string());
    let chart = Chart::over(slots, "Cost", totals, |sum| (vec![sum.cost.0], sum.cost.to_string()));
    html! {
        div.drawn {
            (chart.draw())
            @if most.0 > 0 && sum.priced < sum.sessions {
                p.legend { span { "at least: not every cost is known" } }
            }
        }
    }
}

/// A table of sums: the rows with the most tokens, with bars, and one row for all others.
fn table<'n>(
    title: &str,
    sums: &'n std::collections::BTreeMap<String, Sum>,
    named: impl Fn(&'n str) -> (String, Option<String>),
) -> Markup {
    let mut rows: Vec<(&String, &Sum)> = sums.iter().collect();
    rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.tokens()));
    let most = rows.first().map_or(0, |(_, sum)| sum.tokens().0);
    let others = rows.split_off(rows.len().min(ROWS));
    let tokens: Tokens = others.iter().map(|(_, sum)| sum.tokens()).sum();
    html! {
        section.block {
            h2 { (title) }
            ol.sums {
                @for (name, sum) in rows {
                    @let (name, address) = named(name);
                    li {
                        p.name {
                            @if let Some(address) = address { a href=(address) { (ended(&name)) } }
                            @else { (ended(&name)) }
                        }
                        p.values {
                            span { (plural(sum.sessions, "session")) }
                            span { (sum.tokens()) " tokens" }
                            span { (sum.cost()) }
                        }
                        (part(sum.tokens().0, most))
                    }
                }
                @if !others.is_empty() {
                    li {
                        p.name { (plural(others.len() as u64, "other")) }
                        p.values { span { (tokens) " tokens" } }
                    }
                }
            }
        }
    }
}

/// A name, such as a path, in two parts: the browser may shorten the front part, but not the end,
/// which says most.
fn ended(name: &str) -> Markup {
    let name = epitome_model::short(name, 200);
    let (front, back) = match name.char_indices().rev().filter(|(_, c)| *c == '/').nth(1) {
        Some((at, _)) if at > 0 => name.split_at(at),
        Some(_) | None => ("", &*name),
    };
    html! {
        bdi.path {
            @if !front.is_empty() { span.front { (front) } }
            span.back { (back) }
        }
    }
}

/// A bar that shows `part` of `whole`. Screen readers skip it, because the numbers are next to it.
fn part(part: u64, whole: u64) -> Markup {
    let width = (u128::from(part) * 1_000).checked_div(u128::from(whole)).unwrap_or(0).min(1_000);
    html! {
        div.part aria-hidden="true" {
            svg viewBox="0 0 1000 10" preserveAspectRatio="none" {
                rect class="part0" x="0" y="0" width=(width.max(4)) height="10" {}
            }
        }
    }
}

/// Shows what compactions have saved, and what compacting would save.
fn saving(viewer: &Viewer, sessions: &[CachedSession]) -> Markup {
    html! {
        div.tables.two {
            section.block {
                h2 { "Saved so far" }
                (saved(sessions))
            }
            section.block {
                h2 { "Compacting would save" }
                (would_save(viewer, sessions))
            }
        }
    }
}

fn saved(sessions: &[CachedSession]) -> Markup {
    let mut n = 0_u64;
    let mut archive = Bytes(0);
    let mut context = Change::<Tokens>::default();
    let mut disk = Change::<Bytes>::default();
    for saved in sessions.iter().filter_map(|it| it.info()?.saved) {
        n += 1;
        context += saved.context;
        disk += saved.disk;
        archive += saved.archive;
    }
    if n == 0 {
        return html! { p.soft { "No session is compacted now." } };
    }
    let messages = format!("{} → {}", context.before, context.after);
    let on_disk = format!("{} → {}", disk.before, disk.after);
    html! {
        dl.figures {
            (figure("sessions compacted", n))
            (change("tokens of messages", context.before.0, context.after.0, &messages))
            (change("on disk", disk.before.0, disk.after.0, &on_disk))
            (figure("in the archive", archive))
        }
        p.soft {
            "Every byte is in the archive: " code { "epitome restore" }
            " gives it back."
        }
    }
}

fn would_save(viewer: &Viewer, sessions: &[CachedSession]) -> Markup {
    let mut would: Vec<(&CachedSession, &SessionInfo)> =
        sessions.iter().filter_map(|it| Some((it, it.info()?))).collect();
    would.retain(|(_, info)| info.saving.0 > 0);
    would.sort_by_key(|(_, info)| std::cmp::Reverse(info.saving));
    if would.is_empty() {
        return html! { p.soft { "Nothing: no session has anything that can go." } };
    }
    let all: Tokens = sessions.iter().filter_map(|it| it.info()?.context).sum();
    let saves: Tokens = would.iter().map(|(_, info)| info.saving).sum();
    html! {
        p.lead {
            b { "~" (saves) } " of ~" (all) " tokens of messages ("
            (percent(saves.0, all.0)) "%), in "
            (plural(would.len() as u64, "session")) "."
        }
        ol.sums {
            @for (session, info) in would.iter().take(ROWS.min(5)) {
                li {
                    (link(viewer, session, &plan_of(&session.file.path)))
                    p.values {
                        span.agent { (session.file.agent) }
                        span { "−" (info.saving) " tokens" }
                    }
                    (part(info.saving.0, would[0].1.saving.0))
                }
            }
        }
    }
}

fn link(viewer: &Viewer, session: &CachedSession, address: &str) -> Markup {
    html! { p.name { a href=(address) { bdi { (viewer.title(session, TITLE)) } } } }
}

fn figure(name: &str, value: impl std::fmt::Display) -> Markup {
    html! { div { dt { (name) } dd { (value.to_string()) } } }
}

/// A figure with a number before and after; its label says by how many per cent the number
/// decreased.
fn change(name: &str, before: u64, after: u64, shown: &str) -> Markup {
    html! {
        div {
            dt {
                (name)
                @if after < before { ", −" (percent(before - after, before)) "%" }
            }
            dd { (shown) }
        }
    }
}

/// The sessions whose next request nearly fills the window of their model.
fn nearly_full(viewer: &Viewer, sessions: &[CachedSession]) -> Markup {
    let mut known = 0;
    let mut full: Vec<(u64, &CachedSession, &SessionInfo, (Tokens, Tokens))> = Vec::new();
    for session in sessions {
        let Some(info) = session.info() else { continue };
        let Some((request, window)) = info.request.zip(info.window) else { continue };
        known += 1;
        let percent = percent(request.0, window.0);
        if percent >= NEARLY {
            full.push((percent, session, info, (request, window)));
        }
    }
    full.sort_by_key(|(percent, ..)| std::cmp::Reverse(*percent));
    html! {
        section.block {
            h2 { "Near the window of their model" }
            @if full.is_empty() {
                p.soft { "No session whose next request would fill " (NEARLY) "% of it or more." }
            } @else {
                ol.sums {
                    @for (percent, session, info, (request, window)) in full.iter().take(ROWS) {
                        li {
                            (link(viewer, session, &page_of(&session.file.path)))
                            p.values {
                                span.agent { (session.file.agent) }
                                @if let Some(model) = &info.model {
                                    bdi { (viewer.redacted(model)) }
                                }
                                span { "~" (request) " of " (window) ", " (percent) "%" }
                                a href=(plan_of(&session.file.path)) { "plan" }
                            }
                            (part(request.0, window.0.max(request.0)))
                        }
                    }
                }
                @if full.len() > ROWS {
                    p.soft { "and " (full.len() - ROWS) " more" }
                }
            }
            @if known < sessions.len() {
                p.soft {
                    "Of " (sessions.len() - known) " of " (sessions.len())
                    " sessions the next request or the window of the model is not known."
                }
            }
        }
    }
}
