//! Turns edits into replacements of bytes, for formats whose records are JSON.
//!
//! Only the edited values change: the order of keys, unknown fields, the text of numbers and white
//! space are preserved.

use std::collections::BTreeMap;
use std::ops::Range;

use epitome_model::{
    At, Block, Edit, FieldRemainder, Item, Output, Part, Source, Span, Splice, Text, Transcript,
    Verb, encode, encode_as, parallel,
};

use crate::cursor::{self, Cursor, Kind};

/// A function that turns edits into replacements of bytes, sorted and disjoint, each with the
/// position of its edit.
pub type Write = fn(&Transcript, &dyn Source, &[Edit]) -> Result<Vec<(Splice, At)>, Unwritable>;

/// An edit that a format cannot write. In this case, no other edit is written either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritable {
    /// The position of the edit.
    pub at: At,
    /// The reason.
    pub why: &'static str,
}

impl std::fmt::Display for Unwritable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} cannot be edited: {}", self.at, self.why)
    }
}

impl std::error::Error for Unwritable {}

/// How a format writes edits as JSON.
pub struct Shapes {
    /// The JSON that replaces a tool result, for a given text. A result that is a string is
    /// replaced by a string instead.
    pub output: fn(&str) -> String,
    /// The JSON that replaces an image, for a given text: a block with this text.
    pub block: fn(&str) -> String,
    /// What remains of a removed block of reasoning.
    pub thinking: BlockRemainder,
}

/// What remains of a removed block.
#[derive(Clone, Copy, Debug)]
pub enum BlockRemainder {
    /// Nothing: the block is removed, with its comma and, if it has one, its key.
    Nothing,
    /// This JSON value: the agent keeps it in its record and does not send it.
    Value(&'static str),
}

/// One replacement of bytes that a format makes in its own way.
pub enum OwnReplacement {
    /// Replaces the value at a span with JSON.
    Value(Span, String),
    /// Removes a value with its key and its comma.
    Child(Span),
    /// Replaces the value at a span, together with its key, by another key and value.
    Member(Span, String),
}

/// Returns the replacements for an edit that a format writes in its own way; `None` for any other
/// edit, which [`splices_with`] then writes as [`splices`] does.
pub type OwnReplacements<'a> = &'a dyn Fn(&Edit) -> Option<Vec<OwnReplacement>>;

/// A text as a JSON string: a function for [`Shapes`].
pub fn literal(text: &str) -> String {
    encode(text)
}

/// The JSON of the value at `place`, with the splices inside it applied; splices outside of it are
/// ignored. `None` if the result is not UTF-8.
pub fn apply_splices(source: &dyn Source, place: Span, splices: &[Splice]) -> Option<String> {
    let mut bytes = Vec::new();
    let mut from = place.start;
    for splice in splices.iter().filter(|splice| place.contains(splice.span)) {
        bytes.extend_from_slice(&source.read(from..splice.span.start));
        bytes.extend_from_slice(&splice.with);
        from = splice.span.end;
    }
    bytes.extend_from_slice(&source.read(from..place.end));
    String::from_utf8(bytes).ok()
}

/// The replacements that apply `edits`, sorted and disjoint, each with the position of its edit. If
/// several edits remove values from the same object or array, their replacements have the position
/// of the first of these edits.
///
/// # Errors
///
/// [`Unwritable`] if an edit cannot be written at its position, or if two edits overlap.
pub fn splices(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
    shapes: &Shapes,
) -> Result<Vec<(Splice, At)>, Unwritable> {
    splices_with(transcript, source, edits, shapes, &|_| None)
}

/// Like [`splices`], but if `own` returns replacements for an edit, these are used for it.
pub fn splices_with(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
    shapes: &Shapes,
    own: OwnReplacements<'_>,
) -> Result<Vec<(Splice, At)>, Unwritable> {
    let mut writing = Writing { transcript, source, splices: Vec::new(), drops: BTreeMap::new() };
    for edit in edits {
        let written = match own(edit) {
            Some(pieces) => pieces.into_iter().try_for_each(|piece| writing.add_own(edit, piece)),
            None => writing.add(edit, shapes),
        };
        written.map_err(|why| Unwritable { at: edit.at, why })?;
    }
    writing.finish()
}

/// The replacements of the edits that were added so far.
struct Writing<'a> {
    transcript: &'a Transcript,
    source: &'a dyn Source,
    splices: Vec<(Splice, At)>,
    /// The values to remove, grouped by record: several items may be read from one record.
    drops: BTreeMap<Span, Vec<(Span, At)>>,
}

impl Writing<'_> {
    /// Adds one of the replacements that the format makes for an edit.
    fn add_own(&mut self, edit: &Edit, piece: OwnReplacement) -> Result<(), &'static str> {
        match piece {
            OwnReplacement::Value(span, with) => self.replace(edit, span, with),
            OwnReplacement::Child(span) => self.remove(edit, span),
            OwnReplacement::Member(value, with) => {
                let record = self.record(edit);
                let span = member(&self.source.at(record), record, value)
                    .ok_or("it is not in an object")?;
                self.replace(edit, span, with);
            }
        }
        Ok(())
    }

    /// Adds an edit for which the format makes no replacements itself.
    fn add(&mut self, edit: &Edit, shapes: &Shapes) -> Result<(), &'static str> {
        match value_edit(&self.transcript.items, edit.at, shapes)? {
            ValueEdit::Value(span, shape) => {
                let Verb::Replace(text) = &edit.verb else {
                    return Err("it cannot be dropped alone");
                };
                let with = match shape {
                    Shape::Literal => {
                        encode_as(text, &self.source.read(span.start..span.start + 2))
                    }
                    // A string stays a string, even if the format would write a list of blocks.
                    Shape::Output if self.source.read(span.start..span.start + 1)[..] == *b"\"" => {
                        literal(text)
                    }
                    Shape::Output => (shapes.output)(text),
                    Shape::Block => (shapes.block)(text),
                };
                self.replace(edit, span, with);
            }
            ValueEdit::Fixed(span, with) => self.replace(edit, span, with.to_owned()),
            ValueEdit::Child(span) => self.remove(edit, span),
        }
        Ok(())
    }

    /// The span of the record that an edit changes.
    fn record(&self, edit: &Edit) -> Span {
        self.transcript.items[edit.at.item()].record().span
    }

    fn replace(&mut self, edit: &Edit, span: Span, with: String) {
        self.splices.push((Splice { span, with: with.into_bytes().into() }, edit.at));
    }

    fn remove(&mut self, edit: &Edit, span: Span) {
        self.drops.entry(self.record(edit)).or_default().push((span, edit.at));
    }

    /// All splices, in the order of the source.
    fn finish(mut self) -> Result<Vec<(Splice, At)>, Unwritable> {
        let drops: Vec<(Span, Vec<(Span, At)>)> = self.drops.into_iter().collect();
        // If several records cannot be edited, the error of the first of them is returned,
        // whichever thread ends first.
        let cuts = parallel::map(drops, |(record, children)| {
            cuts(&self.source.at(record), record, &children)
        });
        for cuts in cuts {
            let gone = cuts?.into_iter();
            self.splices.extend(gone.map(|(span, at)| (Splice { span, with: Box::default() }, at)));
        }
        sorted_and_disjoint(self.splices)
    }
}

/// The splices in the order of the source; an error if two of them overlap.
fn sorted_and_disjoint(mut splices: Vec<(Splice, At)>) -> Result<Vec<(Splice, At)>, Unwritable> {
    splices.sort_by_key(|(splice, _)| splice.span);
    let touching = splices.windows(2).find(|pair| pair[1].0.span.start < pair[0].0.span.end);
    if let Some(pair) = touching {
        return Err(Unwritable { at: pair[1].1, why: "another edit touches the same bytes" });
    }
    Ok(splices)
}

/// How the text of an edit becomes JSON.
enum Shape {
    /// A string literal with the quotes and escapes of the literal that it replaces, which may be
    /// inside another string.
    Literal,
    /// What [`Shapes::output`] returns.
    Output,
    /// What [`Shapes::block`] returns.
    Block,
}

/// What an edit changes in its record.
enum ValueEdit {
    /// Replaces a value by the text of the edit, in this shape.
    Value(Span, Shape),
    /// Replaces a value by fixed JSON, whatever the text of the edit: an empty value of the same
    /// type, or the [`BlockRemainder`] of removed reasoning.
    Fixed(Span, &'static str),
    /// Removes a value with its key and its comma.
    Child(Span),
}

/// What an edit at the position `at` changes. The error says why this position cannot be edited.
fn value_edit(items: &[Item], at: At, shapes: &Shapes) -> Result<ValueEdit, &'static str> {
    let item = items.get(at.item()).ok_or("there is no such record")?;
    if let At::HiddenField { field, .. } = at {
        let field = item.hidden_fields().get(field).ok_or("there is no such hidden field")?;
        return Ok(match field.left {
            FieldRemainder::Nothing => ValueEdit::Child(field.value),
            FieldRemainder::EmptyObject => ValueEdit::Fixed(field.value, "{}"),
            FieldRemainder::EmptyText => ValueEdit::Fixed(field.value, "\"\""),
            FieldRemainder::EmptyArray => ValueEdit::Fixed(field.value, "[]"),
        });
    }
    let entry = item.entry().ok_or("the record says nothing")?;
    let block = |block: usize| entry.blocks.get(block).ok_or("there is no such block");
    match at {
        At::Block { block: idx, .. } => match block(idx)? {
            Block::Output(Output { whole, .. }) if !whole.is_empty() => {
                Ok(ValueEdit::Value(*whole, Shape::Output))
            }
            Block::Image(image) => Ok(ValueEdit::Value(image.whole, Shape::Block)),
            Block::Thinking(thinking) => Ok(match shapes.thinking {
                BlockRemainder::Nothing => ValueEdit::Child(thinking.whole),
                BlockRemainder::Value(with) => ValueEdit::Fixed(thinking.whole, with),
            }),
            Block::Repeated(again) => Ok(ValueEdit::Child(again.whole)),
            Block::Text(Text::Source(span)) => Ok(ValueEdit::Value(*span, Shape::Literal)),
            _ => Err("a block of this kind is never edited"),
        },
        At::Field { block: idx, field, .. } => match block(idx)? {
            Block::Call(call) => call
                .fields
                .get(field)
                .and_then(|field| field.text.span())
                .map(|span| ValueEdit::Value(span, Shape::Literal))
                .ok_or("there is no such argument"),
            _ => Err("only calls have arguments"),
        },
        At::Part { block: idx, part, .. } => match block(idx)? {
            Block::Output(output) => match output.parts.get(part) {
                Some(Part::Image(image)) => Ok(ValueEdit::Value(image.whole, Shape::Block)),
                Some(Part::Text(Text::Source(span))) => Ok(ValueEdit::Value(*span, Shape::Literal)),
                _ => Err("this part is never edited"),
            },
            _ => Err("only results have parts"),
        },
        At::Items { .. } => Err("whole items are not edited in their records"),
        At::HiddenField { .. } => Err("a hidden field is not a block"),
    }
}

/// An object or array, and where its children are.
struct Container {
    whole: Range<usize>,
    /// The ranges of the children. The range of a member begins with its key.
    children: Vec<Range<usize>>,
    /// The ranges of the children's values. They differ from `children` in an object only.
    values: Vec<Range<usize>>,
}

/// The ranges of bytes to cut so that `children` are removed from the record. Each range has the
/// position of the first edit that removes a child of the same object or array.
fn cuts(line: &[u8], record: Span, children: &[(Span, At)]) -> Result<Vec<(Span, At)>, Unwritable> {
    let mut containers: Vec<(Container, Vec<bool>, At)> = Vec::new();
    for (span, at) in children {
        let wanted = (span.start - record.start) as usize..(span.end - record.start) as usize;
        let known = containers.iter_mut().find_map(|(container, drop, _)| {
            let idx = container.values.iter().position(|value| *value == wanted)?;
            Some(&mut drop[idx])
        });
        if let Some(drop) = known {
            *drop = true;
            continue;
        }
        let lost = Unwritable { at: *at, why: "it is not in an object or array" };
        let Some(container) = container_of(line, &wanted) else { return Err(lost) };
        let drop = container.values.iter().map(|value| *value == wanted).collect();
        containers.push((container, drop, *at));
    }
    Ok(containers
        .iter()
        .flat_map(|(container, drop, at)| {
            cursor::without(&container.whole, &container.children, drop).into_iter().map(|cut| {
                let start = record.start + cut.start as u64;
                let end = record.start + cut.end as u64;
                (Span { start, end }, *at)
            })
        })
        .collect())
}

/// The span of the member whose value is at `value`: from its key to the end of its value. An
/// element of an array has no key, and its span is `value`. `None` if no object or array in `line`
/// has a child at `value`.
fn member(line: &[u8], record: Span, value: Span) -> Option<Span> {
    let wanted = (value.start - record.start) as usize..(value.end - record.start) as usize;
    let container = container_of(line, &wanted)?;
    let idx = container.values.iter().position(|value| *value == wanted)?;
    let start = record.start + container.children[idx].start as u64;
    Some(Span { start, end: value.end })
}

/// The object or array of which `wanted` is a direct child; `None` if there is none.
fn container_of(line: &[u8], wanted: &Range<usize>) -> Option<Container> {
    let mut within = 0..line.len();
    loop {
        let container = children(line, &within)?;
        if container.values.contains(wanted) {
            return Some(container);
        }
        within = container
            .values
            .into_iter()
            .find(|value| value.start <= wanted.start && wanted.end <= value.end)?;
    }
}

/// The object or array at `value`, with its children; `None` if the value is neither, or is
/// malformed.
fn children(line: &[u8], value: &Range<usize>) -> Option<Container> {
    let mut children = Vec::new();
    let mut values = Vec::new();
    let mut cursor = Cursor::at(line, value);
    let whole = match cursor.kind() {
        Kind::Object => cursor.object(|member, key| {
            let value = member.skip()?;
            // `key` is a slice of `line`, and its opening quote is one byte before.
            let start = key.as_ptr() as usize - line.as_ptr() as usize - 1;
            children.push(start..value.end);
            values.push(value);
            Ok(())
        }),
        Kind::Array => cursor.array(|element| {
            let value = element.skip()?;
            children.push(value.clone());
            values.push(value);
            Ok(())
        }),
        Kind::String | Kind::Other => return None,
    };
    Some(Container { whole: whole.ok()?, children, values })
}

#[cfg(test)]
mod tests;
