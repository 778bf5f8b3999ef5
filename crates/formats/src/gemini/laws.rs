//! What Google's API refuses of the turns that a session becomes.
//!
//! Written from <https://ai.google.dev/gemini-api/docs/function-calling> and from what the API
//! answers: the turn after a turn of calls holds a result for each, and nothing answers what was
//! not called.

use std::ops::Range;

use epitome_model::{Again, Block, Breach, Law, Laws, Role, Source, Transcript};

use crate::accounting::{self, EACH, Path};

/// What other programs read from messages, wherever these stand.
const ACCOUNTING: &[Path] = &[
    &["id"],
    &["type"],
    &["timestamp"],
    &["model"],
    &["tokens"],
    &["sessionId"],
    &["projectHash"],
    &["startTime"],
    &["lastUpdated"],
    &["$set", "messages", EACH, "id"],
    &["$set", "messages", EACH, "type"],
    &["$set", "messages", EACH, "timestamp"],
    &["$set", "messages", EACH, "model"],
    &["$set", "messages", EACH, "tokens"],
];

/// Gemini CLI sends neighbouring messages of one side as one turn, and repairs nothing when it goes
/// on with a session.
pub struct GeminiLaws;

impl Laws for GeminiLaws {
    fn check(&self, transcript: &Transcript, source: &dyn Source) -> Vec<Breach> {
        let turns = turns(transcript);
        let mut breaches = Vec::new();
        for (idx, turn) in turns.iter().enumerate() {
            let before = idx.checked_sub(1).map(|idx| &turns[idx]);
            breaches.extend(results(turn, before));
            if turn.calls.is_empty() {
                continue;
            }
            // Where nobody has spoken since, the calls may still run.
            if let Some(after) = turns.get(idx + 1) {
                breaches.extend(answers(turn, after));
            }
        }
        breaches.extend(empty_texts(transcript, source));
        breaches.sort();
        breaches.dedup();
        breaches
    }

    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        accounting::values(record, ACCOUNTING)
    }
}

/// Neighbouring entries of one side.
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
                Block::Output(output) | Block::Again(Again { output, .. }) => {
                    turn.results.push(&output.call);
                }
                _ => {}
            }
        }
    }
    turns
}

/// Results without their calls.
fn results(turn: &Turn<'_>, before: Option<&Turn<'_>>) -> Vec<Breach> {
    let known = |call: &&&str| before.is_some_and(|before| before.calls.contains(call));
    let foreign = turn.results.iter().filter(|call| !known(call));
    foreign
        .map(|call| Breach {
            law: Law::Pairing,
            line: turn.line,
            what: format!("a result without its call {call} in the turn before"),
        })
        .collect()
}

/// Calls without their result in the turn that follows, or with two.
fn answers(turn: &Turn<'_>, after: &Turn<'_>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for call in &turn.calls {
        let what = match after.results.iter().filter(|result| *result == call).count() {
            0 => format!("the call {call} has no result in the turn that follows"),
            1 => continue,
            _ => format!("the call {call} is answered more than once"),
        };
        breaches.push(Breach { law: Law::Pairing, line: turn.line, what });
    }
    breaches
}

/// One text of nothing among the parts makes Gemini CLI leave out the whole turn of the model.
fn empty_texts(transcript: &Transcript, source: &dyn Source) -> Vec<Breach> {
    let entries = transcript.context().filter(|(_, entry)| entry.role == Role::Assistant);
    entries
        .filter(|(_, entry)| {
            entry.blocks.iter().any(|block| match block {
                Block::Text(text) => text.read(source).is_empty(),
                _ => false,
            })
        })
        .map(|(_, entry)| Breach {
            law: Law::Empty,
            line: entry.record.line,
            what: "a text of nothing".into(),
        })
        .collect()
}
