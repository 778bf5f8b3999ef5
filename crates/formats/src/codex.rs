//! Codex: rollouts, JSON lines of `{timestamp, type, payload}`.
//!
//! What the records mean, and how that was found, is in `docs/formats/codex.md`.

mod append;
mod hook;
mod items;
mod laws;
mod make;
mod origin;
mod raw;
mod read;
mod rewrite;
mod script;
mod summarise;
mod tools;

pub(crate) use hook::HOOK;
pub use make::make;
pub use origin::{Base, Origin, origin};

use epitome_model::encode;

use crate::write::{Gone, Shapes, literal};
use crate::{Append, CopiesBehind, Format, Native, Write, Writing};

/// Codex's rollouts, with and without ordinals.
pub const FORMAT: Format = Format {
    name: "codex",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(SPLICES),
    native: Some(Native::Append(Append {
        write: append::append,
        passed_over: |_| None,
        reaches: |_, _| true,
        copies: CopiesBehind::AreNotSaid,
        // Codex's index of what it shows points into the file.
        by_default: true,
    })),
    summarise: Some(summarise::summarise),
    laws: &laws::CodexLaws,
    thinking_is_bound: |_| false,
};

const SPLICES: Write = rewrite::rewrite;

const SHAPES: Shapes = Shapes {
    output: literal,
    block: text_part,
    // An item of a kind that Codex does not know is not sent.
    thinking: Gone::Instead(r#"{"type":"other"}"#),
};

fn text_part(text: &str) -> String {
    format!(r#"{{"type":"input_text","text":{}}}"#, encode(text))
}

#[cfg(test)]
mod tests;
