//! Full-text search over the sessions of all agents, on an index that is kept on disk.
//!
//! [`Search::open`] opens the index of a [`Scope`]: all sessions of this machine, or the sessions
//! below a folder. [`Search::update`] brings the index up to date: it recognises changed sessions
//! by their path, length, time and packs in the archive, and reads only these. [`Search::find`]
//! returns the [`Hits`] of a [`Query`], the best first.
//!
//! The index contains the texts that the pages of a session show, without secrets and personal
//! data. It is an SQLite database with an FTS5 table; SQLite is needed anyway for agents that keep
//! sessions in it. It can be deleted at any time: the next update builds it again. One process at a
//! time writes, and any number may search.
//!
//! ```
//! use epitome::Config;
//! use epitome_search::{Query, Scope, Search};
//!
//! let home = tempfile::tempdir().expect("a folder");
//! let config = Config::from_home(home.path());
//! let search = Search::open(&config, Scope::Machine)?;
//! let query = Query::parse("cargo \"borrow checker\" agent:claude").expect("a query");
//! // There are no sessions in this home.
//! assert!(search.find(&query, 10)?.by_session().is_empty());
//! # Ok::<(), epitome_search::SearchError>(())
//! ```
//!
//! # Absent
//!
//! - Text that is on no page of a session: pictures, system prompts, records that are not sent to a
//!   model.
//! - Stemming: sessions are in many languages, and half of their text is code.
//! - Updating in the background: `epitome-web` has a thread for that.

mod around;
mod candidates;
mod conditions;
mod failed;
mod found;
mod index;
mod query;
mod snippet;
mod tables;
mod terms;
mod text;
mod touched;
mod update;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use epitome::agents::SessionFile;
use epitome::redact::rules;
use epitome::{Config, ErrorKind};
use epitome_redact::RuleFault;
use rusqlite::Connection;

pub use around::Message;
pub use failed::{ErrorText, Failures, PastFailure};
pub use found::{Hit, Hits};
pub use query::{BadQuery, Query};
pub use snippet::Run;
pub use touched::{FilePath, Touch, TouchKind, TouchedBy};
pub use update::{Progress, Update, UpdateCounts};

use index::{Index, IndexLocation};

/// The kinds of rules by which text is redacted before it is indexed.
const REDACTED: [&str; 2] = ["secrets", "pii"];

/// A search index that is open.
pub struct Search {
    config: Config,
    place: IndexLocation,
    /// The connection of the last search, with the index that it reads. The next search uses it
    /// again, because SQLite has a part of the index in its memory. A search at the same time opens
    /// another connection.
    connection: Mutex<Option<(Index, Connection)>>,
    done: AtomicUsize,
    of: AtomicUsize,
}

/// The sessions that an index covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All sessions of this machine.
    Machine,
    /// The sessions in a folder and below it.
    Below(&'a Path),
}

impl Scope<'_> {
    /// The name of the index's folder.
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

/// Why a search or an update failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The index must be made, replaced or checked, but another process or thread is writing it.
    #[error("another epitome is making the search index; try again in a moment")]
    Busy,
    /// The index was damaged or missing. It was replaced by an empty one, which the next update
    /// fills.
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

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, SearchError>;

/// The hint of the errors that say that the index cannot be used.
const WRITABLE: &str = "it is in epitome's cache, which must be writable; it can be deleted";

impl From<SearchError> for epitome::Error {
    fn from(err: SearchError) -> Self {
        let kind = match &err {
            SearchError::Library(_) => ErrorKind::Broken,
            SearchError::Busy => ErrorKind::Locked,
            SearchError::Damaged | SearchError::Index(_) | SearchError::Folder(_) => {
                ErrorKind::Disk
            }
            SearchError::Rules(_) => ErrorKind::Usage,
        };
        let new = epitome::Error::new(kind, err.to_string());
        match err {
            SearchError::Library(err) => err,
            SearchError::Busy | SearchError::Damaged => new,
            SearchError::Index(cause) => new.because(cause).with_hint(WRITABLE),
            SearchError::Folder(cause) => new.because(cause).with_hint(WRITABLE),
            SearchError::Rules(cause) => new.because(cause),
        }
    }
}

/// Brings the index of all sessions of this machine up to date, and returns the best hits of
/// `query`, at most `most`. `files` are all these sessions. `tell` is called with the progress. An
/// index that turns out to be damaged is built again.
///
/// # Errors
///
/// The errors of [`Search::open`], [`Search::update`] and [`Search::find`].
pub fn search_machine(
    config: &Config,
    query: &Query,
    files: &[SessionFile],
    most: usize,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<(Hits, Update)> {
    search_in(config, Scope::Machine, query, files, most, tell)
}

/// Like [`search_machine`], in the index of `scope`. `files` are all sessions of the scope.
///
/// # Errors
///
/// The errors of [`search_machine`].
pub fn search_in(
    config: &Config,
    scope: Scope<'_>,
    query: &Query,
    files: &[SessionFile],
    most: usize,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<(Hits, Update)> {
    let search = || {
        let search = Search::open(config, scope)?;
        let update = search.update(files, tell)?;
        Ok((search.find(query, most)?, update))
    };
    match search() {
        // The damaged index has been deleted. The second search builds a new one.
        Err(SearchError::Damaged) => search(),
        done => done,
    }
}

impl Search {
    /// Opens the index of a scope, or makes an empty one. Deletes an index of another version, one
    /// made with other rules for secrets, and one that is too damaged to be opened.
    ///
    /// # Errors
    ///
    /// `Busy`, `Index` and `Folder`; `Library` if the user's rules are invalid, or if the folder of
    /// the index cannot be made.
    pub fn open(config: &Config, scope: Scope<'_>) -> Result<Search> {
        let rules = rules(config, &[])?;
        let made_with = format!("{} {} {rules:?}", tables::VERSION, env!("CARGO_PKG_VERSION"));
        let version = blake3::hash(made_with.as_bytes()).to_hex()[..16].to_owned();
        let place = IndexLocation::new(config, scope.name(), version)?;
        let config = config.clone();
        let connection = Mutex::new(None);
        let done = AtomicUsize::new(0);
        let search = Search { config, place, connection, done, of: AtomicUsize::new(0) };
        match search.read(|_| Ok(())) {
            // The damaged index was replaced by an empty one, which can be used.
            Ok(()) | Err(SearchError::Damaged) => Ok(search),
            Err(err) => Err(err),
        }
    }

    /// The best hits of `query`, at most `most`; 0 counts as 1.
    ///
    /// # Errors
    ///
    /// `Damaged` if the index was damaged or missing, and an empty one has replaced it; `Busy` if
    /// another process is writing when it is to be replaced; `Index` and `Folder` if it cannot be
    /// read; `Library` if the folder of the new index cannot be made.
    pub fn find(&self, query: &Query, most: usize) -> Result<Hits> {
        self.read(|connection| found::find(connection, query, most.max(1)))
    }

    /// Like [`find`](Search::find), but if no message matches and the query asks for words, returns
    /// the best messages that have at least one of them, also with another ending. The flag says
    /// whether the query was relaxed in this way.
    ///
    /// # Errors
    ///
    /// As [`find`](Search::find).
    pub fn find_or_relax(&self, query: &Query, most: usize) -> Result<(Hits, bool)> {
        self.read(|connection| found::find_or_relax(connection, query, most.max(1)))
    }

    /// The progress of an update that runs on this value. `None` if none runs, or if it has done
    /// all sessions.
    pub fn progress(&self) -> Option<Progress> {
        let of = self.of.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed);
        (done < of).then_some(Progress { done, of })
    }

    /// Reads the whole index. If it is damaged or missing, replaces it by an empty one.
    ///
    /// # Errors
    ///
    /// `Damaged` if it was damaged or missing; `Busy` if it is being written; `Index` and `Folder`
    /// if it cannot be read; `Library` if the folder of the new index cannot be made.
    pub fn check(&self) -> Result<()> {
        let lock = self.place.lock()?.ok_or(SearchError::Busy)?;
        let index = self.place.index()?;
        let is_whole = index.as_ref().map_or(Ok(false), Index::is_whole)?;
        drop(lock);
        if is_whole { Ok(()) } else { self.delete(index.as_ref()) }
    }

    /// Runs `work` on the index. If the index is damaged or missing and another process has
    /// replaced it meanwhile, runs `work` again on the new one. Otherwise replaces a damaged or
    /// missing index by an empty one and returns `Damaged`.
    fn read<T>(&self, work: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut damaged = None;
        loop {
            let index = self.place.index()?;
            if index == damaged {
                return self.delete(index.as_ref());
            }
            let done = index.as_ref().map(|index| self.read_index(index, &work));
            match done.map(|done| done.map_err(SearchError::from)) {
                Some(Err(SearchError::Damaged)) | None => damaged = index,
                Some(done) => return done,
            }
        }
    }

    /// Runs `work` on this index, over the connection of the last search if there is one.
    fn read_index<T>(
        &self,
        index: &Index,
        work: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let kept = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
        let connection = match kept {
            Some((of, connection)) if of == *index => connection,
            Some(_) | None => index.open()?,
        };
        // After an error the connection is closed.
        let done = work(&connection)?;
        let kept = Some((index.clone(), connection));
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        Ok(done)
    }

    /// Replaces a damaged or missing index by an empty one, and returns `Damaged`.
    fn delete<T>(&self, damaged: Option<&Index>) -> Result<T> {
        self.place.replace(&self.config, damaged)?;
        Err(SearchError::Damaged)
    }
}
