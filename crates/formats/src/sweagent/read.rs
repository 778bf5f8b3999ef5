//! Converts a trajectory into a transcript.

use epitome_api::Body;
use epitome_json::Value;
use epitome_model::{Block, Faults, FieldRemainder, HiddenField, Role, Source, Span, Transcript};

use crate::trajectory::{self, Calls};

/// Whether the bytes begin a single object with a `trajectory`, without `messages`, and with at
/// least one other member that SWE-agent writes.
pub fn sniff(head: &[u8]) -> bool {
    let Some(seen) = epitome_api::skim(head) else { return false };
    let other_keys = ["environment", "history", "info", "replay_config"];
    !seen.more && seen.has("trajectory") && seen.has_any(&other_keys) && !seen.has("messages")
}

/// Reads a trajectory.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    epitome_api::read(source, faults, trajectory)
}

fn trajectory(body: &mut Body<'_>, root: &Value<'_>) {
    let version = root.get("info").and_then(|info| info.text_of("swe_agent_version"));
    body.head().version = version.map(|version| version.as_ref().into());
    let steps = root.list_of("trajectory");
    let history = root.list_of("history");
    let mut reader = Reader::default();
    for message in history {
        reader.message(body, message);
    }
    for step in steps {
        if history.is_empty() {
            reader.step(body, step)
        } else {
            // The steps repeat the history: they are hidden records.
            body.keep(step, vec![copy("step", step)])
        }
    }
}

fn copy(name: &'static str, value: &Value<'_>) -> HiddenField {
    HiddenField { name, value: value.span(), left: FieldRemainder::Nothing }
}

#[derive(Default)]
struct Reader {
    open: Calls,
    /// The number of responses that have been read, without those of demonstrations.
    n: usize,
    /// The number of calls without an id that have been read.
    calls: usize,
}

impl Reader {
    fn message(&mut self, body: &mut Body<'_>, message: &Value<'_>) {
        let content = message.get("content");
        let entry = match message.text_of("role").as_deref() {
            Some("system") => {
                body.prompt(message, trajectory::blocks(content));
                return;
            }
            Some("assistant") => {
                let blocks = self.reply(message, trajectory::blocks(content));
                body.say(message, Role::Assistant, blocks)
            }
            Some("tool") => {
                let ids = message.list_of("tool_call_ids");
                let id = ids.first().and_then(Value::text).unwrap_or_default();
                self.open.end(&id);
                body.say(message, Role::Tool, vec![trajectory::result(content, &id, false)])
            }
            // Versions before 1.0 have no message types: the message after an action is an
            // observation, and there are no user messages once the run has begun.
            _ => match self.open.next() {
                Some(id) => {
                    body.say(message, Role::Tool, vec![trajectory::result(content, &id, false)])
                }
                // Demonstrations and complaints about a response are from the agent. A message
                // before the first response that is no demonstration is the task, which is from the
                // user.
                None if self.n > 0 || message.get("is_demo").is_some_and(Value::is_true) => {
                    body.say(message, Role::System, trajectory::blocks(content))
                }
                None => body.say(message, Role::User, trajectory::blocks(content)),
            },
        };
        let said_again = ["thought", "action"].iter().filter_map(|key| {
            let value = message.get(key).filter(|value| value.range().len() > 2)?;
            Some(copy(if *key == "thought" { "thought" } else { "action" }, value))
        });
        entry.hidden_fields = said_again.collect();
    }

    fn reply(&mut self, message: &Value<'_>, mut blocks: Vec<Block>) -> Vec<Block> {
        if !message.get("is_demo").is_some_and(Value::is_true) {
            self.n += 1;
        }
        blocks.extend(self.open.begin(message));
        let content_text = message.get("content").and_then(Value::text).unwrap_or_default();
        let action = message.text_of("action").filter(|action| !action.trim().is_empty());
        let action = action.or_else(|| fenced(&content_text).map(Into::into));
        if message.list_of("tool_calls").is_empty()
            && let Some(action) = action
        {
            blocks.push(self.in_words(&action, trajectory::nothing(message)));
        }
        blocks
    }

    /// A call for a command that is in a response's text or in a member next to the text.
    fn in_words(&mut self, action: &str, arguments: Span) -> Block {
        self.calls += 1;
        self.open.command(format!("step {}", self.calls).into(), action, arguments)
    }

    /// A step of a trajectory without a history: a response, its action, and the observation.
    fn step(&mut self, body: &mut Body<'_>, step: &Value<'_>) {
        let response_text =
            step.any(&["response", "thought"]).filter(|response_text| response_text.is_text());
        let record = response_text.or(step.get("action"));
        let mut blocks: Vec<Block> = response_text
            .map(|response_text| Block::Text(response_text.to_source_text()))
            .into_iter()
            .collect();
        if let Some(action) = step.get("action").filter(|it| it.range().len() > 2) {
            let words = action.text().unwrap_or_default();
            let alone = if let Some(response_text) = response_text {
                trajectory::nothing(response_text)
            } else {
                action.span()
            };
            blocks.push(self.in_words(&words, alone));
        }
        if let Some(record) = record {
            body.say(record, Role::Assistant, blocks);
        }
        if let (Some(id), Some(observed)) = (self.open.next(), step.get("observation")) {
            body.say(observed, Role::Tool, vec![trajectory::result(Some(observed), &id, false)]);
        }
    }
}

/// The command of a response without an `action`: the last text between fences. `None` if there are
/// no fences, or if that text is blank.
fn fenced(words: &str) -> Option<&str> {
    let (before, _) = words.trim_end().rsplit_once("\n```")?;
    let (_, block) = before.rsplit_once("```")?;
    let (_, command) = block.split_once('\n')?;
    Some(command.trim()).filter(|command| !command.is_empty())
}
