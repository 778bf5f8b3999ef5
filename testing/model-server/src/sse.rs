//! Server-sent events. All events of a response are written in one piece: agents see no difference,
//! and tests are deterministic.

use serde_json::Value;

/// Texts and arguments are split into deltas of this many characters, so that a client must join
/// them.
const DELTA_CHARS: usize = 2_000;

/// An event stream under construction.
#[derive(Debug, Default)]
pub(crate) struct Events(String);

impl Events {
    /// Appends an event named by its own `type`, as Anthropic does.
    pub(crate) fn named(&mut self, data: &Value) {
        let name = data["type"].as_str().expect("events of this wire carry a type");
        self.0.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    }

    /// Appends an event without a name, as OpenAI does.
    pub(crate) fn data(&mut self, data: &dyn std::fmt::Display) {
        self.0.push_str(&format!("data: {data}\n\n"));
    }

    /// The stream's bytes.
    pub(crate) fn finish(self) -> String {
        self.0
    }
}

/// Splits a text into deltas; an empty text has none.
pub(crate) fn deltas(text: &str) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.chars().collect();
    let parts: Vec<String> = chars.chunks(DELTA_CHARS).map(|part| part.iter().collect()).collect();
    parts.into_iter()
}
