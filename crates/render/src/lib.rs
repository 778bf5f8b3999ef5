//! Formats sessions for people: as HTML, Markdown, terminal text, or JSON.
//!
//! All text in a session is untrusted. In HTML, only the templates escape it; in a terminal, no
//! control character of it is printed; in Markdown, it cannot end the block it is in.
//!
//! # Absent
//!
//! Files: a page is returned as a string, which the caller writes. Names of agents: cards depend on
//! the kinds of tools. Redaction and compaction: a session is shown as it is passed.

// Pure crates do no input or output: `clippy.toml` names what they must not use.
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
