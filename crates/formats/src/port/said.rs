//! What a context says, one record at a time, in an order that every agent takes.

use std::borrow::Cow;

use epitome_model::{Block, Call, Part, Role, Source, Transcript};

use super::Deed;
use crate::api::{Arguments, Conversation, Left, OPENING, Piece, Word};
use crate::document::Document;

/// Something that is said at once.
pub enum Said<'t> {
    /// By the user.
    User(Vec<Piece<'t>>),
    /// By the agent itself, in the user's place.
    Agent(Vec<Piece<'t>>),
    /// A summary of what came before.
    Summary(Cow<'t, str>),
    /// By the model: texts, then calls.
    Reply(Vec<Cow<'t, str>>, Vec<Called<'t>>),
    /// What came of a call.
    Result(Answer<'t>),
}

/// A call, and what it is among the tools that several agents have.
pub struct Called<'t> {
    call: &'t Call,
    /// Its id in the new session.
    pub id: String,
    /// What it does, if that can be said in other words.
    pub deed: Option<Deed>,
    /// Whether its result shows a picture.
    pub shows: bool,
}

/// What came of a call.
pub struct Answer<'t> {
    /// The id of the call.
    pub id: String,
    /// Whether the tool failed.
    pub failed: bool,
    /// What it says.
    pub pieces: Vec<Piece<'t>>,
}

impl Called<'_> {
    /// The name that the source gives the tool.
    pub fn name(&self) -> &str {
        &self.call.name
    }

    /// The arguments as they stand, on one line.
    pub fn arguments(&self, all: &Conversation<'_>) -> Arguments {
        match all.arguments(self.call) {
            // White space between values: no string holds a line feed that is not escaped.
            Arguments::Object(object) => Arguments::Object(object.replace(['\n', '\r'], " ")),
            Arguments::Text(text) => Arguments::Text(text),
        }
    }
}

/// What the context of a transcript says. Ids of calls have at most `longest_id` characters.
pub fn said<'t>(
    transcript: &'t Transcript,
    source: &'t dyn Source,
    longest_id: usize,
) -> (Conversation<'t>, Vec<Said<'t>>) {
    let mut all = Conversation::of(transcript, source, longest_id);
    for _ in 0..all.prompt.len() {
        all.leave(Left::Prompts);
    }
    let cwd = transcript.head.cwd.as_deref();
    let mut found = Vec::new();
    for step in std::mem::take(&mut all.steps) {
        let (mut texts, mut calls) = (Vec::new(), Vec::new());
        for block in &step.reply {
            match block {
                Block::Text(text) => texts.push(all.text(text)),
                Block::Call(call) => {
                    let output = step.results.iter().find(|it| std::ptr::eq(it.call, call));
                    let shows = output.is_some_and(|answer| {
                        answer.output.parts.iter().any(|part| matches!(part, Part::Image(_)))
                    });
                    let deed = Deed::of(call, &all, cwd);
                    calls.push(Called { call, id: all.id(call).to_owned(), deed, shows });
                }
                Block::Thinking(_) => all.leave(Left::Reasoning),
                Block::Opaque(_) => leave_opaque(&mut all, block, Left::Opaque),
                _ => all.leave(Left::Opaque),
            }
        }
        if !texts.is_empty() || !calls.is_empty() {
            if found.is_empty() {
                found.push(Said::Agent(vec![Piece::Text(OPENING.into())]));
            }
            found.push(Said::Reply(texts, calls));
        }
        for answer in &step.results {
            let (call, failed) = (answer.call, answer.output.error);
            let pieces = all.parts(answer.output);
            found.push(Said::Result(Answer { id: all.id(call).to_owned(), failed, pieces }));
        }
        for words in step.words.chunk_by(|one, next| one.item == next.item) {
            heard(&mut all, words, &mut found);
        }
    }
    (all, found)
}

/// What one entry says to the model.
fn heard<'t>(all: &mut Conversation<'t>, words: &[Word<'t>], found: &mut Vec<Said<'t>>) {
    let mut pieces = Vec::new();
    for word in words {
        match word.block {
            Block::Summary(text) => found.push(Said::Summary(all.text(text))),
            Block::Opaque(_) if word.role == Role::System => {
                leave_opaque(all, word.block, Left::Prompts);
            }
            Block::Opaque(_) => leave_opaque(all, word.block, Left::Opaque),
            _ => pieces.extend(all.words(&[*word])),
        }
    }
    let Some(first) = words.first().filter(|_| !pieces.is_empty()) else { return };
    found.push(match first.role {
        Role::User => Said::User(pieces),
        Role::Assistant | Role::Tool | Role::System => Said::Agent(pieces),
    });
}

/// Counts what is not understood: as sealed, if that is what it is.
fn leave_opaque(all: &mut Conversation<'_>, block: &Block, or: Left) {
    let Block::Opaque(span) = block else { return };
    let raw = all.raw(*span);
    let sealed = Document::parse(raw.as_bytes())
        .is_ok_and(|document| document.root.get("encrypted_content").is_some());
    all.leave(if sealed { Left::Sealed } else { or });
}
