//! What Claude Code and Anthropic's API refuse.

use crate::accounting::Path;
use crate::pairing::{self, RecordInvariants};

/// The values that `ccusage`, `claude-code-log` and other programs read from records, such as the
/// usage of each response, and the id, the directory and the time of each record. Each record of a
/// response repeats the usage; some programs add up the first records, others the last. The usage
/// in the `data` of `progress` and in the result of a sub-agent is the sub-agent's.
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

/// Claude Code drops a call without a result, and a result without a call. A resumed session would
/// lack them, so both are violations here, as they are for the API.
pub const INVARIANTS: RecordInvariants = RecordInvariants {
    check: |transcript, source| {
        let mut violations = pairing::violations(transcript);
        violations.extend(pairing::empty_texts(transcript, source));
        violations
    },
    accounting: ACCOUNTING,
};
