//! The answer of an API, and what all APIs share.

use serde_json::Value;

/// An answer before it is sent.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self { status, content_type: "application/json", body: body.to_string() }
    }

    pub(crate) fn stream(body: String) -> Self {
        Self { status: 200, content_type: "text/event-stream", body }
    }
}

/// A rough count of tokens for usage figures: a token for every four bytes of JSON.
pub(crate) fn rough_tokens(value: &Value) -> usize {
    value.to_string().len().div_ceil(4)
}

/// An identifier that depends only on its three arguments: the same history gives the same
/// identifier again, and another history gives another one.
pub(crate) fn identifier(prefix: &str, history: &Value, number: usize) -> String {
    let hash = blake3::hash(format!("{number}:{history}").as_bytes());
    format!("{prefix}{}", &hash.to_hex()[..24])
}
