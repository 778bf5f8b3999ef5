//! What agents store: one folder an agent, each with what it spells (`raw`), how it is read
//! (`read`), how edits are written (`write`) and what its wire refuses (`laws`).
//!
//! A new format is a folder and a line in [`FORMATS`]. Agents' JSON keys and tool names are spelled
//! here and nowhere else.
//!
//! # Absent
//!
//! No files and no folders: a reader gets a [`Source`]. No policy: what may go is decided in
//! passes.

// Floors 1 and 2 do no IO: `clippy.toml` names what they do without.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod accounting;
pub mod amp;
pub mod api;
mod arguments;
pub mod claude;
pub mod codex;
pub mod copilot;
pub mod cursor;
pub mod database;
mod document;
pub mod epitome;
mod fault;
pub mod files;
pub mod gemini;
mod hook;
pub mod json;
mod lines;
pub mod miniswe;
pub mod opencode;
mod pairing;
pub mod pi;
mod place;
mod port;
pub mod qwen;
mod records;
pub mod sweagent;
mod title;
mod tree;
mod unknown;
mod write;

pub use api::message::{MessageParser, NotUnderstood};
pub use api::{APIS, Api, Left as LeftBehind, Made, SummaryAs};
pub use fault::{Fault, Faults};
pub use hook::{Ended, Hook, Setting, command, ended};
pub use lines::{Line, lines};
pub use port::Given;
pub use write::Unwritable;

use epitome_model::{At, Edit, Laws, Source, Splice, Tokens, Transcript};

/// How sessions of one agent are known, read, written and checked.
pub struct Format {
    /// The agent's name: `pi`, `claude`.
    pub name: &'static str,
    /// Whether a source that begins with these bytes is of this format.
    pub sniff: fn(head: &[u8]) -> bool,
    /// Reads a source. Readers never fail: what they cannot read is kept, and told to `faults`.
    pub read: fn(source: &dyn Source, faults: &mut dyn Faults) -> Transcript,
    /// How edits are written, or why they are not.
    pub writing: Writing,
    /// The agent's own way to shorten a history, where it has one.
    pub native: Option<Native>,
    /// How the agent itself writes that a summary stands for the beginning of a history.
    pub summarise: Option<Summarise>,
    /// What the agent and its wire refuse.
    pub laws: &'static dyn Laws,
    /// Whether reasoning of this model is valid only while everything before it is as it was when
    /// it was made. Then an edit takes all reasoning after it along.
    pub thinking_is_bound: fn(model: &str) -> bool,
}

/// Whether sessions of a format are written.
#[derive(Clone, Copy, Debug)]
pub enum Writing {
    /// The replacements of bytes that carry out edits, in order and apart from each other.
    Splices(Write),
    /// They are only read: why, as a clause that follows "sessions of NAME are only read: ".
    ReadOnly(&'static str),
}

/// Turns edits into replacements of bytes, each with the place of its edit.
pub type Write = fn(&Transcript, &dyn Source, &[Edit]) -> Result<Vec<(Splice, At)>, Unwritable>;

/// The agent's own way to shorten a history.
#[derive(Clone, Copy)]
pub enum Native {
    /// By records behind the end.
    Append(Append),
    /// By marks on results.
    Mark(Mark),
}

impl Native {
    /// Whether a session is compacted so when nothing else is asked for.
    pub fn is_default(&self) -> bool {
        match self {
            Native::Append(append) => append.by_default,
            // What is marked stays where it is, and a model cannot ask for it by name.
            Native::Mark(_) => false,
        }
    }
}

/// Records at the end of the file which, for a resume, say something else in the place of what
/// stands before. Nothing that stands there changes.
#[derive(Clone, Copy)]
pub struct Append {
    /// Turns edits of what a resume sends into bytes behind the end of the file.
    pub write: WriteBehind,
    /// Why the agent passes over such records of this session, if it does.
    pub passed_over: fn(&Transcript) -> Option<&'static str>,
    /// Whether such records can say something else in the place of this item.
    pub reaches: fn(&Transcript, item: usize) -> bool,
    /// What becomes of the copies in what such a record says again.
    pub copies: CopiesBehind,
    /// Whether a session is compacted so when nothing else is asked for.
    pub by_default: bool,
}

/// What becomes of the copies of an entry that is said again behind the end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopiesBehind {
    /// Only what a model sees is said again.
    AreNotSaid,
    /// The whole record is written again: edits of its copies are carried out as well.
    GoAlong,
}

/// Turns edits into bytes behind the end of a file.
pub type WriteBehind = fn(&Transcript, &dyn Source, &[Edit]) -> Result<Vec<u8>, Unwritable>;

/// A mark in the record of a result, by which the agent sends words of its own in its place. What
/// the result said stays where it is.
#[derive(Clone, Copy)]
pub struct Mark {
    /// What the agent sends in the place of a marked result.
    pub sent: &'static str,
    /// The replacements of bytes that mark the results at the places of the edits.
    pub write: Write,
    /// Whether a mark can stand for this result.
    pub reaches: fn(&Transcript, &dyn Source, At) -> bool,
}

/// A summary of the beginning of a history.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    /// What it says.
    pub text: &'a str,
    /// The end of the context, which is sent behind it as it is: indices into
    /// `Transcript::items`.
    pub kept: &'a [usize],
    /// What a resume sent without it.
    pub tokens: Tokens,
}

/// The bytes behind the end of a session that make a summary stand for all but the kept end of its
/// context; or why there can be none.
pub type Summarise = fn(&Transcript, &dyn Source, &Summary<'_>) -> Result<Vec<u8>, &'static str>;

/// How each agent that has hooks is told to call a program when a session ends.
pub static HOOKS: &[&Hook] =
    &[&claude::HOOK, &codex::HOOK, &pi::HOOK, &opencode::HOOK, &gemini::HOOK];

/// Every kind of database with sessions, in the order in which they are tried.
pub static DATABASES: &[&database::Database] =
    &[&opencode::DATABASE, &cursor::HEADED, &cursor::COMPOSERS, &cursor::CHAT];

/// Every kind of store that spreads a session over many files.
pub static STORES: &[&files::Files] = &[&opencode::FILES];

/// Every format, in the order in which they are tried.
pub static FORMATS: &[Format] = &[
    pi::FORMAT,
    qwen::FORMAT,
    claude::FORMAT,
    codex::FORMAT,
    opencode::FORMAT,
    gemini::FORMAT,
    cursor::FORMAT,
    epitome::FORMAT,
    copilot::FORMAT,
    amp::FORMAT,
    miniswe::FORMAT,
    sweagent::FORMAT,
    api::anthropic::FORMAT,
    api::openai_chat::FORMAT,
    api::openai_responses::FORMAT,
    api::gemini_api::FORMAT,
];

/// An agent that a session can be carried to.
pub struct Target {
    /// How its sessions are read and checked; its name on the command line.
    pub format: &'static Format,
    /// A session that says what a transcript's context says.
    pub make: fn(&Transcript, &dyn Source, &Given<'_>) -> Made,
    /// The command that goes on with a session; its id is the last word.
    pub resume: &'static [&'static str],
}

/// Every agent that a session can be carried to.
pub static TARGETS: &[Target] = &[
    Target { format: &claude::FORMAT, make: claude::make, resume: &["claude", "--resume"] },
    Target { format: &codex::FORMAT, make: codex::make, resume: &["codex", "resume"] },
    Target { format: &pi::FORMAT, make: pi::make, resume: &["pi", "--session"] },
];

/// The format of a source that begins with `head` (64 KiB are enough).
///
/// ```
/// let head = br#"{"type":"session","version":3,"id":"s","cwd":"/p"}"#;
/// assert_eq!(epitome_formats::sniff(head).map(|format| format.name), Some("pi"));
/// ```
pub fn sniff(head: &[u8]) -> Option<&'static Format> {
    FORMATS.iter().find(|format| (format.sniff)(head))
}

/// The format of an agent.
pub fn named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}
