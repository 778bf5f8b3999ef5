//! `POST /v1/messages`: <https://docs.claude.com/en/api/messages>.

use super::make;
use crate::{Endpoint, Framing, Options, tools};

/// The endpoint of Anthropic's own service.
pub const ENDPOINT: Endpoint = Endpoint {
    path: |_, _| "messages".into(),
    headers: &[("anthropic-version", "2023-06-01")],
    key: ("x-api-key", ""),
    model_in_body: true,
    members: "",
    framing: Framing::Events,
};

pub fn options(options: &Options<'_>, _: &str) -> String {
    let stream = if options.stream { r#""stream":true,"# } else { "" };
    let tools = tools(options.tools, make::tool);
    format!(r#""max_tokens":{},{stream}{tools}"#, options.max_tokens)
}
