//! Lists of what `epitome keep` has kept: the versions of a session, and deleted sessions.

use std::ffi::OsString;
use std::path::PathBuf;

use epitome::keep::{DeletedSession, VersionHistory};
use epitome::list::short_ids;
use jiff::Timestamp;
use unicode_width::UnicodeWidthStr as _;

use super::worker::{Commands, Kind, Task};
use crate::text::{age, one_line};

/// A list that fills the screen, with a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picker {
    /// The command that prints the list.
    pub title: String,
    pub heads: [&'static str; 4],
    pub entries: Vec<Entry>,
    /// The index of the entry at the cursor.
    pub at: usize,
    pub of: PickerOf,
}

/// What the entries of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickerOf {
    Versions,
    Deleted,
}

/// A version, or a deleted session with the last version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The texts of the columns. The first three are right-aligned, the last one left-aligned.
    pub cells: [String; 4],
    pub session: KeptSession,
    /// The number of the version to restore; `None` if the version has no content.
    pub number: Option<u64>,
    /// How the question before a restore describes the version.
    pub what: String,
}

/// A session of which `epitome keep` has versions. It may have been deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSession {
    pub agent: String,
    /// Where the session is or was: a path, or an address in a database. It identifies the session,
    /// because several sessions may have the same id.
    pub path: PathBuf,
    /// The beginning of the id, for titles.
    pub short: String,
    pub exists: bool,
}

impl Picker {
    /// The versions of a session. The cursor is at the newest.
    pub fn versions(history: &VersionHistory, short: &str, now: Timestamp) -> Picker {
        let session = KeptSession {
            agent: history.agent.clone(),
            path: history.path.clone(),
            short: short.to_owned(),
            exists: history.exists,
        };
        let entries = history.versions.iter().map(|version| {
            let seen = age(now, version.seen);
            let size = version.has_content().then(|| version.bytes.to_string());
            let size = size.unwrap_or_else(|| "-".to_owned());
            let what = one_line(&version.description(), 100);
            let number = version.version;
            Entry {
                what: format!("{size}, seen {}: {what}", ago(&seen)),
                cells: [number.to_string(), seen, size, what],
                session: session.clone(),
                number: version.has_content().then_some(number),
            }
        });
        let entries: Vec<Entry> = entries.collect();
        Picker {
            title: format!("epitome history {short}"),
            heads: ["version", "age", "size", "what changed"],
            at: entries.len().saturating_sub(1),
            entries,
            of: PickerOf::Versions,
        }
    }

    /// Deleted sessions. The cursor is at the one that was deleted last.
    pub fn deleted(sessions: &[DeletedSession], now: Timestamp) -> Picker {
        let ids: Vec<&str> = sessions.iter().map(|session| &*session.session).collect();
        let entries = sessions.iter().zip(short_ids(&ids)).map(|(session, short)| {
            let when = age(now, session.deleted);
            let size = session.bytes.to_string();
            let path = crate::text::path(&session.path);
            Entry {
                what: format!("{size}, deleted {}", ago(&when)),
                cells: [session.agent.clone(), when, size, format!("{short}  {path}")],
                number: Some(session.version),
                session: KeptSession {
                    agent: session.agent.clone(),
                    path: session.path.clone(),
                    short,
                    exists: false,
                },
            }
        });
        Picker {
            title: "epitome list --deleted".to_owned(),
            heads: ["agent", "deleted", "size", "session"],
            entries: entries.collect(),
            at: 0,
            of: PickerOf::Deleted,
        }
    }

    pub fn current(&self) -> Option<&Entry> {
        self.entries.get(self.at)
    }

    /// The index of the first entry that a screen with `height` entries shows. The entry at the
    /// cursor is always among those shown.
    pub fn first_line(&self, height: usize) -> usize {
        (self.at + 1).saturating_sub(height)
    }

    /// The widths of all columns but the last.
    pub fn widths(&self) -> [usize; 3] {
        let width = |column: usize| {
            let cells = self.entries.iter().map(|entry| entry.cells[column].width());
            cells.chain([self.heads[column].width()]).max().unwrap_or(0)
        };
        [width(0), width(1), width(2)]
    }

    /// Moves the cursor by `by` entries.
    pub fn step(&mut self, by: isize) {
        let last = self.entries.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
    }
}

/// An age as a time in the past: `3h ago`, or `just now`.
fn ago(age: &str) -> String {
    if age == "now" { "just now".to_owned() } else { format!("{age} ago") }
}

impl Entry {
    /// The question before the version is restored, and the command that restores it. `None` if the
    /// version has no content.
    pub fn restore(&self) -> Option<(Vec<String>, Task)> {
        let KeptSession { path, short, exists, .. } = &self.session;
        let number = self.number?.to_string();
        let title = format!("epitome restore {short} --at {number}");
        let mut line: Vec<OsString> = vec!["restore".into(), path.into()];
        line.extend(["--at", &number, "--yes"].map(OsString::from));
        let effect = match exists {
            true => "What the session has now is kept as a version first.",
            false => "The session is made again where its agent had it.",
        };
        let text = vec![
            format!("Restore version {number} of {short}?"),
            self.what.clone(),
            effect.to_owned(),
        ];
        Some((text, Task::Run(Commands { title, lines: vec![line], kind: Kind::Restores })))
    }
}
