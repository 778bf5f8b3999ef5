//! Converts a request body into a transcript.

use epitome_json::Value;
use epitome_model::{Block, Call, Image, Output, Part, Role, Thinking};

use crate::Body;

/// Keys that requests of this API have, and requests of the other APIs in this crate do not.
const OWN: [&str; 5] =
    ["system", "anthropic_version", "anthropic_beta", "stop_sequences", "context_management"];
/// Keys that requests of other APIs and agents' files have, and requests of this API do not.
const FOREIGN: [&str; 7] =
    ["info", "trajectory_format", "response_format", "max_completion_tokens", "stop", "n", "seed"];
/// Kinds of blocks that this API has, and the other APIs in this crate do not.
const BLOCKS: [&str; 4] = ["tool_use", "tool_result", "thinking", "redacted_thinking"];
const FOREIGN_ROLES: [&str; 4] = ["developer", "tool", "function", "exit"];

/// Whether the bytes are a request of this API, or the beginning of one: an object with `messages`,
/// and nothing after it. The object has keys, blocks or tools of this API, or `max_tokens` and a
/// Claude model. It has no keys, roles or tools of other APIs.
pub fn sniff(head: &[u8]) -> bool {
    let Some(seen) = crate::skim(head) else { return false };
    let foreign = seen.has_any(&FOREIGN)
        || FOREIGN_ROLES.iter().any(|role| seen.roles.contains(*role))
        || seen.members.contains("tool_calls")
        || seen.tools.contains("function");
    if seen.more || foreign || !seen.has("messages") || !seen.members.contains("role") {
        return false;
    }
    seen.has_any(&OWN)
        || BLOCKS.iter().any(|kind| seen.kinds.contains(*kind))
        || seen.tools.contains("input_schema")
        || seen.has("max_tokens") && seen.model.contains("claude")
}

/// Reads a request body.
pub fn body(body: &mut Body<'_>, root: &Value<'_>) {
    body.model_and_tools(root);
    if let Some(system) = root.get("system") {
        let blocks = if system.is_text() {
            texts(system)
        } else {
            system.list().iter().map(|block| convert_block(block, false)).collect()
        };
        body.prompt(system, blocks);
    }
    let thinks = root.get("thinking").is_some_and(|it| it.is("type", "enabled"));
    let bound = root.text_of("model").is_some_and(|model| super::thinking_is_bound(&model));
    read_messages(body, root.list_of("messages"), thinks && !bound);
}

/// Reads messages without the request that contains them.
pub fn messages(body: &mut Body<'_>, messages: &[Value<'_>]) {
    read_messages(body, messages, false);
}

/// Reads messages. `loops` is whether the API requires reasoning while the model uses tools: then
/// the reasoning after the last user message without tool results must stay. If there is no such
/// message, all reasoning must stay.
fn read_messages(body: &mut Body<'_>, messages: &[Value<'_>], loops: bool) {
    let prompt = messages.iter().rposition(|it| it.is("role", "user") && !answers(it));
    for (idx, message) in messages.iter().enumerate() {
        let in_loop = loops && prompt.is_none_or(|prompt| idx > prompt);
        self::message(body, message, !in_loop);
    }
}

/// Whether a message contains a tool result.
fn answers(message: &Value<'_>) -> bool {
    message.list_of("content").iter().any(|block| block.is("type", "tool_result"))
}

fn message(body: &mut Body<'_>, message: &Value<'_>, removable: bool) {
    let content = message.get("content");
    let parts = content.map_or(&[][..], Value::list);
    let role = match message.text_of("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some(_) | None => Role::System,
    };
    let results = parts.iter().filter(|part| is_result(part)).count();
    if results > 0 && results < parts.len() {
        // A message with results and other blocks becomes one entry for each block: results get the
        // role of a tool, other blocks the role of the message.
        for part in parts {
            let role = if is_result(part) { Role::Tool } else { role };
            // The block is the whole record of its entry, and a record must not be removed.
            let block = convert_block(part, false);
            body.say(part, role, vec![block]);
        }
        return;
    }
    // If reasoning is the only content, it must stay: the API refuses an empty message.
    let alone = parts.iter().all(|part| is_thinking(part));
    let role = if results > 0 { Role::Tool } else { role };
    let blocks = match content {
        Some(content) if content.is_text() => texts(content),
        Some(_) | None => {
            parts.iter().map(|part| convert_block(part, removable && !alone)).collect()
        }
    };
    body.say(message, role, blocks);
}

fn is_result(part: &Value<'_>) -> bool {
    part.is("type", "tool_result")
}

fn texts(value: &Value<'_>) -> Vec<Block> {
    // An empty string becomes no block.
    if value.range().len() > 2 { vec![Block::Text(value.to_source_text())] } else { Vec::new() }
}

fn is_thinking(part: &Value<'_>) -> bool {
    part.is("type", "thinking") || part.is("type", "redacted_thinking")
}

fn convert_block(part: &Value<'_>, removable: bool) -> Block {
    let whole = part.span();
    let kind = part.text_of("type").unwrap_or_default();
    match (&*kind, part.string("text")) {
        ("text", Some(text)) => Block::Text(text.to_source_text()),
        ("thinking" | "redacted_thinking", _) => {
            let text = part.string("thinking");
            Block::Thinking(Thinking { text: text.map(Value::to_source_text), whole, removable })
        }
        ("tool_use", _) => call(part).map_or(Block::Opaque(whole), Block::Call),
        ("tool_result", _) => Block::Output(output(part)),
        ("image", _) => image(part).map_or(Block::Opaque(whole), Block::Image),
        _ => Block::Opaque(whole),
    }
}

fn call(part: &Value<'_>) -> Option<Call> {
    let id = part.text_of("id")?;
    let name = part.text_of("name")?;
    let input = part.get("input")?;
    Some(crate::call(&id, &name, input))
}

fn output(part: &Value<'_>) -> Output {
    let content = part.get("content");
    Output {
        call: part.text_of("tool_use_id").unwrap_or_default().as_ref().into(),
        error: part.get("is_error").is_some_and(Value::is_true),
        parts: crate::parts(content, piece),
        whole: content.map(Value::span).unwrap_or_default(),
        ..Output::default()
    }
}

fn piece(part: &Value<'_>) -> Part {
    // A part with a cache marker is opaque, so that no edit removes its marker.
    if part.get("cache_control").is_some() {
        return Part::Opaque(part.span());
    }
    let text = part.get("text").filter(|text| text.is_text() && part.is("type", "text"));
    match (text, image(part)) {
        (Some(text), _) => Part::Text(text.to_source_text()),
        (None, Some(image)) => Part::Image(image),
        (None, None) => Part::Opaque(part.span()),
    }
}

/// The picture in a part. `None` if the part is no picture, if its bytes are not in the body, or if
/// it has a cache marker.
fn image(part: &Value<'_>) -> Option<Image> {
    let source = part.get("source").filter(|source| source.is("type", "base64"))?;
    let data = source.string("data")?;
    if !part.is("type", "image") || part.get("cache_control").is_some() {
        return None;
    }
    let media = source.text_of("media_type").unwrap_or_else(|| "image".into());
    Some(Image { media: media.as_ref().into(), data: data.span(), whole: part.span() })
}
