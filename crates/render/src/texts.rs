//! The plain texts of a session, each with its anchor on the session's pages.

use epitome_model::{Call, Output, Role, Source, Text};
use serde_json::Value;

use crate::call;
use crate::shorten::{Limit, cut};
use crate::story::{Story, StoryItem, StoryItemKind};

/// Maximum bytes of a text; a longer one is shortened in the middle.
const LONGEST: usize = 512 << 10;

/// One text of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionText {
    /// The anchor of the text on a page of the session, without the prefix for sub-agents.
    pub anchor: String,
    /// The index of the text's item in the transcript.
    pub item: usize,
    /// The [number](crate::Turn::number) of the turn.
    pub turn: usize,
    /// The role of the text's entry; `Tool` for a call, whose text includes the result.
    pub role: Role,
    /// The kind of the text.
    pub kind: SessionTextKind,
    /// The time of the text, as written in the session.
    pub time: Option<String>,
    /// Whether a resume no longer sends the text, or a part of it.
    pub is_unsent: bool,
    /// The text as a model sees it; for a call, the name of the tool, the texts in the arguments,
    /// and the result. The middle of a very long text is left out.
    pub text: String,
}

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionTextKind {
    /// A message.
    Words,
    /// A summary of what came before.
    Summary,
    /// Reasoning.
    Thinking,
    /// A call of a tool with its result, or a result alone.
    Call,
}

impl SessionTextKind {
    /// The name of the kind in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            SessionTextKind::Words => "words",
            SessionTextKind::Summary => "summary",
            SessionTextKind::Thinking => "thinking",
            SessionTextKind::Call => "call",
        }
    }
}

/// All texts of a story, in order. Images and unknown blocks have none.
pub fn session_texts<'s>(story: &'s Story<'_>) -> impl Iterator<Item = SessionText> + use<'s> {
    let pieces = story.turns.iter().flat_map(|turn| {
        story.pieces[turn.pieces.clone()].iter().map(move |piece| (turn.number, piece))
    });
    pieces.filter_map(|(turn, piece)| {
        let (kind, text) = text_of(piece, story.session.source)?;
        let role = match kind {
            SessionTextKind::Call => Role::Tool,
            SessionTextKind::Words | SessionTextKind::Summary | SessionTextKind::Thinking => {
                piece.entry.role
            }
        };
        Some(SessionText {
            anchor: piece.anchor(),
            item: piece.item,
            turn,
            role,
            kind,
            time: piece.entry.time.as_deref().map(str::to_owned),
            is_unsent: piece.is_unsent,
            text: short(text),
        })
    })
}

fn text_of(piece: &StoryItem<'_>, source: &dyn Source) -> Option<(SessionTextKind, String)> {
    let read = |text: &Text| text.read(source).into_owned();
    match piece.what {
        StoryItemKind::Words(text) => Some((SessionTextKind::Words, read(text))),
        StoryItemKind::Summary(text) => Some((SessionTextKind::Summary, read(text))),
        StoryItemKind::Thinking(thinking) => {
            Some((SessionTextKind::Thinking, read(thinking.text.as_ref()?)))
        }
        StoryItemKind::Call(call, output) => {
            Some((SessionTextKind::Call, called(call, output, source)))
        }
        StoryItemKind::Result(output) => Some((SessionTextKind::Call, output.text(source))),
        StoryItemKind::Image(_) | StoryItemKind::Opaque(_) => None,
    }
}

fn called(call: &Call, output: Option<&Output>, source: &dyn Source) -> String {
    let mut text = call.name.to_string();
    let arguments = call::arguments(call, source);
    match &arguments {
        Some(arguments) => strings(arguments, &mut text),
        None => {
            let fields = call.target.iter().chain(call.fields.iter().map(|field| &field.text));
            let fields = fields.map(|field| field.read(source));
            for argument in fields.chain(call::unknown(call, None, source).map(Into::into)) {
                push(&mut text, &argument);
            }
        }
    }
    if let Some(output) = output {
        push(&mut text, &output.text(source));
    }
    text
}

/// Appends every string in the arguments, in the alphabetical order of the names of the arguments.
fn strings(value: &Value, text: &mut String) {
    match value {
        Value::String(string) => push(text, string),
        Value::Array(values) => values.iter().for_each(|value| strings(value, text)),
        Value::Object(members) => members.values().for_each(|value| strings(value, text)),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

fn push(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

fn short(text: String) -> String {
    if text.len() <= LONGEST {
        return text;
    }
    let shown = cut(&text, Limit { text: LONGEST, line: usize::MAX });
    [shown.head, "\n".to_owned(), shown.tail].concat()
}

#[cfg(test)]
#[path = "texts_tests.rs"]
mod tests;
