//! The sessions of the browser: their order, and which of them a filter finds.

use std::cmp::Reverse;

use epitome::list::{ListedSession, SessionInfo, Sort};
use epitome_model::Tokens;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::text::{one_line, short_ids};

/// A session as the browser shows it.
#[derive(Clone, Debug)]
pub struct Row {
    pub listed: ListedSession,
    /// The shortest unique beginning of the session's id that has at least eight characters.
    pub short: String,
    /// The text that a filter searches.
    words: String,
}

impl Row {
    pub fn all(listed: Vec<ListedSession>) -> Vec<Row> {
        let ids: Vec<&str> = listed.iter().map(|it| &*it.file.id).collect();
        let short = short_ids(&ids);
        let rows = listed.into_iter().zip(short).map(|(listed, short)| {
            let seen = listed.seen.as_ref().ok();
            let cwd = seen.and_then(|it| it.cwd.as_deref()).unwrap_or_default();
            let title = seen.and_then(|it| it.title.as_deref()).unwrap_or_default();
            let words = [listed.file.agent, &listed.file.id, cwd, title, state(&listed)];
            Row { words: one_line(&words.join(" "), 400), listed, short }
        });
        rows.collect()
    }

    /// What was read of the session; `None` if it could not be read.
    pub fn info(&self) -> Option<&SessionInfo> {
        self.listed.seen.as_ref().ok()
    }

    pub fn saving(&self) -> Tokens {
        self.listed.saving().unwrap_or_default()
    }

    pub fn context(&self) -> Tokens {
        self.info().and_then(|info| info.context).unwrap_or_default()
    }
}

/// The state of the session in a word; empty for a readable session that is not compacted.
pub fn state(listed: &ListedSession) -> &'static str {
    match &listed.seen {
        Ok(_) if listed.is_compacted() => "compacted",
        Ok(_) => "",
        Err(_) => "unreadable",
    }
}

/// The indices of the rows that match a filter, the best match first. Rows with less than two
/// thirds of the best match's score are left out. Without a filter, all rows in the order of
/// `sort`.
pub fn found(rows: &[Row], filter: &str, sort: Sort) -> Vec<usize> {
    let mut order: Vec<(usize, &Row)> = rows.iter().enumerate().collect();
    sort.order(&mut order, |(_, row)| (&row.listed.file, Some(&row.listed)));
    if filter.trim().is_empty() {
        return order.into_iter().map(|(at, _)| at).collect();
    }
    let pattern = Pattern::parse(filter, CaseMatching::Smart, Normalization::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut space = Vec::new();
    let scored = order.into_iter().filter_map(|(at, row)| {
        let words = Utf32Str::new(&row.words, &mut space);
        Some((pattern.score(words, &mut matcher)?, at))
    });
    let mut scored: Vec<(u32, usize)> = scored.collect();
    // Weak matches are dropped, because nearly every long title contains the letters of a filter
    // somewhere.
    let best = scored.iter().map(|(score, _)| *score).max().unwrap_or(0);
    scored.retain(|(score, _)| score * 3 >= best * 2);
    // The sort is stable: rows with equal scores stay in the order of `sort`.
    scored.sort_by_key(|(score, _)| Reverse(*score));
    scored.into_iter().map(|(_, at)| at).collect()
}
