//! Calls and results, as every wire wants them. Written from the providers' documents and from
//! what the agents refused, not from our writers.

use std::collections::HashMap;

use epitome_model::{Block, Breach, Law, Part, Role, Source, Transcript};

/// Every call has one result after it, before the user speaks again; every result has its call.
///
/// Calls of the last response may still be open: nobody has spoken since.
pub fn breaches(transcript: &Transcript) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut calls: HashMap<&str, Seen> = HashMap::new();
    for (_, entry) in transcript.context() {
        let line = entry.record.line;
        for block in &entry.blocks {
            match block {
                Block::Call(call) => {
                    if let Some(before) = calls.insert(&call.id, Seen::Open(line)) {
                        let what = format!("the call {} stands twice ({})", call.id, before.line());
                        breaches.push(Breach { law: Law::Pairing, line, what });
                    }
                }
                Block::Output(output) => match calls.get_mut(&*output.call) {
                    Some(seen @ Seen::Open(_)) => *seen = Seen::Answered(seen.line()),
                    Some(Seen::Answered(_)) => {
                        let what = format!("the call {} has two results", output.call);
                        breaches.push(Breach { law: Law::Pairing, line, what });
                    }
                    None => {
                        let what = format!("a result without its call {}", output.call);
                        breaches.push(Breach { law: Law::Pairing, line, what });
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
            breaches.extend(late.into_iter().map(|line| Breach {
                law: Law::Position,
                line,
                what: "the user speaks before this call has its result".into(),
            }));
        }
    }
    breaches
}

#[derive(Clone, Copy)]
enum Seen {
    Open(u64),
    Answered(u64),
}

impl Seen {
    fn line(self) -> u64 {
        match self {
            Seen::Open(line) | Seen::Answered(line) => line,
        }
    }
}

/// Texts of nothing but white space, which Anthropic's wire refuses.
pub fn empty_texts(transcript: &Transcript, source: &dyn Source) -> Vec<Breach> {
    let empty = |text: &epitome_model::Text| text.read(source).trim().is_empty();
    let mut breaches = Vec::new();
    for (_, entry) in transcript.context() {
        let bad = entry.blocks.iter().any(|block| match block {
            Block::Text(text) => empty(text),
            Block::Output(output) => {
                output.parts.len() > 1
                    && output.parts.iter().any(|part| match part {
                        Part::Text(text) => empty(text),
                        Part::Image(_) | Part::Opaque(_) => false,
                    })
            }
            _ => false,
        });
        if bad {
            let what = "a text of nothing but white space".into();
            breaches.push(Breach { law: Law::Empty, line: entry.record.line, what });
        }
    }
    breaches
}
