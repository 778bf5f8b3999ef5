//! Pins: content that sets rules for the agent. Every compaction keeps pins in the context, or
//! names those that do not fit.
//!
//! Pins are rule files such as `AGENTS.md` (given to the agent, read, written, or printed by a
//! command), instructions of skills, the newest plan and to-do list, and text that the user put
//! between the marks `<pin>` and `</pin>`. They are recognised by file names, kinds of tools, and
//! marks (only in user messages and rule files), never by the meaning of a text. If a digest or a
//! summary contains a pin, the pin is read from the original entry, and from the digest or summary
//! only if the original entry is a stub by now.

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

use fit::remove_repeated_lines;
use imperative::rule_lines;
pub(crate) use imperative::rule_lines_by_words;
use marks::{CLOSE, OPEN, between_marks};
use states::{State, states};

pub use fit::{pin_names, shorten_to_fit, split_by_budget};
pub use pin_text::{HEADING, pinned_text};

/// A part of the context that sets rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The item, as an index into `Transcript::items`.
    pub item: usize,
    /// The index of the block in its entry.
    pub block: usize,
    /// The kind of the pin.
    pub kind: PinKind,
    /// The path of a rule file as in the session, the name of a skill, the tool that wrote a plan
    /// or a to-do list, or `the user` for marked text. If one call concerns several rule files,
    /// their paths are separated by commas.
    pub name: String,
    /// Where the text is from.
    pub source: PinSource,
    /// The text that stays: the whole text or, of a long rule file, the lines that command or
    /// forbid something and the parts between marks, or else the first line of each paragraph.
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
    /// Text that the user put between the marks `<pin>` and `</pin>`.
    Marked,
}

impl PinKind {
    /// All kinds.
    pub const ALL: [PinKind; 5] =
        [PinKind::RuleFile, PinKind::Skill, PinKind::Plan, PinKind::Todo, PinKind::Marked];

    /// The kind in one word, as in the text of a summary.
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

/// Where the text of a pin comes from. The variants are ordered by trust, the least trustworthy
/// first. A later state of the same file, skill, plan or list replaces an earlier one if its source
/// is at least as trustworthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PinSource {
    /// A summary or a digest of the session.
    Summary,
    /// Text that the model wrote: a rule file, a plan, a list.
    Model,
    /// Output of a command that also printed other texts.
    Command,
    /// Text that the agent put into the conversation.
    Given,
    /// Text that a skill tool returned.
    Skill,
    /// A message of the user.
    User,
    /// A rule file that was read, or printed by a command that printed nothing else.
    File,
}

impl PinSource {
    /// The source in one word, as in the text of a summary.
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

    /// Whether a state from this source may replace an earlier state from `earlier`.
    fn outranks(self, earlier: PinSource) -> bool {
        self >= earlier
    }
}

/// The number of tokens up to which a rule file is pinned whole.
pub const WHOLE: Tokens = Tokens(1_500);

/// The pins in the entries `items`, which are sorted oldest first, and in the entries that
/// summaries among `items` replaced. Each rule file, skill, plan and list is pinned in its newest
/// state. If the context has a newer state, in `items` or outside of them, an older state is not a
/// pin, unless the newer state is that of a part of the file (an edit, a partial read), is from a
/// less trustworthy [`PinSource`], or (except for a to-do list) has less than half of the length of
/// the older one. A rule file that the agent gave is not replaced by one that was read.
pub fn pins(view: &View<'_>, items: &[usize]) -> Vec<Pin> {
    let states = states(view, items).into_iter();
    let mut pins: Vec<Pin> = states.filter_map(|state| pin(view, state)).collect();
    // Of texts of one kind that differ at most in white space, the newest is kept: a summary may
    // have wrapped the lines differently.
    let mut seen_texts = HashSet::new();
    let new = pins.iter().rev().map(|pin| {
        let words: Vec<&str> = pin.text.split_whitespace().collect();
        seen_texts.insert((pin.kind, words.join(" ")))
    });
    let new: Vec<bool> = new.collect();
    let mut new = new.into_iter().rev();
    pins.retain(|_| new.next().unwrap_or(true));
    // The result of a plan tool repeats the plan of its call.
    remove_repeated_lines(&mut pins, |kind| kind == PinKind::Plan);
    pins.retain(|pin| !pin.text.trim().is_empty());
    pins
}

/// The pin for a state, which is one version of a rule file, skill, plan, list or marked text. A
/// long rule file is reduced to its [`commanding_parts`]. `None` if no text is left.
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

/// The parts of a text that command or forbid something, and the parts between marks. If the text
/// has neither, the first line of each paragraph.
fn commanding_parts(text: &str) -> String {
    let mut parts = vec![rule_lines(text)];
    // The marks are included, so that the parts are recognised again in the digest or summary.
    parts.extend(between_marks(text).map(|marked| format!("{OPEN}{marked}{CLOSE}")));
    parts.retain(|part| !part.trim().is_empty());
    if parts.is_empty() {
        // No rule was found, perhaps because there is no word list for the language: the first line
        // of each paragraph is kept.
        let paragraphs = text.split("\n\n").map(str::trim).filter(|it| !it.is_empty());
        parts.extend(paragraphs.filter_map(|it| it.lines().next()).map(str::to_owned));
    }
    parts.join("\n")
}

/// The number of tokens of a budget that are left for other content if these pins are in the
/// context.
///
/// # Errors
///
/// A message with the names and the tokens of the pins, if they exceed the budget.
pub fn remaining_room(
    pins: &[Pin],
    budget: Tokens,
    counter: &dyn Counter,
) -> Result<Tokens, String> {
    let need: Tokens = pins.iter().map(|pin| counter.count(&pin.text)).sum();
    if need <= budget {
        return Ok(budget - need);
    }
    let names = pin_names(pins).join(", ");
    Err(format!(
        "what has to stay ({names}) needs {need} tokens: a budget of {budget} is too small"
    ))
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
