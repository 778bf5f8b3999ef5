//! What is known of the sessions, and who reads those of which nothing is.
//!
//! Names, sizes and times are asked of the disk whenever the list is. What sessions say is read
//! beside that, the newest first, and kept on disk by the library (`list`): a list is there at
//! once, and is complete a little later.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use epitome::find::SessionFile;
use epitome::recipes::{self, Overlay};
use epitome::{Config, Listed, Settings, known, list};
use epitome_passes::built_in;

/// How long a list waits for what it shows to be read.
const PATIENCE: Duration = Duration::from_millis(400);
/// Sessions that are read at once: few at first, so that the first are soon there.
const FEW: usize = 64;
const MANY: usize = 4096;

/// A session of the list.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// What it is called in addresses.
    pub(crate) key: String,
    pub(crate) file: SessionFile,
    /// What it says, once it was read.
    pub(crate) seen: Option<Arc<Listed>>,
}

pub(crate) struct Shelf {
    config: Config,
    settings: Settings,
    inside: Mutex<Inside>,
    /// Some more were read.
    read: Condvar,
}

#[derive(Default)]
struct Inside {
    /// The newest first.
    kept: Vec<Kept>,
    by_key: HashMap<String, usize>,
    is_reading: bool,
}

impl Shelf {
    pub(crate) fn new(config: Config, settings: Settings) -> Shelf {
        epitome::Screen::new(&config).prepare();
        Shelf { config, settings, inside: Mutex::default(), read: Condvar::new() }
    }

    /// What is there now. What is known of a session that did not change stays known; who reads the
    /// others begins to.
    pub(crate) fn refresh(self: &Arc<Self>, files: Vec<SessionFile>) {
        let mut inside = self.inside();
        let mut before: HashMap<PathBuf, Kept> =
            inside.kept.drain(..).map(|kept| (kept.file.path.clone(), kept)).collect();
        let mut kept: Vec<Kept> = files
            .into_iter()
            .map(|file| match before.remove(&file.path) {
                Some(known)
                    if is_as_it_was(&known.file, &file)
                        && known.seen.as_ref().is_none_or(|it| it.is_current(&self.config)) =>
                {
                    known
                }
                Some(known) => Kept { file, seen: None, ..known },
                None => Kept { key: key(&file.path), file, seen: None },
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
            let shelf = Arc::clone(self);
            std::thread::spawn(move || shelf.read_all());
        }
    }

    /// The sessions, the newest first, once what `shown` picks of them is read, or after a moment.
    pub(crate) fn list(&self, shown: impl Fn(&[Kept]) -> Vec<usize>) -> Vec<Kept> {
        let inside = self.inside();
        let waits = |inside: &mut Inside| {
            let unread = |&at: &usize| inside.kept.get(at).is_some_and(|it| it.seen.is_none());
            inside.is_reading && shown(&inside.kept).iter().any(unread)
        };
        let waited = self.read.wait_timeout_while(inside, PATIENCE, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.kept.clone()
    }

    /// The session of a key.
    pub(crate) fn file(&self, key: &str) -> Option<SessionFile> {
        let inside = self.inside();
        inside.by_key.get(key).map(|&at| inside.kept[at].file.clone())
    }

    /// Reads what nobody has read yet, the newest first. What is known from another time is there
    /// before that.
    fn read_all(&self) {
        // What is wrong with the recipe is reported where a session is planned.
        let recipe = recipes::resolve(&self.config, &self.settings, None, &Overlay::default())
            .ok()
            .or_else(|| built_in("epitome"))
            .expect("the recipe is part of the program");
        let wanted = self.unread(usize::MAX);
        let known = known(&self.config, &wanted, &recipe);
        self.learn(wanted.into_iter().zip(known));
        let mut at_once = FEW;
        loop {
            let wanted = self.unread(at_once);
            if wanted.is_empty() {
                return;
            }
            let listed = list(&self.config, wanted.clone(), &recipe);
            self.learn(wanted.into_iter().zip(listed.into_iter().map(Some)));
            at_once = (at_once * 4).min(MANY);
        }
    }

    /// So many of those that nobody has read. If there are none, nobody reads any more.
    fn unread(&self, n: usize) -> Vec<SessionFile> {
        let mut inside = self.inside();
        let unread = inside.kept.iter().filter(|kept| kept.seen.is_none());
        let files: Vec<SessionFile> = unread.take(n).map(|kept| kept.file.clone()).collect();
        inside.is_reading = !files.is_empty();
        self.read.notify_all();
        files
    }

    /// What was seen of files, unless they are others by now.
    fn learn(&self, seen: impl Iterator<Item = (SessionFile, Option<Listed>)>) {
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

/// What a session is called in an address: nothing of its path is to be seen there.
pub(crate) fn key(path: &Path) -> String {
    blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex()[..20].to_owned()
}

fn is_as_it_was(one: &SessionFile, other: &SessionFile) -> bool {
    (one.modified, one.size) == (other.modified, other.size)
}
