//! Cursor: composers and bubbles of the editor's `state.vscdb`, chats of the CLI's `store.db`, and
//! the transcripts that both export. Read-only.
//!
//! `docs/formats/cursor.md` describes them, and how that was found out.

mod chat;
mod composer;
mod database;
mod invariants;
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
        "it is not known whether Cursor continues a conversation that another program has changed",
    ),
    native: None,
    summarise: None,
    invariants: &invariants::CursorInvariants,
    make: None,
    // Cursor uses models of all providers; Anthropic's newest bind their reasoning.
    thinking_is_bound: epitome_api::anthropic::thinking_is_bound,
    databases: &[&HEADED, &COMPOSERS, &CHAT],
    files: None,
};
