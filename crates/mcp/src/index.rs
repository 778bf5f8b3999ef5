//! The search index. Each call of a tool that needs the index updates it first.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use epitome::Config;
use epitome::agents::SessionFile;
use epitome_search::{Result, Scope, Search, SearchError, Update};

/// How long a call of a tool waits for an update of the index. If the update takes longer, the call
/// searches what is indexed so far.
const WAIT: Duration = Duration::from_secs(10);

/// The search index. The first call of a tool that needs it opens it.
pub(crate) struct SessionIndex {
    config: Config,
    search: OnceLock<Arc<Search>>,
    update: Mutex<Option<Receiver<Result<Update>>>>,
}

/// Whether the index that was searched was up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// The index was brought up to date before the search.
    All,
    /// An update is still running, in this or another process, or it failed with a panic. New
    /// messages may be missing from the index.
    Part,
}

impl SessionIndex {
    pub(crate) fn new(config: Config) -> SessionIndex {
        SessionIndex { config, search: OnceLock::new(), update: Mutex::new(None) }
    }

    /// Updates the index from the sessions `files`, and calls `look` with it. If the index is
    /// damaged, an empty one replaces it, and both steps are repeated once.
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
            // An empty index has replaced the damaged one: the second attempt fills it.
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

    /// Starts an update, and waits until it ends or [`WAIT`] has passed. If an earlier call did not
    /// wait until the end of its update, that update must end first. Its result is ignored: it may
    /// lack what changed after it began.
    fn update(&self, search: &Arc<Search>, files: &[SessionFile]) -> Result<Coverage> {
        let mut running = self.update.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + WAIT;
        if let Some(earlier) = running.take()
            && matches!(wait(&earlier, deadline), Err(RecvTimeoutError::Timeout))
        {
            *running = Some(earlier);
            return Ok(Coverage::Part);
        }
        let done = start(search, files);
        match wait(&done, deadline) {
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

/// Starts an update on a thread of its own. Its result is sent to the returned receiver.
fn start(search: &Arc<Search>, files: &[SessionFile]) -> Receiver<Result<Update>> {
    let (done, update) = channel();
    let search = Arc::clone(search);
    let files = files.to_vec();
    // If the server ends first, nothing receives the result.
    std::thread::spawn(move || done.send(search.update(&files, &|_| {})).ok());
    update
}

/// Waits until an update has ended, but no longer than until `deadline`.
fn wait(
    update: &Receiver<Result<Update>>,
    deadline: Instant,
) -> std::result::Result<Result<Update>, RecvTimeoutError> {
    update.recv_timeout(deadline.saturating_duration_since(Instant::now()))
}

#[cfg(test)]
mod tests {
    use epitome::agents;
    use epitome_search::{Query, UpdateCounts};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_that_is_newer_than_an_unfinished_update_is_found() {
        let home = tempfile::tempdir().expect("a folder");
        let config = Config::from_home(&home.path().canonicalize().expect("a folder"));
        let folder = config.user.join(".claude/projects/-p");
        std::fs::create_dir_all(&folder).expect("a folder");
        let id = "0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4";
        let record = json!({
            "type": "user", "uuid": "u0", "parentUuid": null, "sessionId": id, "cwd": "/p",
            "version": "2.1.329", "timestamp": "2026-11-20T10:00:00Z",
            "message": {"role": "user", "content": "Draw a zebra."},
        });
        std::fs::write(folder.join(format!("{id}.jsonl")), format!("{record}\n")).expect("a file");
        let files = agents::sessions(&config.agents, None);
        let index = SessionIndex::new(config);
        // The update of an earlier call, which ended after the call had stopped waiting for it.
        let (done, update) = channel();
        done.send(Ok(Update::Done(UpdateCounts::default()))).expect("a receiver");
        *index.update.lock().expect("a lock") = Some(update);
        let query = Query::parse("zebra").expect("a query");
        let found = index.look(&files, |search| search.find_or_relax(&query, 10));
        let ((hits, _), coverage) = found.expect("an index");
        assert_eq!((hits.all, coverage), (1, Coverage::All));
    }
}
