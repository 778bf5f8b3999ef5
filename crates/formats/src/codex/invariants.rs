//! What Codex and OpenAI's Responses API refuse.

use epitome_model::{Block, Invariant, Role, Transcript, Violation};

use crate::accounting::Path;
use crate::pairing::{self, RecordInvariants};

/// Values that other programs read from a rollout. The id of a reasoning item is not among them: it
/// is removed together with the reasoning.
const ACCOUNTING: &[Path] = &[
    "type",
    "timestamp",
    "ordinal",
    "metadata",
    "payload.info",
    "payload.rate_limits",
    "payload.usage",
    "payload.turn_token_usage",
    "payload.thread_token_usage",
    "payload.session_id",
    "payload.call_id",
    "payload.turn_id",
    "payload.cwd",
    "payload.git",
    "payload.model",
    "payload.model_provider",
    "payload.cli_version",
];

/// Codex adds the result "aborted" to a call without a result, and leaves out a result without its
/// call. So the first would change the session, and the second would lose a result: this check
/// reports both as violations.
pub const INVARIANTS: RecordInvariants = RecordInvariants {
    check: |transcript, _| {
        let mut violations = pairing::violations(transcript);
        violations.extend(lonely_reasoning(transcript));
        violations
    },
    accounting: ACCOUNTING,
};

/// Finds reasoning that is followed by something other than a message or call of the model. The
/// service refuses such reasoning: "provided without its required following item". Reasoning at the
/// end of the context is not reported.
fn lonely_reasoning(transcript: &Transcript) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut open = None;
    for (_, entry) in transcript.context() {
        for block in &entry.blocks {
            match block {
                Block::Thinking(_) => open = Some(entry.record.line),
                _ if entry.role == Role::Assistant => open = None,
                _ => {
                    violations.extend(open.take().map(|line| Violation {
                        invariant: Invariant::Reasoning,
                        line,
                        what: "reasoning that no message or call of the model follows".into(),
                    }));
                }
            }
        }
    }
    violations
}
