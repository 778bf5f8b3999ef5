//! Finds the calls whose arguments or result contain the words of an error, and what followed them.

use super::around::{ItemPosition, Message};
use super::found::{Hit, Hits, find_or_relax};
use super::query::{BadQuery, Query};
use super::tables;
use super::{Result, Search};

/// The maximum number of messages after a hit that are returned with it.
const FOLLOWED: usize = 4;

/// A call whose arguments or result contain the words of an error, and what followed it.
#[derive(Clone, Debug, PartialEq)]
pub struct PastFailure {
    /// The call with its result.
    pub hit: Hit,
    /// The next messages of the session or the sub-agent, at most four.
    pub followed: Vec<Message>,
}

/// The calls that contain the words of an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Failures {
    /// The best calls, at most one of each session; the best first.
    pub failed: Vec<PastFailure>,
    /// Whether the calls contain only some of the words of the error, because no call contains all
    /// of them.
    pub is_relaxed: bool,
}

impl Search {
    /// Returns the sessions in which a call, with its arguments and result, contains all words of
    /// `error`: at most `most` sessions, the best first, each with its best call. If there are
    /// none, returns the sessions whose calls contain the most and the rarest of the words. Only
    /// the `5 * most` best calls are considered: if many of them are in one session, fewer than
    /// `most` sessions may be found.
    ///
    /// # Errors
    ///
    /// As [`find`](Search::find).
    pub fn find_failures(&self, error: &ErrorText, most: usize) -> Result<Failures> {
        self.read(|connection| {
            // Only one hit of each session is returned, so more hits than sessions are needed.
            let (Hits { hits, .. }, is_relaxed) =
                find_or_relax(connection, &error.0, most.saturating_mul(5))?;
            let mut failed: Vec<PastFailure> = Vec::new();
            for hit in hits {
                let is_new = failed.iter().all(|it| it.hit.session != hit.session);
                if is_new && failed.len() < most {
                    let session = tables::path(&hit.session);
                    let place = ItemPosition { session, sub_agent: hit.sub_agent, item: hit.item };
                    let mut followed = place.messages(connection, 0, FOLLOWED)?;
                    followed.retain(|message| message.item > hit.item);
                    failed.push(PastFailure { hit, followed });
                }
            }
            Ok(Failures { failed, is_relaxed })
        })
    }
}

/// The words of an error, to search for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorText(Query);

impl ErrorText {
    /// Takes the first 40 words of the text of an error. In a call that is found, they may be
    /// anywhere in the arguments and the result.
    ///
    /// # Errors
    ///
    /// If the text has no word that is short enough for the index.
    pub fn parse(text: &str) -> std::result::Result<ErrorText, BadQuery> {
        Ok(ErrorText(Query::from_text(text)?.of_role("tool")))
    }
}
