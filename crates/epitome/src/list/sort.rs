//! Sort orders of a list.

use std::cmp::Reverse;
use std::time::SystemTime;

use epitome_agents::SessionFile;
use schemars::JsonSchema;
use serde::Deserialize;

use super::ListedSession;

/// What a list is sorted by, the largest or newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// What compacting would save
    Saving,
    /// When it was last written
    Time,
    /// Its size on disk
    Size,
    /// Tokens of its messages
    Context,
}

impl Sort {
    /// All sort orders.
    pub const ALL: [Sort; 4] = [Sort::Saving, Sort::Time, Sort::Size, Sort::Context];

    /// The name of the order, in options and addresses.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Saving => "saving",
            Sort::Time => "time",
            Sort::Size => "size",
            Sort::Context => "context",
        }
    }

    /// Sorts sessions. `session` returns the file of a session, and its entry in the list if it has
    /// one yet. Of equal sessions, the newest is first. Sessions that cannot be read are last.
    pub fn order<T>(
        self,
        sessions: &mut [T],
        session: impl Fn(&T) -> (&SessionFile, Option<&ListedSession>),
    ) {
        sessions.sort_by_key(|it| {
            let (file, listed) = session(it);
            Reverse(self.key(file, listed))
        });
    }

    fn key(self, file: &SessionFile, listed: Option<&ListedSession>) -> (Option<u64>, SystemTime) {
        let info = match listed.map(|listed| &listed.seen) {
            Some(Err(_)) => return (None, file.modified),
            Some(Ok(info)) => Some(info),
            None => None,
        };
        let by = match self {
            Sort::Saving => info.map_or(0, |info| info.saving.0),
            Sort::Time => 0,
            Sort::Size => listed.map_or(file.size, ListedSession::size).0,
            Sort::Context => info.and_then(|info| info.context).unwrap_or_default().0,
        };
        (Some(by), file.modified)
    }
}
