//! Exports of `opencode export`: one JSON document with the session, its messages and their parts.
//!
//! The line number of a record of an export is its number among the records: the document may be
//! one line, and edits can remove lines.

use std::ops::Range;

use epitome_model::{Fault, Faults, Record, Source, Span, Transcript};

use super::raw;
use super::read::Reader;
use crate::place::RecordBytes;
use crate::records::{RecordContent, TranscriptBuilder};

/// Whether a source begins like an export.
pub fn sniff(head: &[u8]) -> bool {
    raw::is_export(head)
}

/// Reads an export. Each message and each part is a record, wherever lines end.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let bytes = source.read(0..source.len());
    let at = RecordBytes { line: &bytes, base: 0 };
    let raw::Export { info, messages, .. } = match raw::Export::parse(&bytes) {
        Ok(export) => export,
        Err(bad) => {
            faults.report(bad.fault(1, true));
            let mut session = TranscriptBuilder::new(faults);
            let record = record(1, &(0..bytes.len()));
            session.add::<Reader>(&at, record, RecordContent::default());
            return session.finish(Reader::default());
        }
    };
    if std::str::from_utf8(&bytes).is_err() {
        faults.report(Fault::not_utf8(1));
    }
    let mut records: Vec<(Range<usize>, Kind)> = Vec::new();
    records.extend(info.map(|place| (place, Kind::Session)));
    for message in messages.items {
        // The parts of a message are read only if all of them come after its `info`.
        let Some(place) = message.info else { continue };
        let apart = message.parts.items.iter().all(|part| place.end <= part.start);
        records.push((place, Kind::Message { has_unread_parts: !apart }));
        if apart {
            records.extend(message.parts.items.into_iter().map(|part| (part, Kind::Part)));
        }
    }
    records.sort_by_key(|(place, _)| place.start);
    let mut reader = Reader::default();
    let mut session = TranscriptBuilder::new(faults);
    for (number, (place, kind)) in (1..).zip(records) {
        session.line = number;
        let content = match kind {
            Kind::Session => raw::Row::at(&bytes, &place).map(|row| {
                reader.session(&mut session, &at, &row, row.revert.as_ref());
                RecordContent::default()
            }),
            Kind::Message { has_unread_parts } => {
                if has_unread_parts {
                    session.fault("its parts are not read: some come before its `info`");
                }
                reader.message(&mut session, &at, (&place, None))
            }
            Kind::Part => reader.part(&mut session, &at, (&place, (None, None))),
        };
        if bytes[place.start] != b'{' {
            session.fault("no record: it is no object");
        }
        // The value was parsed before, so it is valid JSON.
        session.add::<Reader>(&at, record(number, &place), content.unwrap_or_default());
    }
    session.finish(reader)
}

#[derive(Clone, Copy)]
enum Kind {
    Session,
    Message { has_unread_parts: bool },
    Part,
}

fn record(line: u64, place: &Range<usize>) -> Record {
    let span = Span { start: place.start as u64, end: place.end as u64 };
    Record { line, span }
}
