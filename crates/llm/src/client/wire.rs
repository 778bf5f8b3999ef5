//! What is sent to whom, and where in an answer its words stand.
//!
//! Each wire as its provider documents it: Anthropic <https://docs.claude.com/en/api/messages>,
//! OpenAI <https://platform.openai.com/docs/api-reference/responses> and `/chat`, Google
//! <https://ai.google.dev/api/generate-content>, Ollama
//! <https://github.com/ollama/ollama/blob/main/docs/api.md>.

use epitome_model::Tokens;
use epitome_passes::{Ask, Stopped, Used};
use serde_json::{Value, json};

use crate::key::Key;
use crate::name::{ModelName, Provider};

/// How a provider is spoken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Messages,
    Responses,
    Chat,
    Generate,
    Ollama,
}

/// What stands in an answer.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Its words; nothing, if it is no answer.
    pub(super) text: Option<String>,
    /// Whether it calls a tool.
    pub(super) calls: bool,
    /// Why it ended.
    pub(super) stopped: Option<Stopped>,
    pub(super) used: Option<Used>,
}

/// No model needs more bytes of a text for a token; a window that is asked for is this large.
const BYTES_OF_A_TOKEN: u64 = 3;

impl Wire {
    pub(super) fn of(provider: Provider) -> Wire {
        match provider {
            Provider::Anthropic => Wire::Messages,
            Provider::OpenAi => Wire::Responses,
            Provider::Google => Wire::Generate,
            Provider::Ollama => Wire::Ollama,
            Provider::Groq | Provider::OpenRouter | Provider::Compatible => Wire::Chat,
        }
    }

    /// The path behind the address.
    pub(super) fn path(self, model: &str) -> String {
        match self {
            Wire::Messages => "messages".into(),
            Wire::Responses => "responses".into(),
            Wire::Chat => "chat/completions".into(),
            Wire::Generate => format!("models/{model}:generateContent"),
            Wire::Ollama => "api/chat".into(),
        }
    }

    /// The headers that are this wire's own.
    pub(super) fn headers(self, key: Option<&Key>) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        let mut with = |name, value| headers.push((name, value));
        if self == Wire::Messages {
            with("anthropic-version", "2023-06-01".to_owned());
        }
        if let Some(key) = key {
            match self {
                Wire::Messages => with("x-api-key", key.reveal().to_owned()),
                Wire::Generate => with("x-goog-api-key", key.reveal().to_owned()),
                Wire::Responses | Wire::Chat | Wire::Ollama => {
                    with("authorization", format!("Bearer {}", key.reveal()));
                }
            }
        }
        headers
    }

    /// The body of a question whose answer may have `limit` tokens.
    pub(super) fn body(self, name: &ModelName, ask: &Ask, limit: u64) -> Value {
        let model = &name.model;
        let Ask { system, prompt, .. } = ask;
        let messages = || {
            let system = (!system.is_empty()).then(|| json!({"role": "system", "content": system}));
            let user = json!({ "role": "user", "content": prompt });
            system.into_iter().chain([user]).collect::<Vec<Value>>()
        };
        match self {
            Wire::Messages => json!({
                "model": model, "max_tokens": limit, "system": system,
                "messages": [{ "role": "user", "content": prompt }],
            }),
            // Nothing of it is kept by the service.
            Wire::Responses => json!({
                "model": model, "max_output_tokens": limit, "store": false,
                "instructions": system,
                "input": [{
                    "role": "user", "content": [{ "type": "input_text", "text": prompt }],
                }],
            }),
            Wire::Chat => {
                json!({ "model": model, "max_tokens": limit, "messages": messages() })
            }
            Wire::Generate => json!({
                "systemInstruction": { "parts": [{ "text": system }] },
                "contents": [{ "role": "user", "parts": [{ "text": prompt }] }],
                "generationConfig": { "maxOutputTokens": limit },
            }),
            // It cuts what is longer than its window without a word; so its window is asked for.
            Wire::Ollama => {
                let bytes = (system.len() + prompt.len()) as u64;
                let window = (bytes / BYTES_OF_A_TOKEN + limit).next_multiple_of(4_096);
                let options = json!({ "num_predict": limit, "num_ctx": window });
                json!({
                    "model": model, "stream": false, "messages": messages(), "options": options,
                })
            }
        }
    }

    /// What an answer says.
    pub(super) fn said(self, body: &Value) -> Said {
        match self {
            Wire::Messages => messages(body),
            Wire::Responses => responses(body),
            Wire::Chat => chat(body),
            Wire::Generate => generate(body),
            Wire::Ollama => ollama(body),
        }
    }
}

fn messages(body: &Value) -> Said {
    let Some(content) = body["content"].as_array() else { return Said::default() };
    let usage = &body["usage"];
    let used = count(usage, "input_tokens").map(|input| Used {
        input,
        cached: count(usage, "cache_read_input_tokens").unwrap_or_default(),
        cache_written: count(usage, "cache_creation_input_tokens").unwrap_or_default(),
        output: count(usage, "output_tokens").unwrap_or_default(),
    });
    Said {
        text: Some(texts(content, |block| block["type"] == "text")),
        calls: content.iter().any(|block| block["type"] == "tool_use"),
        stopped: body["stop_reason"].as_str().map(|reason| match reason {
            "end_turn" | "stop_sequence" => Stopped::End,
            "max_tokens" | "model_context_window_exceeded" => Stopped::Length,
            "tool_use" => Stopped::Call,
            "refusal" => Stopped::Refused,
            other => Stopped::Other(other.to_owned()),
        }),
        used,
    }
}

fn responses(body: &Value) -> Said {
    let Some(items) = body["output"].as_array() else { return Said::default() };
    let parts = items.iter().filter_map(|item| item["content"].as_array()).flatten();
    let parts: Vec<Value> = parts.cloned().collect();
    let declined = parts.iter().any(|part| part["type"] == "refusal");
    let stopped = match (body["status"].as_str(), &body["incomplete_details"]["reason"]) {
        _ if declined => Some(Stopped::Refused),
        (Some("completed"), _) => Some(Stopped::End),
        (Some("incomplete"), reason) if reason == "max_output_tokens" => Some(Stopped::Length),
        (Some("incomplete"), reason) if reason == "content_filter" => Some(Stopped::Refused),
        (other, _) => other.map(|other| Stopped::Other(other.to_owned())),
    };
    let is_call = |item: &Value| item["type"].as_str().is_some_and(|it| it.ends_with("_call"));
    let details = &body["usage"]["input_tokens_details"];
    Said {
        text: Some(texts(&parts, |part| part["type"] == "output_text")),
        calls: items.iter().any(is_call),
        stopped,
        used: used(&body["usage"], "input_tokens", "output_tokens", details),
    }
}

fn chat(body: &Value) -> Said {
    let choice = &body["choices"][0];
    let Some(message) = choice["message"].as_object() else { return Said::default() };
    let text = message.get("content").and_then(Value::as_str).unwrap_or_default();
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let details = &body["usage"]["prompt_tokens_details"];
    Said {
        text: Some(text.to_owned()),
        calls: calls.is_some_and(|calls| !calls.is_empty()),
        stopped: choice["finish_reason"].as_str().map(|reason| match reason {
            "stop" => Stopped::End,
            "length" => Stopped::Length,
            "tool_calls" | "function_call" => Stopped::Call,
            "content_filter" => Stopped::Refused,
            other => Stopped::Other(other.to_owned()),
        }),
        used: used(&body["usage"], "prompt_tokens", "completion_tokens", details),
    }
}

fn generate(body: &Value) -> Said {
    let usage = &body["usageMetadata"];
    let cached = count(usage, "cachedContentTokenCount").unwrap_or_default();
    let thought = count(usage, "thoughtsTokenCount").unwrap_or_default();
    let used = count(usage, "promptTokenCount").map(|input| Used {
        input: input - cached,
        cached,
        cache_written: Tokens(0),
        output: count(usage, "candidatesTokenCount").unwrap_or_default() + thought,
    });
    if body["promptFeedback"]["blockReason"].is_string() {
        let stopped = Some(Stopped::Refused);
        return Said { text: Some(String::new()), calls: false, stopped, used };
    }
    let candidate = &body["candidates"][0];
    let none = Vec::new();
    let parts = candidate["content"]["parts"].as_array().unwrap_or(&none);
    let stopped = candidate["finishReason"].as_str().map(|reason| match reason {
        "STOP" => Stopped::End,
        "MAX_TOKENS" => Stopped::Length,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => Stopped::Call,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => Stopped::Refused,
        other => Stopped::Other(other.to_owned()),
    });
    Said {
        text: candidate.is_object().then(|| texts(parts, |part| part["thought"] != true)),
        calls: parts.iter().any(|part| part["functionCall"].is_object()),
        stopped,
        used,
    }
}

fn ollama(body: &Value) -> Said {
    let Some(message) = body["message"].as_object() else { return Said::default() };
    let text = message.get("content").and_then(Value::as_str).unwrap_or_default();
    let calls = message.get("tool_calls").and_then(Value::as_array);
    Said {
        text: Some(text.to_owned()),
        calls: calls.is_some_and(|calls| !calls.is_empty()),
        stopped: body["done_reason"].as_str().map(|reason| match reason {
            "stop" => Stopped::End,
            "length" => Stopped::Length,
            other => Stopped::Other(other.to_owned()),
        }),
        used: used(body, "prompt_eval_count", "eval_count", &Value::Null),
    }
}

fn texts(parts: &[Value], wanted: impl Fn(&Value) -> bool) -> String {
    parts.iter().filter(|part| wanted(part)).filter_map(|part| part["text"].as_str()).collect()
}

fn count(object: &Value, key: &str) -> Option<Tokens> {
    object[key].as_u64().map(Tokens)
}

/// Where the input holds what came from a cache.
fn used(usage: &Value, input: &str, output: &str, details: &Value) -> Option<Used> {
    let cached = count(details, "cached_tokens").unwrap_or_default();
    let written = count(details, "cache_write_tokens").unwrap_or_default();
    Some(Used {
        input: count(usage, input)? - cached - written,
        cached,
        cache_written: written,
        output: count(usage, output).unwrap_or_default(),
    })
}
