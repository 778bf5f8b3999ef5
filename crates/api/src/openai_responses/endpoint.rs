//! `POST /v1/responses`: <https://platform.openai.com/docs/api-reference/responses>.

use super::make;
use crate::{Endpoint, Framing, Options, tools};

/// OpenAI's own service.
pub const ENDPOINT: Endpoint = Endpoint {
    path: |_, _| "responses".into(),
    headers: &[],
    key: ("authorization", "Bearer "),
    model_in_body: true,
    members: "",
    framing: Framing::Events,
};

/// Tells the service not to store the response. If the model reasons and has tools, also requests
/// its reasoning in a form that can be sent back.
pub fn options(options: &Options<'_>, _: &str) -> String {
    let stream = if options.stream { r#""stream":true,"# } else { "" };
    let sealed = options.reasons && !options.tools.is_empty();
    let include = if sealed { r#""include":["reasoning.encrypted_content"],"# } else { "" };
    let tools = tools(options.tools, make::tool);
    format!(r#""max_output_tokens":{},"store":false,{include}{stream}{tools}"#, options.max_tokens)
}
