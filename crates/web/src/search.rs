//! Full-text search over the sessions of all agents, on an index that is kept on disk.
//!
//! The index holds what the pages of a session show, without secrets and personal data: it can be
//! thrown away and made anew at any time. It knows sessions by their path, length and time, and of
//! a changed session only what changed is written. One process at a time writes; any number search.
//!
//! # Absent
//!
//! What no page of a session shows: pictures, system prompts, records that say nothing to a model.
//! Stems of words: sessions are of many languages, and half of them is code.

mod found;
mod query;
mod shape;
mod snippet;
mod update;
mod words;

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use epitome::{Config, rules};
use epitome_redact::RuleFault;
use tantivy::{Index, IndexReader, ReloadPolicy, Searcher, TantivyError};

pub use found::{Hit, Hits};
pub use query::{BadQuery, Query};
pub use snippet::Run;
pub use update::{Progress, Update, Updated};

use shape::Shape;

/// Changes with whatever is written into the index: another number is another index.
const FORM: u32 = 1;
/// What is taken out of everything before it reaches the index.
const TAKEN_OUT: [&str; 2] = ["secrets", "pii"];

/// The search, and the index that it looks into.
pub struct Search {
    config: Config,
    /// The folder of all indexes, the one of today's form among them.
    folder: PathBuf,
    name: String,
    opened: RwLock<Arc<Opened>>,
    done: AtomicUsize,
    of: AtomicUsize,
}

/// Which sessions an index is of: those of one are not those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All of this machine.
    Machine,
    /// Those in a folder and below it.
    Below(&'a Path),
}

impl Scope<'_> {
    /// What its folder is called.
    fn name(self) -> String {
        match self {
            Scope::Machine => "search".to_owned(),
            Scope::Below(folder) => {
                let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
                format!("search-below/{:016x}", shape::folder(&folder))
            }
        }
    }
}

/// Why a search or an update does not work.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The index is not there yet, and another process is making it.
    #[error("another epitome is making the search index; try again in a moment")]
    Busy,
    /// What stood there made no sense. It is gone, and the next update makes it anew.
    #[error("the search index was damaged; the next update makes it anew")]
    Damaged,
    /// It cannot be written or read.
    #[error("the search index cannot be used")]
    Index(#[source] TantivyError),
    /// The user's rules for secrets cannot be used: without them nothing is indexed.
    #[error("the rules for secrets cannot be used")]
    Rules(#[source] RuleFault),
    /// Something of the library.
    #[error(transparent)]
    Library(#[from] epitome::Error),
}

/// What a search may come to.
pub type Result<T> = std::result::Result<T, SearchError>;

impl Search {
    /// Opens the index of some sessions, or makes an empty one. An index of another form, or made
    /// with other rules for secrets, is thrown away, and so is one that cannot be opened.
    ///
    /// # Errors
    ///
    /// `Busy`, `Index`, and those of the folder and of the user's rules.
    pub fn open(config: &Config, scope: Scope<'_>) -> Result<Search> {
        let folder = config.cache(&scope.name())?;
        let rules = rules(config, &[])?;
        let made_with = format!("{FORM} {} {rules:?}", env!("CARGO_PKG_VERSION"));
        let name = blake3::hash(made_with.as_bytes()).to_hex()[..16].to_owned();
        let opened = match Opened::at(&folder.join(&name)) {
            Ok(opened) => opened,
            Err(_) => Opened::anew(&folder, &name)?,
        };
        Ok(Search {
            config: config.clone(),
            folder,
            name,
            opened: RwLock::new(Arc::new(opened)),
            done: AtomicUsize::new(0),
            of: AtomicUsize::new(0),
        })
    }

    /// What `query` finds, the best first, at most so many.
    ///
    /// # Errors
    ///
    /// `Damaged` when the index makes no sense; `Index` when it cannot be read.
    pub fn find(&self, query: &Query, most: usize) -> Result<Hits> {
        self.guarded(|opened| found::find(opened, query, most.max(1)))
    }

    /// How far an update is that this process is doing.
    pub fn progress(&self) -> Option<Progress> {
        let of = self.of.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed);
        (done < of).then_some(Progress { done, of })
    }

    /// Reads all of the index and throws it away if a byte of it is not what was written.
    ///
    /// # Errors
    ///
    /// `Damaged` when it was; `Busy` when another process is writing it.
    pub fn check(&self) -> Result<()> {
        let damaged = self.guarded(|opened| opened.index.validate_checksum())?;
        if damaged.is_empty() { Ok(()) } else { self.throw_away().and(Err(SearchError::Damaged)) }
    }

    /// Runs `work` on the index. What is damaged may also break promises inside the library that
    /// reads it.
    fn guarded<T>(&self, work: impl Fn(&Opened) -> tantivy::Result<T>) -> Result<T> {
        let attempt = || attempt(|| work(&self.opened()));
        match attempt() {
            Err(SearchError::Damaged) => {}
            done => return done,
        }
        // Another process may have made it anew.
        if let Ok(opened) = Opened::at(&self.folder.join(&self.name)) {
            self.swap(opened);
            match attempt() {
                Err(SearchError::Damaged) => {}
                done => return done,
            }
        }
        self.throw_away()?;
        Err(SearchError::Damaged)
    }

    fn throw_away(&self) -> Result<()> {
        self.swap(Opened::anew(&self.folder, &self.name)?);
        Ok(())
    }

    fn swap(&self, opened: Opened) {
        *self.opened.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(opened);
    }

    fn opened(&self) -> Arc<Opened> {
        Arc::clone(&self.opened.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An index, and what reads it.
struct Opened {
    index: Index,
    reader: IndexReader,
    shape: Shape,
}

impl Opened {
    fn at(folder: &Path) -> tantivy::Result<Opened> {
        let (schema, shape) = Shape::new();
        let index = Index::open_in_dir(folder)?;
        if index.schema() != schema {
            return Err(TantivyError::SchemaError("another form".to_owned()));
        }
        index.tokenizers().register(words::NAME, words::Words::default());
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Opened { index, reader, shape })
    }

    /// An empty index in the place of whatever stands there, and of those of other forms. Who
    /// searches them goes on with the files that it has open.
    fn anew(folder: &Path, name: &str) -> Result<Opened> {
        let _lock = lock(folder)?.ok_or(SearchError::Busy)?;
        let here = folder.join(name);
        // Another process may have been faster.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                fs::remove_dir_all(entry.path()).map_err(io_error)?;
            }
        }
        fs::create_dir(&here).map_err(io_error)?;
        Index::create_in_dir(&here, Shape::new().0).map_err(SearchError::Index)?;
        Opened::at(&here).map_err(SearchError::Index)
    }

    /// What the index holds now, whoever wrote it.
    fn searcher(&self) -> tantivy::Result<Searcher> {
        self.reader.reload()?;
        Ok(self.reader.searcher())
    }
}

fn attempt<T>(work: impl FnOnce() -> tantivy::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(err)) if !is_damage(&err) => Err(SearchError::Index(err)),
        Ok(Err(_)) | Err(_) => Err(SearchError::Damaged),
    }
}

/// The right to write, if nobody has it. It goes with the file, also when the process is killed.
fn lock(folder: &Path) -> Result<Option<File>> {
    let file = File::create(folder.join("lock")).map_err(io_error)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(err)) => Err(io_error(err)),
    }
}

fn io_error(err: std::io::Error) -> SearchError {
    SearchError::Index(err.into())
}

/// Whether an error says that the index is not what was written, rather than that the disk or the
/// system refuses.
fn is_damage(err: &TantivyError) -> bool {
    use tantivy::directory::error::OpenReadError;

    match err {
        TantivyError::DataCorruption(_)
        | TantivyError::IncompatibleIndex(_)
        | TantivyError::SchemaError(_)
        | TantivyError::FieldNotFound(_)
        | TantivyError::InternalError(_)
        | TantivyError::DeserializeError(_)
        | TantivyError::OpenReadError(
            OpenReadError::FileDoesNotExist(_) | OpenReadError::IncompatibleIndex(_),
        ) => true,
        TantivyError::IoError(err) => is_nonsense(err),
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. }) => {
            is_nonsense(io_error)
        }
        _ => false,
    }
}

fn is_nonsense(err: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput, NotFound, UnexpectedEof};

    matches!(err.kind(), InvalidData | InvalidInput | NotFound | UnexpectedEof)
}
