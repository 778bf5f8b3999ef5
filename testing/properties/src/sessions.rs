//! Sessions: any bytes, read in an agent's format.

use std::env;
use std::sync::LazyLock;

use epitome::compaction::{PreparedCompaction, Way};
use epitome::storage::Spliced;
use epitome::{ErrorKind, Loaded};
use epitome_formats::{FORMATS, Format, Writing, find_format};
use epitome_model::{Block, Item, Output, Part, Source, Span, Splice, Text, Transcript};
use epitome_passes::{BUILT_IN, Keep, Recipe, built_in};
use epitome_tokens::Estimate;

/// The variable that limits the fuzz target `session` to one format, which it names.
const FORMAT: &str = "EPITOME_FORMAT";

/// Calls [`session`] with any bytes and the format that `EPITOME_FORMAT` names, or every format if
/// the variable is not set.
///
/// # Panics
///
/// If a property does not hold, or no format has that name.
pub fn any_session(bytes: &[u8]) {
    static CHOSEN: LazyLock<Vec<&'static Format>> = LazyLock::new(|| match env::var(FORMAT) {
        Ok(name) => vec![find_format(&name).expect("EPITOME_FORMAT names a format")],
        Err(_) => FORMATS.iter().collect(),
    });
    for format in CHOSEN.iter() {
        session(format, bytes);
    }
}

/// Reads any bytes as a session of `format`. It must be read the same way twice, and its spans must
/// be inside its records. If the format can be written with splices, every built-in recipe must
/// compact the session so that everything can be restored.
///
/// # Panics
///
/// If a property does not hold.
pub fn session(format: &'static Format, bytes: &[u8]) {
    let session = read(format, bytes);
    let again = read(format, bytes);
    assert_eq!(session.transcript, again.transcript, "the same bytes read the same");
    assert_eq!(session.faults, again.faults, "the same bytes have the same faults");
    (session.format.sniff)(&bytes[..bytes.len().min(64 << 10)]);
    stand_inside(&session.transcript, bytes);
    let Writing::Splices(write) = session.format.writing else { return };
    let none = write(&session.transcript, &session.source, &[]);
    assert!(none.is_ok_and(|splices| splices.is_empty()), "no edit, no change");
    for (name, _) in BUILT_IN {
        let recipe = built_in(name).expect("a built-in recipe");
        let eager = Keep { turns: Some(0), ..Keep::default() };
        for keep in [recipe.keep, eager] {
            compacts(&session, &Recipe { keep, trigger: Default::default(), ..recipe.clone() });
        }
    }
}

fn read<'a>(format: &'static Format, bytes: &'a [u8]) -> Loaded<&'a [u8]> {
    let mut faults = Vec::new();
    let transcript = (format.read)(&bytes, &mut faults);
    Loaded { format, source: bytes, transcript, faults }
}

/// Checks that a recipe's plan can be written and undone, makes nothing longer (except for a record
/// with a summary), and keeps the invariants if the session kept them.
fn compacts(session: &Loaded<&[u8]>, recipe: &Recipe) {
    let name = &recipe.name;
    let planned = match PreparedCompaction::new(session, recipe, &Estimate::new()) {
        Ok(planned) => planned,
        // The rules that a digest must keep may exceed the digest's budget on their own.
        Err(err) if err.kind() == ErrorKind::Refused && recipe.stages.stored.digest.is_some() => {
            return;
        }
        Err(err) => panic!("{name}: {err:?}"),
    };
    let broken = session.format.invariants.check(&session.transcript, &session.source);
    if broken.is_empty() {
        assert_eq!(
            planned.violations,
            [],
            "{name}: a session that keeps the invariants keeps them"
        );
    }
    let after = all(&planned.spliced().expect("splices lie apart"));
    let is_record = planned.way == Way::Summary;
    assert!(is_record || after.len() <= session.source.len(), "{name}: nothing grows");
    let mut splices: Vec<&Splice> = planned.splices.iter().map(|(splice, _)| splice).collect();
    splices.sort_by_key(|splice| splice.span);
    let undone = Spliced::new(&after, inverse(&splices, session.source)).expect("they lie apart");
    assert!(all(&undone) == session.source, "{name}: everything comes back");
}

/// The splices that undo `splices`, which are sorted and were applied to `before`.
fn inverse(splices: &[&Splice], before: &[u8]) -> Vec<Splice> {
    let (mut taken, mut put) = (0, 0);
    let back = |splice: &&Splice| {
        let start = splice.span.start - taken + put;
        taken += splice.span.len();
        put += splice.with.len() as u64;
        let end = start + splice.with.len() as u64;
        Splice { span: Span { start, end }, with: before.at(splice.span).into() }
    };
    splices.iter().map(back).collect()
}

fn all(spliced: &Spliced<'_>) -> Vec<u8> {
    spliced.read(0..Source::len(spliced)).into_owned()
}

/// Checks that every record comes after the record before it, or is the same one, that all spans of
/// an item are inside its record, and that the context has only entries.
pub(crate) fn stand_inside(transcript: &Transcript, bytes: &[u8]) {
    let mut from = 0;
    let mut last = None;
    for item in &transcript.items {
        let record = item.record().span;
        // Items may share a record.
        let in_order = from <= record.start || last == Some(record);
        assert!(in_order && record.end <= bytes.len() as u64, "records are in order");
        last = Some(record);
        from = record.end;
        for span in spans(item) {
            assert!(span.start <= span.end && record.contains(span), "{span:?} in {record:?}");
        }
    }
    for &idx in &transcript.context {
        assert!(transcript.items[idx].entry().is_some(), "what is sent says something");
    }
}

fn spans(item: &Item) -> Vec<Span> {
    let mut spans: Vec<Span> = item.hidden_fields().iter().map(|field| field.value).collect();
    for block in item.entry().into_iter().flat_map(|entry| &entry.blocks) {
        match block {
            Block::Text(text) | Block::Summary(text) => spans.extend(text.span()),
            Block::Thinking(thinking) => {
                spans.push(thinking.whole);
                spans.extend(thinking.text.iter().filter_map(Text::span));
            }
            Block::Call(call) => {
                spans.push(call.arguments);
                spans.extend(call.target.iter().filter_map(Text::span));
                spans.extend(call.fields.iter().filter_map(|field| field.text.span()));
            }
            Block::Output(output) => spans.extend(of_output(output)),
            Block::Repeated(again) => {
                spans.push(again.whole);
                spans.extend(of_output(&again.output));
            }
            Block::Image(image) => spans.extend([image.whole, image.data]),
            Block::Opaque(span) => spans.push(*span),
            // Other kinds of blocks are not checked.
            _ => {}
        }
    }
    spans
}

fn of_output(output: &Output) -> Vec<Span> {
    let parts = output.parts.iter().flat_map(|part| match part {
        Part::Text(text) => text.span().into_iter().collect(),
        Part::Image(image) => vec![image.whole, image.data],
        Part::Opaque(span) => vec![*span],
    });
    // A result without content has no span.
    parts.chain((!output.whole.is_empty()).then_some(output.whole)).collect()
}
