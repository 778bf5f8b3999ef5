//! The formats of agents' sessions: one folder for each agent, with its keys and tool names.
//!
//! A [`Format`] holds the functions for the sessions of one agent: they recognise a session, read
//! it into a transcript, check it ([`Invariants`]), and write edits into it.
//! [`Format::capabilities`] says which edits can be written into a session and in which mode, or
//! why none can; [`Format::write`] turns edits into replacements of bytes. A format that epitome
//! only reads says why in [`Writing::ReadOnly`].
//!
//! [`Loaded`] is a session that was read: its format, its source, its transcript, and the faults of
//! records that could not be understood. Reading never fails for a damaged record: the record is
//! kept as it is. [`Spliced`] is a source with replacements of bytes laid over it.
//!
//! In the folder of an agent, `read` makes a transcript. If the agent needs them, `raw` declares
//! its JSON, `tools` maps tool names to kinds, `write` or `append` writes edits, and `invariants`
//! says what the agent refuses. Sessions in databases are read as lines, one for each row
//! ([`database`]).
//!
//! Most sessions of JSON lines are read in this order: [`Loaded::read`] recognises the format and
//! calls [`Format::read`], the `read` of the agent's folder; the module `records` divides the
//! source into lines and parses each; the agent's reader makes the entries of each record, and at
//! the end finds what a resume sends.
//!
//! A new format is a folder and an element of [`FORMATS`].
//!
//! ```
//! use epitome_formats::Loaded;
//!
//! let session = br#"{"type":"session","version":3,"id":"s","cwd":"/p"}
//! {"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"Hi"}}
//! "#;
//! let loaded = Loaded::read(session.to_vec(), None)?;
//! assert_eq!(loaded.format.name, "pi");
//! assert_eq!(loaded.transcript.context().count(), 1);
//! assert!(loaded.faults.is_empty());
//! # Ok::<(), epitome_error::Error>(())
//! ```
//!
//! # Absent
//!
//! - Files, folders and databases: a reader gets a [`Source`]. `epitome-store` opens sessions, and
//!   `epitome-agents` knows where they are.
//! - Deciding what is removed: `epitome-passes`.
//! - Bodies of requests to models: `epitome-api`. [`FORMATS`] lists their formats, too.

// Pure crates do no IO: `clippy.toml` names what they must not use.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod accounting;
mod addition;
mod address;
pub mod amp;
pub mod claude;
pub mod codex;
mod command;
pub mod continuedev;
pub mod copilot;
pub mod cursor;
pub mod database;
mod edit_writing;
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
pub use address::AddressSettings;
pub use edit_writing::Capabilities;
pub use epitome_json::write::{Unwritable, Write};
pub use hook::{EndedSession, Hook, Setting, command, parse_ended_session};
pub use lines::{Line, lines};
pub use port::NewSessionValues;
pub use session::Loaded;
pub use splice::Spliced;

use epitome_api::{BodyFormat, RequestBody, anthropic, gemini_api, openai_chat, openai_responses};
use epitome_model::{
    At, Edit, Faults, Invariants, RecordedUsage, Source, Summary, Transcript, WriteMode,
};

use crate::database::Database;
use crate::files::Files;
use crate::pairing::PAIRING;

/// A format: how the sessions of one agent, or the bodies of requests to one API, are recognised,
/// read, written and checked.
pub struct Format {
    /// The name of the agent, or of the bodies of the API: `pi`, `claude`, `gemini-request`.
    pub name: &'static str,
    /// Returns whether a source that begins with these bytes is of this format.
    pub sniff: fn(head: &[u8]) -> bool,
    /// Reads a source. Reading never fails: what cannot be parsed is kept and reported to `faults`.
    pub read: Read,
    /// How edits are written, or why the format is read-only.
    pub writing: Writing,
    /// The agent's own way to shorten a history; `None` if it has none that epitome uses.
    pub native: Option<Native>,
    /// How to write a summary in place of the beginning of a history, in the agent's own way;
    /// `None` if epitome writes no summaries in this format.
    pub summarise: Option<Summarise>,
    /// The invariants: what the agent and its API refuse.
    pub invariants: &'static dyn Invariants,
    /// Makes a session from another agent's transcript; `None` if epitome makes no such sessions.
    pub make: Option<Make>,
    /// Whether reasoning of a model is valid only while everything before it is unchanged. If so, a
    /// compaction removes all reasoning from the first edited entry on.
    pub thinking_is_bound: fn(model: &str) -> bool,
    /// The kinds of databases in which the agent keeps sessions, in the order in which they are
    /// tried.
    pub databases: &'static [&'static Database],
    /// How the agent stores a session in many files; `None` if epitome reads no such sessions of
    /// the agent.
    pub files: Option<&'static Files>,
    /// Reads the billed requests from the lines of a session; `None` if the transcript of a session
    /// holds all that was billed.
    pub billed: Option<fn(lines: &[u8]) -> BilledRequests>,
}

/// The requests that a session records, with the tokens that are billed for each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BilledRequests {
    /// The folder in which the session was run.
    pub cwd: Option<String>,
    /// The requests, in the order of the session. Several records may be of one request: see
    /// [`BilledRequest::key`].
    pub requests: Vec<BilledRequest>,
}

/// A request, as one record of a session states it.
#[derive(Clone, Debug, PartialEq)]
pub struct BilledRequest {
    /// Records with the same key state the same request: for each count, the largest value is that
    /// of the request. `None` if the record lacks the values from which a key is made; then it
    /// counts as a separate request.
    pub key: Option<String>,
    /// When the request was answered, as the session writes it.
    pub time: Option<String>,
    /// The model that answered the request.
    pub model: Option<String>,
    /// The tokens and cost that the record states.
    pub usage: RecordedUsage,
}

/// Reads a source.
pub type Read = fn(&dyn Source, &mut dyn Faults) -> Transcript;

impl Format {
    /// Whether a session of this format keeps everything that compactions took out of its context,
    /// as a log does: then its stubs stand for texts of the session itself.
    pub fn keeps_originals(&self) -> bool {
        matches!(self.native, Some(Native::Append(Append { originals: Some(_), .. })))
    }

    /// Returns two lists of items for a summary of the context before `kept`: the original items to
    /// summarise, and all original items before `kept` (see [`FindOriginals`]). If epitome does not
    /// look for originals in sessions of this format, returns `items`, the current items, as both
    /// lists.
    pub fn originals_before(
        &self,
        source: &dyn Source,
        items: &[usize],
        kept: &[usize],
    ) -> (Vec<usize>, Vec<usize>) {
        match self.native {
            Some(Native::Append(Append { originals: Some(said), .. })) => said(source, kept),
            Some(Native::Append(_) | Native::Mark(_)) | None => (items.to_vec(), items.to_vec()),
        }
    }

    /// A format with only the given properties. All other properties are absent or have defaults.
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
            // Many agents use models of all providers. The reasoning of Anthropic's newest models
            // is valid only while everything before it is unchanged.
            thinking_is_bound: anthropic::thinking_is_bound,
            databases: &[],
            files: None,
            billed: None,
        }
    }

    /// A format into whose sessions edits can be written.
    const fn writable(
        name: &'static str,
        sniff: fn(&[u8]) -> bool,
        read: Read,
        write: Write,
        invariants: &'static dyn Invariants,
    ) -> Format {
        Format::new(name, sniff, read, Writing::Splices(write), invariants)
    }

    /// A format whose sessions are only read. `why` is the reason, a clause after "sessions of NAME
    /// are only read: ". The only invariants are the rules for calls and results: see [`PAIRING`].
    const fn read_only(
        name: &'static str,
        sniff: fn(&[u8]) -> bool,
        read: Read,
        why: &'static str,
    ) -> Format {
        Format::new(name, sniff, read, Writing::ReadOnly(why), &PAIRING)
    }

    /// A format whose sessions are the bodies of requests to an API.
    const fn of_bodies(bodies: &BodyFormat) -> Format {
        let BodyFormat { name, sniff, read, write, invariants, thinking_is_bound } = *bodies;
        Format { thinking_is_bound, ..Format::writable(name, sniff, read, write, invariants) }
    }
}

/// Makes a session with the content of a transcript's context. The session is the `body` of the
/// returned value; bodies of requests to APIs are made with the same type.
pub type Make = fn(&Transcript, &dyn Source, &NewSessionValues<'_>) -> RequestBody;

/// Whether epitome writes edits into sessions of a format, and how.
#[derive(Clone, Copy, Debug)]
pub enum Writing {
    /// The function that turns edits into replacements of bytes, sorted and disjoint.
    Splices(Write),
    /// The format is read-only: the reason, as a clause after "sessions of NAME are only read: ".
    ReadOnly(&'static str),
}

/// An agent's own way to shorten the history that it sends.
#[derive(Clone, Copy)]
pub enum Native {
    /// The agent reads records that are appended to the file, in place of earlier records.
    Append(Append),
    /// The agent sends a fixed text in place of results that are marked.
    Mark(Mark),
}

impl Native {
    /// The mode of edits that are written in this way.
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
            // Marks are not the default: a marked result stays in the file, and a model cannot
            // recall it by reference.
            Native::Mark(_) => false,
        }
    }
}

/// Records that are appended to the file and replace earlier records when the agent resumes. All
/// earlier bytes of the file stay unchanged.
#[derive(Clone, Copy)]
pub struct Append {
    /// Turns edits into bytes to append. The edits must be of entries that a resume sends.
    pub write: WriteAppended,
    /// Returns the reason for which the agent would ignore such records in a session; `None` if it
    /// reads them.
    pub passed_over: fn(&Transcript) -> Option<&'static str>,
    /// Returns whether such records can replace an item.
    pub reaches: fn(&Transcript, item: usize) -> bool,
    /// Whether such records can remove entries from the middle of the context.
    pub cuts: bool,
    /// What happens to the hidden fields of a record that is appended again.
    pub hidden_fields: AppendedHiddenFields,
    /// Finds the original entries of a history; `None` if epitome does not look for them in
    /// sessions of this format.
    pub originals: Option<FindOriginals>,
    /// Whether this is the default way to compact a session.
    pub by_default: bool,
}

/// What happens to the hidden fields of an entry that is appended again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendedHiddenFields {
    /// The fields are left out: only what a model sees is appended.
    Omitted,
    /// The fields are included: the whole record is appended, with the edits of its fields applied.
    Included,
}

/// Returns two lists of indices into `Transcript::items`: the original items of the context before
/// `kept`, which a summary is made of, and all original items before `kept`, including those that
/// earlier summaries replaced.
pub type FindOriginals = fn(&dyn Source, kept: &[usize]) -> (Vec<usize>, Vec<usize>);

/// Turns edits into bytes to append to a file.
pub type WriteAppended = fn(&Transcript, &dyn Source, &[Edit]) -> Result<Vec<u8>, Unwritable>;

/// A mark in the record of a result, which makes the agent send a fixed text instead of the result.
/// The result itself stays in the file.
#[derive(Clone, Copy)]
pub struct Mark {
    /// The text that the agent sends instead of a marked result.
    pub sent: &'static str,
    /// Returns the replacements of bytes that mark the results at the positions of the edits.
    pub write: Write,
    /// Returns whether the result at a position can be marked.
    pub reaches: fn(&Transcript, &dyn Source, At) -> bool,
}

/// Returns the bytes to append to a session so that a summary replaces all of the context but the
/// kept end; or the reason why that is not possible.
pub type Summarise = fn(&Transcript, &dyn Source, &Summary) -> Result<Vec<u8>, &'static str>;

/// Every format. [`sniff`] first tries the formats that are recognised by their first record alone,
/// and then all formats in this order.
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

/// The format of a source that begins with `head`; `None` if no format recognises it. 64 KiB are
/// enough unless the first records are longer (see [`session::HEADS`]).
///
/// Formats that are recognised by their first record alone are tried first.
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

/// Formats that are recognised by their first record alone. The session belongs to the agent of
/// this record even if another agent's records follow and a compaction has moved these close to the
/// beginning.
static HEADED: [&Format; 3] = [&pi::FORMAT, &codex::FORMAT, &gemini::FORMAT];

/// Every kind of session database, in the order in which they are tried.
pub fn databases() -> impl Iterator<Item = &'static Database> {
    FORMATS.iter().flat_map(|format| format.databases.iter().copied())
}

/// The ways in which agents store a session in many files.
pub fn stores() -> impl Iterator<Item = &'static Files> {
    FORMATS.iter().filter_map(|format| format.files)
}

/// The format with the name `name`; `None` if there is no such format.
pub fn find_format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}
