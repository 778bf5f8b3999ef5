//! A session as plain texts, each with the anchor that it has on the session's pages.

use epitome_model::{Call, Output, Role, Source, Text};
use serde_json::Value;

use crate::call;
use crate::cut::{Limit, cut};
use crate::story::{Piece, Story, What};

/// Of one text more bytes than this are not told: its beginning and its end are.
const LONGEST: usize = 512 << 10;

/// One thing that is said in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Where it stands on a page of the session, but for what a page puts before the anchors of
    /// sub-agents.
    pub anchor: String,
    /// The item of the transcript that says it.
    pub item: usize,
    /// The turn, from 1.
    pub turn: usize,
    /// Who says it: with a call comes what the tool answered, and then it is the tool.
    pub role: Role,
    /// What it is.
    pub kind: SaidKind,
    /// When, as the session writes it.
    pub time: Option<String>,
    /// The words as a model sees them. Of a call: the tool, its arguments, and its result.
    pub text: String,
}

/// What it is that is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaidKind {
    /// Words.
    Words,
    /// A summary of what came before.
    Summary,
    /// Reasoning.
    Thinking,
    /// A call of a tool with its result, or a result alone.
    Call,
}

impl SaidKind {
    /// What programs call it.
    pub fn name(self) -> &'static str {
        match self {
            SaidKind::Words => "words",
            SaidKind::Summary => "summary",
            SaidKind::Thinking => "thinking",
            SaidKind::Call => "call",
        }
    }
}

/// Everything that is said in a story, in its order. Pictures, and what nobody understands, say
/// nothing.
pub fn said<'s>(story: &'s Story<'_>) -> impl Iterator<Item = Said> + use<'s> {
    let turns = story.turns.iter().enumerate();
    let pieces = turns.flat_map(|(turn, it)| {
        story.pieces[it.pieces.clone()].iter().map(move |piece| (turn + 1, piece))
    });
    pieces.filter_map(|(turn, piece)| {
        let (kind, text) = told(piece, story.session.source)?;
        let role = match kind {
            SaidKind::Call => Role::Tool,
            SaidKind::Words | SaidKind::Summary | SaidKind::Thinking => piece.entry.role,
        };
        Some(Said {
            anchor: piece.anchor(),
            item: piece.item,
            turn,
            role,
            kind,
            time: piece.entry.time.as_deref().map(str::to_owned),
            text: short(text),
        })
    })
}

fn told(piece: &Piece<'_>, source: &dyn Source) -> Option<(SaidKind, String)> {
    let read = |text: &Text| text.read(source).into_owned();
    match piece.what {
        What::Words(text) => Some((SaidKind::Words, read(text))),
        What::Summary(text) => Some((SaidKind::Summary, read(text))),
        What::Thinking(thinking) => Some((SaidKind::Thinking, read(thinking.text.as_ref()?))),
        What::Call(call, output) => Some((SaidKind::Call, called(call, output, source))),
        What::Result(output) => Some((SaidKind::Call, output.text(source))),
        What::Image(_) | What::Opaque(_) => None,
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

/// Appends every string in the arguments, by the alphabetical order of their names.
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
#[path = "said_tests.rs"]
mod tests;
