//! Cursor's tables, columns and keys.

use crate::database::{Database, Document, ListedBy, Table};

/// Selects all composers. `$rows` selects the rows of composers, with the columns `id`, `value`,
/// `header` and `written`; `header` is from the table of headers, if the database has one. No
/// bubble is parsed: only the keys and lengths of bubbles are used.
macro_rules! composers {
    ($rows:literal) => {
        concat!(
            "
        SELECT id, parent,
            CASE typeof(written) WHEN 'text' THEN unixepoch(written) * 1000
                ELSE CAST(written AS INTEGER) END AS modified,
            own + (SELECT coalesce(sum(octet_length(value)), 0) FROM cursorDiskKV
                WHERE key > 'bubbleId:' || id || ':' AND key < 'bubbleId:' || id || ';') AS size,
            coalesce(nullif(head ->> '$.name', ''), nullif(data ->> '$.name', ''),
                nullif(data ->> '$.conversation[0].text', ''),
                nullif(data ->> '$.subtitle', '')) AS title,
            coalesce(head ->> '$.workspaceIdentifier.uri.fsPath',
                data ->> '$.workspaceIdentifier.uri.fsPath',
                CASE json_type(data, '$.workspaceIdentifier.uri')
                    WHEN 'text' THEN data ->> '$.workspaceIdentifier.uri' END) AS folder,
            CAST(data ->> '$.contextTokensUsed' AS INTEGER) AS context
        FROM (
            SELECT id, own, data, head,
                coalesce(written, data ->> '$.lastUpdatedAt', data ->> '$.createdAt') AS written,
                CASE WHEN data ->> '$.isBestOfNSubcomposer' THEN NULL
                    ELSE coalesce(head ->> '$.subagentInfo.parentComposerId',
                        data ->> '$.subagentInfo.parentComposerId',
                        CASE WHEN id LIKE 'task-%' THEN '' END) END AS parent
            FROM (
                SELECT id, octet_length(value) AS own, written,
                    CASE WHEN json_valid(CAST(value AS TEXT)) THEN CAST(value AS TEXT)
                        ELSE '{}' END AS data,
                    CASE WHEN json_valid(CAST(header AS TEXT)) THEN CAST(header AS TEXT)
                        ELSE '{}' END AS head
                FROM (",
            $rows,
            ")
            )
        )
        WHERE json_array_length(data, '$.conversation') > 0
            OR EXISTS (SELECT 1 FROM cursorDiskKV
                WHERE key > 'bubbleId:' || id || ':' AND key < 'bubbleId:' || id || ';')"
        )
    };
}

/// Selects the rows of one composer: its own row, those that `$header` selects, and its bubbles in
/// the order in which they were last written.
macro_rules! bubbles {
    ($header:literal) => {
        concat!(
            "
        SELECT kind, row, head FROM (
            SELECT 0 AS at, 0 AS kind, rowid AS row, json_object('key', key) AS head
            FROM cursorDiskKV WHERE key = 'composerData:' || ?1
            UNION ALL
            SELECT 2, 0, rowid, json_object('key', key)
            FROM cursorDiskKV
            WHERE key > 'bubbleId:' || ?1 || ':' AND key < 'bubbleId:' || ?1 || ';'",
            $header,
            "
        ) ORDER BY at, row"
        )
    };
}

const VALUE: Table = Table::only_read("SELECT value FROM cursorDiskKV WHERE rowid = ?1");

/// `state.vscdb` with a table of headers (seen in Cursor 3), which holds titles, directories and
/// times of composers. Composers that are older than the table have no row in it.
pub static HEADED: Database = Database {
    agent: "cursor",
    tables: &["cursorDiskKV", "composerHeaders"],
    sessions: composers!(
        "
            SELECT substr(c.key, length('composerData:') + 1) AS id, c.value AS value,
                h.value AS header, coalesce(h.lastUpdatedAt, h.createdAt) AS written
            FROM cursorDiskKV c LEFT JOIN composerHeaders h
                ON h.composerId = substr(c.key, length('composerData:') + 1)
            WHERE c.key > 'composerData:' AND c.key < 'composerData;'"
    ),
    glance: ListedBy::Database,
    documents: &[Document {
        name: "",
        rows: bubbles!(
            "
            UNION ALL
            SELECT 1, 1, rowid, json_object('key', 'composerHeaders:' || composerId)
            FROM composerHeaders WHERE composerId = ?1"
        ),
        tables: &[VALUE, Table::only_read("SELECT value FROM composerHeaders WHERE rowid = ?1")],
        is_made: |_| false,
    }],
};

/// `state.vscdb` of earlier versions, without a table of headers.
pub static COMPOSERS: Database = Database {
    agent: "cursor",
    tables: &["cursorDiskKV"],
    sessions: composers!(
        "
            SELECT substr(key, length('composerData:') + 1) AS id, value, NULL AS header,
                NULL AS written
            FROM cursorDiskKV WHERE key > 'composerData:' AND key < 'composerData;'"
    ),
    glance: ListedBy::Database,
    documents: &[Document { name: "", rows: bubbles!(""), tables: &[VALUE], is_made: |_| false }],
};

/// `store.db` of the CLI: one chat. A row of `meta` holds JSON in hexadecimal digits, which names
/// the newest state by its hash; the state lists the hashes of the messages in order. The state and
/// the messages are rows of `blobs`.
pub static CHAT: Database = Database {
    agent: "cursor",
    tables: &["blobs", "meta"],
    sessions: "
        SELECT data ->> '$.agentId' AS id, NULL AS parent, NULL AS modified,
            (SELECT coalesce(sum(octet_length(data)), 0) FROM blobs) AS size
        FROM (SELECT CASE WHEN json_valid(CAST(unhex(value) AS TEXT))
                THEN CAST(unhex(value) AS TEXT) ELSE '{}' END AS data
            FROM meta WHERE key = '0')
        WHERE data ->> '$.agentId' <> ''",
    glance: ListedBy::Transcript,
    documents: &[Document {
        name: "",
        // The row of `meta`, the newest state, and the messages: the JSON blobs whose hashes the
        // state contains.
        rows: "
        WITH chat AS (
            SELECT row, data ->> '$.latestRootBlobId' AS newest
            FROM (SELECT rowid AS row, CASE WHEN json_valid(CAST(unhex(value) AS TEXT))
                    THEN CAST(unhex(value) AS TEXT) ELSE '{}' END AS data
                FROM meta WHERE key = '0')
            WHERE data ->> '$.agentId' = ?1),
        state AS (
            SELECT b.rowid AS row, b.id AS id, CAST(b.data AS BLOB) AS data
            FROM chat JOIN blobs b ON b.id = chat.newest)
        SELECT kind, row, head FROM (
            SELECT 0 AS at, 0 AS kind, row, json_object('meta', '0') AS head FROM chat
            UNION ALL
            SELECT 0, 1, row, json_object('state', id) FROM state
            UNION ALL
            SELECT instr(state.data, unhex(b.id)), 2, b.rowid, json_object('message', b.id)
            FROM state JOIN blobs b
            WHERE instr(state.data, unhex(b.id)) > 0
                AND hex(substr(CAST(b.data AS BLOB), 1, 1)) = '7B'
        ) ORDER BY at, kind, row",
        tables: &[
            Table::only_read(
                "SELECT coalesce(CAST(unhex(value) AS TEXT), value) FROM meta
                    WHERE rowid = ?1",
            ),
            Table::only_read("SELECT json_quote(hex(data)) FROM blobs WHERE rowid = ?1"),
            Table::only_read("SELECT data FROM blobs WHERE rowid = ?1"),
        ],
        is_made: |_| false,
    }],
};
