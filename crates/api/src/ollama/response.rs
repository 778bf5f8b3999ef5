//! A response of `/api/chat`: <https://github.com/ollama/ollama/blob/main/docs/api.md>.

use epitome_json::Value;
use epitome_model::{StopReason, TokenUsage, Tokens, encode};

use crate::response::{Parsed, count, raw};

pub(super) fn parse(root: &Value<'_>) -> Option<Parsed> {
    let message = root.get("message").filter(|message| message.is_object())?;
    let stop = root.text_of("done_reason").map(|reason| match &*reason {
        "stop" => StopReason::End,
        "length" => StopReason::Length,
        other => StopReason::Other(other.to_owned()),
    });
    let usage = count(Some(root), "prompt_eval_count").map(|input| TokenUsage {
        input,
        cached: Tokens(0),
        cache_written: Tokens(0),
        output: count(Some(root), "eval_count").unwrap_or_default(),
    });
    let messages = self::message(message).into_iter().collect();
    Some(Parsed { messages, model: root.text_of("model").map(String::from), stop, usage })
}

/// A message of Chat Completions with the same content; `None` if it is empty.
fn message(message: &Value<'_>) -> Option<String> {
    let calls = message.list_of("tool_calls").iter().enumerate();
    let calls: Vec<String> = calls.filter_map(|(idx, it)| call(idx, it)).collect();
    let texts = [("content", "content"), ("reasoning", "thinking")];
    let texts = texts.into_iter().filter_map(|(key, of)| {
        let text = message.text_of(of).filter(|text| !text.is_empty())?;
        Some(format!(r#""{key}":{}"#, encode(&text)))
    });
    let mut members: Vec<String> = texts.collect();
    if !calls.is_empty() {
        members.push(format!(r#""tool_calls":[{}]"#, calls.join(",")));
    }
    let says = !members.is_empty();
    says.then(|| format!(r#"{{"role":"assistant",{}}}"#, members.join(",")))
}

/// A call in the form of Chat Completions, with its arguments as a string; `None` if it names no
/// function. A call without an id, as older versions of Ollama send it, gets an id from its index.
fn call(idx: usize, call: &Value<'_>) -> Option<String> {
    let function = call.get("function")?;
    let id = call.text_of("id").map_or_else(|| format!("call_{idx}"), String::from);
    let arguments = function.get("arguments").map_or_else(|| "{}".to_owned(), raw);
    let id = encode(&id);
    let name = encode(&function.text_of("name")?);
    let function = format!(r#"{{"name":{name},"arguments":{}}}"#, encode(&arguments));
    Some(format!(r#"{{"id":{id},"type":"function","function":{function}}}"#))
}
