//! A session as pages.

mod sheet;

use std::ops::Range;

use epitome_model::Role;
use maud::{Markup, html};

use super::code::Budget;
use super::course::course;
use super::frame::frame;
use super::layout::Page;
use super::name::PageName;
use super::words::words;
use super::{card, plain};
use crate::story::{Branch, Piece, What};
use crate::{Detail, Facts, Story, Turn, time, visible};

pub use sheet::Sheet;

/// Bytes of a session on one of its pages, about.
const PAGE: u64 = 640 << 10;
/// Bytes of code in colours, of all pages together and of one. Colours take a hundred times as long
/// as everything else.
const COLOURS: usize = 768 << 10;
const COLOURS_OF_A_PAGE: std::ops::RangeInclusive<usize> = (16 << 10)..=(128 << 10);

/// A session as pages.
pub struct Html<'a> {
    story: &'a Story<'a>,
    facts: Facts,
    name: PageName,
    /// Where an index of sessions is, or the session that sent this one.
    up: Option<(String, String)>,
    pages: Vec<Range<usize>>,
    /// What is shown behind it on the same page: sub-agents, with the anchors that lead to them.
    nested: Vec<(String, &'a Story<'a>)>,
}

impl<'a> Html<'a> {
    /// One page, whatever its length, with its sub-agents on it, each under an anchor.
    pub fn whole(story: &'a Story<'a>, nested: Vec<(String, &'a Story<'a>)>) -> Html<'a> {
        let all = 0..story.pieces.len();
        let (facts, name) = (Facts::of(story), PageName::new("session"));
        Html { story, facts, name, up: None, pages: vec![all], nested }
    }

    /// Pages that open quickly, whatever the length of the session. `up` is the address and the
    /// name of what leads here.
    pub fn paged(story: &'a Story<'a>, name: PageName, up: Option<(String, String)>) -> Html<'a> {
        let mut pages = Vec::new();
        let (mut start, mut weight) = (0, 0);
        for (idx, piece) in story.pieces.iter().enumerate() {
            if weight > 0 && weight + piece.weight > PAGE {
                pages.push(start..idx);
                (start, weight) = (idx, 0);
            }
            weight += piece.weight;
        }
        pages.push(start..story.pieces.len());
        Html { story, facts: Facts::of(story), name, up, pages, nested: Vec::new() }
    }

    /// How many pages there are: at least one.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// What is known of the session.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The file of a page.
    pub fn file(&self, page: usize) -> String {
        self.name.file(page)
    }

    /// A page.
    ///
    /// # Panics
    ///
    /// If there is no such page.
    pub fn page(&self, number: usize) -> String {
        let page = self.on_page();
        let body = html! {
            (self.before_columns(number))
            div.columns {
                (self.timeline(number))
                main #content {
                    (self.above(number))
                    (page.turns(self.pages[number].clone()))
                    @for (anchor, story) in &self.nested { (nested(anchor, story)) }
                    (self.steps_between_pages(number))
                }
            }
        };
        frame(&self.title(number), (number == 0).then_some(&self.facts), &body)
    }

    fn title(&self, number: usize) -> String {
        match number {
            0 => self.facts.title.clone(),
            _ => format!("{} ({} of {})", self.facts.title, number + 1, self.pages.len()),
        }
    }

    fn on_page(&self) -> Page<'_, 'a> {
        Page { story: self.story, budget: budget(self.pages.len()), prefix: String::new() }
    }

    fn before_columns(&self, number: usize) -> Markup {
        html! {
            a.skip href="#content" { "To the conversation" }
            (self.bar(number))
        }
    }

    fn above(&self, number: usize) -> Markup {
        html! {
            @if number == 0 { (heading(self.story, &self.facts, self.up.as_ref())) }
            @else { h1.again { bdi { (self.facts.title) } } }
        }
    }

    fn bar(&self, number: usize) -> Markup {
        html! {
            header.bar {
                @match &self.up {
                    Some((address, name)) => a.home href=(address) { "‹ " bdi { (name) } },
                    None => span.home { "epitome" },
                }
                div.search role="search" {
                    input #find type="search" placeholder="Search this page  /"
                        aria-label="Search this page" autocomplete="off";
                    output #found aria-live="polite" {}
                    button #back type="button" aria-label="Previous match" hidden { "↑" }
                    button #next type="button" aria-label="Next match" hidden { "↓" }
                }
                button #unfold type="button" aria-pressed="false" { "Unfold all" }
                button #theme type="button" aria-label="Switch between light and dark" { "◐" }
                @if self.pages.len() > 1 {
                    span.count { "page " (number + 1) " of " (self.pages.len()) }
                }
            }
        }
    }

    fn timeline(&self, number: usize) -> Markup {
        let mut day = String::new();
        let mut turns = Vec::new();
        for (idx, turn) in self.story.turns_on(&self.pages[number]) {
            let when = turn.time.as_deref().and_then(time::parse);
            let date = when.map(time::date).filter(|date| *date != day);
            day = date.clone().unwrap_or(day);
            turns.push((idx, turn, when, date));
        }
        html! {
            nav.timeline aria-label="Turns" {
                details open {
                    summary { "Turns" }
                    ol {
                        @for (idx, turn, when, date) in turns {
                            @if let Some(date) = date { li.day { (date) } }
                            li {
                                a href={ "#t" (idx + 1) } {
                                    @if let Some(when) = when {
                                        time datetime=(when) { (time::clock(when)) }
                                    }
                                    bdi {
                                        @if turn.title.is_empty() { "Before the first words" }
                                        @else { (turn.title) }
                                    }
                                }
                            }
                        }
                    }
                }
                @if self.pages.len() > 1 {
                    p.pages {
                        @for other in 0..self.pages.len() {
                            @if other == number { b aria-current="page" { (other + 1) } }
                            @else { a href=(self.file(other)) { (other + 1) } }
                            " "
                        }
                    }
                }
            }
        }
    }

    fn steps_between_pages(&self, number: usize) -> Markup {
        html! {
            @if self.pages.len() > 1 {
                nav.between aria-label="Pages" {
                    @if number > 0 {
                        a rel="prev" href=(self.file(number - 1)) { "← Page " (number) }
                    } @else { span {} }
                    @if number + 1 < self.pages.len() {
                        a rel="next" href=(self.file(number + 1)) { "Page " (number + 2) " →" }
                    }
                }
            }
        }
    }
}

/// A sub-agent's session on the page of the one that sent it.
fn nested(anchor: &str, story: &Story<'_>) -> Markup {
    let facts = Facts::of(story);
    let prefix = format!("{anchor}-");
    let page = Page { story, budget: budget(1), prefix };
    html! {
        details.nested id=(anchor) {
            summary { h2 { "Sub-agent: " bdi { (facts.title) } } }
            (page.turns(0..story.pieces.len()))
        }
    }
}

fn heading(story: &Story<'_>, facts: &Facts, up: Option<&(String, String)>) -> Markup {
    let times = (
        facts.started.as_deref().and_then(time::parse),
        facts.ended.as_deref().and_then(time::parse),
    );
    let spent = facts.spent;
    html! {
        header.heading {
            @if let Some((address, name)) = up.filter(|(address, _)| is_session(address)) {
                p.of { "A sub-agent of " a href=(address) { bdi { (name) } } }
            }
            h1 { bdi { (facts.title) } }
            p.facts {
                span.agent { (facts.agent) }
                @for model in &facts.models { span { bdi { (visible(model)) } } }
                @if let (Some(from), Some(to)) = times {
                    span { time datetime=(from) { (time::shown(from)) } " UTC" }
                    span { (time::length(from, to)) }
                }
                @if let Some(cwd) = &facts.cwd { span { bdi { (visible(cwd)) } } }
                @if let Some(id) = &facts.id { span.id { bdi { (visible(id)) } } }
            }
            dl.figures {
                (figure(if facts.turns == 1 { "turn" } else { "turns" }, facts.turns))
                (figure(if facts.calls == 1 { "tool call" } else { "tool calls" }, facts.calls))
                @if facts.failed > 0 { (figure("failed", facts.failed)) }
                @if spent.requests > 0 {
                    @if let Some(output) = spent.output { (figure("tokens written", output)) }
                    (figure("tokens read", spent.input))
                    (figure("largest context", spent.largest))
                }
                @if let Some(cost) = &facts.cost { (figure(&cost.name(), cost.micro_dollars)) }
                @if let Some(floor) = &facts.cost_floor {
                    (figure(&floor.name(), floor.micro_dollars))
                }
                @if !facts.changes.is_empty() {
                    div { dt { "lines" } dd {
                        span.plus { "+" (facts.changes.added) } " "
                        span.minus { "−" (facts.changes.removed) }
                    } }
                    (figure("files", facts.changes.files))
                }
            }
            (course(story.session.transcript))
        }
    }
}

/// Whether what leads here is a session and no list of them.
fn is_session(address: &str) -> bool {
    address.ends_with(".html") && address != "index.html"
}

fn figure(name: &str, value: impl std::fmt::Display) -> Markup {
    html! { div { dt { (name) } dd { (value.to_string()) } } }
}

/// Where a piece stands in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Among the steps, where nobody but the agent speaks.
    Step,
    /// Before or behind them.
    Turn,
}

impl Page<'_, '_> {
    fn turns(&self, pieces: Range<usize>) -> Markup {
        html! {
            @for (idx, turn) in self.story.turns_on(&pieces) { (self.turn(idx, turn, &pieces)) }
        }
    }

    /// The part of a turn that stands on a page.
    fn turn(&self, idx: usize, turn: &Turn, on_page: &Range<usize>) -> Markup {
        let on = |range: Range<usize>| {
            let start = range.start.max(on_page.start);
            start..range.end.min(on_page.end).max(start)
        };
        let prompt = self.story.prompt(turn);
        let steps = on(prompt.end..turn.answer.max(prompt.end));
        let answer = on(turn.answer.max(prompt.end)..turn.pieces.end);
        let goes_on = turn.pieces.start < on_page.start;
        html! {
            section.turn id={ (self.prefix) "t" (idx + 1) } aria-label={ "Turn " (idx + 1) } {
                h2 {
                    span.n { (idx + 1) }
                    span.sr { (turn.title) }
                    @if goes_on { span.on { "continued" } }
                }
                @for piece in &self.story.pieces[on(prompt)] { (self.piece(piece, Place::Turn)) }
                @if !steps.is_empty() { (self.steps(&self.story.pieces[steps])) }
                @for piece in &self.story.pieces[answer] { (self.piece(piece, Place::Turn)) }
            }
        }
    }

    fn steps(&self, pieces: &[Piece<'_>]) -> Markup {
        if self.story.session.detail == Detail::Calls {
            return html! {
                div.steps { @for piece in pieces { (self.piece(piece, Place::Step)) } }
            };
        }
        let failed = pieces
            .iter()
            .filter(|piece| matches!(piece.what, What::Call(_, Some(output)) if output.error));
        let steps = pieces.len();
        html! {
            details.steps {
                summary {
                    span { (steps) @if steps == 1 { " step" } @else { " steps" } }
                    @for (name, n) in tally(pieces) { span.tally { bdi { (name) } " " (n) } }
                    @let failed = failed.count();
                    @if failed > 0 { span.bad { (failed) " failed" } }
                }
                @for piece in pieces { (self.piece(piece, Place::Step)) }
            }
        }
    }

    fn piece(&self, piece: &Piece<'_>, place: Place) -> Markup {
        let source = self.source();
        let id = format!("{}{}", self.prefix, piece.anchor());
        let aside = piece.told == Branch::Aside;
        let read = |text: &epitome_model::Text| text.read(source).into_owned();
        html! {
            @match piece.what {
                What::Words(text) => {
                    @let (class, who) = speaker(piece.entry.role);
                    @if piece.entry.role == Role::System {
                        details.note.aside[aside] id=(id) {
                            summary { (who) }
                            div.md dir="auto" { (words(&read(text), self.limit(), &self.budget)) }
                        }
                    } @else {
                        article.msg.(class).aside[aside] id=(id) {
                            @match place {
                                Place::Turn => (self.who(who, piece, &id)),
                                Place::Step => (anchor(&id)),
                            }
                            div.md dir="auto" { (words(&read(text), self.limit(), &self.budget)) }
                        }
                    }
                }
                What::Summary(text) => {
                    details.note.summary.aside[aside] id=(id) {
                        summary { "The conversation before was summarised" }
                        div.md dir="auto" { (words(&read(text), self.limit(), &self.budget)) }
                    }
                }
                What::Thinking(thinking) => {
                    @if let Some(text) = &thinking.text {
                        details.thinking.aside[aside] id=(id) {
                            summary { "Thinking" }
                            div.md dir="auto" { (words(&read(text), self.limit(), &self.budget)) }
                        }
                    }
                }
                What::Call(call, output) => {
                    @if self.story.session.detail == Detail::Calls {
                        p.call id=(id) { (self.call_line(call, output)) }
                    } @else {
                        div.aside[aside] id=(id) { (card::card(self, call, output)) }
                    }
                }
                What::Result(output) => {
                    details.card id=(id) {
                        summary { "A result without a call" }
                        div.body { (card::result(self, None, output)) }
                    }
                }
                What::Image(image) => div.aside[aside] id=(id) { (card::picture(image, source)) },
                What::Opaque(span) => {
                    details.note id=(id) {
                        summary { "Something else" }
                        (card::code(self, &String::from_utf8_lossy(&source.at(span)), "json"))
                    }
                }
            }
        }
    }

    fn who(&self, who: &str, piece: &Piece<'_>, id: &str) -> Markup {
        let when = piece.entry.time.as_deref().and_then(time::parse);
        html! {
            header.who {
                b { (who) }
                @if piece.told == Branch::Aside { span.off { "on a branch that was left" } }
                @if let Some(when) = when { time datetime=(when) { (time::shown(when)) } }
                (anchor(id))
            }
        }
    }

    fn call_line(
        &self,
        call: &epitome_model::Call,
        output: Option<&epitome_model::Output>,
    ) -> Markup {
        let target = crate::call::target(call, self.story.session.cwd(), self.story.session.source);
        html! {
            b { bdi { (visible(&epitome_model::short(&call.name, 60))) } }
            @if let Some(target) = target { " " bdi.target { (plain(&target)) } }
            @if output.is_some_and(|output| output.error) { " " span.bad { "failed" } }
        }
    }
}

/// What each of so many pages may spend on colours.
fn budget(pages: usize) -> Budget {
    let (least, most) = (*COLOURS_OF_A_PAGE.start(), *COLOURS_OF_A_PAGE.end());
    Budget::new((COLOURS / pages).clamp(least, most))
}

fn anchor(id: &str) -> Markup {
    html! { a.anchor href={ "#" (id) } aria-label="Link to this message" { "#" } }
}

fn speaker(role: Role) -> (&'static str, &'static str) {
    match role {
        Role::User => ("user", "User"),
        Role::Assistant => ("agent", "Assistant"),
        Role::Tool => ("agent", "Tool"),
        Role::System => ("note", "What the agent's program said"),
    }
}

/// How often each tool was called, the most first.
fn tally(pieces: &[Piece<'_>]) -> Vec<(String, usize)> {
    let mut tally: Vec<(String, usize)> = Vec::new();
    for piece in pieces {
        let What::Call(call, _) = piece.what else { continue };
        let name = visible(&epitome_model::short(&call.name, 30));
        match tally.iter_mut().find(|(known, _)| *known == name) {
            Some((_, n)) => *n += 1,
            None => tally.push((name, 1)),
        }
    }
    tally.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    tally.truncate(6);
    tally
}
