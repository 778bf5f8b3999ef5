//! The tables of the index, and the numbers that identify sessions, folders and messages in it.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, Row};

/// The version of the tables and of their content. An index with another version is not used.
pub(super) const VERSION: i32 = 6;

/// The table `words` stores only where each word is, not the text. Its input comes from
/// `terms::normalized`, which separates words by spaces; the tokenizer `ascii` treats all non-ASCII
/// characters as letters. The filters `session:` and `project:` compare `id_lower` and
/// `project_words`. `archive` is the state of the session's packs in the archive. `hash` is
/// [`MessagePlace::hash`].
const TABLES: &str = "
    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY,
        path TEXT NOT NULL,
        size INTEGER NOT NULL,
        modified INTEGER NOT NULL,
        archive INTEGER NOT NULL,
        agent TEXT NOT NULL,
        id TEXT NOT NULL,
        id_lower TEXT NOT NULL,
        project TEXT,
        project_words TEXT,
        title TEXT NOT NULL
    ) STRICT;
    CREATE TABLE folders (
        session INTEGER NOT NULL,
        folder INTEGER NOT NULL,
        PRIMARY KEY (session, folder)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE messages (
        number INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        hash INTEGER NOT NULL,
        role TEXT NOT NULL,
        kind TEXT NOT NULL,
        sub_agent INTEGER,
        anchor TEXT NOT NULL,
        item INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        time TEXT,
        archived INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX messages_of_session ON messages (session, hash);
    CREATE TABLE texts (
        message INTEGER PRIMARY KEY,
        text ANY NOT NULL
    ) STRICT;
    CREATE VIRTUAL TABLE words USING fts5 (
        text, content = '', contentless_delete = 1, tokenize = 'ascii', prefix = '4 5 6'
    );";

/// Creates the empty tables in an empty database.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"))
}

/// A message of a session, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessagePlace {
    pub(super) role: String,
    pub(super) kind: String,
    /// The number of the sub-agent that has the message, from 0; `None` if no sub-agent has it.
    pub(super) sub_agent: Option<usize>,
    pub(super) anchor: String,
    pub(super) item: usize,
    pub(super) turn: usize,
    pub(super) time: Option<String>,
    /// Whether a compaction removed the message, or a part of it, from what a resume sends.
    pub(super) archived: bool,
}

impl MessagePlace {
    /// The columns that [`MessagePlace::read`] reads, in this order.
    pub(super) const COLUMNS: &str = "role, kind, sub_agent, anchor, item, turn, time, archived";

    /// Reads a message from the first columns of a row.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<MessagePlace> {
        Ok(MessagePlace {
            role: row.get(0)?,
            kind: row.get(1)?,
            sub_agent: row
                .get(2)
                .and_then(|it: Option<i64>| it.map(|it| count(2, it)).transpose())?,
            anchor: row.get(3)?,
            item: count(4, row.get(4)?)?,
            turn: count(5, row.get(5)?)?,
            time: row.get(6)?,
            archived: row.get(7)?,
        })
    }

    /// The values of [`MessagePlace::COLUMNS`].
    pub(super) fn values(&self) -> [Value; 8] {
        let MessagePlace { role, kind, sub_agent, anchor, item, turn, time, archived } = self;
        let number = |number: usize| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        [
            role.clone().into(),
            kind.clone().into(),
            sub_agent.map_or(Value::Null, number),
            anchor.clone().into(),
            number(*item),
            number(*turn),
            time.clone().into(),
            (*archived).into(),
        ]
    }

    /// The hash of the message: of all its columns and its text.
    pub(super) fn hash(&self, text: &str) -> i64 {
        let MessagePlace { role, kind, sub_agent, anchor, item, turn, time, archived } = self;
        let sub_agent = sub_agent.map_or(u64::MAX, |number| number as u64);
        let numbers = [sub_agent, *item as u64, *turn as u64, u64::from(*archived)];
        let numbers = numbers.map(u64::to_le_bytes);
        let texts = [role, kind, anchor, time.as_deref().unwrap_or(""), text];
        let texts = texts.iter().map(|text| text.as_bytes());
        hash_of(texts.chain(numbers.iter().map(|number| &number[..])))
    }
}

/// A session in the index. Its project and its title are redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexedSession {
    pub(super) path: String,
    pub(super) agent: String,
    pub(super) id: String,
    pub(super) project: Option<String>,
    pub(super) title: String,
}

/// Converts a number in a column that must not be negative.
pub(super) fn count(column: usize, number: i64) -> rusqlite::Result<usize> {
    let err = rusqlite::Error::IntegralValueOutOfRange(column, number);
    usize::try_from(number).map_err(|_| err)
}

/// A hash of a list of parts. It is long enough that, in practice, no two lists on one machine have
/// the same hash.
fn hash_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> i64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let hash = hasher.finalize();
    let (first, _) = hash.as_bytes().split_first_chunk().expect("a hash has 32 bytes");
    i64::from_le_bytes(*first)
}

/// The hash of the path of a folder or a session, by which the index identifies it.
pub(super) fn path(path: &Path) -> i64 {
    hash_of([path.as_os_str().as_encoded_bytes()])
}
