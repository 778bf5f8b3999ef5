//! Finds what a compaction removed from a context, and what of it the agent needed later.
//!
//! A compaction is judged by its effects: what a resume would have sent before and after it, and
//! what the agent did later. So this works for compactions that epitome made, for those that the
//! agent made itself, and for planned ones.

mod arguments;
mod lost;
mod used_later;

use std::collections::{HashMap, HashSet};

use epitome_model::{Block, Ref, Tokens};
use serde::Serialize;

use crate::View;
use crate::facts::FactKind;
use crate::numbers::response_numbers;

use lost::{LostContent, Placed};
use used_later::LaterUse;

/// What a compaction removed, and what of it was needed later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// The removed texts, in the order of the session.
    pub pieces: Vec<LostPiece>,
    /// Number of distinct facts (paths, identifiers, numbers …) in the context before the
    /// compaction.
    pub facts_before: u64,
    /// Number of the facts in the context before the compaction that the context after it does not
    /// contain.
    pub facts_gone: u64,
    /// The removed facts that the agent wrote later, before another text contained them again.
    pub facts_used: Vec<UsedFact>,
}

/// A text that a compaction removed, as a whole or in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostPiece {
    /// The kind of the text.
    pub kind: LostKind,
    /// The name of the text in a report, such as a path, a command, the lost decision, or the
    /// beginning of the text.
    pub name: String,
    /// The line of the text's record in the session, from 1.
    pub line: u64,
    /// For a text of the model: the number of its response in the session, from 1. The text is
    /// displayed and recalled by this number (`@7`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<u64>,
    /// How many tokens of the text were removed.
    pub tokens: Tokens,
    /// Whether some lines of the text are still in the context.
    pub partly: bool,
    /// The references under which the text and its parts are archived, or found in the session.
    pub references: Vec<Ref>,
    /// For an error: whether the same call succeeded later, but still before the compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<bool>,
    /// For a result: the first later call that read the same file, ran the same command, or was
    /// otherwise the same call; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<RepeatedCall>,
    /// Number of facts in the text that the agent used later although they had been removed.
    pub used: u64,
}

/// The kind of a removed text. The variants are in the order in which kinds are displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LostKind {
    /// A rule file, the instructions of a skill, or text that the user marked to be kept.
    Rule,
    /// The newest plan or to-do list.
    Plan,
    /// The result of a call that failed.
    Error,
    /// A message of the user.
    User,
    /// A text of the model that states a decision, a cause or a finding.
    Decision,
    /// A file that was read.
    Read,
    /// The output of a command.
    Command,
    /// The change that a call made: the text of a file, an edit, a patch.
    Change,
    /// The result of another call: a search, a list, a web page.
    Result,
    /// Another text of the model.
    Reply,
    /// A text of the agent: a summary, a reminder.
    Agent,
    /// An image.
    Image,
}

impl LostKind {
    /// All kinds.
    pub const ALL: [LostKind; 12] = [
        LostKind::Rule,
        LostKind::Plan,
        LostKind::Error,
        LostKind::User,
        LostKind::Decision,
        LostKind::Read,
        LostKind::Command,
        LostKind::Change,
        LostKind::Result,
        LostKind::Reply,
        LostKind::Agent,
        LostKind::Image,
    ];
}

/// A repetition of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RepeatedCall {
    /// The line of the call in the session, from 1.
    pub line: u64,
    /// The tokens of the call, which the model wrote.
    pub call_tokens: Tokens,
    /// The tokens of the result of the call.
    pub result_tokens: Tokens,
    /// Why the call was repeated, as far as that can be determined.
    pub because: RepeatReason,
}

impl RepeatedCall {
    /// Whether the call was probably repeated only because the earlier result had been removed.
    pub fn is_loss(&self) -> bool {
        self.because != RepeatReason::Changed
    }
}

/// Why a call was made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatReason {
    /// The new result was nearly the same (nine tenths): it is assumed that the call was repeated
    /// only because the earlier result had been removed.
    Same,
    /// The new result was different, although the agent had not changed the file (for a call other
    /// than a read: any file) since the compaction.
    Gone,
    /// The agent had changed the file (for a call other than a read: any file), or the output of a
    /// command was different. It is assumed that the call would have been made anyway.
    Changed,
}

/// A fact that was used although it had been removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsedFact {
    /// The text of the fact.
    pub fact: String,
    /// The kind of the fact.
    pub kind: FactKind,
    /// The line of the session, from 1, where the agent wrote the fact.
    pub line: u64,
    /// The line of the session, from 1, from which the fact was removed.
    pub from: u64,
}

/// Finds what a compaction removed. `before` and `after` are the context before and after the
/// compaction, and `session` is the whole session. `later` are the items after the compaction,
/// oldest first; it is empty for a planned compaction.
pub fn losses(before: &View<'_>, after: &View<'_>, session: &View<'_>, later: &[usize]) -> Losses {
    let LostContent { mut pieces, gone, facts_before, targets, .. } =
        LostContent::between(before, after);
    number(&mut pieces, before, session);
    let facts_gone = gone.len() as u64;
    let facts_used = LaterUse::new(session, later).needs(&mut pieces, &gone, &targets, before);
    Losses {
        pieces: pieces.into_iter().map(|(piece, _)| piece).collect(),
        facts_before,
        facts_gone,
        facts_used,
    }
}

/// Sets the response numbers of removed texts of the model.
fn number(pieces: &mut [Placed], before: &View<'_>, session: &View<'_>) {
    let numbers = response_numbers(session.transcript);
    let mut of_group: HashMap<&str, u64> = HashMap::new();
    let mut of_line: HashMap<u64, u64> = HashMap::new();
    for (item, entry) in session.transcript.entries() {
        let Some(number) = numbers.get(&item) else { continue };
        if let Some(group) = entry.group.as_deref() {
            of_group.insert(group, *number);
        }
        of_line.insert(entry.record.line, *number);
    }
    for (piece, (item, _)) in pieces {
        let Some(entry) = before.transcript.items[*item].entry() else { continue };
        if matches!(piece.kind, LostKind::Decision | LostKind::Reply) {
            let of_group = entry.group.as_deref().and_then(|group| of_group.get(group));
            piece.response = of_group.or_else(|| of_line.get(&entry.record.line)).copied();
        }
    }
}

/// The text in a session that has this reference, as in [`LostPiece::references`]; `None` if there
/// is none.
pub fn text_of_reference(session: &View<'_>, reference: &Ref) -> Option<String> {
    lost::named_text(session, reference)
}

/// The references of all texts of a context, as in [`LostPiece::references`].
pub fn names_in(context: &View<'_>) -> HashSet<Ref> {
    let blocks = context.transcript.context().flat_map(|(_, entry)| &entry.blocks);
    blocks.flat_map(|said| lost::references(context, said)).collect()
}

/// The names of the files that calls in a context change, as in [`LostPiece::name`].
pub fn changed_files(context: &View<'_>) -> HashSet<String> {
    let blocks = context.transcript.context().flat_map(|(_, entry)| &entry.blocks);
    let changes = blocks.filter_map(|said| match said {
        Block::Call(call) if call.kind.changes_file() => call.target.as_ref(),
        _ => None,
    });
    changes.map(|it| lost::name_of_file(context, &context.text(it))).collect()
}

#[cfg(test)]
#[path = "losses_tests.rs"]
mod tests;
