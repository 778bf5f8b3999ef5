//! The requests that `epitome proxy` passed on: what each cost, and what was decided about it.
//!
//! Each finished request is one JSON line in the file of its month, `requests/2026-11.jsonl` in the
//! proxy's folder. A line has neither texts nor keys: a conversation is named by the hash of its
//! first message. Several proxies append at the same time. A line that cannot be read, such as one
//! that was incomplete when the machine went down, is skipped and counted.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use epitome_model::{MicroDollars, TokenUsage, Tokens};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::{Chain, private_folder};
use crate::archive::Hash;
use crate::error::{Error, Result};
use crate::regular;

/// Version of the lines. A line with a higher version is skipped.
const VERSION: u32 = 1;

/// What was done to a request.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Treatment {
    /// The request was sent as it was received.
    #[default]
    Passed,
    /// The request was changed only by decisions that were made for earlier requests of the same
    /// conversation.
    Known,
    /// New results in the request were shortened.
    Shortened,
    /// A cut was made: messages at the beginning of the conversation were shortened or dropped.
    Cut,
}

/// Whether requests of a conversation may be changed at all.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Requests of the conversation are changed where that is worth it.
    #[default]
    Treated,
    /// Requests of the conversation pass unchanged, for comparison.
    Holdout,
}

impl Group {
    /// The name of the group in the ledger and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Group::Treated => "treated",
            Group::Holdout => "holdout",
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The response arrived whole.
    #[default]
    Complete,
    /// The service or the client ended the response early.
    Interrupted,
    /// No response arrived.
    Unreachable,
}

/// A cut that was made in a request: a decision to shorten or drop messages at the beginning of the
/// conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeCut {
    /// The name of the cut: the [`Chain`] of the last message that it covers.
    pub id: Chain,
    /// Tokens that the provider had to write to its cache again because of the cut.
    pub rewritten: Tokens,
    /// How much more writing these tokens costs than reading them from the cache, at list prices.
    /// `None` if the service reported no tokens, or if the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<MicroDollars>,
}

/// A cut that made a request smaller, in the request in which it was made or a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedCut {
    /// The name of the cut.
    pub id: Chain,
    /// Tokens that were not sent because of the cut.
    pub tokens: Tokens,
    /// What these tokens would have cost at list prices. `None` if the service reported no tokens,
    /// or if the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<MicroDollars>,
}

/// A finished request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerLine {
    /// Version of the line.
    pub v: u32,
    /// When the request ended.
    pub time: Timestamp,
    /// The id of the run of the proxy.
    pub run: String,
    /// The agent that `epitome wrap` started, or the name by which the client calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The name of the API.
    pub api: String,
    /// The model that the request names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The conversation, by the hash of its first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Chain>,
    /// Whether the conversation may be changed at all.
    #[serde(default)]
    pub group: Group,
    /// What was done to the request.
    pub treatment: Treatment,
    /// Whether the request begins a turn of the user.
    #[serde(default)]
    pub turn: bool,
    /// The status of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How the request ended.
    #[serde(default)]
    pub end: End,
    /// The tokens that the service counted; `None` if it reported no count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// An estimate of the tokens that the service would have counted for the unchanged request.
    /// `None` if the service reported no tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<TokenUsage>,
    /// What the request cost at list prices. `None` if the service reported no tokens, or if the
    /// price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
    /// An estimate of what the unchanged request would have cost at list prices. `None` if the
    /// service reported no tokens, or if the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged_cost: Option<MicroDollars>,
    /// Input tokens that were not sent, counted by the proxy's tokenizer.
    #[serde(default)]
    pub saved: Tokens,
    /// The number of results that were shortened for the first time in this request.
    #[serde(default)]
    pub shortened: u64,
    /// The cut that was made in this request, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<MadeCut>,
    /// The cuts that made the request smaller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<UsedCut>,
    /// The hashes of removed texts that the model asks for: it names their references in a call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<Hash>,
    /// Whether the request contains, for the first time, a summary by which the agent itself
    /// compacted its context.
    #[serde(default, skip_serializing_if = "is_false")]
    pub agent_compaction: bool,
    /// Whether a part of the request, or all of it, passed unchanged because of an error of
    /// epitome.
    #[serde(default, skip_serializing_if = "is_false")]
    pub failed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The lines that could be read, in the order of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerLines {
    /// The lines.
    pub lines: Vec<LedgerLine>,
    /// The number of lines that cannot be read.
    pub skipped: u64,
}

/// The ledger of a machine: the list of all requests that `epitome proxy` passed on.
#[derive(Clone, Debug)]
pub struct Ledger {
    folder: PathBuf,
}

impl Ledger {
    /// The ledger in the subfolder `requests` of `memo`, the proxy's folder
    /// ([`Config::wire_memo`](crate::Config::wire_memo)).
    pub fn new(memo: &Path) -> Ledger {
        Ledger { folder: memo.join("requests") }
    }

    /// Appends a line to the file of its month. The file is not flushed: after a power failure the
    /// last lines may be missing.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the file cannot be written.
    pub fn append(&self, line: &LedgerLine) -> Result<()> {
        let path = self.path_of(line.time);
        append(&self.folder, &path, line)
            .map_err(|err| Error::writing(err, "the ledger of the proxy", &path))
    }

    /// Reads the lines of the requests that ended at `since` or later. `None`: all lines.
    ///
    /// # Errors
    ///
    /// `Unreadable` or `NoPermission` if a file cannot be read. A missing file is no error.
    pub fn read(&self, since: Option<Timestamp>) -> Result<LedgerLines> {
        let mut read = LedgerLines::default();
        let first = since.map(|since| self.path_of(since));
        for path in self.paths() {
            if first.as_ref().is_some_and(|first| path < *first) {
                continue;
            }
            let bytes = regular::read(&path)
                .map_err(|err| Error::reading(err, "the ledger of the proxy", &path))?;
            read.parse(&bytes);
        }
        if let Some(since) = since {
            read.lines.retain(|line| line.time >= since);
        }
        Ok(read)
    }

    fn path_of(&self, time: Timestamp) -> PathBuf {
        let month = time.to_zoned(TimeZone::UTC).strftime("%Y-%m").to_string();
        self.folder.join(format!("{month}.jsonl"))
    }

    /// The files, the oldest first.
    fn paths(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
        paths.sort();
        paths
    }
}

impl LedgerLines {
    fn parse(&mut self, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        // The bytes after the last line feed are a line that is still being written or is
        // incomplete.
        let torn = lines.next_back().is_some_and(|rest| !rest.is_empty());
        self.skipped += u64::from(torn);
        for line in lines.filter(|line| !line.is_empty()) {
            match serde_json::from_slice::<LedgerLine>(line) {
                Ok(line) if line.v <= VERSION => self.lines.push(line),
                Ok(_) | Err(_) => self.skipped += 1,
            }
        }
    }
}

/// The present time, for the line of a request that has just ended.
pub fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or_default()
}

fn append(folder: &Path, path: &Path, line: &LedgerLine) -> io::Result<()> {
    let line = LedgerLine { v: VERSION, ..line.clone() };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    private_folder(folder)?;
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = regular::open_with(&mut options, path)?;
    // The lock is released when the file is closed.
    file.lock()?;
    let end = file.metadata()?.len();
    if end > 0 {
        let mut last = [0];
        file.seek(SeekFrom::Start(end - 1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            // The file ends with an incomplete line. The new line begins on its own line.
            text.insert(0, b'\n');
        }
    }
    let written = file.write_all(&text);
    if written.is_err() {
        file.set_len(end)?;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: u8) -> LedgerLine {
        let id = Chain::from_bytes([n; 16]);
        let price = Some(MicroDollars(900));
        LedgerLine {
            v: VERSION,
            time: "2026-11-25T10:00:00Z".parse().expect("a time"),
            run: "00c0ffee".into(),
            model: Some("claude-haiku-4-5".into()),
            session: Some(id),
            cut: Some(MadeCut { id, rewritten: Tokens(9), price }),
            recalled: vec![Hash::compute(b"a")],
            ..LedgerLine::default()
        }
    }

    #[test]
    fn a_torn_line_is_skipped_and_the_next_one_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = Ledger::new(folder.path());
        assert_eq!(ledger.read(None).expect("nothing"), LedgerLines::default());
        ledger.append(&line(1)).expect("a disk");
        let path = folder.path().join("requests/2026-11.jsonl");
        let mut torn = fs::read(&path).expect("it exists");
        torn.truncate(torn.len() - 9);
        fs::write(&path, torn).expect("a disk");
        assert_eq!(ledger.read(None).expect("a ledger").skipped, 1);
        ledger.append(&line(2)).expect("a disk");
        let read = ledger.read(None).expect("a ledger");
        assert_eq!(read, LedgerLines { lines: vec![line(2)], skipped: 1 });
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;

            let mode = fs::metadata(&path).expect("it exists").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn several_proxies_append_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |n: u8| {
            // Each thread has a ledger of its own, as each process has.
            let ledger = Ledger::new(folder.path());
            (0..50).for_each(|_| ledger.append(&line(n)).expect("a disk"));
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|n| drop(scope.spawn(move || write(n))));
        });
        let read = Ledger::new(folder.path()).read(None).expect("a ledger");
        assert_eq!((read.lines.len(), read.skipped), (200, 0));
    }

    #[test]
    fn lines_from_a_time_on_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = Ledger::new(folder.path());
        let times = ["2026-10-31T23:59:59Z", "2026-11-01T00:00:00Z", "2026-11-25T00:00:00Z"];
        for time in times {
            let time = time.parse().expect("a time");
            ledger.append(&LedgerLine { time, ..line(1) }).expect("a disk");
        }
        for (since, expect) in [(None, 3), (Some(times[1]), 2), (Some(times[2]), 1)] {
            let since = since.map(|time| time.parse().expect("a time"));
            assert_eq!(ledger.read(since).expect("a ledger").lines.len(), expect, "{since:?}");
        }
    }
}
