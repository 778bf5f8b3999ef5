//! Resumes a session in a real agent, and records what the agent sends.

use crate::agent::Agent;
use crate::process::Finished;
use crate::sandbox::{Placed, Sandbox};
use crate::scenario::Turn;
use anyhow::{Context, ensure};
use model_server::{Outcome, Script, Server};
use serde_json::Value;

/// What a resumed agent sent to the model.
#[derive(Debug, Clone)]
pub struct Sent {
    /// How the agent ended.
    pub finished: Finished,
    /// The messages of the agent's first answered request; null if no request was answered.
    pub messages: Value,
    /// The refusals of the service, in order.
    pub refusals: Vec<String>,
    /// The size of [`messages`](Self::messages) as JSON.
    pub bytes: usize,
    /// The number of blocks in the messages.
    pub counts: Counts,
}

/// The number of blocks of each kind in a history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Messages.
    pub messages: usize,
    /// Calls of tools.
    pub calls: usize,
    /// Results of tools.
    pub results: usize,
    /// Blocks of thinking.
    pub thinking: usize,
    /// Images, also images inside results.
    pub images: usize,
}

/// Resumes a recorded session in a fresh home with the scenario's project.
///
/// # Errors
///
/// If the agent cannot be installed or started. Whether the agent accepts the session is in the
/// result: see [`Sent::accepted`].
pub fn resume(agent: &'static dyn Agent, recorded: &str) -> anyhow::Result<Sent> {
    let server = Server::start(Script::default())?;
    let sandbox = Sandbox::new(agent, &server.url())?;
    crate::project::write(sandbox.home(), agent.facts().scale)?;
    let placed = sandbox.place(recorded)?;
    resume_in(&sandbox, &server, &placed)
}

/// Resumes a session that is stored where the agent finds it.
///
/// # Errors
///
/// As for [`resume`].
pub fn resume_in(sandbox: &Sandbox, server: &Server, session: &Placed) -> anyhow::Result<Sent> {
    let turn = Turn::resume();
    server.play(Script::new(turn.steps(sandbox)));
    let before = server.exchanges().len();
    let finished = sandbox.resume(&session.id, &turn.prompt)?;
    let exchanges = server.exchanges().split_off(before);
    let mut refusals = Vec::new();
    let mut messages = Value::Null;
    for exchange in exchanges {
        match exchange.outcome {
            Outcome::Refused(why) => refusals.push(why),
            Outcome::Played { step: 0, .. } => messages = history(&exchange.body).clone(),
            Outcome::Played { .. } | Outcome::Canned | Outcome::Other => {}
        }
    }
    let bytes = messages.to_string().len();
    let counts = count(&messages);
    Ok(Sent { finished, messages, refusals, bytes, counts })
}

impl Sent {
    /// Checks that the agent continued the session as usual.
    ///
    /// # Errors
    ///
    /// If the agent failed, was refused, did not print the last words of the turn, or sent nothing
    /// of the session.
    pub fn accepted(&self) -> anyhow::Result<()> {
        let done = &self.finished;
        ensure!(self.refusals.is_empty(), "refused: {}", self.refusals.join("; "));
        ensure!(done.success(), "{:?}\n{}\n{}", done.status, done.stdout, done.stderr);
        ensure!(
            done.stdout.contains(&Turn::resume().last_words()),
            "the last words are missing: {}",
            done.stdout
        );
        ensure!(self.counts.messages > 2, "nothing of the session was sent");
        Ok(())
    }

    /// How often `text` occurs in the strings sent.
    pub fn occurrences(&self, text: &str) -> usize {
        occurrences(&self.messages, text)
    }
}

/// The conversation in a request of any API format.
fn history(body: &Value) -> &Value {
    let names = ["messages", "input", "contents"];
    names.iter().map(|name| &body[name]).find(|it| it.is_array()).unwrap_or(&Value::Null)
}

/// Counts the blocks of a history in any API format.
pub fn count(messages: &Value) -> Counts {
    let mut counts = Counts::default();
    for message in messages.as_array().into_iter().flatten() {
        counts.messages += 1;
        match message["type"].as_str() {
            Some("function_call" | "custom_tool_call") => counts.calls += 1,
            Some("function_call_output" | "custom_tool_call_output") => counts.results += 1,
            Some("reasoning") => counts.thinking += 1,
            Some(_) | None => {}
        }
        blocks(&message["output"], &mut counts);
        counts.calls += message["tool_calls"].as_array().map_or(0, Vec::len);
        counts.results += usize::from(message["role"] == "tool");
        counts.thinking += usize::from(!message["reasoning_content"].is_null());
        blocks(&message["content"], &mut counts);
        parts(&message["parts"], &mut counts);
    }
    counts
}

fn blocks(content: &Value, counts: &mut Counts) {
    for block in content.as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("tool_use") => counts.calls += 1,
            Some("tool_result") => counts.results += 1,
            Some("thinking" | "redacted_thinking") => counts.thinking += 1,
            Some("image" | "image_url" | "input_image") => counts.images += 1,
            _ => {}
        }
        blocks(&block["content"], counts);
    }
}

fn parts(parts: &Value, counts: &mut Counts) {
    for part in parts.as_array().into_iter().flatten() {
        counts.calls += usize::from(part["functionCall"].is_object());
        counts.results += usize::from(part["functionResponse"].is_object());
        counts.thinking += usize::from(part["thought"] == true);
        counts.images += usize::from(part["inlineData"].is_object());
        self::parts(&part["functionResponse"]["parts"], counts);
    }
}

fn occurrences(value: &Value, text: &str) -> usize {
    let inside = |values: &mut dyn Iterator<Item = &Value>| {
        values.map(|value| occurrences(value, text)).sum::<usize>()
    };
    let own = value.as_str().map_or(0, |found| found.matches(text).count());
    let items = inside(&mut value.as_array().into_iter().flatten());
    own + items + inside(&mut value.as_object().into_iter().flat_map(|map| map.values()))
}

/// The part of a session file that was appended to `before`.
///
/// # Errors
///
/// If the file does not begin with `before`: the agent did more than append. Names the first
/// record that it changed.
pub fn appended<'a>(before: &'a [u8], after: &'a [u8]) -> anyhow::Result<&'a [u8]> {
    after.strip_prefix(before).with_context(|| {
        let records = |file: &'a [u8]| file.split(|it| *it == b'\n');
        let mut pairs = records(before).zip(records(after)).enumerate();
        let (at, (old, new)) = pairs.find(|(_, (old, new))| old != new).unwrap_or_default();
        format!("not only appended: record {at} was\n  {}\nand is\n  {}", show(old), show(new))
    })
}

/// The beginning of a record, as text.
fn show(record: &[u8]) -> String {
    String::from_utf8_lossy(record).chars().take(1_000).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_wires_are_counted() {
        let image = json!({ "type": "image" });
        let anthropic = json!([
            { "role": "user", "content": "go" },
            { "role": "assistant", "content": [{ "type": "thinking" }, { "type": "tool_use" }] },
            { "role": "user", "content": [{ "type": "tool_result", "content": [image] }] },
        ]);
        let chat = json!([
            { "role": "user", "content": [{ "type": "image_url" }] },
            { "role": "assistant", "reasoning_content": "why", "tool_calls": [{}] },
            { "role": "tool", "content": "x" },
        ]);
        let picture = json!({ "inlineData": {} });
        let gemini = json!([
            { "role": "user", "parts": [{ "text": "go" }] },
            { "role": "model", "parts": [{ "thought": true }, { "functionCall": {} }] },
            { "role": "user", "parts": [{ "functionResponse": { "parts": [picture] } }] },
        ]);
        let all = Counts { messages: 3, calls: 1, results: 1, thinking: 1, images: 1 };
        let responses = json!([
            { "type": "reasoning" },
            { "type": "custom_tool_call" },
            { "type": "function_call_output", "output": [{ "type": "input_image" }] },
        ]);
        for history in [anthropic, chat, responses, gemini] {
            assert_eq!(count(&history), all);
        }
    }

    #[test]
    fn texts_are_found_in_strings_only() {
        let value = json!([{ "stub": "a stub", "b": ["stub stub"] }]);
        assert_eq!(occurrences(&value, "stub"), 3);
    }
}
