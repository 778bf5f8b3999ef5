//! Converts a thread into a transcript.

use epitome_api::Body;
use epitome_json::Value;
use epitome_model::{
    Block, CacheUse, Faults, FieldRemainder, HiddenField, Output, Part, RecordedUsage, Role,
    Source, Span, Thinking, Transcript,
};

/// The statuses of a run that failed.
const FAILED: [&str; 3] = ["error", "cancelled", "rejected-by-user"];

/// Whether the bytes begin a single object with the members `v`, `created` and `id`, and with
/// `messages` or `env`.
pub fn sniff(head: &[u8]) -> bool {
    let Some(seen) = epitome_api::skim(head) else { return false };
    let is_thread = seen.has("v") && seen.has("created") && seen.has("id");
    !seen.more && is_thread && (seen.has("messages") || seen.has("env"))
}

/// Reads a thread.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    epitome_api::read(source, faults, thread)
}

fn thread(body: &mut Body<'_>, root: &Value<'_>) {
    body.head().id = root.boxed_text_of("id");
    body.head().cwd = folder(root).map(|folder| folder.as_str().into());
    let messages = root.list_of("messages");
    let mut models = messages.iter().filter_map(|message| message.get_path(&["usage", "model"]));
    body.model(models.next_back());
    for message in messages {
        read_message(body, message);
    }
}

/// The working directory: the URI of the first tree in `env.initial.trees`, without `file://`.
/// `None` if there is no such tree.
fn folder(root: &Value<'_>) -> Option<String> {
    let trees = root.get_path(&["env", "initial"])?.list_of("trees");
    let uri = trees.first()?.text_of("uri")?;
    Some(uri.strip_prefix("file://").unwrap_or(&uri).to_owned())
}

fn read_message(body: &mut Body<'_>, message: &Value<'_>) {
    let blocks: Vec<Block> = message.list_of("content").iter().map(read_block).collect();
    let answers = blocks.iter().any(|block| matches!(block, Block::Output(_)));
    let role = match message.text_of("role").as_deref() {
        Some("assistant") => Role::Assistant,
        Some("user") if answers => Role::Tool,
        Some("user") => Role::User,
        // Summaries of earlier threads, and notes of the agent.
        Some("info") => Role::System,
        Some(_) | None => {
            body.keep(message, Vec::new());
            return;
        }
    };
    let hidden_fields = hidden_fields(message);
    let entry = body.say(message, role, blocks);
    entry.hidden_fields = hidden_fields;
    entry.usage = message.get("usage").and_then(usage);
}

fn read_block(block: &Value<'_>) -> Block {
    let opaque = Block::Opaque(block.span());
    match block.text_of("type").as_deref() {
        Some("text") => match block.string("text") {
            Some(text) => Block::Text(text.to_source_text()),
            None => opaque,
        },
        Some("thinking" | "redacted_thinking") => Block::Thinking(Thinking {
            text: block.string("thinking").map(Value::to_source_text),
            whole: block.span(),
            removable: true,
        }),
        Some("tool_use") => call(block).unwrap_or(opaque),
        Some("tool_result") => Block::Output(output(block)),
        Some("summary") => {
            let summary = block.get_path(&["summary", "summary"]).filter(|text| text.is_text());
            summary.map_or(opaque, |text| Block::Summary(text.to_source_text()))
        }
        Some(_) | None => opaque,
    }
}

fn call(block: &Value<'_>) -> Option<Block> {
    let id = block.text_of("id")?;
    let name = block.text_of("name")?;
    let input = block.get("input")?;
    Some(Block::Call(epitome_api::call(&id, &name, input)))
}

/// The result of a call, from the member `run` of `block`: its `result`, or else its `error`, or
/// else its `progress`.
fn output(block: &Value<'_>) -> Output {
    let run = block.get("run");
    let status = run.and_then(|run| run.text_of("status")).unwrap_or_default();
    let value = run.and_then(|run| run.any(&["result", "error", "progress"]));
    let text = value.and_then(|value| {
        let inner = value.any(&["output", "message", "content"]);
        [Some(value), inner].into_iter().flatten().find(|value| value.is_text())
    });
    let whole = text.or(value).map_or_else(Span::default, Value::span);
    let part = match text {
        Some(text) => Some(Part::Text(text.to_source_text())),
        None => value.map(|value| Part::Opaque(value.span())),
    };
    let id = block.boxed_text_of("toolUseID").or_else(|| block.boxed_text_of("tool_use_id"));
    Output {
        call: id.unwrap_or_default(),
        error: FAILED.contains(&&*status),
        parts: part.into_iter().collect(),
        whole,
        from_user: status == "rejected-by-user",
        ..Output::default()
    }
}

fn usage(usage: &Value<'_>) -> Option<RecordedUsage> {
    let cache = CacheUse {
        read: usage.integer_of("cacheReadInputTokens").unwrap_or(0),
        written: usage.integer_of("cacheCreationInputTokens").unwrap_or(0),
    };
    let input = usage.integer_of("inputTokens")?;
    Some(RecordedUsage {
        input: input.saturating_add(cache.read).saturating_add(cache.written),
        output: usage.integer_of("outputTokens").unwrap_or(0),
        cache: Some(cache),
        cost: None,
    })
}

/// The state of the editor that a message records, such as open files: no model sees it.
fn hidden_fields(message: &Value<'_>) -> Vec<HiddenField> {
    let state = message.get("userState").filter(|state| state.is_object());
    let copy = state.map(|value| HiddenField {
        name: "userState",
        value: value.span(),
        left: FieldRemainder::EmptyObject,
    });
    copy.into_iter().collect()
}
