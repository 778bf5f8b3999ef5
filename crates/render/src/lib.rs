//! Formats sessions for people: as HTML, Markdown, terminal text, or JSON.
//!
//! A [`StorySession`] is a session with the settings of its display, and a [`Story`] divides it
//! into turns, steps and answers. [`markdown`], [`terminal`], [`json`] and [`Html`] turn a story
//! into text. How a tool call is shown depends on the kind of the tool, never on an agent's name
//! for it.
//!
//! All text in a session is untrusted. In HTML, this crate makes every tag, and escapes every text
//! of the session; in a terminal, no control character of the session is printed, except line
//! feeds; in Markdown, a text cannot end the block that it is in.
//!
//! The crate also has functions that several front ends share, for example [`diff_lines`], which
//! compares two texts line by line, and [`visible`], which makes control characters visible.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use epitome_render::{Changes, Detail, Story, StorySession, markdown};
//!
//! # let sample = samples::Sample::new().user("What is in a.rs?").reply("The function `main`.");
//! let session = StorySession {
//!     agent: "pi",
//!     transcript: sample.transcript(),
//!     source: sample.source(),
//!     changes: Changes::default(),
//!     sub_agents: &BTreeMap::new(),
//!     detail: Detail::Conversation,
//!     prices: None,
//!     past: None,
//! };
//! let page = markdown(&Story::new(session));
//! assert!(page.contains("What is in a.rs?") && page.contains("The function `main`."));
//! ```
//!
//! # Absent
//!
//! - Files: a page is returned as a string, which the caller writes.
//! - Redaction and compaction: a session is shown as it is passed in. `epitome::render` does both
//!   first.
//! - Layout of lists, plans and settings: `epitome-cli` and `epitome-web`.

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
    Figures, Html, Index, Listing, PageName, Plot, SCRIPT, STYLE, Series, SeriesStyle, Sheet,
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
pub use texts::{SessionText, SessionTextKind, session_texts};
pub use time::{display as minute, parse as moment};
pub use visible::{inert_json, keep_styles, visible};
