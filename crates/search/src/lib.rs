//! Full-text search over the sessions of all agents, on an index that is kept on disk.
//!
//! The index holds what the pages of a session show, without secrets and personal data. It can be
//! deleted at any time: the next update builds it again. It knows sessions by their path, length
//! and time, and of a changed session only what changed is written. One process at a time writes;
//! any number search.
//!
//! The index is an SQLite database with a table of FTS5. SQLite is in the program already, for the
//! sessions of agents that use it.
//!
//! # Absent
//!
//! What no page of a session shows: pictures, system prompts, records that say nothing to a model.
//! Stems of words: sessions are of many languages, and half of them is code.

mod conditions;
mod found;
mod index;
mod query;
mod snippet;
mod tables;
mod terms;
mod text;
mod update;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use epitome::Config;
use epitome::redact::rules;
use epitome_redact::RuleFault;
use rusqlite::Connection;

pub use found::{Hit, Hits};
pub use query::{BadQuery, Query};
pub use snippet::Run;
pub use update::{Progress, Update, Updated};

use index::{Index, IndexLocation};

/// The rules for what is redacted before it reaches the index.
const REDACTED: [&str; 2] = ["secrets", "pii"];

/// The search, and the index in which it looks.
pub struct Search {
    config: Config,
    place: IndexLocation,
    done: AtomicUsize,
    of: AtomicUsize,
}

/// Which sessions an index is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All of this machine.
    Machine,
    /// Those in a folder and below it.
    Below(&'a Path),
}

impl Scope<'_> {
    /// The name of its folder.
    fn name(self) -> String {
        match self {
            Scope::Machine => "search".to_owned(),
            Scope::Below(folder) => {
                let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
                format!("search-below/{:016x}", tables::path(&folder))
            }
        }
    }
}

/// Why a search or an update does not work.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// There is no index yet, and another process is making it.
    #[error("another epitome is making the search index; try again in a moment")]
    Busy,
    /// The index was damaged. It is deleted, and the next update builds it again.
    #[error("the search index was damaged; the next update rebuilds it")]
    Damaged,
    /// The database cannot be written or read.
    #[error("the search index cannot be used")]
    Index(#[source] rusqlite::Error),
    /// The folder of the index cannot be written or read.
    #[error("the search index cannot be used")]
    Folder(#[source] std::io::Error),
    /// The user's rules for secrets cannot be used: without them nothing is indexed.
    #[error("the rules for secrets cannot be used")]
    Rules(#[source] RuleFault),
    /// An error of the library.
    #[error(transparent)]
    Library(#[from] epitome::Error),
}

/// The result of what this crate does.
pub type Result<T> = std::result::Result<T, SearchError>;

impl Search {
    /// Opens the index of some sessions, or makes an empty one. An index of another version, or
    /// made with other rules for secrets, is deleted, and so is one that cannot be opened.
    ///
    /// # Errors
    ///
    /// `Busy`, `Index`, `Folder`, and those of the user's rules.
    pub fn open(config: &Config, scope: Scope<'_>) -> Result<Search> {
        let rules = rules(config, &[])?;
        let made_with = format!("{} {} {rules:?}", tables::VERSION, env!("CARGO_PKG_VERSION"));
        let version = blake3::hash(made_with.as_bytes()).to_hex()[..16].to_owned();
        let place = IndexLocation::new(config, scope.name(), version)?;
        let config = config.clone();
        let search = Search { config, place, done: AtomicUsize::new(0), of: AtomicUsize::new(0) };
        match search.read(|_| Ok(())) {
            // It is empty now, and as good as any.
            Ok(()) | Err(SearchError::Damaged) => Ok(search),
            Err(err) => Err(err),
        }
    }

    /// What `query` finds, the best first, at most so many.
    ///
    /// # Errors
    ///
    /// `Damaged` when the index was; `Index` and `Folder` when it cannot be read.
    pub fn find(&self, query: &Query, most: usize) -> Result<Hits> {
        self.read(|connection| found::find(connection, query, most.max(1)))
    }

    /// How far an update is that this process is doing.
    pub fn progress(&self) -> Option<Progress> {
        let of = self.of.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed);
        (done < of).then_some(Progress { done, of })
    }

    /// Reads all of the index and deletes it if a byte of it is not what was written.
    ///
    /// # Errors
    ///
    /// `Damaged` when it was; `Busy` when it is being written; `Index` and `Folder` when it cannot
    /// be read.
    pub fn check(&self) -> Result<()> {
        let lock = self.place.lock()?.ok_or(SearchError::Busy)?;
        let index = self.place.index()?;
        let is_whole = index.as_ref().map_or(Ok(false), Index::is_whole)?;
        drop(lock);
        if is_whole { Ok(()) } else { self.delete(index.as_ref()) }
    }

    /// Runs `work` on the index, and on the one that replaced it meanwhile if it was damaged.
    fn read<T>(&self, work: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut damaged = None;
        loop {
            let index = self.place.index()?;
            if index == damaged {
                return self.delete(index.as_ref());
            }
            let done = index.as_ref().map(|index| index.open().and_then(|it| work(&it)));
            match done.map(|done| done.map_err(SearchError::from)) {
                Some(Err(SearchError::Damaged)) | None => damaged = index,
                Some(done) => return done,
            }
        }
    }

    /// Deletes a damaged index, and returns the error that says so.
    fn delete<T>(&self, damaged: Option<&Index>) -> Result<T> {
        self.place.replace(&self.config, damaged)?;
        Err(SearchError::Damaged)
    }
}
