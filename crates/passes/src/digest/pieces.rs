//! A session as pieces with lines: what was said, and calls with their results.

use std::collections::HashMap;

use epitome_model::{Block, Call, Entry, Output, Role, Tokens, ToolKind, Transcript};
use rayon::prelude::*;
use serde_json::Value;

use crate::decisions::decision;
use crate::facts::{FactId, FactKind, facts};
use crate::pins::commanding;
use crate::{View, is_error_line};

use super::DigestRule;

/// Characters of a line: a longer one is cut into several.
const LINE: usize = 400;
/// Characters of a line that are looked at.
const LONGEST: usize = 40_000;
/// Characters of a target in a header.
const TARGET: usize = 200;
/// Characters of another argument in a header.
const ARGUMENT: usize = 160;
/// Bytes of a line without white space around it: a shorter one says nothing.
const SHORTEST: usize = 3;

/// The pieces of a session, in order.
pub(super) struct Pieces {
    all: Vec<Piece>,
    /// So many of them may go; the rest stays behind the digest.
    old: usize,
    /// Responses of the model.
    pub responses: u32,
}

/// Something that was said, or a call with its result.
pub(super) struct Piece {
    pub speaker: Who,
    /// The response of the model that it belongs to, or that comes before it.
    pub response: u32,
    /// What stands over its lines.
    pub head: String,
    pub head_tokens: Tokens,
    /// The same with all of its target, if that is more; its tokens and facts.
    pub full: Option<Full>,
    pub lines: Vec<Line>,
    /// Its text and its tokens, if it is in the digest whole.
    pub whole: Option<(String, Tokens)>,
}

/// A header with the whole target of its call.
pub(super) struct Full {
    pub text: String,
    pub tokens: Tokens,
    pub facts: Vec<(FactId, FactKind)>,
}

/// Who says a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    User,
    Model,
    Thinking,
    /// The agent: reminders, summaries.
    Agent,
    /// A call with its result.
    Call {
        /// Its number among the calls of the session, from 1.
        number: u64,
        reads: bool,
    },
}

/// A line.
pub(super) struct Line {
    pub text: String,
    /// Whether the model wrote it: an argument of a call, not a line of its result.
    pub is_argument: bool,
    pub facts: Vec<(FactId, FactKind)>,
    /// Whether it looks like an error.
    pub is_error: bool,
    /// Whether the model says in it what it decided or found out.
    pub decides: bool,
    /// Whether it is in the digest anyway: the user commands or forbids something in it, or it says
    /// what failed.
    pub stays: bool,
}

impl Pieces {
    pub fn old(&self) -> &[Piece] {
        &self.all[..self.old]
    }

    pub fn kept(&self) -> &[Piece] {
        &self.all[self.old..]
    }

    pub fn all(&self) -> &[Piece] {
        &self.all
    }
}

/// The pieces of these items.
pub(super) fn pieces<'a>(
    view: &View<'a>,
    said: &[usize],
    kept: &[usize],
    rule: &DigestRule,
) -> Pieces {
    let numbers = call_numbers(view.transcript);
    let results = results(view);
    let mut parts = Vec::new();
    let (mut responses, mut last, mut old) = (0, None, 0);
    for (n, &item) in said.iter().chain(kept).enumerate() {
        if n == said.len() {
            old = parts.len();
        }
        let Some(entry) = view.transcript.items[item].entry() else { continue };
        if entry.role == Role::Assistant && (last.is_none() || last != entry.group.as_deref()) {
            responses += 1;
        }
        last = match entry.role {
            Role::Assistant => entry.group.as_deref().or(last),
            Role::User | Role::Tool | Role::System => None,
        };
        let of_entry = entry.blocks.iter().enumerate().filter_map(|(block, said)| {
            Some(Part { at: (item, block), said, what: what(entry, said)?, responses })
        });
        parts.extend(of_entry);
    }
    let old = if kept.is_empty() { parts.len() } else { old };
    let made = |part: &Part<'a>| part.piece(view, &numbers, &results, rule);
    let all: Vec<Piece> = parts.par_iter().map(made).collect();
    Pieces { all, old, responses }
}

/// The number of each call among those of the session, from 1: by it a digest names them.
pub fn call_numbers(transcript: &Transcript) -> HashMap<&str, u64> {
    let mut numbers = HashMap::new();
    for (_, entry) in transcript.entries() {
        for block in &entry.blocks {
            if let Block::Call(call) = block {
                let next = numbers.len() as u64 + 1;
                numbers.entry(&*call.id).or_insert(next);
            }
        }
    }
    numbers
}

/// The result of each call as it was said first.
fn results<'a>(view: &View<'a>) -> HashMap<&'a str, &'a Output> {
    let mut results = HashMap::new();
    for (_, output, _) in view.outputs() {
        results.entry(&*output.call).or_insert(output);
    }
    results
}

/// A block that becomes a piece.
struct Part<'a> {
    at: (usize, usize),
    said: &'a Block,
    what: Who,
    responses: u32,
}

/// What kind of piece a block becomes; none for what has no words, and for results, which belong to
/// their calls.
fn what(entry: &Entry, block: &Block) -> Option<Who> {
    match block {
        Block::Text(_) => Some(match entry.role {
            Role::User => Who::User,
            Role::Assistant => Who::Model,
            Role::Tool | Role::System => Who::Agent,
        }),
        Block::Summary(_) => Some(Who::Agent),
        Block::Thinking(_) => Some(Who::Thinking),
        Block::Call(call) => {
            let reads = matches!(call.kind, ToolKind::Read);
            Some(Who::Call { number: 0, reads })
        }
        _ => None,
    }
}

impl<'a> Part<'a> {
    fn piece(
        &self,
        view: &View<'a>,
        numbers: &HashMap<&str, u64>,
        results: &HashMap<&str, &'a Output>,
        rule: &DigestRule,
    ) -> Piece {
        let mut lines = Vec::new();
        let mut speaker = self.what;
        let mut full = None;
        let mut head = match self.what {
            Who::User => "User:".to_owned(),
            Who::Model => "Assistant:".to_owned(),
            Who::Thinking | Who::Agent | Who::Call { .. } => "Note:".to_owned(),
        };
        match self.said {
            Block::Text(text) | Block::Summary(text) => {
                split(&text.read(view.source), false, false, &mut lines);
                if self.what == Who::Model {
                    lines.iter_mut().for_each(|line| line.decides = decision(&line.text).is_some());
                }
            }
            Block::Thinking(thinking) => {
                if let Some(text) = &thinking.text {
                    split(&text.read(view.source), false, false, &mut lines);
                }
            }
            Block::Call(call) => {
                let number = numbers.get(&*call.id).copied().unwrap_or_default();
                speaker = Who::Call { number, reads: matches!(call.kind, ToolKind::Read) };
                let target = arguments(view, call, &mut lines);
                head = format!("#{number} {}", call.name);
                let text = format!("{head} {target}");
                full = (!target.is_empty()).then(|| Full {
                    tokens: view.counter.count(&text) + Tokens(1),
                    facts: facts(&text),
                    text,
                });
                if let Some(output) = results.get(&*call.id) {
                    let begins = lines.len();
                    split(&output.text(view.source), false, output.numbered, &mut lines);
                    let of_output = lines[begins..].iter_mut();
                    of_output.for_each(|line| line.stays = output.error && line.is_error);
                }
            }
            _ => {}
        }
        let whole = match self.said {
            Block::Text(text) | Block::Summary(text)
                if matches!(self.what, Who::User | Who::Agent) =>
            {
                let tokens = view.tokens(self.at.0, self.at.1);
                (tokens.0 <= rule.whole_user).then(|| (text.read(view.source).into_owned(), tokens))
            }
            _ => None,
        };
        if speaker == Who::User && whole.is_none() {
            mark_commands(&mut lines);
        }
        Piece {
            speaker,
            response: self.responses,
            head_tokens: view.counter.count(&head) + Tokens(1),
            head,
            full,
            lines,
            whole,
        }
    }
}

/// Marks the lines of a long text of the user that command or forbid.
fn mark_commands(lines: &mut [Line]) {
    let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let commands = commanding(&text.join("\n"));
    let mut commands = commands.lines().peekable();
    for line in lines {
        line.stays = commands.next_if(|command| *command == line.text).is_some();
    }
}

/// What a call is about: its target and short arguments on one line, and the lines of long ones.
fn arguments(view: &View<'_>, call: &Call, lines: &mut Vec<Line>) -> String {
    let target = call.target.as_ref().map(|target| target.read(view.source).into_owned());
    let mut shown: String = target.iter().flat_map(|target| target.chars()).take(TARGET).collect();
    let is_known = |name: &str, text: &str| {
        target.as_deref() == Some(text) || call.fields.iter().any(|field| *field.name == *name)
    };
    match serde_json::from_slice(&view.source.at(call.arguments)).unwrap_or_default() {
        Value::Object(arguments) => {
            for (name, value) in arguments {
                match value {
                    Value::String(text) if is_known(&name, &text) => {}
                    Value::String(text) if text.len() <= ARGUMENT && !text.contains('\n') => {
                        shown.push_str(&format!(" {name}={text}"));
                    }
                    Value::Number(number) => shown.push_str(&format!(" {name}={number}")),
                    // Its texts are fields of their own.
                    _ if call.fields.iter().any(|field| field.name.starts_with(&name)) => {}
                    value => each_text(&value, &mut |text| split(text, true, false, lines)),
                }
            }
        }
        Value::String(text) if call.fields.is_empty() => split(&text, true, false, lines),
        _ => {}
    }
    for field in &call.fields {
        let text = field.text.read(view.source);
        let is_target = target.as_deref() == Some(&*text) && text.len() <= TARGET;
        if !is_target {
            split(&text, true, false, lines);
        }
    }
    shown.trim().replace('\n', " ⏎ ")
}

/// The texts in a value.
fn each_text(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, each)),
        Value::Object(members) => members.values().for_each(|value| each_text(value, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The lines of a text that say something.
fn split(text: &str, is_argument: bool, numbered: bool, lines: &mut Vec<Line>) {
    let mut add = |line: &str| {
        let is_error = line.len() < 300 && is_error_line(line);
        let (facts, text) = (facts(line), line.to_owned());
        lines.push(Line { facts, is_error, is_argument, decides: false, stays: false, text });
    };
    let numbered = numbered || text.lines().take(3).all(|line| without_number(line) != line);
    for line in text.split('\n') {
        let line = if numbered { without_number(line) } else { line }.trim_end();
        if line.trim_start().len() < SHORTEST {
            continue;
        }
        if line.len() <= LINE {
            add(line);
            continue;
        }
        let chars: Vec<char> = line.chars().take(LONGEST).collect();
        chars.chunks(LINE).for_each(|part| add(&part.iter().collect::<String>()));
    }
}

/// A line of a file without the number that its tool wrote before it.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start();
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == line.trim_start().len() {
        return line;
    }
    let marks = ["→", "\t"];
    marks.iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(line)
}
