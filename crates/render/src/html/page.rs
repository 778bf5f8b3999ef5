//! Formats a session as HTML pages.

mod heading;
mod sheet;

use std::ops::Range;

use epitome_model::{Role, Text, plural};
use maud::{Markup, html};

use super::code::Budget;
use super::frame::frame;
use super::layout::{Layout, Page};
use super::markdown::words;
use super::name::PageName;
use super::{card, controls, plain};
use crate::reminder::without_reminders;
use crate::story::{Branch, StoryItem, StoryItemKind};
use crate::{Detail, Facts, Story, Turn, time, visible};

pub use sheet::Sheet;

/// The maximum estimated size of a page in bytes. A page with a single piece may be larger.
const PAGE: u64 = 640 << 10;
/// The number of bytes of code to highlight, which is divided among all pages, and the minimum and
/// the maximum for a single page. They are limited because highlighting takes a hundred times as
/// long as the rest of a page.
const COLOURS: usize = 768 << 10;
const COLOURS_OF_A_PAGE: std::ops::RangeInclusive<usize> = (8 << 10)..=(128 << 10);
/// The heading of the items before the first user message.
const BEFORE: &str = "Before the first words";

/// A session as HTML pages.
pub struct Html<'a> {
    layout: Layout<'a>,
    facts: Facts,
    /// The address and the name of the page above: an index of sessions, or the session that
    /// started this one.
    up: Option<(String, String)>,
    /// Links in the header to other pages: address and name.
    links: Vec<(String, String)>,
    /// The address of the search over all pages, to which the query is appended.
    search: Option<String>,
    /// Sub-agents whose sessions follow on the same page, with their anchors.
    nested: Vec<(String, &'a Story<'a>)>,
}

impl<'a> Html<'a> {
    /// A single page of any length. The sessions of sub-agents follow on it, each under an anchor.
    pub fn single_page(story: &'a Story<'a>, nested: Vec<(String, &'a Story<'a>)>) -> Html<'a> {
        let all = 0..story.pieces.len();
        let name = PageName::new("session");
        let pages = vec![all];
        let layout = Layout::new(story, name, pages);
        Html { nested, ..Html::new(layout, None) }
    }

    /// Pages of limited length, which load fast. `up` is the address and the name of the page
    /// above.
    pub fn with_pages(
        story: &'a Story<'a>,
        name: PageName,
        up: Option<(String, String)>,
    ) -> Html<'a> {
        let mut pages = Vec::new();
        let mut start = 0;
        let mut weight = 0;
        for (idx, piece) in story.pieces.iter().enumerate() {
            if weight > 0 && weight + piece.weight > PAGE {
                pages.push(start..idx);
                start = idx;
                weight = 0;
            }
            weight += piece.weight;
        }
        pages.push(start..story.pieces.len());
        Html::new(Layout::new(story, name, pages), up)
    }

    fn new(layout: Layout<'a>, up: Option<(String, String)>) -> Html<'a> {
        let facts = Facts::from_story(layout.story);
        Html { layout, facts, up, links: Vec::new(), search: None, nested: Vec::new() }
    }

    /// Adds a search over all pages: the query is appended to `address`.
    #[must_use]
    pub fn searched_at(mut self, address: String) -> Html<'a> {
        self.search = Some(address);
        self
    }

    /// Adds links to other pages to the header: address and name.
    #[must_use]
    pub fn with_links(mut self, links: Vec<(String, String)>) -> Html<'a> {
        self.links = links;
        self
    }

    /// The number of pages: at least one.
    pub fn pages(&self) -> usize {
        self.layout.pages.len()
    }

    /// Whether a compaction of epitome is in effect in the stored session.
    pub fn is_compacted(&self) -> bool {
        self.layout.story.session.past.is_some_and(|past| !past.compactions.is_empty())
    }

    /// The key figures of the session.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The file name of a page.
    pub fn file(&self, page: usize) -> String {
        self.layout.name.file(page)
    }

    /// The HTML of a page.
    ///
    /// # Panics
    ///
    /// If there is no such page.
    pub fn page(&self, number: usize) -> String {
        let page = self.on_page(number, String::new());
        let body = html! {
            (self.before_columns(number))
            div.columns {
                (self.timeline(number))
                main #content {
                    (self.above(number))
                    (controls::filter())
                    (page.turns(self.layout.pages[number].clone()))
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
            _ => format!("{} ({} of {})", self.facts.title, number + 1, self.layout.pages.len()),
        }
    }

    fn on_page(&self, number: usize, prefix: String) -> Page<'_, 'a> {
        let budget = budget(self.layout.pages.len());
        Page { layout: &self.layout, number, story: self.layout.story, budget, prefix }
    }

    fn before_columns(&self, number: usize) -> Markup {
        html! {
            a.skip href="#content" { "To the conversation" }
            (self.bar(number))
            (controls::keys())
        }
    }

    fn above(&self, number: usize) -> Markup {
        html! {
            @if number == 0 { (self.heading()) }
            @else { h1.again { bdi { (self.facts.title) } } }
        }
    }

    fn bar(&self, number: usize) -> Markup {
        controls::bar(self.up.as_ref(), &self.links, self.search.as_deref(), number, self.pages())
    }

    fn timeline(&self, number: usize) -> Markup {
        let mut day = String::new();
        let mut turns = Vec::new();
        for turn in self.layout.story.turns_on(&self.layout.pages[number]) {
            let when = turn.time.as_deref().and_then(time::parse);
            let date = when.map(time::date).filter(|date| *date != day);
            day = date.clone().unwrap_or(day);
            turns.push((turn, when, date));
        }
        html! {
            nav.timeline aria-label="Turns" {
                details open {
                    summary { "Turns" }
                    ol {
                        @for (turn, when, date) in turns {
                            @if let Some(date) = date { li.day { (date) } }
                            li {
                                a href={ "#t" (turn.number) } {
                                    @if let Some(when) = when {
                                        time datetime=(when) { (time::clock(when)) }
                                    }
                                    bdi {
                                        @if turn.number == 0 { (BEFORE) }
                                        @else if turn.title.is_empty() { "Without words" }
                                        @else { (turn.title) }
                                    }
                                }
                            }
                        }
                    }
                }
                @if self.layout.pages.len() > 1 {
                    p.pages {
                        @for other in 0..self.layout.pages.len() {
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
        let here = &self.layout.pages[number];
        let failed = &self.layout.failed;
        let earlier = failed.iter().rfind(|piece| **piece < here.start);
        let earlier = earlier.map(|piece| self.layout.address(*piece, number));
        let later = failed.iter().find(|piece| **piece >= here.end);
        let later = later.map(|piece| self.layout.address(*piece, number));
        html! {
            @if self.layout.pages.len() > 1 {
                nav.between aria-label="Pages" {
                    @if number > 0 {
                        a rel="prev" href=(self.file(number - 1)) { "← Page " (number) }
                    } @else { span {} }
                    @if let Some(address) = earlier {
                        a #earlier href=(address) { "↑ Failed call before" }
                    }
                    @if let Some(address) = later {
                        a #later href=(address) { "↓ Next failed call" }
                    }
                    @if number + 1 < self.layout.pages.len() {
                        a rel="next" href=(self.file(number + 1)) { "Page " (number + 2) " →" }
                    } @else { span {} }
                }
            }
        }
    }
}

/// A sub-agent's session on the page of the session that started it.
fn nested(anchor: &str, story: &Story<'_>) -> Markup {
    let html = Html::single_page(story, Vec::new());
    let page = html.on_page(0, format!("{anchor}-"));
    html! {
        details.nested id=(anchor) {
            summary { h2 { "Sub-agent: " bdi { (html.facts.title) } } }
            (page.turns(0..story.pieces.len()))
        }
    }
}

/// A mark at content that a resume no longer sends.
fn unsent(piece: &StoryItem<'_>) -> Markup {
    html! {
        @if piece.is_unsent {
            " "
            span.unsent title="A compaction took it, or a part of it, out of what a resume sends" {
                "not sent"
            }
        }
    }
}

/// Where in its turn a piece (a displayed element) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnSection {
    /// Among the steps: between the user's message and the answer.
    Step,
    /// In the user's message or in the answer.
    Turn,
}

impl Page<'_, '_> {
    fn turns(&self, pieces: Range<usize>) -> Markup {
        html! {
            @for turn in self.story.turns_on(&pieces) { (self.turn(turn, &pieces)) }
        }
    }

    /// The part of a turn that is on a page.
    fn turn(&self, turn: &Turn, on_page: &Range<usize>) -> Markup {
        let steps = self.story.steps(turn);
        let prompt = within(turn.pieces.start..steps.start, on_page);
        let answer = within(steps.end..turn.pieces.end, on_page);
        let steps = within(steps, on_page);
        let goes_on = turn.pieces.start < on_page.start;
        let name = match turn.number {
            0 => BEFORE.to_owned(),
            number => format!("Turn {number}"),
        };
        html! {
            section.turn id={ (self.prefix) "t" (turn.number) } aria-label=(name) {
                div.top {
                    h2 {
                        span.n { (turn.number) }
                        span.sr { @if turn.number == 0 { (BEFORE) } @else { (turn.title) } }
                        @if goes_on { span.on { "continued" } }
                    }
                    @if !goes_on { (self.figures(turn)) }
                }
                @for piece in &self.story.pieces[prompt] { (self.piece(piece, TurnSection::Turn)) }
                @if !steps.is_empty() { (self.steps(&self.story.pieces[steps])) }
                @for piece in &self.story.pieces[answer] { (self.piece(piece, TurnSection::Turn)) }
            }
        }
    }

    fn steps(&self, pieces: &[StoryItem<'_>]) -> Markup {
        if self.story.session.detail == Detail::Calls {
            return html! {
                div.steps { @for piece in pieces { (self.piece(piece, TurnSection::Step)) } }
            };
        }
        let failed = pieces.iter().filter(|piece| piece.is_failed()).count();
        html! {
            details.steps {
                summary {
                    span { (plural(pieces.len() as u64, "step")) }
                    @for (name, n) in tally(pieces) { span.tally { bdi { (name) } " " (n) } }
                    @if failed > 0 { span.bad { (failed) " failed" } }
                }
                @for piece in pieces { (self.piece(piece, TurnSection::Step)) }
            }
        }
    }

    fn piece(&self, piece: &StoryItem<'_>, place: TurnSection) -> Markup {
        let source = self.source();
        let id = format!("{}{}", self.prefix, piece.anchor());
        let is = kinds(piece);
        let aside = piece.branch == Branch::Aside;
        let note = |class: &str, name: &str, text: &Text| {
            html! {
                details.(class).aside[aside] id=(id) data-is=(is) {
                    summary { (name) (unsent(piece)) }
                    (self.text(&text.read(source)))
                }
            }
        };
        html! {
            @match piece.what {
                StoryItemKind::Words(text) if piece.entry.role == Role::System => {
                    (note("note", "System message", text))
                }
                StoryItemKind::Words(text) => {
                    @let (class, who) = speaker(piece.entry.role);
                    article.msg.(class).aside[aside] id=(id) data-is=(is) {
                        @match place {
                            TurnSection::Turn => (self.speaker(who, piece, &id)),
                            TurnSection::Step => { (unsent(piece)) (anchor(&id)) }
                        }
                        (self.message(piece.entry.role, &text.read(source)))
                    }
                }
                StoryItemKind::Summary(text) => {
                    (note("note summary", "The conversation before was summarised", text))
                }
                StoryItemKind::Thinking(thinking) => {
                    @if let Some(text) = &thinking.text { (note("thinking", "Thinking", text)) }
                }
                StoryItemKind::Call(call, output) => {
                    @if self.story.session.detail == Detail::Calls {
                        p.call.failed[piece.is_failed()] id=(id) data-is=(is) {
                            (self.call_line(call, output))
                        }
                    } @else {
                        div.aside[aside] id=(id) data-is=(is) {
                            (card::card(self, call, output, unsent(piece)))
                        }
                    }
                }
                StoryItemKind::Result(output) => {
                    details.card.failed[output.error] id=(id) data-is=(is) {
                        summary { "A result without a call" (unsent(piece)) }
                        div.body { (card::result(self, None, output)) }
                    }
                }
                StoryItemKind::Image(image) => {
                    div.aside[aside] id=(id) data-is=(is) { (card::picture(image, source)) }
                }
                StoryItemKind::Opaque(span) => {
                    details.note id=(id) data-is=(is) {
                        summary { "Something else" }
                        (card::code(self, &String::from_utf8_lossy(&source.at(span)), "json"))
                    }
                }
            }
        }
    }

    /// A message; reminders that the agent put into a user message are folded.
    fn message(&self, role: Role, text: &str) -> Markup {
        if role != Role::User {
            return self.text(text);
        }
        let (text, reminders) = without_reminders(text);
        html! { (self.text(&text)) (card::reminders(self, &reminders)) }
    }

    /// A message as Markdown.
    fn text(&self, text: &str) -> Markup {
        html! { div.md dir="auto" { (words(text, self.limit(), &self.budget)) } }
    }

    fn speaker(&self, who: &str, piece: &StoryItem<'_>, id: &str) -> Markup {
        let when = piece.entry.time.as_deref().and_then(time::parse);
        html! {
            header.who {
                b { (who) }
                @if piece.branch == Branch::Aside { span.off { "on a branch that was left" } }
                (unsent(piece))
                @if let Some(when) = when { time datetime=(when) { (time::display(when)) } }
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

/// The part of a range that is on a page.
fn within(range: Range<usize>, on_page: &Range<usize>) -> Range<usize> {
    let start = range.start.max(on_page.start);
    start..range.end.min(on_page.end).max(start)
}

/// The classes by which the filter buttons select a piece.
fn kinds(piece: &StoryItem<'_>) -> &'static str {
    match (&piece.what, piece.entry.role) {
        (StoryItemKind::Words(_) | StoryItemKind::Image(_), Role::User) => "user",
        (StoryItemKind::Words(_) | StoryItemKind::Image(_), Role::Assistant) => "answer",
        (StoryItemKind::Words(_) | StoryItemKind::Image(_), Role::Tool) => "tool",
        (StoryItemKind::Words(_) | StoryItemKind::Image(_), Role::System) => "other",
        (StoryItemKind::Thinking(_), _) => "thinking",
        (StoryItemKind::Call(call, _), _) => match (call.kind.changes_file(), piece.is_failed()) {
            (true, true) => "tool file error",
            (true, false) => "tool file",
            (false, true) => "tool error",
            (false, false) => "tool",
        },
        (StoryItemKind::Result(_), _) if piece.is_failed() => "tool error",
        (StoryItemKind::Result(_), _) => "tool",
        (StoryItemKind::Summary(_) | StoryItemKind::Opaque(_), _) => "other",
    }
}

/// The number of bytes of code that may be highlighted on each page, if there are this many pages.
fn budget(pages: usize) -> Budget {
    let least = *COLOURS_OF_A_PAGE.start();
    let most = *COLOURS_OF_A_PAGE.end();
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
        Role::System => ("note", "System message"),
    }
}

/// The six tools that were called most, each with the number of its calls, the most frequent first.
fn tally(pieces: &[StoryItem<'_>]) -> Vec<(String, usize)> {
    let mut tally: Vec<(String, usize)> = Vec::new();
    for piece in pieces {
        let StoryItemKind::Call(call, _) = piece.what else { continue };
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

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
