//! Messages of a context, in an order that every agent accepts.

use std::borrow::Cow;

use epitome_api::{Arguments, Conversation, InputBlock, LeftBehind, OPENING, TextOrImage};
use epitome_json::Document;
use epitome_model::{Block, Call, Part, Role, Source, Transcript};

use super::ToolAction;

/// One message.
pub enum Message<'t> {
    /// A message of the user.
    User(Vec<TextOrImage<'t>>),
    /// A message of the agent itself, which is sent in the user's role.
    Agent(Vec<TextOrImage<'t>>),
    /// A summary of the earlier conversation.
    Summary(Cow<'t, str>),
    /// A response of the model: texts, then calls.
    Reply(Vec<Cow<'t, str>>, Vec<PortedCall<'t>>),
    /// The result of a call.
    Result(PortedResult<'t>),
}

/// A call, and what it does if other agents have such a tool.
pub struct PortedCall<'t> {
    call: &'t Call,
    /// The id of the call in the new session.
    pub id: String,
    /// The action of the call, if other agents can express it.
    pub action: Option<ToolAction>,
    /// Whether the result of the call contains a picture.
    pub shows: bool,
}

/// The result of a call.
pub struct PortedResult<'t> {
    /// The id of the call.
    pub id: String,
    /// Whether the tool failed.
    pub failed: bool,
    /// The content of the result.
    pub pieces: Vec<TextOrImage<'t>>,
}

impl PortedCall<'_> {
    /// The name of the tool in the original session.
    pub fn name(&self) -> &str {
        &self.call.name
    }

    /// The arguments of the original session: an object on one line, or a text as it is.
    pub fn arguments(&self, all: &Conversation<'_>) -> Arguments {
        match all.arguments(self.call) {
            // Line feeds are only white space between values here: those in strings are escaped.
            Arguments::Object(object) => Arguments::Object(object.replace(['\n', '\r'], " ")),
            Arguments::Text(text) => Arguments::Text(text),
        }
    }
}

/// The messages of a transcript's context, and the conversation that they are from, which reads
/// their texts and counts what is left out. The id of a call is replaced if it has more than
/// `longest_id` characters, is not valid in every API, or repeats.
///
/// If the first message would be a response, a message of the agent comes before it.
pub fn messages<'t>(
    transcript: &'t Transcript,
    source: &'t dyn Source,
    longest_id: usize,
) -> (Conversation<'t>, Vec<Message<'t>>) {
    let mut all = Conversation::from_context(transcript, source, longest_id);
    for _ in 0..all.prompt.len() {
        all.leave(LeftBehind::Prompts);
    }
    let cwd = transcript.head.cwd.as_deref();
    let mut found = Vec::new();
    for step in std::mem::take(&mut all.steps) {
        let mut texts = Vec::new();
        let mut calls = Vec::new();
        for block in &step.reply {
            match block {
                Block::Text(text) => texts.push(all.text(text)),
                Block::Call(call) => {
                    let output = step.results.iter().find(|it| std::ptr::eq(it.call, call));
                    let shows = output.is_some_and(|answer| {
                        answer.output.parts.iter().any(|part| matches!(part, Part::Image(_)))
                    });
                    let action = ToolAction::from_call(call, &all, cwd);
                    calls.push(PortedCall { call, id: all.id(call).to_owned(), action, shows });
                }
                Block::Thinking(_) => all.leave(LeftBehind::Reasoning),
                Block::Opaque(_) => leave_opaque(&mut all, block, LeftBehind::Opaque),
                _ => all.leave(LeftBehind::Opaque),
            }
        }
        if !texts.is_empty() || !calls.is_empty() {
            if found.is_empty() {
                found.push(Message::Agent(vec![TextOrImage::Text(OPENING.into())]));
            }
            found.push(Message::Reply(texts, calls));
        }
        for answer in &step.results {
            let call = answer.call;
            let failed = answer.output.error;
            let pieces = all.parts(answer.output);
            found.push(Message::Result(PortedResult {
                id: all.id(call).to_owned(),
                failed,
                pieces,
            }));
        }
        for words in step.words.chunk_by(|one, next| one.item == next.item) {
            add_entry(&mut all, words, &mut found);
        }
    }
    (all, found)
}

/// Adds the messages of one entry.
fn add_entry<'t>(
    all: &mut Conversation<'t>,
    words: &[InputBlock<'t>],
    found: &mut Vec<Message<'t>>,
) {
    let mut pieces = Vec::new();
    for word in words {
        match word.block {
            Block::Summary(text) => found.push(Message::Summary(all.text(text))),
            Block::Opaque(_) if word.role == Role::System => {
                leave_opaque(all, word.block, LeftBehind::Prompts);
            }
            Block::Opaque(_) => leave_opaque(all, word.block, LeftBehind::Opaque),
            _ => pieces.extend(all.text_and_images(&[*word])),
        }
    }
    let Some(first) = words.first().filter(|_| !pieces.is_empty()) else { return };
    found.push(match first.role {
        Role::User => Message::User(pieces),
        Role::Assistant | Role::Tool | Role::System => Message::Agent(pieces),
    });
}

/// Counts a block that epitome does not understand as left out: as [`LeftBehind::Sealed`] if only
/// the service can read it, otherwise as `or`.
fn leave_opaque(all: &mut Conversation<'_>, block: &Block, or: LeftBehind) {
    let Block::Opaque(span) = block else { return };
    let raw = all.raw(*span);
    let sealed = Document::parse(raw.as_bytes())
        .is_ok_and(|document| document.root.get("encrypted_content").is_some());
    all.leave(if sealed { LeftBehind::Sealed } else { or });
}
