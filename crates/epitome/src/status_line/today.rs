//! Computes the cost of today's requests. The requests that were read are stored in a file, so that
//! the next call reads only new ones.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use epitome_agents as agents;
use epitome_formats::claude::{FORMAT, read_billed};
use epitome_llm::Catalogue;
use epitome_model::MicroDollars;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::cost::billed_requests;
use crate::regular;
use crate::store::disk;

/// The maximum number of bytes that are read for one status line. The next status line continues
/// where this one stopped.
const MOST: u64 = 24 << 20;

/// The cost of the requests of one day, as far as sessions have been read.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Day {
    day: Option<Date>,
    /// How far each file was read.
    files: HashMap<String, ReadSoFar>,
    /// The cost of each request by its key, in millionths of a dollar.
    requests: BTreeMap<String, u64>,
    /// The cost of requests without a key. Such a request is counted again if another file contains
    /// it.
    others: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ReadSoFar {
    /// The offset after the last line that was read, in bytes.
    to: u64,
    /// The length of the file in bytes, and the time of its last write in nanoseconds since 1970,
    /// at the time when it was read.
    len: u64,
    modified: u64,
}

/// What the requests of Claude Code cost today (in UTC). The flag is true if there may be more to
/// read, because this call has read the maximum number of bytes.
pub(super) fn spent(config: &Config, prices: &Catalogue) -> (MicroDollars, bool) {
    let today = config.now().to_zoned(TimeZone::UTC).date();
    let path = config.home.join("cache/status-line/today.json");
    let stored: Option<Day> =
        regular::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let is_today = |day: &Day| day.day == Some(today);
    let mut day =
        stored.filter(is_today).unwrap_or_else(|| Day { day: Some(today), ..Day::default() });
    let midnight = today.to_zoned(TimeZone::UTC).map_or(0, |it| nanoseconds(it.timestamp()));
    let mut room = MOST;
    let mut is_changed = false;
    for (path, meta) in files(config) {
        if modified(&meta) >= midnight {
            is_changed |= day.read(&path, &meta, &mut room, prices);
        }
    }
    if is_changed {
        // Errors are ignored: the next call reads again.
        store(&path, &day);
    }
    let cost = day.requests.values().sum::<u64>() + day.others;
    (MicroDollars(cost), room == 0)
}

/// The sessions of Claude Code and the files of their sub-agents.
fn files(config: &Config) -> Vec<(PathBuf, Metadata)> {
    let sessions = agents::sessions(&config.agents, Some(FORMAT.name));
    let all = sessions.into_iter().flat_map(|file| {
        let parts = agents::companions(&file.path);
        std::iter::once(file.path).chain(parts)
    });
    all.filter_map(|path| fs::metadata(&path).ok().map(|meta| (path, meta))).collect()
}

impl Day {
    /// Reads what was appended to a file. Returns false if the file did not change or cannot be
    /// read, or if this call may read no more bytes (`room` is 0).
    fn read(&mut self, path: &Path, meta: &Metadata, room: &mut u64, prices: &Catalogue) -> bool {
        let name = path.to_string_lossy().into_owned();
        let known = self.files.get(&name).copied().unwrap_or_default();
        let now = ReadSoFar { len: meta.len(), modified: modified(meta), ..known };
        if now == known || *room == 0 {
            return false;
        }
        // A file that is shorter now than what was read of it was replaced, and is read from its
        // start. Requests that were counted before are recognised by their keys.
        let from = if meta.len() < known.to { 0 } else { known.to };
        let Some(Lines { bytes, length, is_whole }) = read_lines(path, from, *room) else {
            return false;
        };
        let to = from + length;
        *room = if is_whole { room.saturating_sub(length) } else { 0 };
        let requests = read_billed(&bytes).requests;
        for request in billed_requests(FORMAT.name, requests, str::to_owned) {
            let day = request.time.map(|time| time.to_zoned(TimeZone::UTC).date());
            let cost = request.cost(prices).filter(|_| day == self.day);
            match (cost, &request.key) {
                (None, _) => {}
                (Some(cost), None) => self.others += cost.0,
                (Some(cost), Some(key)) => {
                    let known = self.requests.entry(key.clone()).or_default();
                    *known = cost.0.max(*known);
                }
            }
        }
        let stored = if is_whole { ReadSoFar { to, ..now } } else { ReadSoFar { to, ..known } };
        self.files.insert(name, stored);
        true
    }
}

/// Lines of a file.
struct Lines {
    /// Whole lines.
    bytes: Vec<u8>,
    /// The number of bytes up to the place where reading continues.
    length: u64,
    /// Whether `bytes` contains all whole lines up to the end of the file.
    is_whole: bool,
}

/// Reads the whole lines of a file from an offset on, at most `most` bytes.
fn read_lines(path: &Path, from: u64, most: u64) -> Option<Lines> {
    let mut file = regular::open(path).ok()?;
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    let read = file.take(most).read_to_end(&mut bytes).ok()? as u64;
    let is_whole = read < most;
    // The bytes after the last line feed are left out: that line is still being written, or is
    // longer than what may be read.
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    bytes.truncate(end);
    // A line that is longer than the maximum for one call is skipped, because it could never be
    // read.
    let length = if end == 0 && !is_whole && most == MOST { read } else { end as u64 };
    Some(Lines { bytes, length, is_whole })
}

fn modified(meta: &Metadata) -> u64 {
    let since = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn nanoseconds(time: jiff::Timestamp) -> u64 {
    u64::try_from(time.as_nanosecond()).unwrap_or(0)
}

fn store(path: &Path, day: &Day) {
    let is_there = path.parent().is_some_and(|folder| disk::private_folder(folder).is_ok());
    let bytes = serde_json::to_vec(day).unwrap_or_default();
    if is_there {
        crate::store::write_over(path, |out| Ok(out.write_all(&bytes)?)).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_cut_is_read_by_the_next_call() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "aa\nbbbb\ncc").expect("written");
        let read = |from, most| {
            let lines = read_lines(file.path(), from, most).expect("read");
            (String::from_utf8(lines.bytes).expect("UTF-8"), lines.length, lines.is_whole)
        };
        assert_eq!(read(0, 5), ("aa\n".to_owned(), 3, false));
        assert_eq!(read(3, 5), ("bbbb\n".to_owned(), 5, false));
        assert_eq!(read(3, 4), (String::new(), 0, false));
        assert_eq!(read(0, 100), ("aa\nbbbb\n".to_owned(), 8, true));
        assert_eq!(read(8, 100), (String::new(), 0, true));
    }
}
