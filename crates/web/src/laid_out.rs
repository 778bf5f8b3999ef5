//! A session and its sub-agents, rendered as pages. The session is part 0 of these pages, and its
//! sub-agents are the other parts.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::StatusCode;
use epitome_render::{Html, Sheet};

use crate::problem::Problem;

/// The maximum number of bytes of HTML that are kept of one session. A single page is kept even if
/// it is longer.
pub(crate) const OF_ONE: usize = 16 << 20;

/// One rendered page, with its position among the pages and with facts about the whole session.
#[derive(Clone, Debug)]
pub(crate) struct ToldSheet {
    pub(crate) sheet: Sheet,
    pub(crate) file: String,
    /// Whether this is the last page, to which new turns are added.
    pub(crate) is_last: bool,
    pub(crate) part: usize,
    pub(crate) sub_agents: usize,
    /// Whether a compaction is in effect in the session or in one of its sub-agents.
    pub(crate) is_compacted: bool,
    /// The id that the session contains, if it has one, and the folder in which it was run.
    pub(crate) id: Option<String>,
    pub(crate) cwd: Option<String>,
}

/// The rendered pages of a session and its sub-agents. Of a long session only some are kept.
#[derive(Default)]
pub(crate) struct LaidOut {
    /// The index of the last transcript item on each page, by part.
    last_items: Vec<Vec<usize>>,
    /// The pages, by part and page number.
    pub(crate) sheets: HashMap<(usize, usize), Arc<ToldSheet>>,
}

impl LaidOut {
    /// Renders pages as long as they fit into `most` bytes of HTML: first the given page, then the
    /// other pages of its part, then those of the other parts. The given page is kept even if it is
    /// longer.
    pub(crate) fn from_pages(
        pages: &[Html<'_>],
        (part, page): (usize, usize),
        most: usize,
    ) -> LaidOut {
        let last_items: Vec<Vec<usize>> = pages.iter().map(Html::last_items).collect();
        let count = |part: usize| pages.get(part).map_or(0, Html::pages);
        let of_part = (page..count(part)).chain(0..page.min(count(part)));
        let others = (0..pages.len()).filter(|other| *other != part);
        let of_others = others.flat_map(|other| (0..count(other)).map(move |page| (other, page)));
        let mut sheets = HashMap::new();
        let mut len = 0;
        for (part, page) in of_part.map(|page| (part, page)).chain(of_others) {
            // No further page can fit, so none is rendered.
            if len >= most && !sheets.is_empty() {
                break;
            }
            let html = &pages[part];
            let sheet = html.sheet(page);
            len += sheet.len();
            if len > most && !sheets.is_empty() {
                break;
            }
            let file = html.file(page);
            let is_last = page + 1 == html.pages();
            let id = html.facts().id.clone();
            let cwd = html.facts().cwd.clone();
            let sub_agents = pages.len() - 1;
            let is_compacted = pages.iter().any(Html::is_compacted);
            let part_sheet =
                ToldSheet { sheet, file, is_last, part, sub_agents, is_compacted, id, cwd };
            sheets.insert((part, page), Arc::new(part_sheet));
        }
        LaidOut { last_items, sheets }
    }

    /// The index, from 0, of the page that shows a transcript item of a part. If no page shows the
    /// item, the index of the page with the next item that is shown, or else of the last page. 0 if
    /// there is no such part.
    pub(crate) fn page_of(&self, part: usize, item: usize) -> usize {
        let Some(last_items) = self.last_items.get(part) else { return 0 };
        let found = last_items.iter().position(|last| item <= *last);
        found.unwrap_or(last_items.len().saturating_sub(1))
    }

    /// A page, or an error if there is no page with that number. `None` if the page was not kept.
    pub(crate) fn sheet(
        &self,
        part: usize,
        page: usize,
    ) -> Option<Result<Arc<ToldSheet>, Problem>> {
        match self.sheets.get(&(part, page)) {
            Some(told) => Some(Ok(Arc::clone(told))),
            None if self.last_items.get(part).is_some_and(|pages| page < pages.len()) => None,
            None => Some(Err(not_there())),
        }
    }
}

pub(crate) fn not_there() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "the session has no such page")
        .hint("it may have become shorter: its first page is `session.html`")
}
