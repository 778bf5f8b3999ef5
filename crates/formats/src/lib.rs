//! The formats of agents' sessions: one folder per agent, with the record types (`raw`), the reader
//! (`read`), the writer of edits (`write`) and what the agent's API requires (`invariants`).
//!
//! A new format is a folder and an element of [`FORMATS`]. Agents' JSON keys and tool names are
//! only used in this crate.
//!
//! # Absent
//!
//! No files and no directories: a reader gets a [`Source`]. No policy: passes decide what may be
//! removed.

// Pure crates do no IO: `clippy.toml` names what they must not use.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod accounting;
mod addition;
pub mod amp;
mod carrier;
pub mod claude;
pub mod codex;
pub mod continuedev;
pub mod copilot;
pub mod cursor;
pub mod database;
pub mod epitome;
mod fields;
pub mod files;
pub mod gemini;
mod hook;
mod lines;
pub mod miniswe;
pub mod opencode;
mod pairing;
pub mod pi;
mod place;
mod port;
pub mod qwen;
mod records;
pub mod session;
pub mod splice;
pub mod sweagent;
mod trajectory;
mod tree;
mod unknown;

pub use addition::{Addition, AdditionForm};
pub use carrier::Capabilities;
pub use epitome_json::write::{Unwritable, Write};
pub use hook::{Ended, Hook, Setting, command, ended};
pub use lines::{Line, lines};
pub use port::Given;
pub use session::Loaded;
pub use splice::Spliced;

use epitome_api::{BodyFormat, RequestBody, anthropic, gemini_api, openai_chat, openai_responses};
use epitome_model::{At, Edit, Faults, Invariants, Source, Summary, Transcript, WriteMode};

use crate::database::Database;
use crate::files::Files;
use crate::pairing::PAIRING;

/// One agent's format: how its sessions are recognised, read, written and checked.
pub struct Format {
    /// The agent's name: `pi`, `claude`.
    pub name: &'static str,
    /// Whether a source that begins with these bytes is of this format.
    pub sniff: fn(head: &[u8]) -> bool,
    /// Reads a source. Readers never fail: what they cannot parse is kept, and reported to
    /// `faults`.
    pub read: Read,
    /// How edits are written, or why the format is read-only.
    pub writing: Writing,
    /// The agent's own way to shorten a history, if it has one.
    pub native: Option<Native>,
    /// The agent's own way to store a summary that replaces the beginning of a history.
    pub summarise: Option<Summarise>,
    /// What the agent and its API refuse.
    pub invariants: &'static dyn Invariants,
    /// Makes a session from another agent's transcript, where that is possible.
    pub make: Option<Make>,
    /// Whether reasoning of this model is valid only while everything before it is unchanged. If
    /// so, an edit removes all reasoning after it.
    pub thinking_is_bound: fn(model: &str) -> bool,
    /// The kinds of databases in which the agent keeps sessions, in the order in which they are
    /// tried.
    pub databases: &'static [&'static Database],
    /// How the agent keeps a session in many files, if it ever did.
    pub files: Option<&'static Files>,
}

/// Reads a source.
pub type Read = fn(&dyn Source, &mut dyn Faults) -> Transcript;

impl Format {
    /// For a summary of the context before `kept`: the original items to summarise, and all
    /// original items. `items` are the current ones, which are returned if the session has no
    /// originals.
    pub fn said_before(
        &self,
        source: &dyn Source,
        items: &[usize],
        kept: &[usize],
    ) -> (Vec<usize>, Vec<usize>) {
        match self.native {
            Some(Native::Append(Append { said: Some(said), .. })) => said(source, kept),
            Some(Native::Append(_) | Native::Mark(_)) | None => (items.to_vec(), items.to_vec()),
        }
    }

    /// A format without anything of its own but these.
    const fn new(
        name: &'static str,
        sniff: fn(&[u8]) -> bool,
        read: Read,
        writing: Writing,
        invariants: &'static dyn Invariants,
    ) -> Format {
        Format {
            name,
            sniff,
            read,
            writing,
            native: None,
            summarise: None,
            invariants,
            make: None,
            // Many agents use models of all providers; Anthropic's newest bind their reasoning.
            thinking_is_bound: anthropic::thinking_is_bound,
            databases: &[],
            files: None,
        }
    }

    /// A format whose sessions are edited.
    const fn writable(
        name: &'static str,
        sniff: fn(&[u8]) -> bool,
        read: Read,
        write: Write,
        invariants: &'static dyn Invariants,
    ) -> Format {
        Format::new(name, sniff, read, Writing::Splices(write), invariants)
    }

    /// A format whose sessions are only read, and why: a clause after "sessions of NAME are only
    /// read: ". Their calls must have results.
    const fn read_only(
        name: &'static str,
        sniff: fn(&[u8]) -> bool,
        read: Read,
        why: &'static str,
    ) -> Format {
        Format::new(name, sniff, read, Writing::ReadOnly(why), &PAIRING)
    }

    /// The bodies of requests to an API, as sessions.
    const fn of_bodies(bodies: &BodyFormat) -> Format {
        let BodyFormat { name, sniff, read, write, invariants, thinking_is_bound } = *bodies;
        Format { thinking_is_bound, ..Format::writable(name, sniff, read, write, invariants) }
    }
}

/// Makes a session with the content of a transcript's context.
pub type Make = fn(&Transcript, &dyn Source, &Given<'_>) -> RequestBody;

/// Whether epitome writes sessions of a format.
#[derive(Clone, Copy, Debug)]
pub enum Writing {
    /// Returns the replacements of bytes that apply edits, sorted and disjoint.
    Splices(Write),
    /// The format is read-only: the reason, as a clause after "sessions of NAME are only read: ".
    ReadOnly(&'static str),
}

/// An agent's own way to shorten a history.
#[derive(Clone, Copy)]
pub enum Native {
    /// By records appended to the file.
    Append(Append),
    /// By marks on results.
    Mark(Mark),
}

impl Native {
    /// How its edits are written.
    pub fn mode(&self) -> WriteMode {
        match self {
            Native::Append(_) => WriteMode::Append,
            Native::Mark(_) => WriteMode::Mark,
        }
    }

    /// Whether this is the default way to compact a session.
    pub fn is_default(&self) -> bool {
        match self {
            Native::Append(append) => append.by_default,
            // A marked result stays in the file, and a model cannot recall it by reference.
            Native::Mark(_) => false,
        }
    }
}

/// Records appended to the file that replace earlier records when the agent resumes. Nothing before
/// them changes.
#[derive(Clone, Copy)]
pub struct Append {
    /// Turns edits of what a resume sends into bytes to append.
    pub write: WriteBehind,
    /// Why the agent would ignore such records in this session, if it would.
    pub passed_over: fn(&Transcript) -> Option<&'static str>,
    /// Whether such records can replace this item.
    pub reaches: fn(&Transcript, item: usize) -> bool,
    /// Whether such records can cut entries out of the middle.
    pub cuts: bool,
    /// What happens to the copies in a record that is appended again.
    pub copies: CopiesBehind,
    /// Finds the original entries of a history, if the session keeps them next to edited ones.
    pub said: Option<SaidBefore>,
    /// Whether this is the default way to compact a session.
    pub by_default: bool,
}

/// What happens to the copies in an entry that is appended again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopiesBehind {
    /// They are left out: only what a model sees is appended.
    AreNotSaid,
    /// They are included: the whole record is appended, with edits of its copies applied.
    GoAlong,
}

/// Returns the original items to summarise (the context before `kept`), and all original items
/// before `kept`, including those that earlier summaries replaced: indices into
/// `Transcript::items`.
pub type SaidBefore = fn(&dyn Source, kept: &[usize]) -> (Vec<usize>, Vec<usize>);

/// Turns edits into bytes to append to a file.
pub type WriteBehind = fn(&Transcript, &dyn Source, &[Edit]) -> Result<Vec<u8>, Unwritable>;

/// A mark in the record of a result, which makes the agent send a text of its own instead. The
/// result itself stays in the file.
#[derive(Clone, Copy)]
pub struct Mark {
    /// The text that the agent sends instead of a marked result.
    pub sent: &'static str,
    /// Returns the replacements of bytes that mark the results at the positions of the edits.
    pub write: Write,
    /// Whether this result can be marked.
    pub reaches: fn(&Transcript, &dyn Source, At) -> bool,
}

/// Returns the bytes to append to a session so that a summary replaces all of its context but the
/// kept end; or why that is not possible.
pub type Summarise = fn(&Transcript, &dyn Source, &Summary) -> Result<Vec<u8>, &'static str>;

/// Every format, in the order in which they are tried.
pub static FORMATS: &[Format] = &[
    pi::FORMAT,
    qwen::FORMAT,
    claude::FORMAT,
    codex::FORMAT,
    opencode::KILO,
    opencode::FORMAT,
    gemini::FORMAT,
    cursor::FORMAT,
    epitome::FORMAT,
    copilot::FORMAT,
    amp::FORMAT,
    continuedev::FORMAT,
    miniswe::FORMAT,
    sweagent::FORMAT,
    Format::of_bodies(&anthropic::FORMAT),
    Format::of_bodies(&openai_chat::FORMAT),
    Format::of_bodies(&openai_responses::FORMAT),
    Format::of_bodies(&gemini_api::FORMAT),
];

/// The format of a source that begins with `head` (64 KiB are enough).
///
/// ```
/// let head = br#"{"type":"session","version":3,"id":"s","cwd":"/p"}"#;
/// assert_eq!(epitome_formats::sniff(head).map(|format| format.name), Some("pi"));
/// ```
pub fn sniff(head: &[u8]) -> Option<&'static Format> {
    let first_line = head.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    let by_header = HEADED.iter().find(|format| (format.sniff)(first_line));
    by_header.copied().or_else(|| FORMATS.iter().find(|format| (format.sniff)(head)))
}

/// The agents whose first record alone says whose log it is. The log of another agent may follow in
/// the same file, and a compaction moves it into the head: the session is still the first one's.
static HEADED: [&Format; 3] = [&pi::FORMAT, &codex::FORMAT, &gemini::FORMAT];

/// Every kind of session database, in the order in which they are tried.
pub fn databases() -> impl Iterator<Item = &'static Database> {
    FORMATS.iter().flat_map(|format| format.databases.iter().copied())
}

/// Every way in which an agent keeps a session in many files.
pub fn stores() -> impl Iterator<Item = &'static Files> {
    FORMATS.iter().filter_map(|format| format.files)
}

/// The format of an agent.
pub fn named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}
