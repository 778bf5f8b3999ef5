//! Changes as data: they are planned, shown, counted, checked, applied and undone.

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
            At::Copy { copy, .. } => At::Copy { item, copy },
        }
    }
}

/// What an edit does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Replaces the text of the block or field.
    Replace(String),
    /// Removes the block or copy.
    Drop,
}

/// One change, and the pass that asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The position.
    pub at: At,
    /// The change.
    pub change: Change,
    /// The name of the pass.
    pub pass: &'static str,
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
