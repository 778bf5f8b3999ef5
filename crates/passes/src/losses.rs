//! What left a context at a compaction, and what the agent needed of it afterwards.
//!
//! A compaction is looked at from outside: what a resume would have sent before it, what it would
//! have sent after it, and what came later. The same holds for one of epitome, one of the agent's
//! own, and one that is only planned.

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

/// What left a context, and what was needed of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// The texts that left, in the order of the session.
    pub pieces: Vec<LostPiece>,
    /// Different facts (paths, identifiers, numbers …) in the context before.
    pub facts_before: u64,
    /// Those that are in the context after it no more.
    pub facts_gone: u64,
    /// Those of them that the agent wrote later, before anything had brought them back.
    pub facts_used: Vec<UsedFact>,
}

/// A text that left a context, or lines of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostPiece {
    /// What it is.
    pub kind: LostKind,
    /// Its path, command or beginning.
    pub name: String,
    /// The line of its record in the session, from 1.
    pub line: u64,
    /// Of a text of the model: the number of its response in the session, from 1. It is recalled
    /// and shown by that number, as `@7`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<u64>,
    /// The tokens that left.
    pub tokens: Tokens,
    /// Whether lines of it are still in the context.
    pub partly: bool,
    /// The names by which its texts are archived, or found in the session.
    pub references: Vec<Ref>,
    /// Of an error: whether the same call succeeded before the compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<bool>,
    /// The call that read or ran the same again, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
    /// Facts of it that were used later though they were gone.
    pub used: u64,
}

/// What a piece is. In the order in which pieces are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LostKind {
    /// A rule file, the instructions of a skill, or what the user put between marks.
    Rule,
    /// The newest plan, or list of what is to be done.
    Plan,
    /// The result of a call that failed.
    Error,
    /// A message of the user.
    User,
    /// A text of the model that says what it decided, what is the cause of something, or what it
    /// found.
    Decision,
    /// A file that was read.
    Read,
    /// The output of a command.
    Command,
    /// What a call changed: the text of a file, an edit, a patch.
    Change,
    /// The result of another call: a search, a list, a page.
    Result,
    /// Another text of the model.
    Reply,
    /// A text of the agent: a summary, a reminder.
    Agent,
    /// A picture.
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

/// The same call a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Again {
    /// The line of the call in the session, from 1.
    pub line: u64,
    /// The tokens of the call, which the model wrote.
    pub call_tokens: Tokens,
    /// The tokens of its result.
    pub result_tokens: Tokens,
    /// Why it was made, as far as that can be told.
    pub because: Because,
}

impl Again {
    /// Whether it only brought back what had left.
    pub fn is_loss(&self) -> bool {
        self.because != Because::Changed
    }
}

/// Why a call was made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Because {
    /// Its result was the same but for a tenth of it: it had left, and that was all.
    Same,
    /// Its result was another, and the agent had not changed the file since the compaction; of a
    /// search, no file.
    Gone,
    /// The agent had changed the file, or the result of a command was another: it would have been
    /// made anyway.
    Changed,
}

/// A fact that was used though it was gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsedFact {
    /// Its text.
    pub fact: String,
    /// What it is.
    pub kind: FactKind,
    /// The line of the session in which the agent wrote it, from 1.
    pub line: u64,
    /// The line of the session in which it was when it left, from 1.
    pub from: u64,
}

/// What left between two contexts of a session: the one before a compaction and the one after it.
/// `session` is the session, and `later` the items of it that came after the compaction, oldest
/// first; none for a compaction that is planned.
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

/// Gives texts of the model the numbers that their responses have in the session.
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

/// The text of a session whose name this is, as [`LostPiece::references`] has it. None: no text
/// has it.
pub fn text_named(session: &View<'_>, reference: &Ref) -> Option<String> {
    lost::named_text(session, reference)
}

/// The names of the texts of a context, as [`LostPiece::references`] has them.
pub fn names_in(context: &View<'_>) -> HashSet<Ref> {
    let blocks = context.transcript.context().flat_map(|(_, entry)| &entry.blocks);
    blocks.flat_map(|said| lost::references(context, said)).collect()
}

/// The files that calls of a context change, named as [`LostPiece::name`] has them.
pub fn changed_files(context: &View<'_>) -> HashSet<String> {
    let blocks = context.transcript.context().flat_map(|(_, entry)| &entry.blocks);
    let changes = blocks.filter_map(|said| match said {
        Block::Call(call) if call.kind.changes_file() => call.target.as_ref(),
        _ => None,
    });
    changes.map(|it| lost::name_of_file(context, &context.words(it))).collect()
}

#[cfg(test)]
#[path = "losses_tests.rs"]
mod tests;
