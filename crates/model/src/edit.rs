//! Changes as data: planned, shown, counted, checked, applied, undone.

/// Where an edit acts.
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
    /// The item that it acts on.
    pub fn item(self) -> usize {
        match self {
            At::Block { item, .. }
            | At::Field { item, .. }
            | At::Part { item, .. }
            | At::Copy { item, .. } => item,
        }
    }
}

/// What an edit does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The words of the block or field become these.
    Replace(String),
    /// The block or copy goes.
    Drop,
}

/// One change, and which pass wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Where.
    pub at: At,
    /// What.
    pub change: Change,
    /// The name of the pass.
    pub pass: &'static str,
}

/// A range of a source and the bytes that take its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// What goes.
    pub span: crate::Span,
    /// What stands there instead.
    pub with: Box<[u8]>,
}
