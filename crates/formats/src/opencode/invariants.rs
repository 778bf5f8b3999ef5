//! What OpenCode and the APIs behind it refuse.

use std::ops::Range;

use epitome_model::{Block, Invariant, Invariants, Source, Transcript, Violation};

use super::raw;
use crate::accounting::{self, Path};
use crate::pairing;

/// The keys that lead from a row or an event to a message or part. In an export, the record itself
/// is the message or part.
const HELD: [Path; 3] = ["data", "data.info", "data.part"];

/// Values that other programs read from rows, messages and parts. The type of a part is not among
/// them, because an edit makes a picture a text.
const ACCOUNTING: &[Path] = &[
    "table",
    "id",
    "message_id",
    "parent_id",
    "directory",
    "version",
    "time_created",
    "sessionID",
    "messageID",
    "parentID",
    "callID",
    "role",
    "agent",
    "mode",
    "modelID",
    "providerID",
    "model",
    "path",
    "cost",
    "tokens",
    "finish",
    "time",
    "tool",
    "state.status",
    "state.time.start",
    "state.time.end",
    "state.metadata.sessionId",
    "state.metadata.model",
];

/// Values in the metadata of a call that other programs read: the session and model of a sub-agent.
pub(super) const IN_METADATA: &[Path] = &["sessionId", "model"];

/// OpenCode stores a call and its result in one part, and adds a result where none is. If a part
/// lacks a required member, OpenCode cannot read the session any more.
pub struct OpencodeInvariants;

impl Invariants for OpencodeInvariants {
    fn check(&self, transcript: &Transcript, source: &dyn Source) -> Vec<Violation> {
        let mut violations = pairing::violations(transcript);
        for (_, entry) in transcript.entries() {
            if !entry.blocks.iter().any(|block| matches!(block, Block::Call(_))) {
                continue;
            }
            let record = source.at(entry.record.span);
            for missing in missing(&record) {
                let what = format!("the state of a call has no `{missing}`");
                violations.push(Violation {
                    invariant: Invariant::Shape,
                    line: entry.record.line,
                    what,
                });
            }
        }
        violations
    }

    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        let mut found = accounting::values(record, ACCOUNTING);
        for place in HELD.iter().flat_map(|held| accounting::values(record, &[held])) {
            let inner = accounting::values(&record[place.clone()], ACCOUNTING).into_iter();
            found.extend(inner.map(|it| place.start + it.start..place.start + it.end));
        }
        found
    }
}

/// The members that the state of a part lacks, although OpenCode's schema (`ToolState…`) requires
/// them.
fn missing(record: &[u8]) -> Vec<&'static str> {
    let part = raw::part_of(record);
    let Some(state) = part.and_then(|part| part.state) else { return Vec::new() };
    let status = state.status.as_ref().map(|place| &record[place.clone()]);
    let needed: &[(&'static str, bool)] = match status {
        Some(b"\"completed\"") => &[
            ("output", state.output.is_some()),
            ("title", state.title.is_some()),
            ("metadata", state.metadata.is_some()),
            ("time", state.time.is_some()),
        ],
        Some(b"\"error\"") => &[("error", state.error.is_some()), ("time", state.time.is_some())],
        Some(b"\"running\"") => &[("time", state.time.is_some())],
        Some(b"\"pending\"") => &[],
        Some(_) | None => &[("status", false)],
    };
    let input = [("input", state.input.is_some())];
    let missing = input.iter().chain(needed).filter(|(_, is_there)| !is_there);
    missing.map(|(name, _)| *name).collect()
}
