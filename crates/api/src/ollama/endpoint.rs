//! `POST /api/chat`: <https://github.com/ollama/ollama/blob/main/docs/api.md>.

use crate::{Endpoint, Framing, Options, openai_chat, tools};

/// An Ollama server, on this machine or another.
pub const ENDPOINT: Endpoint = Endpoint {
    path: |_, _| "api/chat".into(),
    headers: &[],
    key: ("authorization", "Bearer "),
    model_in_body: true,
    members: "",
    framing: Framing::Lines,
};

/// The window is made so large that it has one token for every three bytes of the request body.
/// Most texts have fewer tokens than that.
const BYTES_OF_A_TOKEN: u64 = 3;

/// Makes the window of the model (`num_ctx`) large enough for the request and its response: Ollama
/// silently truncates a request that does not fit into the window.
pub fn options(options: &Options<'_>, body: &str) -> String {
    let limit = options.max_tokens;
    let window = (body.len() as u64 / BYTES_OF_A_TOKEN + limit).next_multiple_of(4_096);
    let tools = tools(options.tools, openai_chat::tool);
    let stream = options.stream;
    let sizes = format!(r#"{{"num_predict":{limit},"num_ctx":{window}}}"#);
    format!(r#""stream":{stream},"options":{sizes},{tools}"#)
}
