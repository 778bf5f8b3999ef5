//! What Codex and OpenAI's Responses refuse.

use std::ops::Range;

use epitome_model::{Block, Breach, Law, Laws, Role, Source, Transcript};

use crate::accounting::{self, Path};
use crate::pairing;

/// What other programs read from a rollout. Reasoning that goes takes the id of its item along.
const ACCOUNTING: &[Path] = &[
    &["type"],
    &["timestamp"],
    &["ordinal"],
    &["metadata"],
    &["payload", "info"],
    &["payload", "rate_limits"],
    &["payload", "usage"],
    &["payload", "turn_token_usage"],
    &["payload", "thread_token_usage"],
    &["payload", "session_id"],
    &["payload", "call_id"],
    &["payload", "turn_id"],
    &["payload", "cwd"],
    &["payload", "git"],
    &["payload", "model"],
    &["payload", "model_provider"],
    &["payload", "cli_version"],
];

/// Codex answers a call without a result by itself ("aborted") and leaves out a result without its
/// call, but a session that relies on it loses what it leaves out.
pub struct CodexLaws;

impl Laws for CodexLaws {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Breach> {
        let mut breaches = pairing::breaches(transcript);
        breaches.extend(lonely_reasoning(transcript));
        breaches.sort();
        breaches
    }

    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        accounting::values(record, ACCOUNTING)
    }
}

/// Reasoning belongs to what the model says or calls next: "provided without its required
/// following item" is what the service answers when that is gone.
fn lonely_reasoning(transcript: &Transcript) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut open = None;
    for (_, entry) in transcript.context() {
        for block in &entry.blocks {
            match block {
                Block::Thinking(_) => open = Some(entry.record.line),
                _ if entry.role == Role::Assistant => open = None,
                _ => {
                    breaches.extend(open.take().map(|line| Breach {
                        law: Law::Reasoning,
                        line,
                        what: "reasoning that nothing of the model follows".into(),
                    }));
                }
            }
        }
    }
    breaches
}
