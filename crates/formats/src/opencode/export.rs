//! Exports of `opencode export`: one JSON document with the session, its messages and their parts.
//!
//! Records are counted instead of lines: the document may be one line, and edits can remove lines.

use std::ops::Range;

use epitome_json::Cursor;
use epitome_model::{Fault, Faults, Record, Source, Span, Transcript};

use super::raw;
use super::read::Reader;
use crate::place::Place;

/// Whether a source begins like an export.
pub fn sniff(head: &[u8]) -> bool {
    raw::is_export(head)
}

/// Reads an export. Its records are the messages and the parts, wherever lines end.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let bytes = source.read(0..source.len());
    let whole = 0..bytes.len();
    let mut reader = Reader::default();
    let (info, messages) = match raw::export(&bytes) {
        Ok(found) => found,
        Err(bad) => {
            faults.report(bad.fault(1, true));
            reader.keep(record(1, &whole));
            return reader.finish();
        }
    };
    if std::str::from_utf8(&bytes).is_err() {
        faults.report(Fault::not_utf8(1));
    }
    let at = Place { line: &bytes, base: 0 };
    let mut records: Vec<(Range<usize>, Kind)> = Vec::new();
    records.extend(info.map(|place| (place, Kind::Session)));
    for message in messages {
        // The info of a message comes before its parts, wherever it is in the document.
        let Some(place) = message.info else { continue };
        let apart = message.parts.iter().all(|part| place.end <= part.start);
        records.push((place, Kind::Message));
        if apart {
            records.extend(message.parts.into_iter().map(|part| (part, Kind::Part)));
        }
    }
    records.sort_by_key(|(place, _)| place.start);
    for (number, (place, kind)) in (1..).zip(records) {
        let record = record(number, &place);
        // It was parsed before, so it is valid JSON.
        let done = match kind {
            Kind::Session => raw::info(&mut Cursor::at(&bytes, &place)).map(|row| {
                reader.session(&at, &row, row.data.as_ref());
                reader.keep(record);
            }),
            Kind::Message => reader.message(&at, record, (&place, None), faults),
            Kind::Part => reader.part(&at, record, (&place, (None, None)), faults),
        };
        if bytes[place.start] != b'{' {
            faults.report(Fault { line: number, what: "no record: it is no object".into() });
        }
        if done.is_err() {
            reader.keep(record);
        }
    }
    reader.finish()
}

#[derive(Clone, Copy)]
enum Kind {
    Session,
    Message,
    Part,
}

fn record(line: u64, place: &Range<usize>) -> Record {
    let span = Span { start: place.start as u64, end: place.end as u64 };
    Record { line, span }
}
