//! Continue's program `cn`: one JSON document per session. Read-only.
//!
//! `docs/formats/continue.md` describes its members, and how that was found out.

use epitome_api::Body;
use epitome_json::Value;
use epitome_model::{
    Block, CacheUse, Faults, FieldRemainder, HiddenField, Output, Part, RecordedUsage, Role,
    Source, Transcript,
};

use crate::{Format, accounting, trajectory};

/// Continue's sessions.
pub const FORMAT: Format = Format::read_only(
    "continue",
    sniff,
    read,
    "no session that epitome changed was resumed with Continue",
);

/// Whether the bytes begin a single object with an id, a folder and a history.
fn sniff(head: &[u8]) -> bool {
    let Some(seen) = epitome_api::skim(head) else { return false };
    let members = ["sessionId", "workspaceDirectory", "history"];
    !seen.more && members.iter().all(|member| seen.has(member))
}

fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    epitome_api::read(source, faults, session)
}

fn session(body: &mut Body<'_>, root: &Value<'_>) {
    body.head().id = root.boxed_text_of("sessionId");
    body.head().cwd = root.boxed_text_of("workspaceDirectory");
    body.head().title = root.text_of("title").map(|title| epitome_model::title(&title));
    let history = root.list_of("history");
    let mut models =
        history.iter().filter_map(|item| item.get_path(&["message", "usage", "model"]));
    body.model(models.next_back());
    // A resume sends the first summary and everything after it.
    let summary = history.iter().position(|item| item.get("conversationSummary").is_some());
    for (idx, item) in history.iter().enumerate() {
        match summary {
            Some(summary) if idx < summary => body.keep(item, hidden_fields(item)),
            Some(_) | None => read_item(body, item, summary == Some(idx)),
        }
    }
}

/// Reads a message and the results of its calls.
fn read_item(body: &mut Body<'_>, item: &Value<'_>, is_summary: bool) {
    let Some(message) = item.get("message") else {
        body.keep(item, hidden_fields(item));
        return;
    };
    let content_blocks = message.get("content").map(trajectory::content).unwrap_or_default();
    let (role, blocks) = match message.text_of("role").as_deref() {
        Some("assistant") if is_summary => {
            (Role::Assistant, content_blocks.into_iter().map(summed).collect())
        }
        Some("assistant" | "thinking") => {
            let results = item.list_of("toolCallStates").iter().map(result);
            (
                Role::Assistant,
                content_blocks.into_iter().chain(calls(message)).chain(results).collect(),
            )
        }
        Some("user") => {
            let files =
                item.list_of("contextItems").iter().filter_map(|file| file.string("content"));
            let files = files.map(|content| Block::Text(content.to_source_text()));
            (Role::User, files.chain(content_blocks).collect())
        }
        // A stored system prompt is not sent, because Continue sends its current one.
        Some(_) | None => {
            body.keep(item, hidden_fields(item));
            return;
        }
    };
    let entry = body.say(item, role, blocks);
    entry.hidden_fields = hidden_fields(item);
    entry.usage = message.get("usage").and_then(usage);
}

fn summed(block: Block) -> Block {
    match block {
        Block::Text(text) => Block::Summary(text),
        other => other,
    }
}

fn calls(message: &Value<'_>) -> impl Iterator<Item = Block> {
    message
        .list_of("toolCalls")
        .iter()
        .map(|call| call_block(call).unwrap_or(Block::Opaque(call.span())))
}

fn call_block(call: &Value<'_>) -> Option<Block> {
    let id = call.text_of("id")?;
    let function = call.get("function")?;
    let name = function.text_of("name")?;
    let arguments = function.get("arguments")?;
    Some(Block::Call(epitome_api::call(&id, &name, arguments)))
}

/// The result of a call. A call without `output` is taken to have failed: Continue sends an error
/// for it.
fn result(state: &Value<'_>) -> Block {
    let output = state.list_of("output");
    let parts = output.iter().filter_map(|part| part.string("content"));
    let status = state.text_of("status").unwrap_or_default();
    Block::Output(Output {
        call: state.boxed_text_of("toolCallId").unwrap_or_default(),
        error: matches!(&*status, "errored" | "canceled") || output.is_empty(),
        parts: parts.map(|text| Part::Text(text.to_source_text())).collect(),
        whole: state.get("output").map(Value::span).unwrap_or_default(),
        ..Output::default()
    })
}

/// Values of an item that are only displayed: the prompt as the user typed it, and copies of the
/// item's calls and of their arguments.
fn hidden_fields(item: &Value<'_>) -> Vec<HiddenField> {
    let states = item.list_of("toolCallStates").iter();
    let repeated = states.flat_map(|state| {
        ["toolCall", "parsedArgs"].into_iter().filter_map(|name| Some((name, state.get(name)?)))
    });
    let typed = item.get("editorState").map(|value| ("editorState", value));
    let hidden_fields = typed.into_iter().chain(repeated);
    hidden_fields
        .map(|(name, value)| accounting::hidden(name, value, FieldRemainder::Nothing))
        .collect()
}

fn usage(usage: &Value<'_>) -> Option<RecordedUsage> {
    let details = usage.get("prompt_tokens_details");
    let cache = CacheUse {
        read: details.and_then(|details| details.integer_of("cached_tokens")).unwrap_or(0),
        written: details.and_then(|details| details.integer_of("cache_write_tokens")).unwrap_or(0),
    };
    Some(RecordedUsage {
        input: usage.integer_of("prompt_tokens")?,
        output: usage.integer_of("completion_tokens")?,
        cache: Some(cache),
        cost: None,
    })
}
