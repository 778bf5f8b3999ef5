//! A session as people read it: HTML, Markdown, a terminal's text, JSON.
//!
//! Everything in a session is hostile text. In HTML it is escaped by the templates and by nothing
//! else, in a terminal no control character of it arrives, in Markdown it cannot leave the place
//! it was given.
//!
//! # Absent
//!
//! No files: a page is returned as a text, and whoever asked writes it. No agent's names: cards
//! follow the kinds of tools. Nothing is redacted and nothing compacted here: a [`Session`] is
//! shown as it is given.

// Floors 1 and 2 do no IO: `clippy.toml` names what they do without.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod ansi;
mod call;
mod changes;
mod diff;
mod edits;
mod facts;
mod highlight;
mod html;
mod json;
mod link;
mod markdown;
mod past;
mod prices;
mod reminder;
mod shorten;
mod spent;
mod story;
mod terminal;
#[cfg(test)]
mod testing;
mod texts;
mod time;
mod todo;
mod visible;

pub use changes::Changes;
pub use diff::{DiffLine, LineChange, changed_lines, diff_lines};
pub use edits::edits;
pub use facts::Facts;
pub use highlight::{Token, highlight};
pub use html::{
    Drawn, Figures, Html, Index, Listing, PageName, Plot, SCRIPT, STYLE, Series, Sheet,
    facts_of_page, is_index_page,
};
pub use json::{Document, JsonError, from_json, json};
pub use markdown::markdown;
pub use past::{Past, PastCompaction};
pub use prices::Prices;
pub use spent::{Cost, CostFloor, RecordedRequests, RequestTotals, recorded_requests};
pub use story::{Detail, Story, StorySession, Turn};
pub use terminal::{
    Breaks, Run, clean, columns, cut_to_width, markdown_lines, terminal, width_of, wrap,
};
pub use texts::{SaidKind, SessionText, session_texts};
pub use time::{display as minute, parse as moment};
pub use visible::{inert_json, styled, visible};
