//! What sets rules for the agent: it is in the context after every compaction.
//!
//! Rule files that the agent has read or was given, instructions of skills, the newest plan and
//! list of what is to be done, and what the user put between marks. What a text says changes
//! nothing of this: only names of files, kinds of tools and the user's marks count, and marks count
//! in words of the user and in rule files alone. A digest or a summary that holds rules is such a
//! text as well: they are read again where they were said first.

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
    /// What it is called: the path of a rule file as the session has it, the name of a skill.
    pub name: String,
    /// Where it comes from.
    pub source: PinSource,
    /// What has to stay: the whole text, or of a long one all that commands or forbids.
    pub text: String,
}

/// What a pin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PinKind {
    /// A rule file, as it was read, written, shown by a command or given to the agent.
    RuleFile,
    /// Instructions that a skill tool returned.
    Skill,
    /// The newest plan.
    Plan,
    /// The newest list of what is to be done.
    Todo,
    /// What the user put between marks.
    Marked,
}

impl PinKind {
    /// All kinds.
    pub const ALL: [PinKind; 5] =
        [PinKind::RuleFile, PinKind::Skill, PinKind::Plan, PinKind::Todo, PinKind::Marked];

    /// What it is, in a word: as a summary names it.
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

/// Where a pin comes from. What comes later takes the place of what is of the same file, skill,
/// plan or list if its source is at least as trustworthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PinSource {
    /// A summary or a digest of the session.
    Summary,
    /// What the model wrote: a call that writes a rule file, a plan, a list.
    Model,
    /// What a command printed that printed other texts as well.
    Command,
    /// What the agent put into the conversation.
    Given,
    /// What a tool for skills returned.
    Skill,
    /// Words of the user.
    User,
    /// A rule file that was read.
    File,
}

impl PinSource {
    /// Where it comes from, in a word: as a summary names it.
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

    /// Whether what is from here may take the place of what is from `earlier`.
    fn outranks(self, earlier: PinSource) -> bool {
        self >= earlier
    }
}

/// Tokens up to which a rule file is pinned whole.
pub const WHOLE: Tokens = Tokens(1_500);

/// Of the entries `items`, oldest first, what sets rules for the agent, in their order. Of each
/// rule file, skill, plan and list the newest state: one of which a newer state is in the context,
/// among `items` or not, is no pin.
pub fn pins(view: &View<'_>, items: &[usize]) -> Vec<Pin> {
    let states = states(view, items).into_iter();
    let mut pins: Vec<Pin> = states.filter_map(|state| pin(view, state)).collect();
    // Said twice, the newest is enough; a summary may end its lines otherwise.
    let mut said = HashSet::new();
    let words = |pin: &Pin| pin.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut is_new = |pin: &Pin| said.insert((pin.kind, words(pin)));
    let new: Vec<bool> = pins.iter().rev().map(&mut is_new).collect();
    let mut new = new.into_iter().rev();
    pins.retain(|_| new.next().unwrap_or(true));
    // The tool that takes a plan repeats it.
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

/// What commands or forbids in a text, and what is between marks.
fn commanding_parts(text: &str) -> String {
    let mut parts = vec![commanding(text)];
    // With their marks, so that they are known again.
    parts.extend(between_marks(text).map(|marked| format!("{OPEN}{marked}{CLOSE}")));
    parts.retain(|part| !part.trim().is_empty());
    if parts.is_empty() {
        // Prose in another language: of each paragraph the beginning.
        let paragraphs = text.split("\n\n").map(str::trim).filter(|it| !it.is_empty());
        parts.extend(paragraphs.filter_map(|it| it.lines().next()).map(str::to_owned));
    }
    parts.join("\n")
}

/// What is left of a budget after these pins.
///
/// # Errors
///
/// Says how many tokens they need, if they do not fit.
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
