//! Converts a request body into a transcript.

use epitome_json::Value;
use epitome_model::{Block, Call, Image, Output, Part, Role, Thinking};

use crate::Body;

/// Keys that requests of Anthropic's Messages have, and requests of this API do not.
/// `FOREIGN_BLOCKS` are kinds of blocks of which the same is true.
const FOREIGN: [&str; 5] =
    ["system", "anthropic_version", "anthropic_beta", "context_management", "stop_sequences"];
const FOREIGN_BLOCKS: [&str; 4] = ["tool_use", "tool_result", "thinking", "redacted_thinking"];
/// Keys of files that hold the record of an agent's run (a trajectory), and not a request.
const TRAJECTORY: [&str; 4] = ["info", "trajectory_format", "trajectory", "history"];
const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];

/// The members that a request may have.
const PARAMETERS: [&str; 35] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// Keys under which vendors put the reasoning of a response.
pub const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];

/// Whether the bytes are a request of this API, or the beginning of one. All of this must hold:
///
/// - It is one object with `messages`, and nothing follows the object.
/// - It has no key, block or tool of Anthropic's Messages, and no key of a file that records an
///   agent's run (`TRAJECTORY`).
/// - Each message has one of `ROLES`; or the object has a model, a message of the user, and no
///   other keys than those of a request.
/// - With `max_tokens` and a Claude model, which Anthropic's requests have as well, it also has a
///   role, a tool or a call of this API.
pub fn sniff(head: &[u8]) -> bool {
    let Some(seen) = crate::skim(head) else { return false };
    let foreign = seen.has_any(&FOREIGN)
        || seen.has_any(&TRAJECTORY)
        || FOREIGN_BLOCKS.iter().any(|kind| seen.kinds.contains(*kind))
        || seen.tools.contains("input_schema");
    let claude = seen.has("max_tokens") && seen.model.contains("claude");
    let own = seen.members.contains("tool_calls")
        || seen.tools.contains("function")
        || ["developer", "tool", "system"].iter().any(|role| seen.roles.contains(*role));
    // A request with an unknown role is recognised, so that the check of the invariants can report
    // the role. An object that also has a key which no request has may be an agent's file.
    let is_request = seen.has("model")
        && seen.roles.contains("user")
        && seen.keys.iter().all(|key| PARAMETERS.contains(&key.as_str()));
    let roles = is_request || seen.roles.iter().all(|role| ROLES.contains(&role.as_str()));
    !seen.more
        && !foreign
        && !seen.roles.is_empty()
        && roles
        && (own || !claude)
        && seen.has("messages")
}

/// Reads a request body.
pub fn body(body: &mut Body<'_>, root: &Value<'_>) {
    body.model_and_tools(root);
    messages(body, root.list_of("messages"));
}

/// Reads the messages of a request.
pub fn messages(body: &mut Body<'_>, messages: &[Value<'_>]) {
    let prompts =
        messages.iter().take_while(|it| it.is("role", "system") || it.is("role", "developer"));
    let prompts = prompts.count();
    let last = messages.iter().rposition(|it| it.is("role", "user")).unwrap_or(0);
    for (idx, message) in messages.iter().enumerate() {
        let role = message.text_of("role").unwrap_or_default();
        match &*role {
            "system" | "developer" if idx < prompts => {
                body.prompt(message, crate::content(message, piece))
            }
            "user" => {
                body.say(message, Role::User, crate::content(message, piece));
            }
            "tool" => {
                body.say(message, Role::Tool, vec![Block::Output(output(message))]);
            }
            // Some vendors require the reasoning after the last user message, so only earlier
            // reasoning may be removed.
            "assistant" => {
                let blocks = response(message, idx < last);
                body.say(message, Role::Assistant, blocks);
            }
            _ => {
                body.say(message, Role::System, crate::content(message, piece));
            }
        }
    }
}

fn response(message: &Value<'_>, removable: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    for key in REASONING {
        let Some(whole) = message.get(key).filter(|whole| !whole.is_null()) else { continue };
        let text = whole.is_text().then(|| whole.to_source_text());
        blocks.push(Block::Thinking(Thinking { text, whole: whole.span(), removable }));
    }
    blocks.extend(crate::content(message, piece));
    for key in ["refusal", "function_call", "audio"] {
        let others = message.get(key).filter(|other| !other.is_null());
        blocks.extend(others.map(|other| Block::Opaque(other.span())));
    }
    let calls = message.list_of("tool_calls").iter();
    blocks.extend(calls.map(|it| call(it).map_or(Block::Opaque(it.span()), Block::Call)));
    blocks
}

fn piece(part: &Value<'_>) -> Part {
    let text = part.get("text").filter(|text| text.is_text() && part.is("type", "text"));
    match (text, image(part)) {
        (Some(text), _) => Part::Text(text.to_source_text()),
        (None, Some(image)) => Part::Image(image),
        (None, None) => Part::Opaque(part.span()),
    }
}

/// The picture in a part; `None` if the part is no picture or has a cache marker, or if the bytes
/// of the picture are not in the body.
fn image(part: &Value<'_>) -> Option<Image> {
    let data = part.get("image_url")?.get("url")?;
    crate::picture(data, part).filter(|_| part.is("type", "image_url"))
}

fn call(call: &Value<'_>) -> Option<Call> {
    let id = call.text_of("id")?;
    let (function, key) = match call.get("function") {
        Some(function) => (function, "arguments"),
        None => (call.get("custom")?, "input"),
    };
    let name = function.text_of("name")?;
    let arguments = function.get(key)?;
    Some(crate::call(&id, &name, arguments))
}

fn output(message: &Value<'_>) -> Output {
    let content = message.get("content");
    Output {
        call: message.text_of("tool_call_id").unwrap_or_default().as_ref().into(),
        parts: crate::parts(content, piece),
        whole: content.filter(|it| !it.is_null()).map(Value::span).unwrap_or_default(),
        ..Output::default()
    }
}
