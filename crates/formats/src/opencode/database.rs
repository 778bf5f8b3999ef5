//! OpenCode's tables and columns.

use super::summarise;
use crate::database::{Database, Document, ListedBy, Table};

/// Selects the rows of a conversation. `$members` are further members of the object that identifies
/// the first row, which is the session's.
macro_rules! conversation {
    ($members:literal) => {
        concat!(
            "
        SELECT kind, row, head FROM (
            SELECT 0 AS at, 0 AS time, '' AS message, 0 AS kind, '' AS part, rowid AS row,
                json_object('table', 'session', ",
            $members,
            "'id', id, 'parent_id', parent_id,
                    'directory', directory, 'title', title, 'version', version,
                    'time_created', time_created) AS head
            FROM session WHERE id = ?1
            UNION ALL
            SELECT 1, time_created, id, 1, '', rowid,
                json_object('table', 'message', 'id', id, 'time_created', time_created)
            FROM message WHERE session_id = ?1
            UNION ALL
            SELECT 1, m.time_created, m.id, 2, p.id, p.rowid,
                json_object('table', 'part', 'id', p.id, 'message_id', p.message_id)
            FROM message m JOIN part p ON p.message_id = m.id WHERE m.session_id = ?1
        ) ORDER BY at, time, message, kind, part"
        )
    };
}

/// Selects the rows of the table `event`. `$members` are further members of the object that
/// identifies each row.
macro_rules! events {
    ($members:literal) => {
        concat!(
            "
        SELECT 0, rowid, json_object('table', 'event', ",
            $members,
            "'id', id, 'session', aggregate_id, 'seq', seq, 'type', type)
        FROM event WHERE aggregate_id = ?1 ORDER BY seq, id"
        )
    };
}

/// `opencode.db`: one row per session, per message and per part of a message; and a log of all
/// their versions, `event`.
pub static DATABASE: Database = Database {
    agent: "opencode",
    tables: &["session", "message", "part"],
    sessions: SESSIONS,
    glance: ListedBy::Transcript,
    documents: &[CONVERSATION, EVENTS],
};

/// `kilo.db` of Kilo Code, a fork: the same tables and more. Its rows are marked as Kilo Code's.
pub static KILO: Database = Database {
    agent: "kilo",
    tables: &["session", "message", "part", "kilo_board"],
    sessions: SESSIONS,
    glance: ListedBy::Transcript,
    documents: &[
        Document { rows: conversation!("'agent', 'kilo', "), ..CONVERSATION },
        Document { rows: events!("'agent', 'kilo', "), ..EVENTS },
    ],
};

const SESSIONS: &str = "
    SELECT id, parent_id AS parent, time_updated AS modified,
        (SELECT coalesce(sum(octet_length(data)), 0) FROM message WHERE session_id = s.id)
        + (SELECT coalesce(sum(octet_length(data)), 0) FROM part WHERE session_id = s.id)
        AS size
    FROM session s";

/// The session's row, and the messages in the order in which OpenCode sends them, each followed by
/// its parts.
///
/// Columns of the session's row that change with each message, such as the time of the last write,
/// are not selected: appending must not change earlier lines.
const CONVERSATION: Document = Document {
    name: "",
    rows: conversation!(""),
    tables: &[
        Table {
            begins: "{\"table\":\"session\",",
            // The point to which the session was reverted, if it was.
            select: "SELECT revert FROM session WHERE rowid = ?1",
            update: None,
            add: None,
            remove: None,
        },
        Table {
            begins: "{\"table\":\"message\",",
            select: "SELECT data FROM message WHERE rowid = ?1",
            update: Some("UPDATE message SET data = ?2 WHERE rowid = ?1"),
            add: Some(
                "INSERT INTO message (id, session_id, time_created, time_updated, data)
                 SELECT ?2 ->> 'id', ?1, ?2 ->> 'time_created', ?2 ->> 'time_created', ?3",
            ),
            remove: Some("DELETE FROM message WHERE rowid = ?1"),
        },
        Table {
            begins: "{\"table\":\"part\",",
            select: "SELECT data FROM part WHERE rowid = ?1",
            update: Some("UPDATE part SET data = ?2 WHERE rowid = ?1"),
            add: Some(
                "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data)
                 SELECT ?2 ->> 'id', id, session_id, time_created, time_created, ?3
                 FROM message WHERE id = ?2 ->> 'message_id' AND session_id = ?1",
            ),
            remove: Some("DELETE FROM part WHERE rowid = ?1"),
        },
    ],
    is_made: summarise::is_made,
};

/// The versions of all messages and parts, which are about twice the size of the conversation.
/// OpenCode reads them to synchronise another machine.
const EVENTS: Document = Document {
    name: "events",
    rows: events!(""),
    tables: &[Table {
        begins: "{\"table\":\"event\",",
        select: "SELECT data FROM event WHERE rowid = ?1",
        update: Some("UPDATE event SET data = ?2 WHERE rowid = ?1"),
        add: None,
        remove: None,
    }],
    is_made: |_| false,
};
