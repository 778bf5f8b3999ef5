//! Converts a trajectory into a transcript.

use epitome_api::Body;
use epitome_json::Value;
use epitome_model::{
    Block, Faults, FieldRemainder, HiddenField, RecordedUsage, Role, Source, Transcript,
};

use crate::accounting;
use crate::trajectory::{self, Calls};

/// Whether the bytes begin a single object with `messages`, and with a `trajectory_format` or the
/// `info` of a run. At least one message must be of the user or the model.
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
    body.head().id = word(root, &["instance_id"]);
    body.head().version = word(root, &["info", "mini_version"]);
    body.head().cwd = word(root, &["info", "config", "environment", "cwd"]);
    body.model(root.get_path(&["info", "config", "model", "model_name"]));
    let mut reader = Reader::default();
    for message in root.list_of("messages") {
        reader.message(body, message);
    }
}

fn word(value: &Value<'_>, path: &[&str]) -> Option<Box<str>> {
    Some(value.get_path(path)?.text()?.into())
}

#[derive(Default)]
struct Reader {
    calls: Calls,
    /// The number of responses that have been read.
    n: usize,
}

impl Reader {
    fn message(&mut self, body: &mut Body<'_>, message: &Value<'_>) {
        let content = message.get("content");
        let failed =
            message.get_path(&["extra", "returncode"]).is_some_and(|code| code.raw() != b"0");
        let extra = message.get("extra").filter(|extra| extra.range().len() > 2);
        let hidden_fields: Vec<HiddenField> = extra
            .map(|extra| accounting::hidden("extra", extra, FieldRemainder::EmptyObject))
            .into_iter()
            .collect();
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
                let id = message.text_of("tool_call_id").unwrap_or_default();
                self.calls.end(&id);
                body.say(message, Role::Tool, vec![trajectory::result(content, &id, failed)])
            }
            // Before version 2 the output of a command was a user message.
            Some("user") => match self.calls.next() {
                Some(id) => {
                    body.say(message, Role::Tool, vec![trajectory::result(content, &id, failed)])
                }
                None => {
                    let role = if self.n > 0 { Role::System } else { Role::User };
                    body.say(message, role, trajectory::blocks(content))
                }
            },
            // A message that says how the run ended is not sent.
            Some(_) | None => {
                body.keep(message, hidden_fields);
                return;
            }
        };
        entry.hidden_fields = hidden_fields;
        entry.usage = extra.and_then(|extra| usage(extra.get("response")?.get("usage")?));
    }

    fn reply(&mut self, message: &Value<'_>, mut blocks: Vec<Block>) -> Vec<Block> {
        self.n += 1;
        blocks.extend(self.calls.begin(message));
        let content_text = message.get("content").map(text).unwrap_or_default();
        if message.list_of("tool_calls").is_empty()
            && let Some(command) = fenced(&content_text)
        {
            // The arguments get an empty span: the command is part of the text, and must not be
            // counted twice.
            let id = format!("step {}", self.n).into();
            blocks.push(self.calls.command(id, command, trajectory::nothing(message)));
        }
        blocks
    }
}

/// The command in the first fenced block of the language `bash`, or else of `mswea_bash_command`,
/// or else of any language, because the configuration of a run decides which language is used.
/// `None` if the block is missing, incomplete or blank.
fn fenced(words: &str) -> Option<&str> {
    let usual = ["```bash\n", "```mswea_bash_command\n"];
    let known = usual.iter().find_map(|fence| words.split_once(fence));
    // A fenced block of any language.
    let (_, rest) = match known {
        Some(found) => found,
        None => words.split_once("```")?.1.split_once('\n')?,
    };
    let (command, _) = rest.split_once("\n```")?;
    Some(command.trim()).filter(|command| !command.is_empty())
}

/// The text of a message's content: a string, or the joined texts of a list of parts.
fn text(content: &Value<'_>) -> String {
    match content.text() {
        Some(text) => text.into_owned(),
        None => content.list().iter().filter_map(|part| part.text_of("text")).collect(),
    }
}

fn usage(usage: &Value<'_>) -> Option<RecordedUsage> {
    let input = usage.integer_of("prompt_tokens")?;
    let output = usage.integer_of("completion_tokens")?;
    Some(RecordedUsage { input, output, ..RecordedUsage::default() })
}
