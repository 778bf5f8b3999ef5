//! The state shared by all requests.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use epitome::agents::{self, SessionFile};
use epitome::archive::Hash;
use epitome::history::{History, Version, archive_stamp};
use epitome::keep::FileKey;
use epitome::render::{ListPrices, RenderOptions, RenderSource};
use epitome_redact::Redactor;
use epitome_render::{Detail, Html, PageName};
use tokio::sync::{RwLock, watch};

use crate::options::{Options, files};
use crate::page_cache::{Key, PageCache};
use crate::problem::Problem;
use crate::seeker::Seeker;
use crate::session_cache::{CachedSession, SessionCache};
use crate::stamp::Stamp;
use crate::vault_cache::VaultCache;

/// The state shared by all requests.
pub(crate) struct Viewer {
    pub(crate) options: Options,
    /// The path of the list of sessions: the token between slashes. All other paths begin with it.
    pub(crate) root: String,
    pub(crate) session_cache: Arc<SessionCache>,
    pub(crate) seeker: Arc<Seeker>,
    /// Changes when the server must end.
    pub(crate) stopped: watch::Receiver<bool>,
    /// Locked for reading while a session is written. Before the server ends, it takes the lock for
    /// writing, and so waits until no session is being written.
    pub(crate) writes: Arc<RwLock<()>>,
    /// The rendered pages of the sessions that were opened last.
    pub(crate) pages: PageCache,
    /// How many times a session was read for display, for tests.
    pub(crate) reads: AtomicUsize,
    /// The versions of sessions that `epitome keep` has stored.
    pub(crate) vault: VaultCache,
    /// The ids that sessions contain, by path, if the sessions' files are named differently. The
    /// archive uses these ids.
    ids: Mutex<HashMap<PathBuf, String>>,
}

impl Viewer {
    pub(crate) fn new(options: Options, root: String, stopped: watch::Receiver<bool>) -> Viewer {
        let session_cache =
            Arc::new(SessionCache::new(options.config.clone(), options.settings.clone()));
        let seeker = Arc::new(Seeker::new(options.config.clone(), options.which.clone()));
        // New text is indexed while the user looks at the list.
        seeker.refresh();
        let (writes, pages, reads, vault, ids) = Default::default();
        Viewer { options, root, session_cache, seeker, stopped, writes, pages, reads, vault, ids }
    }

    /// The current sessions.
    pub(crate) fn files(&self) -> Vec<SessionFile> {
        files(&self.options.config, &self.options.which)
    }

    /// The session with this key in URLs. Only sessions of the list are opened: no path comes from
    /// a URL.
    pub(crate) fn session(&self, key: &str) -> Result<SessionFile, Problem> {
        let mut found = self.session_cache.file(key);
        if !found.as_ref().is_some_and(|file| epitome::storage::exists(&file.path)) {
            self.session_cache.refresh(self.files());
            found = self.session_cache.file(key);
        }
        found.ok_or_else(|| {
            Problem::new(StatusCode::NOT_FOUND, "this session is not there any more")
                .hint("it was moved or removed, or belongs to another `epitome serve`")
        })
    }

    /// A text, redacted and with invisible characters made visible.
    pub(crate) fn redacted(&self, text: &str) -> String {
        let redacted = self.options.finder.as_ref().map(|it| Redactor::new(it).text(text).into());
        epitome_render::visible(&redacted.unwrap_or_else(|| text.to_owned()))
    }

    /// A redactor for texts of a session; `None` if nothing is redacted. It knows all secrets of
    /// the session, also those of removed texts, so that they are redacted wherever they occur.
    pub(crate) fn redactor(&self, session: &Path) -> epitome::Result<Option<Redactor<'_>>> {
        let Some(finder) = self.options.finder.as_ref() else { return Ok(None) };
        let mut redactor = Redactor::new(finder);
        History::open(&self.options.config, session, None, Version::AsItWas)?.learn(&mut redactor);
        Ok(Some(redactor))
    }

    /// The title of a session, or its id, in at most `most` characters, redacted for display.
    pub(crate) fn title(&self, session: &CachedSession, most: usize) -> String {
        let title = session.info().and_then(|info| info.title.as_deref()).unwrap_or_default();
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = if title.is_empty() { &session.file.id } else { &title };
        epitome_model::short(&self.redacted(title), most)
    }

    /// The key under which the pages of a session in its current state are cached.
    pub(crate) fn key_of(&self, file: &SessionFile) -> Key {
        let of_parts = agents::companions(&file.path);
        let files = std::iter::once(&file.path).chain(&of_parts).map(|path| Stamp::read(path));
        let prices = Stamp::of_file(&self.options.config.models());
        let id = self.ids().get(&file.path).cloned();
        let id = id.as_deref().unwrap_or(&file.id);
        let archive = archive_stamp(&self.options.config, file.agent, id);
        let others = [prices, Stamp(archive.to_string())];
        Key { session: file.path.clone(), stamps: files.chain(others).collect() }
    }

    /// The key under which the pages of a version of a session are cached. `content` is the hash of
    /// the version: it changes if a text in the version is forgotten.
    pub(crate) fn key_of_version(&self, file: &FileKey, number: u64, content: Hash) -> Key {
        let prices = Stamp::of_file(&self.options.config.models());
        let archive = archive_stamp(&self.options.config, &file.agent, &file.session);
        let mut session = file.path.clone().into_os_string();
        session.push(format!("@{number}"));
        let stamps = vec![prices, Stamp(archive.to_string()), Stamp(content.to_string())];
        Key { session: session.into(), stamps }
    }

    fn ids(&self) -> MutexGuard<'_, HashMap<PathBuf, String>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the id that a session contains, if the session's file is named differently.
    fn note_id(&self, file: &SessionFile, id: Option<&str>) {
        match id.filter(|id| *id != file.id) {
            Some(id) => self.ids().insert(file.path.clone(), id.to_owned()),
            None => self.ids().remove(&file.path),
        };
    }

    /// Reads a session and passes its pages to `show`, followed by the pages of its sub-agents.
    pub(crate) fn with_pages<T>(
        &self,
        file: &SessionFile,
        show: impl FnOnce(&[Html<'_>]) -> T,
    ) -> epitome::Result<T> {
        self.with_pages_at(&file.path, &file.id, |id, pages| {
            self.note_id(file, id);
            show(pages)
        })
    }

    /// Reads the session at a path and passes to `show` the id that it contains, and its pages.
    /// `id` is the id after which the session's file is named.
    pub(crate) fn with_pages_at<T>(
        &self,
        path: &Path,
        id: &str,
        show: impl FnOnce(Option<&str>, &[Html<'_>]) -> T,
    ) -> epitome::Result<T> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let reading = RenderSource::open(&self.options.config, path, None)?;
        let prices = ListPrices::from_config(&self.options.config)?;
        let how = RenderOptions {
            detail: Detail::Steps,
            redact: self.options.finder.as_ref(),
            compact: None,
            archive: &self.options.config.archive(),
            prices: Some(&prices),
        };
        let (shown, _) = reading.with_stories(
            &how,
            |part| name(part + 1).file(0),
            |stories| {
                let own = stories.first().and_then(|it| it.session.transcript.head.id.as_deref());
                let search = search_of(own.unwrap_or(id));
                let pages = stories.iter().enumerate().map(|(part, story)| {
                    let up = match part {
                        0 => ("../../".to_owned(), "Sessions".to_owned()),
                        _ => (name(0).file(0), "the session".to_owned()),
                    };
                    let overview = ("../../overview".to_owned(), "Overview".to_owned());
                    let html =
                        Html::with_pages(story, name(part), Some(up)).with_links(vec![overview]);
                    match &search {
                        Some(address) => html.searched_at(address.clone()),
                        None => html,
                    }
                });
                show(own, &pages.collect::<Vec<_>>())
            },
        )?;
        match reading.failure() {
            Some(failure) => Err(failure),
            None => Ok(shown),
        }
    }
}

/// The beginning of the address of a search in this session alone; the words to search for are
/// appended to it. It is relative to the session's pages. `None` if the id is not a single word: a
/// query would not find it.
fn search_of(id: &str) -> Option<String> {
    let is_word = id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    (is_word && !id.is_empty()).then(|| format!("../../search?q=session%3A{id}%20"))
}

/// The file name of the pages of a part: 0 is the session itself, the others are its sub-agents.
pub(crate) fn name(part: usize) -> PageName {
    match part {
        0 => PageName::new("session"),
        part => PageName::new(&format!("agent{part}")),
    }
}

/// The part and page number of a file name: the inverse of [`name`]. `None` for other file names.
pub(crate) fn part_and_page(file: &str) -> Option<(usize, usize)> {
    let stem = file.strip_suffix(".html")?;
    let (stem, page) = match stem.split_once('-') {
        Some((stem, page)) => (stem, page.parse::<usize>().ok()?.checked_sub(1)?),
        None => (stem, 0),
    };
    let part = match stem.strip_prefix("agent") {
        Some(part) => part.parse().ok()?,
        None if stem == "session" => 0,
        None => return None,
    };
    Some((part, page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_of_a_session_names_an_id_that_is_a_word() {
        let expect = Some("../../search?q=session%3A0f3c-a_1%20");
        assert_eq!(search_of("0f3c-a_1").as_deref(), expect);
        for id in ["", "a b", "x\"", "a/b", "ä"] {
            assert_eq!(search_of(id), None, "{id}");
        }
    }

    #[test]
    fn the_file_of_a_page_says_which_it_is() {
        for part in [0, 1, 12] {
            for page in [0, 1, 9] {
                assert_eq!(part_and_page(&name(part).file(page)), Some((part, page)));
            }
        }
        for file in ["", "session", "session-0.html", "agent.html", "x.html", "session-a.html"] {
            assert_eq!(part_and_page(file), None, "{file}");
        }
    }
}
