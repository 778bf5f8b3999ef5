//! `POST /v1beta/models/MODEL:generateContent`: <https://ai.google.dev/api/generate-content>.

use super::make;
use crate::{Endpoint, Framing, Options};

/// Google's Gemini API. Vertex AI has the same API at other paths, with another kind of key.
pub const ENDPOINT: Endpoint = Endpoint {
    path: |model, stream| {
        let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        format!("models/{model}:{method}")
    },
    headers: &[],
    key: ("x-goog-api-key", ""),
    model_in_body: false,
    members: "",
    framing: Framing::Events,
};

pub fn options(options: &Options<'_>, _: &str) -> String {
    let functions: Vec<String> = options.tools.iter().map(make::function).collect();
    let tools = if functions.is_empty() {
        String::new()
    } else {
        format!(r#""tools":[{{"functionDeclarations":[{}]}}],"#, functions.join(","))
    };
    format!(r#""generationConfig":{{"maxOutputTokens":{}}},{tools}"#, options.max_tokens)
}
