//! Pins: content that sets rules for the agent, and stays in the context after every compaction.
//!
//! These are rule files that the agent has read or was given, instructions of skills, the newest
//! plan and to-do list, and text that the user put between marks. They are recognised by file
//! names, kinds of tools, and marks (only in user messages and rule files), never by what a text
//! says. A digest or a summary that has pins in it counts too: the pins are read from their
//! original places.

mod fit;
mod imperative;
mod marks;
mod patched;
mod pin_text;
mod printed;
mod states;

use std::collections::HashSet;

use epitome_model::{Counter, Tokens};

use crate::View;

use fit::say_once;
use imperative::commanding;
pub(crate) use imperative::commanding_in_words;
use marks::{CLOSE, OPEN, between_marks};
use states::{State, states};

pub use fit::{fit, fitted, names};
pub use pin_text::{HEADING, pinned_text};

/// A part of the context that sets rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The item, as an index into `Transcript::items`.
    pub item: usize,
    /// The block of its entry.
    pub block: usize,
    /// What it is.
    pub kind: PinKind,
    /// Its name: the path of a rule file as in the session, or the name of a skill.
    pub name: String,
    /// Where it comes from.
    pub source: PinSource,
    /// The text that stays: the whole, or for a long one all lines that command or forbid.
    pub text: String,
}

/// The kind of a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PinKind {
    /// A rule file that was read, written, printed by a command, or given to the agent.
    RuleFile,
    /// Instructions that a skill tool returned.
    Skill,
    /// The newest plan.
    Plan,
    /// The newest to-do list.
    Todo,
    /// Text that the user put between marks.
    Marked,
}

impl PinKind {
    /// All kinds.
    pub const ALL: [PinKind; 5] =
        [PinKind::RuleFile, PinKind::Skill, PinKind::Plan, PinKind::Todo, PinKind::Marked];

    /// The kind in a word, as a summary names it.
    pub fn word(self) -> &'static str {
        match self {
            PinKind::RuleFile => "rules",
            PinKind::Skill => "skill",
            PinKind::Plan => "plan",
            PinKind::Todo => "todo",
            PinKind::Marked => "marked",
        }
    }
}

/// The source of a pin. A later state of the same file, skill, plan or list replaces an earlier one
/// if its source is at least as trustworthy. The order of the variants is that of trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PinSource {
    /// A summary or a digest of the session.
    Summary,
    /// Text that the model wrote: a written rule file, a plan, a list.
    Model,
    /// Output of a command that printed other texts as well.
    Command,
    /// Text that the agent put into the conversation.
    Given,
    /// Text that a skill tool returned.
    Skill,
    /// A message of the user.
    User,
    /// A rule file that was read.
    File,
}

impl PinSource {
    /// The source in a word, as a summary names it.
    pub fn word(self) -> &'static str {
        match self {
            PinSource::Summary => "summary",
            PinSource::Model => "model",
            PinSource::Command => "command",
            PinSource::Given => "agent",
            PinSource::Skill => "skill",
            PinSource::User => "user",
            PinSource::File => "file",
        }
    }

    /// Whether a state from this source may replace one from `earlier`.
    fn outranks(self, earlier: PinSource) -> bool {
        self >= earlier
    }
}

/// Rule files with at most this many tokens are pinned whole.
pub const WHOLE: Tokens = Tokens(1_500);

/// The pins in the entries `items`, which are sorted oldest first. Each rule file, skill, plan and
/// list is pinned in its newest state: an older state is no pin if the context has a newer one,
/// in `items` or not.
pub fn pins(view: &View<'_>, items: &[usize]) -> Vec<Pin> {
    let states = states(view, items).into_iter();
    let mut pins: Vec<Pin> = states.filter_map(|state| pin(view, state)).collect();
    // Of equal texts keep the newest; a summary may have wrapped the lines differently.
    let mut said = HashSet::new();
    let words = |pin: &Pin| pin.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut is_new = |pin: &Pin| said.insert((pin.kind, words(pin)));
    let new: Vec<bool> = pins.iter().rev().map(&mut is_new).collect();
    let mut new = new.into_iter().rev();
    pins.retain(|_| new.next().unwrap_or(true));
    // The result of a plan tool repeats the plan of its call.
    say_once(&mut pins, |kind| kind == PinKind::Plan);
    pins.retain(|pin| !pin.text.trim().is_empty());
    pins
}

fn pin(view: &View<'_>, state: State) -> Option<Pin> {
    let State { item, block, kind, name, source, text, .. } = state;
    let text = match kind {
        PinKind::RuleFile if view.counter.count(&text) > WHOLE => commanding_parts(&text),
        PinKind::RuleFile | PinKind::Skill | PinKind::Plan | PinKind::Todo | PinKind::Marked => {
            text
        }
    };
    (!text.trim().is_empty()).then_some(Pin { item, block, kind, name, source, text })
}

/// The parts of a text that command or forbid, and those between marks.
fn commanding_parts(text: &str) -> String {
    let mut parts = vec![commanding(text)];
    // Keep the marks, so that the parts are recognised again.
    parts.extend(between_marks(text).map(|marked| format!("{OPEN}{marked}{CLOSE}")));
    parts.retain(|part| !part.trim().is_empty());
    if parts.is_empty() {
        // Prose in a language without known words: keep the first line of each paragraph.
        let paragraphs = text.split("\n\n").map(str::trim).filter(|it| !it.is_empty());
        parts.extend(paragraphs.filter_map(|it| it.lines().next()).map(str::to_owned));
    }
    parts.join("\n")
}

/// The part of a budget that these pins leave.
///
/// # Errors
///
/// A message with the tokens that they need, if they do not fit.
pub fn room_beside(pins: &[Pin], budget: Tokens, counter: &dyn Counter) -> Result<Tokens, String> {
    let need: Tokens = pins.iter().map(|pin| counter.count(&pin.text)).sum();
    if need <= budget {
        return Ok(budget - need);
    }
    let names = names(pins).join(", ");
    Err(format!(
        "what has to stay ({names}) needs {need} tokens: a budget of {budget} is too small"
    ))
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
