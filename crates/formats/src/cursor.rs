//! Cursor: composers and bubbles of the editor's `state.vscdb`, chats of the CLI's `store.db`, and
//! the transcripts that both export. Only read.
//!
//! What they hold, and how that is known, is in `docs/formats/cursor.md`.

mod chat;
mod composer;
mod database;
mod laws;
mod message;
mod read;
mod record;
mod state;
mod text;
mod tools;
mod transcript;

pub use database::{CHAT, COMPOSERS, HEADED};

use crate::{Format, Writing};

/// Cursor's conversations, wherever they are stored.
pub const FORMAT: Format = Format {
    name: "cursor",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::ReadOnly(
        "Cursor has not been seen to take up a conversation that something else wrote",
    ),
    native: None,
    summarise: None,
    laws: &laws::CursorLaws,
    // Cursor speaks to every provider; of these, Anthropic's newest models bind their reasoning.
    thinking_is_bound: crate::claude::thinking_is_bound,
};
