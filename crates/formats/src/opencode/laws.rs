//! What OpenCode and the wires behind it refuse.

use epitome_model::{Block, Breach, Law, Laws, Source, Transcript};

use super::raw;
use crate::json::Cursor;
use crate::pairing;

/// OpenCode answers a call without a result by itself, and keeps both in one part. A part of which
/// a required member is missing ends the session: nothing of it can be read any more.
pub struct OpencodeLaws;

impl Laws for OpencodeLaws {
    fn check(&self, transcript: &Transcript, source: &dyn Source) -> Vec<Breach> {
        let mut breaches = pairing::breaches(transcript);
        for (_, entry) in transcript.entries() {
            if !entry.blocks.iter().any(|block| matches!(block, Block::Call(_))) {
                continue;
            }
            let record = source.at(entry.record.span);
            for missing in missing(&record) {
                let what = format!("the state of a call has no `{missing}`");
                breaches.push(Breach { law: Law::Shape, line: entry.record.line, what });
            }
        }
        breaches
    }
}

/// Members without which OpenCode does not read a part (`ToolState…` in its schema).
fn missing(record: &[u8]) -> Vec<&'static str> {
    let place = raw::data_of(record);
    let Ok(part) = raw::part(&mut Cursor::at(record, &place), record) else { return Vec::new() };
    let Some(state) = part.state else { return Vec::new() };
    let status = state.status.as_ref().map(|place| &record[place.clone()]);
    let mut missing = Vec::new();
    let mut need = |name, there: bool| {
        if !there {
            missing.push(name);
        }
    };
    need("input", state.input.is_some());
    match status {
        Some(b"\"completed\"") => {
            need("output", state.output.is_some());
            need("title", state.title.is_some());
            need("metadata", state.metadata.is_some());
            need("time", state.time.is_some());
        }
        Some(b"\"error\"") => {
            need("error", state.error.is_some());
            need("time", state.time.is_some());
        }
        Some(b"\"running\"") => need("time", state.time.is_some()),
        Some(b"\"pending\"") => {}
        Some(_) | None => need("status", false),
    }
    missing
}
