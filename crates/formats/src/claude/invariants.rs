//! What Claude Code and Anthropic's API refuse.

use crate::accounting::Path;
use crate::pairing::{self, RecordInvariants};

/// The values that `ccusage`, `claude-code-log` and other programs read from records: the usage of
/// every response (each record repeats it, and some programs add up the first, others the last),
/// the ids of records, and where they were made. In the `data` of `progress`, and in the result of
/// a sub-agent, it is the sub-agent's usage.
pub const ACCOUNTING: &[Path] = &[
    "type",
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "sessionId",
    "agentId",
    "requestId",
    "timestamp",
    "cwd",
    "gitBranch",
    "version",
    "userType",
    "slug",
    "isSidechain",
    "toolUseID",
    "parentToolUseID",
    "costUSD",
    "durationMs",
    "message.id",
    "message.model",
    "message.usage",
    "message.stop_reason",
    "toolUseResult.agentId",
    "toolUseResult.usage",
    "toolUseResult.totalTokens",
    "toolUseResult.totalDurationMs",
    "toolUseResult.totalToolUseCount",
    "data.agentId",
    "data.message.uuid",
    "data.message.timestamp",
    "data.message.requestId",
    "data.message.message.id",
    "data.message.message.model",
    "data.message.message.usage",
];

/// Claude Code drops the other half of a broken pair itself, but a session that relies on this
/// loses what is dropped: a broken pair is a violation here, as it is for the API.
pub const INVARIANTS: RecordInvariants = RecordInvariants {
    check: |transcript, source| {
        let mut violations = pairing::violations(transcript);
        violations.extend(pairing::empty_texts(transcript, source));
        violations
    },
    accounting: ACCOUNTING,
};
