//! What an API answers, and what all of them share of it.

use serde_json::Value;

/// An answer before it goes on the wire.
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

/// A rough count of tokens, enough for usage figures: four bytes of JSON each.
pub(crate) fn rough_tokens(value: &Value) -> usize {
    value.to_string().len().div_ceil(4)
}

/// An identifier that depends on the history alone, so that a replay gives the same and a longer
/// history never repeats one.
pub(crate) fn identifier(prefix: &str, history: &Value, number: usize) -> String {
    let hash = blake3::hash(format!("{number}:{history}").as_bytes());
    format!("{prefix}{}", &hash.to_hex()[..24])
}
