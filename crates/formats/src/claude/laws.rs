//! What Claude Code and Anthropic's wire refuse.

use std::ops::Range;

use epitome_model::{Breach, Laws, Source, Transcript};

use crate::accounting::{self, Path};
use crate::pairing;

/// What `ccusage`, `claude-code-log` and others read from records: every response's usage (each
/// record repeats it, and some programs add up the first, others the last), and what tells records
/// apart and where they were made. In `data` of `progress`, and in the result of a sub-agent, it is
/// the sub-agent's.
pub const ACCOUNTING: &[Path] = &[
    &["type"],
    &["uuid"],
    &["parentUuid"],
    &["logicalParentUuid"],
    &["sessionId"],
    &["agentId"],
    &["requestId"],
    &["timestamp"],
    &["cwd"],
    &["gitBranch"],
    &["version"],
    &["userType"],
    &["slug"],
    &["isSidechain"],
    &["toolUseID"],
    &["parentToolUseID"],
    &["costUSD"],
    &["durationMs"],
    &["message", "id"],
    &["message", "model"],
    &["message", "usage"],
    &["message", "stop_reason"],
    &["toolUseResult", "agentId"],
    &["toolUseResult", "usage"],
    &["toolUseResult", "totalTokens"],
    &["toolUseResult", "totalDurationMs"],
    &["toolUseResult", "totalToolUseCount"],
    &["data", "agentId"],
    &["data", "message", "uuid"],
    &["data", "message", "timestamp"],
    &["data", "message", "requestId"],
    &["data", "message", "message", "id"],
    &["data", "message", "message", "model"],
    &["data", "message", "message", "usage"],
];

/// Claude Code drops the other half of a broken pair by itself, but a session that relies on it
/// loses what it drops: a broken pair is a breach here as it is on the wire.
pub struct ClaudeLaws;

impl Laws for ClaudeLaws {
    fn check(&self, transcript: &Transcript, source: &dyn Source) -> Vec<Breach> {
        let mut breaches = pairing::breaches(transcript);
        breaches.extend(pairing::empty_texts(transcript, source));
        breaches.sort();
        breaches
    }

    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        accounting::values(record, ACCOUNTING)
    }
}
