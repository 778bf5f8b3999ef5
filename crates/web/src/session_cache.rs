//! A cache of the session list, filled in the background.
//!
//! Names, sizes and times are read from the disk for each list. The content of sessions is read in
//! the background, the newest first, and cached on disk by the library (`list`): a list is shown at
//! once, and is complete a little later.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use epitome::agents::SessionFile;
use epitome::list::{ListedSession, SessionInfo, cached_entries, list};
use epitome::recipes;
use epitome::{Config, Settings};
use epitome_model::Bytes;
use epitome_passes::built_in;

use crate::sums::Used;

/// How long a list waits at most for the sessions on its page to be read.
const PATIENCE: Duration = Duration::from_millis(400);
/// The number of sessions in the first batch that is read in the background. Each further batch has
/// four times as many, up to [`MANY`].
const FEW: usize = 64;
/// The largest number of sessions in a batch.
const MANY: usize = 4096;

/// A session of the list.
#[derive(Clone, Debug)]
pub(crate) struct CachedSession {
    /// The key of the session in URLs.
    pub(crate) key: String,
    pub(crate) file: SessionFile,
    /// What a list shows of the session, once it was read.
    pub(crate) seen: Option<Arc<ListedSession>>,
}

impl CachedSession {
    /// What was read of the session; `None` if it was not read yet or cannot be read.
    pub(crate) fn info(&self) -> Option<&SessionInfo> {
        self.seen.as_ref().and_then(|listed| listed.seen.as_ref().ok())
    }

    /// The size of the session on disk. Before the session is read, the size that the system
    /// reports for its file.
    pub(crate) fn size(&self) -> Bytes {
        self.seen.as_ref().map_or(self.file.size, |listed| listed.size())
    }

    /// Whether a compaction is in effect.
    pub(crate) fn is_compacted(&self) -> bool {
        self.seen.as_deref().is_some_and(ListedSession::is_compacted)
    }

    /// The requests of the session, if it records any.
    pub(crate) fn used(&self) -> Option<Used<'_>> {
        let info = self.info()?;
        let usage = info.usage.as_deref().filter(|usage| !usage.is_empty())?;
        Some(Used { agent: self.file.agent, project: info.cwd.as_deref(), usage })
    }

    /// The folder in which the session was run; `None` if that is not known (yet).
    pub(crate) fn project(&self) -> Option<&str> {
        self.info().and_then(|info| info.cwd.as_deref())
    }
}

pub(crate) struct SessionCache {
    config: Config,
    settings: Settings,
    inside: Mutex<Inside>,
    /// Notified when more sessions were read.
    read: Condvar,
}

#[derive(Default)]
struct Inside {
    /// The sessions, the newest first.
    kept: Vec<CachedSession>,
    by_key: HashMap<String, usize>,
    is_reading: bool,
}

impl SessionCache {
    pub(crate) fn new(config: Config, settings: Settings) -> SessionCache {
        epitome::redact::Screen::new(&config).prepare();
        SessionCache { config, settings, inside: Mutex::default(), read: Condvar::new() }
    }

    /// Updates the list to `files`. Keeps what was read of unchanged sessions, and starts to read
    /// the others in the background.
    pub(crate) fn refresh(self: &Arc<Self>, files: Vec<SessionFile>) {
        let mut inside = self.inside();
        let mut before: HashMap<PathBuf, CachedSession> =
            inside.kept.drain(..).map(|kept| (kept.file.path.clone(), kept)).collect();
        let mut kept: Vec<CachedSession> = files
            .into_iter()
            .map(|file| match before.remove(&file.path) {
                Some(known)
                    if is_as_it_was(&known.file, &file)
                        && known.seen.as_ref().is_none_or(|it| it.is_current(&self.config)) =>
                {
                    known
                }
                Some(known) => CachedSession { file, seen: None, ..known },
                None => CachedSession { key: key(&file.path), file, seen: None },
            })
            .collect();
        kept.sort_by(|one, other| {
            let newest = other.file.modified.cmp(&one.file.modified);
            newest.then_with(|| one.file.path.cmp(&other.file.path))
        });
        inside.by_key = kept.iter().enumerate().map(|(at, it)| (it.key.clone(), at)).collect();
        inside.kept = kept;
        let unread = inside.kept.iter().any(|kept| kept.seen.is_none());
        if unread && !inside.is_reading {
            inside.is_reading = true;
            let cache = Arc::clone(self);
            std::thread::spawn(move || cache.read_all());
        }
    }

    /// The sessions, the newest first. Waits until those that `shown` selects are read, but only
    /// for a short time.
    pub(crate) fn list(
        &self,
        shown: impl Fn(&[CachedSession]) -> Vec<usize>,
    ) -> Vec<CachedSession> {
        let inside = self.inside();
        let waited = self.read.wait_timeout_while(inside, PATIENCE, |inside| {
            let mut shown = shown(&inside.kept).into_iter();
            inside.is_reading
                && shown.any(|at| inside.kept.get(at).is_some_and(|it| it.seen.is_none()))
        });
        waited.unwrap_or_else(PoisonError::into_inner).0.kept.clone()
    }

    /// The session with this key in URLs. `None` if the list has no such session.
    pub(crate) fn file(&self, key: &str) -> Option<SessionFile> {
        let inside = self.inside();
        inside.by_key.get(key).map(|&at| inside.kept[at].file.clone())
    }

    /// Reads the sessions that are not cached, the newest first, after loading the cache on disk.
    fn read_all(&self) {
        // An invalid recipe is reported by the page of a plan; here the default one is used
        // instead.
        let recipe = recipes::resolve(&self.config, &self.settings, None)
            .ok()
            .or_else(|| built_in("epitome"))
            .expect("the recipe is part of the program");
        let wanted = self.unread(usize::MAX);
        let known = cached_entries(&self.config, &wanted, &recipe);
        self.learn(wanted.into_iter().zip(known));
        let mut at_once = FEW;
        loop {
            let wanted = self.unread(at_once);
            if wanted.is_empty() {
                return;
            }
            let listed = list(&self.config, wanted.clone(), &recipe, || ());
            self.learn(wanted.into_iter().zip(listed.into_iter().map(Some)));
            at_once = (at_once * 4).min(MANY);
        }
    }

    /// Returns the files of at most `n` unread sessions. If there are none, notes that reading has
    /// ended.
    fn unread(&self, n: usize) -> Vec<SessionFile> {
        let mut inside = self.inside();
        let unread = inside.kept.iter().filter(|kept| kept.seen.is_none());
        let files: Vec<SessionFile> = unread.take(n).map(|kept| kept.file.clone()).collect();
        inside.is_reading = !files.is_empty();
        self.read.notify_all();
        files
    }

    /// Stores what was read of files, unless they have changed since.
    fn learn(&self, seen: impl Iterator<Item = (SessionFile, Option<ListedSession>)>) {
        let mut inside = self.inside();
        for (file, listed) in seen {
            let at = inside.by_key.get(&key(&file.path)).copied();
            let kept = at.and_then(|at| inside.kept.get_mut(at));
            if let (Some(kept), Some(listed)) = (kept, listed)
                && is_as_it_was(&kept.file, &file)
            {
                kept.seen = Some(Arc::new(listed));
            }
        }
        drop(inside);
        self.read.notify_all();
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of a session, or of a project, in URLs: a hash of its path.
pub(crate) fn key(path: &Path) -> String {
    blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex()[..20].to_owned()
}

fn is_as_it_was(one: &SessionFile, other: &SessionFile) -> bool {
    (one.modified, one.size) == (other.modified, other.size)
}
