//! Turns edits into replacements of bytes, for formats whose records are JSON.
//!
//! Only the edited values change: the order of keys, unknown fields, the text of numbers and white
//! space are preserved.

use std::collections::BTreeMap;
use std::ops::Range;

use epitome_model::{
    At, Block, Edit, Item, Left, Output, Part, Source, Span, Splice, Text, Transcript, Verb,
    encode, encode_as, parallel,
};

use crate::cursor::{self, Cursor, Kind};

/// Turns edits into replacements of bytes, sorted and disjoint, each with the position of its edit.
pub type Write = fn(&Transcript, &dyn Source, &[Edit]) -> Result<Vec<(Splice, At)>, Unwritable>;

/// An edit that this format cannot apply. Nothing is written in this case.
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

/// How a format spells the texts that edits leave. Each function returns the JSON that replaces a
/// value.
pub struct Shapes {
    /// The JSON that replaces the value of a tool result, for a given text.
    pub output: fn(&str) -> String,
    /// The JSON that replaces a whole block, for a given text.
    pub block: fn(&str) -> String,
    /// What replaces removed reasoning.
    pub thinking: Gone,
}

/// What remains of a removed block.
#[derive(Clone, Copy, Debug)]
pub enum Gone {
    /// Nothing: the block is removed with its key or its comma.
    Whole,
    /// A JSON value that the agent keeps and does not send.
    Instead(&'static str),
}

/// One replacement of bytes that a format makes in its own way.
pub enum OwnReplacement {
    /// Replaces the value at a span with JSON.
    Value(Span, String),
    /// Removes a value with its key and its comma.
    Child(Span),
    /// Replaces a value and its key with another key and value.
    Member(Span, String),
}

/// Returns the replacements for an edit that a format writes in its own way; `None` if the general
/// way applies.
pub type OwnReplacements<'a> = &'a dyn Fn(&Edit) -> Option<Vec<OwnReplacement>>;

/// A text as a JSON string.
pub fn literal(text: &str) -> String {
    encode(text)
}

/// The JSON of the value at `place`, with the splices inside it applied; splices outside of it are
/// ignored. `None` if the result is not UTF-8.
pub fn spliced(source: &dyn Source, place: Span, splices: &[Splice]) -> Option<String> {
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
/// several edits are applied by one replacement, the position is that of the first of them.
///
/// # Errors
///
/// [`Unwritable`] if an edit has no position in the records, or if two edits overlap.
pub fn splices(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
    shapes: &Shapes,
) -> Result<Vec<(Splice, At)>, Unwritable> {
    splices_with(transcript, source, edits, shapes, &|_| None)
}

/// Like [`splices`], for a format that writes some edits in its own way.
///
/// # Errors
///
/// The same as [`splices`].
pub fn splices_with(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
    shapes: &Shapes,
    own: OwnReplacements<'_>,
) -> Result<Vec<(Splice, At)>, Unwritable> {
    let mut splices = Vec::new();
    // Grouped by record: several items may be read from one record.
    let mut drops: BTreeMap<Span, Vec<(Span, At)>> = BTreeMap::new();
    for edit in edits {
        let fail = |why| Unwritable { at: edit.at, why };
        if let Some(pieces) = own(edit) {
            let record = transcript.items[edit.at.item()].record().span;
            for piece in pieces {
                match piece {
                    OwnReplacement::Value(span, with) => {
                        splices.push((Splice { span, with: with.into_bytes().into() }, edit.at));
                    }
                    OwnReplacement::Child(span) => {
                        drops.entry(record).or_default().push((span, edit.at));
                    }
                    OwnReplacement::Member(value, with) => {
                        let span = member(&source.at(record), record, value)
                            .ok_or(fail("it is not in an object"))?;
                        splices.push((Splice { span, with: with.into_bytes().into() }, edit.at));
                    }
                }
            }
            continue;
        }
        match place(&transcript.items, edit.at, shapes).map_err(fail)? {
            Place::Value(span, shape) => {
                let Verb::Replace(text) = &edit.verb else {
                    return Err(fail("it cannot be dropped alone"));
                };
                let with = match shape {
                    Shape::Literal => encode_as(text, &source.read(span.start..span.start + 2)),
                    // A string stays a string, even if the format would write a list of blocks.
                    Shape::Output if source.read(span.start..span.start + 1)[..] == *b"\"" => {
                        literal(text)
                    }
                    Shape::Output => (shapes.output)(text),
                    Shape::Block => (shapes.block)(text),
                };
                splices.push((Splice { span, with: with.into_bytes().into() }, edit.at));
            }
            Place::Emptied(span, with) => {
                splices.push((Splice { span, with: with.as_bytes().into() }, edit.at));
            }
            Place::Child(span) => {
                let record = transcript.items[edit.at.item()].record().span;
                drops.entry(record).or_default().push((span, edit.at));
            }
        }
    }
    let drops: Vec<(Span, Vec<(Span, At)>)> = drops.into_iter().collect();
    let cuts_of =
        |(record, children): (Span, Vec<(Span, At)>)| cuts(&source.at(record), record, &children);
    // The error is that of the first record that cannot be edited, whichever thread fails first.
    for cuts in parallel::map(drops, cuts_of) {
        let gone = cuts?.into_iter();
        splices.extend(gone.map(|(span, at)| (Splice { span, with: Box::default() }, at)));
    }
    apart(splices)
}

fn apart(mut splices: Vec<(Splice, At)>) -> Result<Vec<(Splice, At)>, Unwritable> {
    splices.sort_by_key(|(splice, _)| splice.span);
    let touching = splices.windows(2).find(|pair| pair[1].0.span.start < pair[0].0.span.end);
    if let Some(pair) = touching {
        return Err(Unwritable { at: pair[1].1, why: "another edit touches the same bytes" });
    }
    Ok(splices)
}

enum Shape {
    Literal,
    Output,
    Block,
}

enum Place {
    /// A value that is replaced, and how its replacement is spelled.
    Value(Span, Shape),
    /// A value that is replaced by an empty value of the same type.
    Emptied(Span, &'static str),
    /// A value that is removed, with its key and its comma.
    Child(Span),
}

fn place(items: &[Item], at: At, shapes: &Shapes) -> Result<Place, &'static str> {
    let item = items.get(at.item()).ok_or("there is no such record")?;
    if let At::Copy { copy, .. } = at {
        let copy = item.copies().get(copy).ok_or("there is no such copy")?;
        return Ok(match copy.left {
            Left::Nothing => Place::Child(copy.value),
            Left::EmptyObject => Place::Emptied(copy.value, "{}"),
            Left::EmptyText => Place::Emptied(copy.value, "\"\""),
            Left::EmptyArray => Place::Emptied(copy.value, "[]"),
        });
    }
    let entry = item.entry().ok_or("the record says nothing")?;
    let block = |block: usize| entry.blocks.get(block).ok_or("there is no such block");
    match at {
        At::Block { block: idx, .. } => match block(idx)? {
            Block::Output(Output { whole, .. }) if !whole.is_empty() => {
                Ok(Place::Value(*whole, Shape::Output))
            }
            Block::Image(image) => Ok(Place::Value(image.whole, Shape::Block)),
            Block::Thinking(thinking) => Ok(match shapes.thinking {
                Gone::Whole => Place::Child(thinking.whole),
                Gone::Instead(with) => Place::Emptied(thinking.whole, with),
            }),
            Block::Repeated(again) => Ok(Place::Child(again.whole)),
            Block::Text(Text::Source(span)) => Ok(Place::Value(*span, Shape::Literal)),
            _ => Err("a block of this kind is never edited"),
        },
        At::Field { block: idx, field, .. } => match block(idx)? {
            Block::Call(call) => call
                .fields
                .get(field)
                .and_then(|field| field.text.span())
                .map(|span| Place::Value(span, Shape::Literal))
                .ok_or("there is no such argument"),
            _ => Err("only calls have arguments"),
        },
        At::Part { block: idx, part, .. } => match block(idx)? {
            Block::Output(output) => match output.parts.get(part) {
                Some(Part::Image(image)) => Ok(Place::Value(image.whole, Shape::Block)),
                Some(Part::Text(Text::Source(span))) => Ok(Place::Value(*span, Shape::Literal)),
                _ => Err("this part is never edited"),
            },
            _ => Err("only results have parts"),
        },
        At::Items { .. } => Err("whole items are not edited in their records"),
        At::Copy { .. } => Err("a copy is not a block"),
    }
}

/// An object or array, and where its children are.
struct Container {
    whole: Range<usize>,
    /// The ranges of its children: of a member from its key on, of an element alone.
    children: Vec<Range<usize>>,
    values: Vec<Range<usize>>,
}

/// The ranges that remove `children` from the record, each with the position of the first edit that
/// asks for it.
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
    let span = |cut: Range<usize>| Span {
        start: record.start + cut.start as u64,
        end: record.start + cut.end as u64,
    };
    Ok(containers
        .iter()
        .flat_map(|(container, drop, at)| {
            cursor::without(&container.whole, &container.children, drop)
                .into_iter()
                .map(|cut| (span(cut), *at))
        })
        .collect())
}

/// The span of a member of an object: from its key to the end of its value.
fn member(line: &[u8], record: Span, value: Span) -> Option<Span> {
    let wanted = (value.start - record.start) as usize..(value.end - record.start) as usize;
    let container = container_of(line, &wanted)?;
    let idx = container.values.iter().position(|value| *value == wanted)?;
    let start = record.start + container.children[idx].start as u64;
    Some(Span { start, end: value.end })
}

/// The innermost object or array whose direct child is `wanted`.
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

fn children(line: &[u8], value: &Range<usize>) -> Option<Container> {
    let mut children = Vec::new();
    let mut values = Vec::new();
    let mut cursor = Cursor::at(line, value);
    let whole = match cursor.kind() {
        Kind::Object => cursor.object(|member, key| {
            let value = member.skip()?;
            // The key is a slice of the line: its quote is one byte before it.
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
