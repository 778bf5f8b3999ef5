//! Converts a thread into a transcript.

use epitome_api::Body;
use epitome_json::Value;
use epitome_model::{
    Block, CacheUse, Faults, HiddenField, Left, Output, Part, Role, Source, Span, Thinking,
    Transcript, Usage,
};

/// The statuses of a run that failed.
const FAILED: [&str; 3] = ["error", "cancelled", "rejected-by-user"];

/// Whether the bytes begin an object with `messages`, a number `v` and a time `created`.
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
    body.head().id = root.boxed("id");
    body.head().cwd = folder(root).map(|folder| folder.as_str().into());
    let messages = root.list_of("messages");
    let mut models = messages.iter().filter_map(|message| message.at(&["usage", "model"]));
    body.model(models.next_back());
    for message in messages {
        read_message(body, message);
    }
}

/// The working directory: that of the first tree in which the thread was started.
fn folder(root: &Value<'_>) -> Option<String> {
    let trees = root.at(&["env", "initial"])?.list_of("trees");
    let uri = trees.first()?.word("uri")?;
    Some(uri.strip_prefix("file://").unwrap_or(&uri).to_owned())
}

fn read_message(body: &mut Body<'_>, message: &Value<'_>) {
    let blocks: Vec<Block> = message.list_of("content").iter().map(read_block).collect();
    let answers = blocks.iter().any(|block| matches!(block, Block::Output(_)));
    let role = match message.word("role").as_deref() {
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
    let copies = copies(message);
    let entry = body.say(message, role, blocks);
    entry.copies = copies;
    entry.usage = message.get("usage").and_then(usage);
}

fn read_block(block: &Value<'_>) -> Block {
    let opaque = Block::Opaque(block.span());
    let text = |key| block.string(key).map(Value::source);
    match block.word("type").as_deref() {
        Some("text") => text("text").map_or(opaque, Block::Text),
        Some("thinking" | "redacted_thinking") => Block::Thinking(Thinking {
            text: text("thinking"),
            whole: block.span(),
            removable: true,
        }),
        Some("tool_use") => call(block).unwrap_or(opaque),
        Some("tool_result") => Block::Output(output(block)),
        Some("summary") => {
            let summary = block.at(&["summary", "summary"]).filter(|text| text.is_text());
            summary.map_or(opaque, |text| Block::Summary(text.source()))
        }
        Some(_) | None => opaque,
    }
}

fn call(block: &Value<'_>) -> Option<Block> {
    let (id, name, input) = (block.word("id")?, block.word("name")?, block.get("input")?);
    Some(Block::Call(epitome_api::call(&id, &name, input)))
}

/// The result of a call: `run` has the status, and either the `result` (a text, or an object with
/// an `output`), the `error` or the `progress` so far.
fn output(block: &Value<'_>) -> Output {
    let run = block.get("run");
    let status = run.and_then(|run| run.word("status")).unwrap_or_default();
    let value = run.and_then(|run| run.any(&["result", "error", "progress"]));
    let text = value.and_then(|value| {
        let inner = value.any(&["output", "message", "content"]);
        [Some(value), inner].into_iter().flatten().find(|value| value.is_text())
    });
    let whole = text.or(value).map_or_else(Span::default, Value::span);
    let part = match text {
        Some(text) => Some(Part::Text(text.source())),
        None => value.map(|value| Part::Opaque(value.span())),
    };
    let id = block.boxed("toolUseID").or_else(|| block.boxed("tool_use_id"));
    Output {
        call: id.unwrap_or_default(),
        error: FAILED.contains(&&*status),
        parts: part.into_iter().collect(),
        whole,
        from_user: status == "rejected-by-user",
        ..Output::default()
    }
}

fn usage(usage: &Value<'_>) -> Option<Usage> {
    let count = |key| usage.get(key).and_then(Value::integer);
    let cache = CacheUse {
        read: count("cacheReadInputTokens").unwrap_or(0),
        written: count("cacheCreationInputTokens").unwrap_or(0),
    };
    let input = count("inputTokens")?;
    Some(Usage {
        input: input.saturating_add(cache.read).saturating_add(cache.written),
        output: count("outputTokens").unwrap_or(0),
        cache: Some(cache),
        cost: None,
    })
}

/// Values of a message that only the editor shows: open files and the like.
fn copies(message: &Value<'_>) -> Vec<HiddenField> {
    let state = message.get("userState").filter(|state| state.is_object());
    let copy = |value: &Value<'_>| HiddenField {
        name: "userState",
        value: value.span(),
        left: Left::EmptyObject,
    };
    state.map(copy).into_iter().collect()
}
