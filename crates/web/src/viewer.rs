//! What every answer is made of.

use std::sync::Arc;

use axum::http::StatusCode;
use epitome::find::SessionFile;
use epitome::{ListPrices, Reading, Telling};
use epitome_redact::Redactor;
use epitome_render::{Detail, Html, PageName};
use tokio::sync::{RwLock, watch};

use crate::options::{Options, files};
use crate::problem::Problem;
use crate::seeker::Seeker;
use crate::shelf::Shelf;

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
        let shelf = Arc::new(Shelf::new(options.config.clone(), options.settings.clone()));
        let seeker = Arc::new(Seeker::new(options.config.clone(), options.which.clone()));
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
