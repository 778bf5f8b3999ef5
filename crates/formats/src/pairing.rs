//! The invariants of a format, and the checks of calls and results that every API requires. The
//! rules are from the providers' documentation and from what agents refused, not from the code that
//! writes sessions.

use std::collections::HashMap;
use std::ops::Range;

use epitome_model::{Block, Invariant, Invariants, Part, Role, Source, Transcript, Violation};

use crate::accounting::{self, Path};

/// The invariants of a format: what its agent refuses, and which values other programs read.
pub struct RecordInvariants {
    /// Finds what the agent and its API refuse.
    pub check: fn(&Transcript, &dyn Source) -> Vec<Violation>,
    /// The values that no edit may change.
    pub accounting: &'static [Path],
}

impl Invariants for RecordInvariants {
    fn check(&self, transcript: &Transcript, source: &dyn Source) -> Vec<Violation> {
        let mut violations = (self.check)(transcript, source);
        violations.sort();
        violations
    }

    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        accounting::values(record, self.accounting)
    }
}

/// The invariants of a format of which epitome knows only that each call has a result and each
/// result a call: see [`violations`].
pub const PAIRING: RecordInvariants =
    RecordInvariants { check: |transcript, _| violations(transcript), accounting: &[] };

/// Finds violations of these rules: the id of a call must not repeat; every call must have one
/// result after it, before the next user message; every result must have a call.
///
/// Calls after the last user message may have no result yet.
pub fn violations(transcript: &Transcript) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut calls: HashMap<&str, Seen> = HashMap::new();
    for (_, entry) in transcript.context() {
        let line = entry.record.line;
        for block in &entry.blocks {
            match block {
                Block::Call(call) => {
                    if let Some(before) = calls.insert(&call.id, Seen::Open(line)) {
                        let what = format!("the call {} occurs twice ({})", call.id, before.line());
                        violations.push(Violation { invariant: Invariant::Pairing, line, what });
                    }
                }
                Block::Output(output) => match calls.get_mut(&*output.call) {
                    Some(seen @ Seen::Open(_)) => *seen = Seen::Answered(seen.line()),
                    Some(Seen::Answered(_)) => {
                        let what = format!("the call {} has two results", output.call);
                        violations.push(Violation { invariant: Invariant::Pairing, line, what });
                    }
                    None => {
                        let what = format!("a result without its call {}", output.call);
                        violations.push(Violation { invariant: Invariant::Pairing, line, what });
                    }
                },
                _ => {}
            }
        }
        if entry.role == Role::User {
            let open = calls.values_mut().filter(|seen| matches!(seen, Seen::Open(_)));
            let mut late: Vec<u64> = open
                .map(|seen| {
                    let line = seen.line();
                    *seen = Seen::Answered(line);
                    line
                })
                .collect();
            late.sort_unstable();
            violations.extend(late.into_iter().map(|line| Violation {
                invariant: Invariant::Position,
                line,
                what: "a user message comes before the result of this call".into(),
            }));
        }
    }
    violations
}

/// What was read of a call so far, with the line of the call's record.
#[derive(Clone, Copy)]
enum Seen {
    /// The result of the call may still come.
    Open(u64),
    /// The call has a result, or is reported already because a user message came before its result.
    Answered(u64),
}

impl Seen {
    fn line(self) -> u64 {
        match self {
            Seen::Open(line) | Seen::Answered(line) => line,
        }
    }
}

/// Finds blank texts, which Anthropic's API refuses. The API does accept a result that consists of
/// one blank text.
pub fn empty_texts(transcript: &Transcript, source: &dyn Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (_, entry) in transcript.context() {
        let bad = entry.blocks.iter().any(|block| match block {
            Block::Text(text) => is_blank(text, source),
            Block::Output(output) => {
                output.parts.len() > 1
                    && output.parts.iter().any(|part| match part {
                        Part::Text(text) => is_blank(text, source),
                        Part::Image(_) | Part::Opaque(_) => false,
                    })
            }
            _ => false,
        });
        if bad {
            let what = "a text of only white space".into();
            violations.push(Violation {
                invariant: Invariant::Empty,
                line: entry.record.line,
                what,
            });
        }
    }
    violations
}

fn is_blank(text: &epitome_model::Text, source: &dyn Source) -> bool {
    text.read(source).trim().is_empty()
}
