//! Edits: changes to a session as data, which are planned, shown, counted, checked, applied and
//! undone.

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
    /// A part of a tool result.
    Part {
        /// Index into `Transcript::items`.
        item: usize,
        /// Index into `Entry::blocks`.
        block: usize,
        /// Index into `Output::parts`.
        part: usize,
    },
    /// Whole items. `item` is the first item that a cut removes or a summary replaces; the [`Verb`]
    /// names the others.
    Items {
        /// Index into `Transcript::items`.
        item: usize,
    },
    /// A hidden field of an item.
    HiddenField {
        /// Index into `Transcript::items`.
        item: usize,
        /// Index into `Item::hidden_fields`.
        field: usize,
    },
}

impl At {
    /// The index of the item that is changed.
    pub fn item(self) -> usize {
        match self {
            At::Block { item, .. }
            | At::Field { item, .. }
            | At::Part { item, .. }
            | At::Items { item }
            | At::HiddenField { item, .. } => item,
        }
    }

    /// The index of the block within the item; `None` for whole items and for a hidden field.
    pub fn block(self) -> Option<usize> {
        match self {
            At::Block { block, .. } | At::Field { block, .. } | At::Part { block, .. } => {
                Some(block)
            }
            At::Items { .. } | At::HiddenField { .. } => None,
        }
    }

    /// The same position, but in the item `item`.
    #[must_use]
    pub fn with_item(self, item: usize) -> At {
        match self {
            At::Block { block, .. } => At::Block { item, block },
            At::Field { block, field, .. } => At::Field { item, block, field },
            At::Part { block, part, .. } => At::Part { item, block, part },
            At::Items { .. } => At::Items { item },
            At::HiddenField { field, .. } => At::HiddenField { item, field },
        }
    }
}

/// What an edit does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Replaces the block, the argument or the part of a result by a text.
    Replace(String),
    /// Removes the block, the part of a result or the hidden field.
    Drop,
    /// Removes items from the middle of the context.
    Cut(Cut),
    /// Replaces the beginning of the context by a summary, which a model or the user wrote, or by a
    /// digest, which consists of lines of the replaced items and needs no model.
    Summarise(Summary),
}

/// Items that are removed from the middle of the context, and the text that is sent in their place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Indices into `Transcript::items`.
    pub items: Vec<usize>,
    /// The text that is sent in the position of the first removed item.
    pub text: String,
    /// The number of messages that this cut removes. A new cut also removes the text of an earlier
    /// cut; the messages that the earlier cut removed are not counted again.
    pub messages: u64,
}

/// A text that is sent in place of the beginning of the context: a summary or a digest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The summary or digest.
    pub text: String,
    /// The items at the end of the context that are sent unchanged after the text: indices into
    /// `Transcript::items`.
    pub kept: Vec<usize>,
    /// The tokens of the context before this edit: some formats store them with a summary.
    pub tokens: Tokens,
}

/// One edit, and the name of the pass or stage that planned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The position in the transcript.
    pub at: At,
    /// What the edit does at this position.
    pub verb: Verb,
    /// The name of the pass or stage.
    pub pass: &'static str,
}

impl Edit {
    /// The edit that removes the items of `cut`; `None` if `cut` has no items.
    pub fn cut(cut: Cut) -> Option<Edit> {
        let item = *cut.items.first()?;
        Some(Edit { at: At::Items { item }, verb: Verb::Cut(cut), pass: "trim" })
    }

    /// The edit that replaces the context by the text of `summary`, followed by the last items of
    /// the context, which `summary` keeps. `None` if all items are kept. `context` are the items of
    /// the context, and `pass` is the name of the stage that made the text.
    pub fn summary(summary: Summary, context: &[usize], pass: &'static str) -> Option<Edit> {
        let end = context.len().checked_sub(summary.kept.len())?;
        let item = *context[..end].first()?;
        Some(Edit { at: At::Items { item }, verb: Verb::Summarise(summary), pass })
    }
}

/// The way in which a format writes edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// Into the records that hold the edited blocks: the file becomes smaller.
    Splice,
    /// As appended records, which change what a resume sends: existing records stay as they are.
    Append,
    /// By setting the agent's own marks on records: the agent sends a marked result as a fixed
    /// text.
    Mark,
}

/// A range of a source and the bytes that replace it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// The range that is removed.
    pub span: crate::Span,
    /// The bytes that replace the range.
    pub with: Box<[u8]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_or_cut_of_nothing_is_no_edit() {
        for (kept, is_edit) in
            [(vec![5, 7], true), (vec![], true), (vec![2, 5, 7], false), (vec![1, 2, 5, 7], false)]
        {
            let summary = Summary { kept, ..Summary::default() };
            let expect = is_edit.then(|| Edit {
                at: At::Items { item: 2 },
                verb: Verb::Summarise(summary.clone()),
                pass: "stage",
            });
            assert_eq!(Edit::summary(summary, &[2, 5, 7], "stage"), expect);
        }

        let cut = Cut { items: vec![3, 4], ..Cut::default() };
        let expect = Edit { at: At::Items { item: 3 }, verb: Verb::Cut(cut.clone()), pass: "trim" };
        assert_eq!(Edit::cut(cut), Some(expect));
        assert_eq!(Edit::cut(Cut::default()), None);
    }
}
