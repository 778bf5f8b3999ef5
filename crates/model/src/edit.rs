//! Changes as data: they are planned, shown, counted, checked, applied and undone.

use crate::Tokens;

/// The position that an edit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// A block of an entry.
    Block {
        /// Index into `Transcript::items`.
        item: usize,
        /// Index into `Entry::blocks`.
        block: usize,
    },
    /// A bulky argument of a call.
    Field {
        /// Index into `Transcript::items`.
        item: usize,
        /// Index into `Entry::blocks`.
        block: usize,
        /// Index into `Call::fields`.
        field: usize,
    },
    /// A part of a result.
    Part {
        /// Index into `Transcript::items`.
        item: usize,
        /// Index into `Entry::blocks`.
        block: usize,
        /// Index into `Output::parts`.
        part: usize,
    },
    /// Whole items: those that the edit names, of which this is the first.
    Items {
        /// Index into `Transcript::items`.
        item: usize,
    },
    /// A copy that no model sees.
    Copy {
        /// Index into `Transcript::items`.
        item: usize,
        /// Index into the copies of the item.
        copy: usize,
    },
}

impl At {
    /// The index of the item that it changes.
    pub fn item(self) -> usize {
        match self {
            At::Block { item, .. }
            | At::Field { item, .. }
            | At::Part { item, .. }
            | At::Items { item }
            | At::Copy { item, .. } => item,
        }
    }

    /// The same position in another item.
    #[must_use]
    pub fn with_item(self, item: usize) -> At {
        match self {
            At::Block { block, .. } => At::Block { item, block },
            At::Field { block, field, .. } => At::Field { item, block, field },
            At::Part { block, part, .. } => At::Part { item, block, part },
            At::Items { .. } => At::Items { item },
            At::Copy { copy, .. } => At::Copy { item, copy },
        }
    }
}

/// What an edit does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Replaces the text of the block or field.
    Replace(String),
    /// Removes the block or copy.
    Drop,
    /// Takes items out of the middle of the context.
    Cut(Cut),
    /// Replaces the beginning of the context by a summary or a digest.
    Summarise(Summary),
}

/// Items that are cut out of the middle, and the text that is sent where the first of them was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Indices into `Transcript::items`.
    pub items: Vec<usize>,
    /// The text.
    pub text: String,
    /// Messages that were not cut out before.
    pub messages: u64,
}

/// A text that is sent in place of everything before the end of the context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The text.
    pub text: String,
    /// The end of the context, which is sent after it unchanged: indices into
    /// `Transcript::items`.
    pub kept: Vec<usize>,
    /// The tokens of what a resume sent before.
    pub tokens: Tokens,
}

/// One edit, and the pass that asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The position.
    pub at: At,
    /// What is done there.
    pub verb: Verb,
    /// The name of the pass.
    pub pass: &'static str,
}

impl Edit {
    /// The edit that cuts items out; none if there are no items.
    pub fn cut(cut: Cut) -> Option<Edit> {
        let item = *cut.items.first()?;
        Some(Edit { at: At::Items { item }, verb: Verb::Cut(cut), pass: "trim" })
    }

    /// The edit that replaces the context before its kept end by a summary; `None` if everything is
    /// kept. `pass` is the stage that wrote it.
    pub fn summary(summary: Summary, context: &[usize], pass: &'static str) -> Option<Edit> {
        let end = context.len().checked_sub(summary.kept.len())?;
        let item = *context[..end].first()?;
        Some(Edit { at: At::Items { item }, verb: Verb::Summarise(summary), pass })
    }
}

/// How a format writes edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// In the records that hold the edited blocks: the file becomes smaller.
    Splice,
    /// As appended records, which replace earlier ones on a resume: existing records never change.
    Append,
    /// As the agent's own marks on records: a marked result is sent as a fixed text.
    Mark,
}

/// A range of a source and the bytes that replace it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// The range that is removed.
    pub span: crate::Span,
    /// The bytes put in its place.
    pub with: Box<[u8]>,
}
