//! Bodies of requests as sessions: how they are recognised, read, edited and checked.

use epitome_json::write::Write;
use epitome_model::{Faults, Invariants, Source, Transcript, encode};

/// The bodies of requests to one API.
///
/// `epitome-formats` lists them next to the sessions of agents.
pub struct BodyFormat {
    /// The name of the format: `anthropic`, `gemini-request`.
    pub name: &'static str,
    /// Whether a source that begins with these bytes is a body of this API.
    pub sniff: fn(head: &[u8]) -> bool,
    /// Reads a body. Reading never fails: what cannot be parsed is kept and reported to `faults`.
    pub read: fn(source: &dyn Source, faults: &mut dyn Faults) -> Transcript,
    /// Turns edits of a transcript into replacements of bytes of the body.
    pub write: Write,
    /// The invariants of a body: what the API refuses.
    pub invariants: &'static dyn Invariants,
    /// Whether reasoning of this model is valid only while everything before it is unchanged.
    pub thinking_is_bound: fn(model: &str) -> bool,
}

/// A content block with a text, as Anthropic's and OpenAI's APIs take it.
pub fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, encode(text))
}
