//! The folder of JSON files that releases before 1.2 write, read as an export.

use epitome_json::Cursor;

use super::raw;
use crate::files::{Files, Frame};

/// `storage/`: one file per session, message and part.
pub static FILES: Files = Files {
    agent: "opencode",
    sessions: "session",
    messages: "message",
    parts: "part",
    parent,
    frame: Frame {
        session: "{\"info\":",
        messages: ",\"messages\":[",
        message: "{\"info\":",
        parts: ",\"parts\":[",
        message_end: "]}",
        end: "]}",
    },
    read_only: "OpenCode 1.18 reads a database instead, and no release that reads the files was \
                tried",
};

fn parent(session: &[u8]) -> Option<String> {
    let place = raw::Row::read(&mut Cursor::new(session)).ok()?.parent?;
    Some(epitome_model::decode(&session[place]).into_owned())
}
