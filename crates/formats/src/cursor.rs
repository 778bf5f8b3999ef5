//! Cursor: conversations of the editor (composers, which consist of bubbles) in its `state.vscdb`,
//! chats of the CLI in its `store.db`, and the transcripts that both export. Read-only.
//!
//! `docs/formats/cursor.md` describes them, and how that was found out.

mod chat;
mod composer;
mod database;
mod message;
mod read;
mod record;
mod state;
mod text;
mod tools;
mod transcript;

pub use database::{CHAT, COMPOSERS, HEADED};

use epitome_model::Invariant;

use crate::Format;
use crate::pairing::{self, RecordInvariants};

/// Cursor's conversations, wherever they are stored.
pub const FORMAT: Format = Format {
    invariants: &INVARIANTS,
    databases: &[&HEADED, &COMPOSERS, &CHAT],
    ..Format::read_only(
        "cursor",
        read::sniff,
        read::read,
        "it is not known whether Cursor continues a conversation that another program has changed",
    )
};

/// Cursor's servers make the requests, from more than is stored on this machine. What they send for
/// a cancelled call without a result is not known, so the position of results is not checked.
const INVARIANTS: RecordInvariants = RecordInvariants {
    check: |transcript, _| {
        let mut violations = pairing::violations(transcript);
        violations.retain(|violation| violation.invariant != Invariant::Position);
        violations
    },
    accounting: &[],
};
