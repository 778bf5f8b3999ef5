//! Waits until files in agents' folders change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// How long further changes are collected after the first one, so that they are stored as one pack.
const COLLECT: Duration = Duration::from_millis(500);

/// Watches folders for changes that the system reports.
pub struct FolderWatch {
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<(PathBuf, bool)>,
    signals: Arc<Signals>,
    /// Why a folder is not watched, or why the system cannot report changes.
    failure: Option<String>,
}

/// Ends the waiting of a [`FolderWatch`], from any thread.
#[derive(Clone)]
pub struct Stopper(Arc<Signals>);

/// Why a [`FolderWatch`] stopped waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wake {
    /// These paths changed.
    Changed(BTreeSet<PathBuf>),
    /// The time limit was reached, or changes were missed: everything may have changed.
    Everything,
    /// A [`Stopper`] has ended the waiting.
    Stop,
}

#[derive(Default)]
struct Signals {
    pending: Mutex<Pending>,
    changed: Condvar,
}

#[derive(Default)]
struct Pending {
    paths: BTreeSet<PathBuf>,
    /// Whether the system failed to report some changes.
    is_missed: bool,
    is_stopped: bool,
}

impl Stopper {
    /// Ends the waiting now, or as soon as it begins.
    pub fn stop(&self) {
        self.0.pending().is_stopped = true;
        self.0.changed.notify_all();
    }
}

impl FolderWatch {
    /// Whether no change was reported since the last wait.
    pub fn is_quiet(&self) -> bool {
        let pending = self.signals.pending();
        pending.paths.is_empty() && !pending.is_missed
    }
}

impl Signals {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, event: notify::Result<Event>) {
        let mut pending = self.pending();
        match event {
            // Reading a file is no change: the keeper itself reads files.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) if event.need_rescan() => pending.is_missed = true,
            Ok(event) => pending.paths.extend(event.paths),
            Err(_) => pending.is_missed = true,
        }
        drop(pending);
        self.changed.notify_all();
    }
}

impl FolderWatch {
    /// A watch without folders. If the system cannot report changes, or `polls` is true, only the
    /// time limit of [`wait`](FolderWatch::wait) or a [`Stopper`] ends the waiting.
    pub fn new(polls: bool) -> FolderWatch {
        let signals = Arc::<Signals>::default();
        let to = Arc::clone(&signals);
        let made = match polls {
            true => None,
            false => Some(notify::recommended_watcher(move |event| to.add(event))),
        };
        let (watcher, failure) = match made {
            None => (None, None),
            Some(Ok(watcher)) => (Some(watcher), None),
            Some(Err(err)) => (None, Some(err.to_string())),
        };
        FolderWatch { watcher, watched: BTreeSet::new(), signals, failure }
    }

    /// A handle that ends the waiting.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.signals))
    }

    /// Adds a folder to the watched ones, with all folders in it if `is_deep`. Does nothing if the
    /// folder is watched already or does not exist, or if the system reports no changes to this
    /// watch.
    pub fn add(&mut self, folder: &Path, is_deep: bool) {
        let Some(watcher) = &mut self.watcher else { return };
        if !folder.is_dir() || !self.watched.insert((folder.to_owned(), is_deep)) {
            return;
        }
        let mode = if is_deep { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        if let Err(err) = watcher.watch(folder, mode) {
            self.watched.remove(&(folder.to_owned(), is_deep));
            self.failure = Some(err.to_string());
        }
    }

    /// Why a folder is not watched, or why the system cannot report changes. `None` if there is no
    /// such problem. After a failure, folders must be scanned at short intervals.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Whether the changes in at least one folder are found only by scans.
    pub fn polls(&self) -> bool {
        self.watcher.is_none() || self.failure.is_some()
    }

    /// Waits until something changes, for at most `at_most`, and then collects further changes for
    /// half a second.
    pub fn wait(&self, at_most: Duration) -> Wake {
        let end = Instant::now() + at_most;
        let mut pending = self.signals.pending();
        while !pending.is_stopped && !pending.is_missed && pending.paths.is_empty() {
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return Wake::Everything;
            };
            pending = self.wait_for(pending, left);
        }
        let end = Instant::now() + COLLECT;
        while !pending.is_stopped {
            let Some(left) = end.checked_duration_since(Instant::now()) else { break };
            pending = self.wait_for(pending, left);
        }
        if pending.is_stopped {
            return Wake::Stop;
        }
        let Pending { paths, is_missed, .. } = std::mem::take(&mut *pending);
        if is_missed { Wake::Everything } else { Wake::Changed(paths) }
    }

    fn wait_for<'p>(
        &self,
        pending: MutexGuard<'p, Pending>,
        at_most: Duration,
    ) -> MutexGuard<'p, Pending> {
        let waited = self.signals.changed.wait_timeout(pending, at_most);
        waited.map_or_else(|err| err.into_inner().0, |(pending, _)| pending)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// More time than the system needs to report a change.
    const LONG: Duration = Duration::from_mins(2);

    #[test]
    fn a_changed_file_ends_the_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("a folder");
        fs::create_dir(folder.join("project")).expect("a folder");
        let mut watch = FolderWatch::new(false);
        watch.add(&folder, true);
        assert_eq!(watch.failure(), None);
        let path = folder.join("project/s.jsonl");
        fs::write(&path, "a line\n").expect("a file");
        let Wake::Changed(paths) = watch.wait(LONG) else { panic!("it changed") };
        assert!(paths.contains(&path), "{paths:?}");
    }

    #[test]
    fn reading_is_no_change_and_time_and_a_stop_end_the_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s.jsonl");
        fs::write(&path, "a line\n").expect("a file");
        let mut watch = FolderWatch::new(false);
        watch.add(folder.path(), true);
        fs::read(&path).expect("a file");
        assert_eq!(watch.wait(Duration::ZERO), Wake::Everything);
        watch.stopper().stop();
        assert_eq!(watch.wait(LONG), Wake::Stop);
    }
}
