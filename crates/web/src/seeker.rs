//! Opens the search index, brings it up to date in the background, and searches it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use epitome::{Config, sentence};

use crate::options::{Which, files};
use epitome_search::{Hits, Query as Words, Scope, Search, SearchError, Update};

/// The maximum number of hits shown.
pub(crate) const MOST: usize = 100;
/// How long a search waits at most for new text to be indexed.
const PATIENCE: Duration = Duration::from_millis(300);

/// How much of the sessions the index covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexState {
    Complete,
    /// An update is running. The value is the number of sessions that are done and the number that
    /// the update covers, if they are known.
    Indexing(Option<(usize, usize)>),
    /// Another process writes the index.
    Elsewhere,
    Failed(String),
}

/// Searches the index and keeps it up to date.
pub(crate) struct Seeker {
    config: Config,
    which: Which,
    inside: Mutex<Inside>,
    /// Notified when an update ends.
    ended: Condvar,
}

#[derive(Default)]
struct Inside {
    search: Option<Arc<Search>>,
    is_updating: bool,
    /// Whether another update was requested while one is running.
    is_wanted: bool,
    /// The result of the last update.
    last: Option<IndexState>,
}

impl Seeker {
    pub(crate) fn new(config: Config, which: Which) -> Seeker {
        let inside = Mutex::default();
        let ended = Condvar::new();
        Seeker { config, which, inside, ended }
    }

    /// Brings the index up to date on a thread of its own. If an update is running, another one
    /// follows it, because new text may be in a session that the running one has read already.
    pub(crate) fn refresh(self: &Arc<Self>) {
        let mut inside = self.inside();
        if inside.is_updating {
            inside.is_wanted = true;
            return;
        }
        inside.is_updating = true;
        let seeker = Arc::clone(self);
        std::thread::spawn(move || {
            loop {
                let update = std::panic::AssertUnwindSafe(|| seeker.update());
                let last = std::panic::catch_unwind(update)
                    .unwrap_or_else(|_| IndexState::Failed("the search broke off".to_owned()));
                let mut inside = seeker.inside();
                inside.last = Some(last);
                if !std::mem::take(&mut inside.is_wanted) {
                    inside.is_updating = false;
                    break;
                }
            }
            seeker.ended.notify_all();
        });
    }

    fn update(&self) -> IndexState {
        let search = match self.open() {
            Ok(search) => search,
            Err(SearchError::Busy) => return IndexState::Elsewhere,
            Err(err) => return IndexState::Failed(sentence(&err)),
        };
        let files = match self.which {
            // The index covers all sessions, even if only one agent's are shown.
            Which::All | Which::Of(_) => files(&self.config, &Which::All),
            Which::Below(_) => files(&self.config, &self.which),
        };
        let updated = match search.update(&files, &|_| {}) {
            // The damaged index was deleted: build it again.
            Err(SearchError::Damaged) => search.update(&files, &|_| {}),
            updated => updated,
        };
        match updated {
            Ok(Update::Done(_)) => IndexState::Complete,
            Ok(Update::Elsewhere) => IndexState::Elsewhere,
            Err(err) => IndexState::Failed(sentence(&err)),
        }
    }

    /// The index. It is opened and checked for damage if it is not open yet.
    fn open(&self) -> Result<Arc<Search>, SearchError> {
        if let Some(search) = &self.inside().search {
            return Ok(Arc::clone(search));
        }
        let scope = match &self.which {
            Which::All | Which::Of(_) => Scope::Machine,
            Which::Below(folder) => Scope::Below(folder),
        };
        let search = Arc::new(Search::open(&self.config, scope)?);
        match search.check() {
            // The index was damaged and has been deleted, or another process is writing to it. In
            // both cases, the index can be used.
            Ok(()) | Err(SearchError::Damaged | SearchError::Busy) => {}
            Err(err) => return Err(err),
        }
        self.inside().search = Some(Arc::clone(&search));
        Ok(search)
    }

    /// Searches what is indexed. Waits a moment for a running update.
    pub(crate) fn find(&self, query: &Words) -> Result<(Hits, IndexState), String> {
        let inside = self.inside();
        let waited = self.ended.wait_timeout_while(inside, PATIENCE, |it| it.is_updating);
        let inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        let search = inside.search.clone();
        let is_updating = inside.is_updating;
        let last = inside.last.clone();
        drop(inside);
        let progress = search.as_ref().and_then(|search| search.progress());
        let progress = progress.map(|progress| (progress.done, progress.of));
        let state = match (is_updating, last) {
            (true, _) | (false, None) => IndexState::Indexing(progress),
            (false, Some(last)) => last,
        };
        let Some(search) = &search else {
            return match state {
                IndexState::Failed(why) => Err(why),
                state => Ok((Hits { hits: Vec::new(), all: 0 }, state)),
            };
        };
        let hits = search.find(query, MOST).map_err(|err| sentence(&err))?;
        Ok((hits, state))
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
