//! Counts what a summary or a digest replaces.

use std::fmt;

use epitome_model::{Block, Transcript};
use serde::Serialize;

/// What a summary or a digest replaces: the number of calls and texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReplacedItems {
    /// Whether the replacement is a digest or a summary.
    pub kind: ReplacementKind,
    /// Number of tool calls; their results are replaced as well.
    pub calls: u64,
    /// Number of texts, including earlier summaries.
    pub texts: u64,
}

/// The kind of text that replaces the beginning of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplacementKind {
    /// Lines of the session itself, chosen without a model.
    Digest,
    /// A text that a model or the user wrote.
    Summary,
}

impl ReplacedItems {
    /// Counts the calls and texts in these items, without those of the prompt.
    pub(super) fn from_items(transcript: &Transcript, old: &[usize]) -> ReplacedItems {
        let mut calls = 0;
        let mut texts = 0;
        let old = old.iter().filter(|item| !transcript.head.prompt.contains(item));
        let entries = old.filter_map(|&item| transcript.items[item].entry());
        for block in entries.flat_map(|entry| &entry.blocks) {
            match block {
                Block::Call(_) => calls += 1,
                Block::Text(_) | Block::Summary(_) => texts += 1,
                _ => {}
            }
        }
        ReplacedItems { kind: ReplacementKind::Summary, calls, texts }
    }
}

/// Prints, for example, `1 digest of 31 calls and 12 texts`.
impl fmt::Display for ReplacedItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReplacedItems { kind, calls, texts } = *self;
        let kind = match kind {
            ReplacementKind::Digest => "digest",
            ReplacementKind::Summary => "summary",
        };
        let calls_end = if calls == 1 { "" } else { "s" };
        let texts_end = if texts == 1 { "" } else { "s" };
        write!(f, "1 {kind} of {calls} call{calls_end} and {texts} text{texts_end}")
    }
}
