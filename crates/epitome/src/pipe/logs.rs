//! The logs of running agents' contexts, as files in a folder, and their locks.

use std::io::Read;
use std::path::{Path, PathBuf};

use epitome_engine::pipe::{LogLock, LogStore, NewLog};

use crate::error::{Error, ErrorKind, Result};
use crate::live::{self, Context, Setup};
use crate::regular;
use crate::store::Store;

/// The maximum number of characters of a session's name in the name of its log.
const NAME: usize = 80;
/// The maximum number of bytes of a log that are read to find its first line.
const HEAD: u64 = 64 << 10;

/// A folder of logs, and the locks of those that are in use.
pub struct Logs {
    folder: PathBuf,
    store: Store,
}

impl Logs {
    /// The logs in a folder; `store` keeps their locks.
    pub fn new(folder: PathBuf, store: Store) -> Logs {
        Logs { folder, store }
    }

    /// The path of a new log of this session. Its number is one more than the largest number of the
    /// session's logs.
    fn next(&self, session: &str) -> PathBuf {
        let name = file_name(session);
        let number = self.numbers(&name).into_iter().max().map_or(1, |last| last.saturating_add(1));
        self.path(&name, number)
    }

    fn path(&self, name: &str, number: u64) -> PathBuf {
        let number = if number > 1 { format!("-{number}") } else { String::new() };
        self.folder.join(format!("{name}{number}.jsonl"))
    }

    /// The numbers of the existing logs whose names are `name` or `name` with a number. A log
    /// without a number in its name has the number 1.
    fn numbers(&self, name: &str) -> Vec<u64> {
        let Ok(files) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let numbers = files.filter_map(|file| {
            let file = file.ok()?.file_name();
            let rest = file.to_str()?.strip_suffix(".jsonl")?.strip_prefix(name)?;
            match rest.strip_prefix('-') {
                None if rest.is_empty() => Some(1),
                // The name of a log contains its number without leading zeros: `2`, and not `02`.
                Some(digits) if !digits.starts_with(['0', '+']) => {
                    digits.parse().ok().filter(|number| *number > 1)
                }
                Some(_) | None => None,
            }
        });
        numbers.collect()
    }
}

impl LogStore for Logs {
    fn create(&self, session: &str, setup: Setup) -> Result<NewLog> {
        let path = self.next(session);
        let context = live::create(&path, setup)?;
        let lock = self.lock(&path)?;
        Ok(NewLog { path, context, lock })
    }

    fn newest(&self, session: &str) -> Result<PathBuf> {
        let name = file_name(session);
        let mut numbers = self.numbers(&name);
        numbers.sort_unstable();
        let paths = numbers.into_iter().rev().map(|number| self.path(&name, number));
        // Names of sessions are changed and shortened to names of files, so a file with this name
        // may be the log of another session.
        paths.into_iter().find(|path| id(path).as_deref() == Some(session)).ok_or_else(|| {
            let session = epitome_model::short(session, NAME);
            let what = format!("there is no log of a session {session}");
            Error::new(ErrorKind::NotFound, what)
                .with_hint(format!("logs are in {}", self.folder.display()))
        })
    }

    fn id(&self, path: &Path) -> Option<String> {
        id(path)
    }

    fn is_same(&self, one: &Path, other: &Path) -> bool {
        let real = one.canonicalize().ok();
        real.is_some() && real == other.canonicalize().ok()
    }

    fn lock(&self, path: &Path) -> Result<LogLock> {
        Ok(Box::new(self.store.lock_file(path)?))
    }

    fn resume(&self, path: &Path, setup: Setup) -> Result<Context> {
        live::open(path, setup)
    }
}

/// The id of the session in the first line of a log. `None` if the file cannot be read or is no
/// log.
fn id(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    regular::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    epitome_formats::epitome::id(&head)
}

/// The name of the file for a session. It has no separators of paths, so that the file is in the
/// folder of the logs.
fn file_name(session: &str) -> String {
    let name = session.chars().take(NAME).map(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => c,
        _ => '_',
    });
    let name: String = name.collect();
    let name = name.trim_start_matches('.').to_owned();
    if name.is_empty() { "session".to_owned() } else { name }
}
