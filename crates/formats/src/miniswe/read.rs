//! Converts a trajectory into a transcript.

use std::collections::VecDeque;

use epitome_api::Body;
use epitome_json::{Value, integer};
use epitome_model::{
    Block, Call, Faults, HiddenField, Left, Output, Part, Role, Source, Span, Text, ToolKind,
    Transcript, Usage,
};

/// Whether it is an object with `messages` and either the name of this format or the `info` of a
/// run.
pub fn sniff(head: &[u8]) -> bool {
    let Some(seen) = epitome_api::skim(head) else { return false };
    let roles = seen.roles.iter().any(|role| role == "assistant" || role == "user");
    let run = seen.has("trajectory_format") || seen.has("info") && !seen.members.contains("info");
    !seen.more && seen.has("messages") && roles && run
}

/// Reads a trajectory.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    epitome_api::read(source, faults, trajectory)
}

fn trajectory(body: &mut Body<'_>, root: &Value<'_>) {
    let at = |path: &[&str]| path.iter().try_fold(root, |value, key| value.get(key));
    let word = |path: &[&str]| Some(at(path)?.text()?.as_ref().into());
    body.head().id = word(&["instance_id"]);
    body.head().version = word(&["info", "mini_version"]);
    body.head().cwd = word(&["info", "config", "environment", "cwd"]);
    body.model(at(&["info", "config", "model", "model_name"]));
    let mut reader = Reader::default();
    for message in root.list_of("messages") {
        reader.message(body, message);
    }
}

#[derive(Default)]
struct Reader {
    /// The calls of the last response without a result, in order: the next output is paired with
    /// them by position unless it names one.
    asked: VecDeque<Box<str>>,
    /// The number of responses read.
    n: usize,
}

impl Reader {
    fn message(&mut self, body: &mut Body<'_>, message: &Value<'_>) {
        let words = || message.get("content").map(content).unwrap_or_default();
        let extra = message.get("extra").filter(|extra| extra.range().len() > 2);
        let copy = |value: &Value<'_>| HiddenField {
            name: "extra",
            value: value.span(),
            left: Left::EmptyObject,
        };
        let copies: Vec<HiddenField> = extra.map(copy).into_iter().collect();
        let entry = match message.word("role").as_deref() {
            Some("system") => {
                body.prompt(message, words());
                return;
            }
            Some("assistant") => {
                let blocks = self.reply(message, words());
                body.say(message, Role::Assistant, blocks)
            }
            Some("tool") => {
                let id = message.word("tool_call_id").unwrap_or_default();
                self.asked.retain(|asked| **asked != *id);
                body.say(message, Role::Tool, vec![result(message, &id)])
            }
            // Before version 2 the output of a command was a user message.
            Some("user") => match self.asked.pop_front() {
                Some(id) => body.say(message, Role::Tool, vec![result(message, &id)]),
                None if self.n > 0 => body.say(message, Role::System, words()),
                None => body.say(message, Role::User, words()),
            },
            // How the run ended, which is not sent.
            Some(_) | None => {
                body.keep(message, copies);
                return;
            }
        };
        entry.copies = copies;
        entry.usage = extra.and_then(|extra| usage(extra.get("response")?.get("usage")?));
    }

    fn reply(&mut self, message: &Value<'_>, words: Vec<Block>) -> Vec<Block> {
        self.n += 1;
        let mut blocks = words;
        self.asked.clear();
        for call in message.list_of("tool_calls") {
            let made = call.word("id").zip(call.get("function")).and_then(|(id, function)| {
                let (name, arguments) = (function.word("name")?, function.get("arguments")?);
                Some(epitome_api::call(&id, &name, arguments))
            });
            self.asked.extend(made.iter().map(|call| call.id.clone()));
            blocks.push(made.map_or(Block::Opaque(call.span()), Block::Call));
        }
        let said = message.get("content").map(text).unwrap_or_default();
        if message.list_of("tool_calls").is_empty()
            && let Some(command) = fenced(&said)
        {
            let id: Box<str> = format!("step {}", self.n).into();
            blocks.push(Block::Call(in_words(&id, command, message)));
            self.asked.push_back(id);
        }
        blocks
    }
}

/// A call inside the text of a response: it is counted as text.
fn in_words(id: &str, command: &str, message: &Value<'_>) -> Call {
    let start = message.span().start;
    Call {
        id: id.into(),
        name: "bash".into(),
        kind: ToolKind::Shell,
        target: Some(Text::Made(command.into())),
        part: None,
        fields: Vec::new(),
        arguments: Span { start, end: start },
    }
}

/// The command between fences: the run's configuration sets which fences count, so other fences are
/// used if there are none of the usual ones.
fn fenced(words: &str) -> Option<&str> {
    let usual = ["```bash\n", "```mswea_bash_command\n"];
    let known = usual.iter().find_map(|fence| words.split_once(fence));
    let other =
        || words.split_once("```").and_then(|(before, it)| Some((before, it.split_once('\n')?.1)));
    let (_, rest) = known.or_else(other)?;
    let (command, _) = rest.split_once("\n```")?;
    Some(command.trim()).filter(|command| !command.is_empty())
}

/// The text of a content: a string, or a list of parts with texts.
fn text(content: &Value<'_>) -> String {
    let parts = || content.list().iter().filter_map(|part| part.word("text"));
    content.text().map_or_else(|| parts().collect(), Into::into)
}

fn content(content: &Value<'_>) -> Vec<Block> {
    if content.is_text() {
        let is_empty = content.range().len() <= 2;
        if is_empty { Vec::new() } else { vec![Block::Text(content.source())] }
    } else {
        content
            .list()
            .iter()
            .map(|part| match part.string("text") {
                Some(text) => Block::Text(text.source()),
                None => Block::Opaque(part.span()),
            })
            .collect()
    }
}

fn result(message: &Value<'_>, id: &str) -> Block {
    let content = message.get("content");
    let parts =
        content.map(self::content).unwrap_or_default().into_iter().map(|block| match block {
            Block::Text(text) => Part::Text(text),
            _ => Part::Opaque(content.map(Value::span).unwrap_or_default()),
        });
    let code = message.get("extra").and_then(|extra| extra.get("returncode"));
    Block::Output(Output {
        call: id.into(),
        error: code.is_some_and(|code| code.raw() != b"0"),
        parts: parts.collect(),
        whole: content.map(Value::span).unwrap_or_default(),
        ..Output::default()
    })
}

fn usage(usage: &Value<'_>) -> Option<Usage> {
    let number = |key: &str| {
        let value = usage.get(key)?;
        integer(value.raw(), &(0..value.range().len()))
    };
    let (input, output) = (number("prompt_tokens")?, number("completion_tokens")?);
    Some(Usage { input, output, ..Usage::default() })
}
