//! Codex: rollouts, JSON lines of `{timestamp, type, payload}`.
//!
//! `docs/formats/codex.md` describes the records, and how that was found out.

mod additions;
mod address;
mod append;
mod billed;
mod hook;
mod invariants;
mod items;
mod make;
mod origin;
mod raw;
mod read;
mod rewrite;
mod script;
mod summarise;
mod tools;

pub use additions::{COMMAND, MCP};
pub use address::ADDRESS;
pub use hook::HOOK;
pub use origin::{Base, Origin, origin};

use epitome_json::write::{BlockRemainder, Shapes, literal};
use epitome_model::encode;

use crate::{Append, AppendedHiddenFields, Format, Native, Write};

/// Codex's rollouts. Their records may have numbers, in `ordinal`.
pub const FORMAT: Format = Format {
    native: Some(Native::Append(Append {
        write: append::append,
        passed_over: |_| None,
        reaches: |_, _| true,
        cuts: false,
        hidden_fields: AppendedHiddenFields::Omitted,
        originals: None,
        // Appending is the default: Codex keeps an index of offsets into the file, and these
        // offsets stay valid.
        by_default: true,
    })),
    summarise: Some(summarise::summarise),
    make: Some(make::make),
    thinking_is_bound: |_| false,
    billed: Some(billed::read_billed),
    ..Format::writable("codex", read::sniff, read::read, SPLICES, &invariants::INVARIANTS)
};

const SPLICES: Write = rewrite::rewrite;

const SHAPES: Shapes = Shapes {
    output: literal,
    block: text_part,
    // Removed reasoning becomes an item of an unknown type, which Codex does not send.
    thinking: BlockRemainder::Value(r#"{"type":"other"}"#),
};

fn text_part(text: &str) -> String {
    format!(r#"{{"type":"input_text","text":{}}}"#, encode(text))
}

#[cfg(test)]
mod tests;
