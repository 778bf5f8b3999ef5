//! What every answer is made of.

use std::path::PathBuf;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use epitome::find::{self, SessionFile};
use epitome::{Config, ListPrices, Reading, Telling};
use epitome_model::Counter;
use epitome_redact::{Finder, Redactor};
use epitome_render::{Detail, Html, PageName};
use tokio::sync::{RwLock, watch};

use crate::hits::Seeker;
use crate::page::{Problem, problem};
use crate::shelf::Shelf;

/// Which sessions are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those of all agents on this machine.
    All,
    /// Those of one agent.
    Of(String),
    /// Those in a folder and below it.
    Below(PathBuf),
}

/// How sessions are shown.
pub struct Options {
    /// Where everything is.
    pub config: Config,
    /// Which sessions.
    pub which: Which,
    /// Looks for what is taken out of everything that is shown.
    pub finder: Option<Finder>,
    /// Counts what compacting would save.
    pub counter: &'static dyn Counter,
}

/// The state behind all answers.
pub(crate) struct Viewer {
    pub(crate) options: Options,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) seeker: Arc<Seeker>,
    /// Whether the server is to end.
    pub(crate) stopped: watch::Receiver<bool>,
    /// Read-locked while a session is written: the server waits for it.
    pub(crate) writes: Arc<RwLock<()>>,
}

impl Viewer {
    pub(crate) fn new(options: Options, stopped: watch::Receiver<bool>) -> Viewer {
        let shelf = Arc::new(Shelf::new(options.config.clone()));
        let seeker = Arc::new(Seeker::new(options.config.clone(), options.which.clone(), files));
        // What is new since the last time is indexed while the list is looked at.
        seeker.refresh();
        Viewer { options, shelf, seeker, stopped, writes: Arc::default() }
    }

    /// The sessions that are there now.
    pub(crate) fn files(&self) -> Vec<SessionFile> {
        files(&self.options.config, &self.options.which)
    }

    /// The session of a key. Nothing else is ever opened: no path comes from an address.
    pub(crate) fn session(&self, key: &str) -> Result<SessionFile, Problem> {
        let known = || self.shelf.file(key);
        let found = known().filter(|file| epitome::exists(&file.path)).or_else(|| {
            self.shelf.refresh(self.files());
            known()
        });
        found.ok_or_else(|| {
            Problem::new(StatusCode::NOT_FOUND, "this session is not there any more")
                .hint("it was moved or removed, or belongs to another `epitome serve`")
        })
    }

    /// A text of a session as it is shown.
    pub(crate) fn shown(&self, text: &str) -> String {
        let redacted = self.options.finder.as_ref().map(|it| Redactor::new(it).text(text).into());
        epitome_render::visible(&redacted.unwrap_or_else(|| text.to_owned()))
    }

    /// Reads a session and hands its pages to `show`, those of its sub-agents behind it.
    pub(crate) fn tell<T>(
        &self,
        file: &SessionFile,
        show: impl FnOnce(&[Html<'_>]) -> T,
    ) -> epitome::Result<T> {
        let reading = Reading::open(&file.path, None)?;
        let prices = ListPrices::of(&self.options.config)?;
        let how = Telling {
            detail: Detail::Steps,
            redact: self.options.finder.as_ref(),
            compact: None,
            archive: &self.options.config.archive(),
            prices: Some(&prices),
        };
        let (shown, _) = reading.tell(
            &how,
            |part| name(part + 1).file(0),
            |stories| {
                let pages = stories.iter().enumerate().map(|(part, story)| {
                    let up = match part {
                        0 => ("../../".to_owned(), "Sessions".to_owned()),
                        _ => (name(0).file(0), "the session".to_owned()),
                    };
                    Html::paged(story, name(part), Some(up))
                });
                show(&pages.collect::<Vec<_>>())
            },
        )?;
        match reading.failure() {
            Some(failure) => Err(failure),
            None => Ok(shown),
        }
    }
}

/// The sessions that are there now.
fn files(config: &Config, which: &Which) -> Vec<SessionFile> {
    match which {
        Which::All => find::sessions(config, None),
        Which::Of(agent) => find::sessions(config, Some(agent)),
        Which::Below(folder) => find::below(folder),
    }
}

/// What the pages of a session are called: 0 is the session itself, the others its sub-agents.
pub(crate) fn name(part: usize) -> PageName {
    match part {
        0 => PageName::new("session"),
        part => PageName::new(&format!("agent{part}")),
    }
}

/// Which part, and which of its pages, a file is. The way back from [`name`].
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

/// Does what reads files and reckons beside what only waits.
pub(crate) async fn beside<T: Send + 'static>(
    viewer: Arc<Viewer>,
    work: impl FnOnce(&Viewer) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Response> {
    let done = tokio::task::spawn_blocking({
        let viewer = Arc::clone(&viewer);
        move || work(&viewer)
    });
    match done.await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(told)) => Err(problem(&viewer, &told)),
        // A panic is a bug; the others are answered nevertheless.
        Err(_) => {
            let bug = Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "epitome made a mistake")
                .hint("please report what it said in the terminal, and what you did");
            Err(problem(&viewer, &bug))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
