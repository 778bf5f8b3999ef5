//! `POST /v1/chat/completions`: <https://platform.openai.com/docs/api-reference/chat>.

use super::make;
use crate::{Endpoint, Framing, Options, tools};

/// OpenAI's own service; Groq, OpenRouter and many others are called in the same way.
pub const ENDPOINT: Endpoint = Endpoint {
    path: |_, _| "chat/completions".into(),
    headers: &[],
    key: ("authorization", "Bearer "),
    model_in_body: true,
    members: "",
    framing: Framing::Events,
};

pub fn options(options: &Options<'_>, _: &str) -> String {
    // Without this option a stream does not report the usage.
    let usage = r#""stream":true,"stream_options":{"include_usage":true},"#;
    let stream = if options.stream { usage } else { "" };
    let tools = tools(options.tools, make::tool);
    format!(r#""max_tokens":{},{stream}{tools}"#, options.max_tokens)
}
