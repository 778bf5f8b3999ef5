//! The search index. Each call of a tool that needs the index updates it first.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use epitome::Config;
use epitome::agents::SessionFile;
use epitome_search::{Result, Scope, Search, SearchError, Update};

/// How long a call of a tool waits for an update of the index. After that, the call searches what
/// is indexed so far.
const WAIT: Duration = Duration::from_secs(10);

/// The search index. The first call of a tool that needs it opens it.
pub(crate) struct SessionIndex {
    config: Config,
    search: OnceLock<Arc<Search>>,
    update: Mutex<Option<Receiver<Result<Update>>>>,
}

/// Whether the index has all sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// The index has all sessions, as they were when the update began.
    All,
    /// An update of this or of another process is still running, or the update failed with a panic.
    Part,
}

impl SessionIndex {
    pub(crate) fn new(config: Config) -> SessionIndex {
        SessionIndex { config, search: OnceLock::new(), update: Mutex::new(None) }
    }

    /// Updates the index from the sessions `files`, and calls `look` with it. If the index turns
    /// out to be damaged, an empty one replaces it, and both are done once more.
    ///
    /// # Errors
    ///
    /// The errors of `look`, of [`Search::open`] and of [`Search::update`]. For a damaged index, an
    /// error is returned only if the second attempt fails, too.
    pub(crate) fn look<T>(
        &self,
        files: &[SessionFile],
        look: impl Fn(&Search) -> Result<T>,
    ) -> Result<(T, Coverage)> {
        match self.look_once(files, &look) {
            // An empty index has replaced the damaged one: this fills it.
            Err(SearchError::Damaged) => self.look_once(files, &look),
            looked => looked,
        }
    }

    fn look_once<T>(
        &self,
        files: &[SessionFile],
        look: impl Fn(&Search) -> Result<T>,
    ) -> Result<(T, Coverage)> {
        let search = self.search()?;
        let coverage = self.update(&search, files)?;
        Ok((look(&search)?, coverage))
    }

    fn search(&self) -> Result<Arc<Search>> {
        if let Some(search) = self.search.get() {
            return Ok(Arc::clone(search));
        }
        let search = Arc::new(Search::open(&self.config, Scope::Machine)?);
        Ok(Arc::clone(self.search.get_or_init(|| search)))
    }

    /// Waits until an update has ended, but no longer than [`WAIT`]. If an earlier call stopped
    /// waiting for its update, this is that update; otherwise a new one is started.
    fn update(&self, search: &Arc<Search>, files: &[SessionFile]) -> Result<Coverage> {
        let mut running = self.update.lock().unwrap_or_else(PoisonError::into_inner);
        let done = running.take().unwrap_or_else(|| {
            let (done, update) = channel();
            let search = Arc::clone(search);
            let files = files.to_vec();
            // Nothing receives the result if the server ends first.
            std::thread::spawn(move || done.send(search.update(&files, &|_| {})).ok());
            update
        });
        match done.recv_timeout(WAIT) {
            Ok(updated) => match updated? {
                Update::Done(_) => Ok(Coverage::All),
                Update::Elsewhere => Ok(Coverage::Part),
            },
            Err(RecvTimeoutError::Timeout) => {
                *running = Some(done);
                Ok(Coverage::Part)
            }
            // The thread panicked.
            Err(RecvTimeoutError::Disconnected) => Ok(Coverage::Part),
        }
    }
}
