//! What Google's API refuses in the turns of a session.
//!
//! The rules are from <https://ai.google.dev/gemini-api/docs/function-calling> and from responses
//! of the API: the turn after a turn with calls must have a result for each call, and no result may
//! be without a call.

use epitome_model::{Block, Invariant, RepeatedOutput, Role, Source, Transcript, Violation};

use crate::accounting::Path;
use crate::pairing::RecordInvariants;

/// Values that other programs read from records: messages, headers, and lists of messages in
/// `$set`. The paths are relative to a record.
const ACCOUNTING: &[Path] = &[
    "id",
    "type",
    "timestamp",
    "model",
    "tokens",
    "sessionId",
    "projectHash",
    "startTime",
    "lastUpdated",
    "$set.messages.*.id",
    "$set.messages.*.type",
    "$set.messages.*.timestamp",
    "$set.messages.*.model",
    "$set.messages.*.tokens",
];

/// Gemini CLI joins consecutive messages of the same role into one turn, and repairs nothing on a
/// resume.
pub const INVARIANTS: RecordInvariants = RecordInvariants { check, accounting: ACCOUNTING };

fn check(transcript: &Transcript, source: &dyn Source) -> Vec<Violation> {
    let turns = turns(transcript);
    let mut violations = Vec::new();
    for (idx, turn) in turns.iter().enumerate() {
        let before = idx.checked_sub(1).map(|idx| &turns[idx]);
        violations.extend(results(turn, before));
        if turn.calls.is_empty() {
            continue;
        }
        // If no turn follows, the calls may still be running.
        if let Some(after) = turns.get(idx + 1) {
            violations.extend(answers(turn, after));
        }
    }
    violations.extend(empty_texts(transcript, source));
    violations.sort();
    violations.dedup();
    violations
}

/// Consecutive entries of the model, or consecutive entries of all other roles.
struct Turn<'a> {
    by_model: bool,
    line: u64,
    calls: Vec<&'a str>,
    results: Vec<&'a str>,
}

fn turns(transcript: &Transcript) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (_, entry) in transcript.context() {
        if entry.blocks.is_empty() {
            continue;
        }
        let by_model = entry.role == Role::Assistant;
        if turns.last().is_none_or(|turn| turn.by_model != by_model) {
            let line = entry.record.line;
            turns.push(Turn { by_model, line, calls: Vec::new(), results: Vec::new() });
        }
        let turn = turns.last_mut().expect("one was just put there");
        for block in &entry.blocks {
            match block {
                Block::Call(call) => turn.calls.push(&call.id),
                Block::Output(output) | Block::Repeated(RepeatedOutput { output, .. }) => {
                    turn.results.push(&output.call);
                }
                _ => {}
            }
        }
    }
    turns
}

/// Finds results whose calls are not in the previous turn.
fn results(turn: &Turn<'_>, before: Option<&Turn<'_>>) -> Vec<Violation> {
    let foreign = turn
        .results
        .iter()
        .filter(|&call| !before.is_some_and(|before| before.calls.contains(call)));
    foreign
        .map(|call| Violation {
            invariant: Invariant::Pairing,
            line: turn.line,
            what: format!("a result without its call {call} in the turn before"),
        })
        .collect()
}

/// Finds calls that have no result in the next turn, or more than two.
fn answers(turn: &Turn<'_>, after: &Turn<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for call in &turn.calls {
        let what = match after.results.iter().filter(|result| *result == call).count() {
            0 => format!("the call {call} has no result in the turn that follows"),
            // Gemini CLI itself sends a result twice: from the record of the call, and from a
            // message of the user.
            1 | 2 => continue,
            _ => format!("the call {call} is answered more than twice"),
        };
        violations.push(Violation { invariant: Invariant::Pairing, line: turn.line, what });
    }
    violations
}

/// Finds empty texts of the model. Gemini CLI leaves out a turn that contains one.
fn empty_texts(transcript: &Transcript, source: &dyn Source) -> Vec<Violation> {
    let entries = transcript.context().filter(|(_, entry)| entry.role == Role::Assistant);
    entries
        .filter(|(_, entry)| {
            entry.blocks.iter().any(|block| match block {
                Block::Text(text) => text.read(source).is_empty(),
                _ => false,
            })
        })
        .map(|(_, entry)| Violation {
            invariant: Invariant::Empty,
            line: entry.record.line,
            what: "an empty text".into(),
        })
        .collect()
}
