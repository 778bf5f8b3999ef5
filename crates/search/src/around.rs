//! The messages before and after a certain item of a session.

use std::path::Path;

use rusqlite::{Connection, Row, params};

use super::tables::{self, MessagePlace};
use super::text;
use super::{Result, Search};

/// A message of a session, as it is indexed: without secrets and personal data. One item of a
/// transcript can have several messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The index of the message's item in the transcript.
    pub item: usize,
    /// The turn, from 1; 0 before the first message of the user.
    pub turn: usize,
    /// The author: `user`, `assistant` or `system`; `tool` for a call or a result.
    pub role: String,
    /// The kind of text: `words`, `summary`, `thinking` or `call`.
    pub kind: String,
    /// The time, as the session writes it. `None` if the session has none for the message.
    pub time: Option<String>,
    /// Whether a compaction removed the message, or a part of it, from what a resume sends.
    pub archived: bool,
    /// The text; for a call, the name of the tool, the texts in the arguments, and the result. The
    /// middle of a very long text is left out.
    pub text: String,
}

impl Search {
    /// Returns the messages of a session, or of its sub-agent with this number, around an item of
    /// the transcript: at most `before` messages before the item, the messages of the item itself,
    /// and at most `after` messages after it. Empty if the index has no such session.
    ///
    /// # Errors
    ///
    /// As [`find`](Search::find).
    pub fn around(
        &self,
        session: &Path,
        sub_agent: Option<usize>,
        item: usize,
        before: usize,
        after: usize,
    ) -> Result<Vec<Message>> {
        let place = ItemPosition { session: tables::path(session), sub_agent, item };
        self.read(|connection| place.messages(connection, before, after))
    }
}

/// An item of a session, or of its sub-agent with the number `sub_agent`.
pub(super) struct ItemPosition {
    pub(super) session: i64,
    pub(super) sub_agent: Option<usize>,
    pub(super) item: usize,
}

impl ItemPosition {
    /// Returns the messages around this item, as [`Search::around`] describes them.
    pub(super) fn messages(
        &self,
        connection: &Connection,
        before: usize,
        after: usize,
    ) -> rusqlite::Result<Vec<Message>> {
        let mut messages =
            self.messages_where(connection, "item < ?3 ORDER BY item DESC, number DESC", before)?;
        messages.reverse();
        // The maximum, 1,000, is far more than the messages that one item has.
        messages.extend(self.messages_where(connection, "item = ?3 ORDER BY number", 1_000)?);
        messages.extend(self.messages_where(
            connection,
            "item > ?3 ORDER BY item, number",
            after,
        )?);
        Ok(messages)
    }

    /// Returns the messages of the session or sub-agent that meet a condition in SQL, at most
    /// `most`. In the condition, `?3` is the item.
    fn messages_where(
        &self,
        connection: &Connection,
        condition: &str,
        most: usize,
    ) -> rusqlite::Result<Vec<Message>> {
        let place = MessagePlace::COLUMNS;
        let sql = format!(
            "SELECT {place}, text FROM messages JOIN texts ON message = number \
             WHERE session = ?1 AND sub_agent IS ?2 AND {condition} LIMIT ?4"
        );
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let sub_agent = self.sub_agent.map(number);
        let values = params![self.session, sub_agent, number(self.item), number(most)];
        let mut messages = connection.prepare(&sql)?;
        messages.query_map(values, message)?.collect()
    }
}

fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    let MessagePlace { role, kind, item, turn, time, archived, .. } = MessagePlace::read(row)?;
    let text = text::read(row.get_ref(8)?)?.into_owned();
    Ok(Message { item, turn, role, kind, time, archived, text })
}
