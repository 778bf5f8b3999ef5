//! The heading of a session, and the heading of each turn.

use epitome_model::{Tokens, plural};
use maud::{Markup, html};

use super::Html;
use crate::html::context_bars::course;
use crate::html::layout::Page;
use crate::spent::{Request, Spent};
use crate::{Turn, time, visible};

impl Html<'_> {
    pub(super) fn heading(&self) -> Markup {
        let facts = &self.facts;
        html! {
            header.heading {
                @if let Some((address, name)) = self.up.as_ref().filter(|up| is_session(&up.0)) {
                    p.of { "A sub-agent of " a href=(address) { bdi { (name) } } }
                }
                h1 { bdi { (facts.title) } }
                p.facts {
                    span.agent { (facts.agent) }
                    @for model in &facts.models { span { bdi { (visible(model)) } } }
                    (self.times())
                    @if let Some(cwd) = &facts.cwd { span { bdi { (visible(cwd)) } } }
                    @if let Some(id) = &facts.id { span.id { bdi { (visible(id)) } } }
                }
                dl.figures {
                    (figure(if facts.turns == 1 { "turn" } else { "turns" }, facts.turns))
                    (figure(if facts.calls == 1 { "tool call" } else { "tool calls" }, facts.calls))
                    (self.failures())
                    (self.spent())
                    @if !facts.changes.is_empty() {
                        div { dt { "lines" } dd {
                            span.plus { "+" (facts.changes.added) } " "
                            span.minus { "−" (facts.changes.removed) }
                        } }
                        (figure("files", facts.changes.files))
                    }
                }
                (course(&self.layout.story.session))
                (self.past())
            }
        }
    }

    /// A note that says whether the session was compacted, and in which state it is displayed.
    /// Empty if there is nothing to report.
    fn past(&self) -> Markup {
        let past = self.layout.story.session.past.filter(|past| !past.is_empty());
        html! {
            @if let Some(past) = past {
                p.past role="note" {
                    @for (n, sentence) in past.sentences().iter().enumerate() {
                        @if n > 0 { " " }
                        (visible(sentence))
                    }
                }
            }
        }
    }

    /// When the session began, and how long it was active.
    fn times(&self) -> Markup {
        let times = (
            self.facts.started.as_deref().and_then(time::parse),
            self.facts.ended.as_deref().and_then(time::parse),
        );
        let (Some(from), Some(to)) = times else { return html! {} };
        let whole = time::length(to.duration_since(from));
        let pauses = time::PAUSE.as_mins();
        let story = self.layout.story;
        html! {
            span { time datetime=(from) { (time::display(from)) } " UTC" }
            @match story.active(&(0..story.session.transcript.items.len())) {
                Some(active) => span title={
                    (whole) " from the first record to the last; active is the time without pauses \
                     of more than " (pauses) " minutes"
                } { (time::length(active)) " active" },
                None => span { (whole) },
            }
        }
    }

    /// The number of failed calls, as a link to the first.
    fn failures(&self) -> Markup {
        let failed = self.facts.failed;
        html! {
            @if failed > 0 {
                div { dt { "failed" } dd {
                    @match self.layout.failed.first() {
                        Some(first) => a.bad href=(self.layout.address(*first, 0))
                            aria-label={ (failed) " failed: go to the first" } { (failed) },
                        None => (failed),
                    }
                } }
            }
        }
    }

    fn spent(&self) -> Markup {
        let facts = &self.facts;
        let spent = facts.spent;
        let cached = Spent::on(&self.layout.requests, None).cached;
        html! {
            @if spent.requests > 0 {
                @if let Some(output) = spent.output { (figure("tokens written", output)) }
                @let read = match cached.and_then(|cached| percent(cached, spent.input)) {
                    Some(percent) => format!("tokens read, {percent}% cached"),
                    None => "tokens read".to_owned(),
                };
                (figure(&read, spent.input))
                (figure("largest context", spent.largest))
            }
            @if let Some(cost) = &facts.cost { (figure(&cost.name(), cost.micro_dollars)) }
            @if let Some(floor) = &facts.cost_floor { (figure(&floor.name(), floor.micro_dollars)) }
        }
    }
}

impl Page<'_, '_> {
    /// The figures of a turn, as far as there are any: steps, failures, time, tokens, cost.
    pub(super) fn figures(&self, turn: &Turn) -> Markup {
        let layout = self.layout;
        let start = layout.requests.partition_point(|request| request.item < turn.items.start);
        let end = layout.requests.partition_point(|request| request.item < turn.items.end);
        let requests = &layout.requests[start..end];
        let steps = self.story.steps(turn).len() as u64;
        let mut parts = Vec::new();
        if steps > 0 {
            parts.push(html! { (plural(steps, "step")) });
        }
        let failed = layout.failed.iter().filter(|piece| turn.pieces.contains(piece));
        if let Some(first) = failed.clone().next() {
            let n = failed.count();
            parts.push(html! { a.bad href=(self.address(*first)) { (n) " failed" } });
        }
        parts.extend(self.story.active(&turn.items).map(|active| html! { (time::length(active)) }));
        parts.extend(tokens(requests));
        parts.extend(cost(&Spent::on(requests, self.story.session.prices)));
        html! {
            @if !parts.is_empty() {
                p.took {
                    @for (idx, part) in parts.iter().enumerate() {
                        @if idx > 0 { " · " }
                        (part)
                    }
                }
            }
        }
    }
}

/// The tokens of some requests: `45.2k in (93% cached), 1.2k out`.
fn tokens(requests: &[Request<'_>]) -> Option<Markup> {
    let Spent { totals, cached, .. } = Spent::on(requests, None);
    let of = plural(totals.requests, "request");
    let cached = cached.and_then(|cached| percent(cached, totals.input));
    (totals.requests > 0).then(|| {
        html! {
            span title={ "tokens that " (of) " read and wrote" } {
                (totals.input) " in"
                @if let Some(percent) = cached { " (" (percent) "% cached)" }
                @if let Some(output) = totals.output { ", " (output) " out" }
            }
        }
    })
}

fn cost(spent: &Spent) -> Option<Markup> {
    if let Some(cost) = &spent.cost {
        let about = if cost.prices_of.is_some() { "about " } else { "" };
        return Some(html! { span title=(cost) { (about) (cost.micro_dollars) } });
    }
    let floor = spent.cost_floor.as_ref()?;
    Some(html! { span title=(floor) { "at least " (floor.micro_dollars) } })
}

/// A part in per cent of a whole, rounded down; `None` if the result or the whole is zero.
fn percent(part: Tokens, of: Tokens) -> Option<u64> {
    (part.0 * 100).checked_div(of.0).filter(|percent| *percent > 0)
}

/// Whether the page at the address is that of a session, and not a list of sessions.
fn is_session(address: &str) -> bool {
    address.ends_with(".html") && address != "index.html"
}

fn figure(name: &str, value: impl std::fmt::Display) -> Markup {
    html! { div { dt { (name) } dd { (value.to_string()) } } }
}
