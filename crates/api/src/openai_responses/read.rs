//! Converts a request body into a transcript.

use epitome_json::Value;
use epitome_model::{Block, Image, Output, Part, Role, Thinking, ToolKind};

use super::message::SERVICE_CALLS;
use crate::Body;

/// Keys that requests of this API have, and other requests with an `input` do not.
const OWN: [&str; 9] = [
    "instructions",
    "previous_response_id",
    "conversation",
    "reasoning",
    "include",
    "store",
    "max_output_tokens",
    "prompt_cache_key",
    "truncation",
];

/// Whether the bytes are a request of this API, or the beginning of one: an object with an `input`,
/// and nothing after it. The object has no key by which other APIs' requests and agents' files are
/// recognised, such as `messages`. The `input` is a list of items, or the object has a key of
/// `OWN`.
pub fn sniff(head: &[u8]) -> bool {
    let Some(seen) = crate::skim(head) else { return false };
    let items = seen.members.contains("role")
        || ["message", "reasoning", "function_call", "function_call_output", "compaction"]
            .iter()
            .any(|kind| seen.kinds.contains(*kind));
    let other = ["messages", "contents", "info", "session", "sessionId"];
    !seen.more && seen.has("input") && !seen.has_any(&other) && (items || seen.has_any(&OWN))
}

/// Reads a request body.
pub fn body(body: &mut Body<'_>, root: &Value<'_>) {
    body.model_and_tools(root);
    if let Some(words) = root.get("instructions").filter(|it| it.is_text() && it.range().len() > 2)
    {
        body.prompt(words, vec![Block::Text(words.to_source_text())]);
    }
    let Some(input) = root.get("input") else { return };
    if input.is_text() {
        body.say(input, Role::User, vec![Block::Text(input.to_source_text())]);
    }
    messages(body, input.list());
}

/// Reads the items of a request.
pub fn messages(body: &mut Body<'_>, items: &[Value<'_>]) {
    let prompts =
        items.iter().take_while(|it| it.is("role", "system") || it.is("role", "developer"));
    let prompts = prompts.count();
    for (idx, it) in items.iter().enumerate() {
        item(body, it, idx < prompts);
    }
}

fn item(body: &mut Body<'_>, item: &Value<'_>, prompt: bool) {
    let kind = item.text_of("type").unwrap_or_else(|| "message".into());
    match &*kind {
        "message" => {
            let blocks = crate::content(item, piece);
            let role = match item.text_of("role").as_deref() {
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                Some(_) | None if prompt => return body.prompt(item, blocks),
                Some(_) | None => Role::System,
            };
            body.say(item, role, blocks);
        }
        // The API refuses a call without the reasoning that led to it.
        "reasoning" => {
            let text = item.list_of("summary").first().and_then(|it| it.get("text"));
            let text = text.filter(|text| text.is_text()).map(Value::to_source_text);
            let thinking = Thinking { text, whole: item.span(), removable: false };
            body.say(item, Role::Assistant, vec![Block::Thinking(thinking)]);
        }
        "function_call" | "custom_tool_call" => {
            let block = call(item).unwrap_or(Block::Opaque(item.span()));
            body.say(item, Role::Assistant, vec![block]);
        }
        "local_shell_call" | "shell_call" | "apply_patch_call" | "computer_call" => {
            let block = service_call(item, &kind).unwrap_or(Block::Opaque(item.span()));
            body.say(item, Role::Assistant, vec![block]);
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            body.say(item, Role::Tool, vec![Block::Output(output(item))]);
        }
        // The outputs of these calls are structured: they are not text.
        "shell_call_output" | "apply_patch_call_output" | "computer_call_output" => {
            let whole = Output { parts: vec![Part::Opaque(item.span())], ..output(item) };
            body.say(item, Role::Tool, vec![Block::Output(whole)]);
        }
        // The service ran these calls itself, in the same response.
        own if SERVICE_CALLS.contains(&own) => {
            body.say(item, Role::Assistant, vec![Block::Opaque(item.span())]);
        }
        _ => {
            body.say(item, Role::System, vec![Block::Opaque(item.span())]);
        }
    }
}

fn piece(part: &Value<'_>) -> Part {
    let kind = part.text_of("type").unwrap_or_default();
    let is_words = matches!(&*kind, "input_text" | "output_text" | "text");
    let text = part.get("text").filter(|text| is_words && text.is_text());
    match (text, image(part)) {
        (Some(text), _) => Part::Text(text.to_source_text()),
        (None, Some(image)) => Part::Image(image),
        (None, None) => Part::Opaque(part.span()),
    }
}

fn image(part: &Value<'_>) -> Option<Image> {
    let url = part.get("image_url").filter(|_| part.is("type", "input_image"))?;
    crate::picture(url, part)
}

fn call(item: &Value<'_>) -> Option<Block> {
    let id = item.text_of("call_id")?;
    let name = item.text_of("name")?;
    let arguments = item.any(&["arguments", "input"])?;
    Some(Block::Call(crate::call(&id, &name, arguments)))
}

/// A call of a tool that the service defines; `None` if the item has no `call_id`. The arguments of
/// the call are the item's `action` or `operation`, or else the whole item.
fn service_call(item: &Value<'_>, kind: &str) -> Option<Block> {
    let id = item.text_of("call_id")?;
    let does = match kind {
        "apply_patch_call" => ToolKind::Patch,
        "computer_call" => ToolKind::Other,
        _ => ToolKind::Shell,
    };
    let arguments = item.any(&["action", "operation"]).unwrap_or(item).span();
    Some(Block::Call(epitome_model::Call {
        id: id.as_ref().into(),
        name: kind.trim_end_matches("_call").into(),
        kind: does,
        target: None,
        part: None,
        fields: Vec::new(),
        arguments,
    }))
}

fn output(item: &Value<'_>) -> Output {
    let output = item.get("output");
    Output {
        call: item.any(&["call_id", "id"]).and_then(Value::text).unwrap_or_default().into(),
        error: item.is("status", "incomplete"),
        parts: crate::parts(output, piece),
        whole: output.map(Value::span).unwrap_or_default(),
        ..Output::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_an_input_and_what_only_this_api_has() {
        for (head, expect) in [
            (r#"{"input":"Hi","store":false}"#, true),
            (r#"{"input":[{"role":"user","content":"Hi"}]}"#, true),
            (r#"{"input":[{"type":"reasoning","summary":[]},"#, true),
            (r#"{"input":"Hi"}"#, false),
            (r#"{"store":false}"#, false),
            (r#"{"input":"Hi","store":false,"messages":[]}"#, false),
            // A file with one record per line.
            ("{\"input\":\"Hi\",\"store\":false}\n{}", false),
            ("[]", false),
        ] {
            assert_eq!(sniff(head.as_bytes()), expect, "{head}");
        }
    }
}
