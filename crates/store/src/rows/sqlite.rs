//! Reads rows of a database with SQLite.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use epitome_formats::database::{Database, ListedBy, folder, line};
use epitome_formats::databases;
use epitome_model::{Bytes, Tokens};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Statement, TransactionBehavior};
use tracing::debug_span;

use super::connection::{self, cannot_read, cannot_write, open_to_write, reading};
use super::{Rows, SessionRow, StoredSession, Which};
use crate::source::FileSource;
use epitome_error::{Error, ErrorKind, Result};

/// A row of a document: the index of its table, its row id, and the JSON that identifies it.
pub(super) struct Row {
    pub table: usize,
    pub rowid: i64,
    pub head: String,
}

impl Rows {
    /// Reads the rows as lines, into an unnamed temporary file.
    pub fn open(&self) -> Result<FileSource> {
        let _span = debug_span!("rows.export").entered();
        reading(&self.database, |connection| {
            let failed = |err| Error::writing(err, "the rows as lines", &self.address());
            let mut out = BufWriter::new(tempfile::tempfile().map_err(failed)?);
            self.each_line(connection, |line| {
                out.write_all(line).and_then(|()| out.write_all(b"\n")).map_err(failed)
            })?;
            let file = out.into_inner().map_err(|err| failed(err.into_error()))?;
            FileSource::new(file, &self.address())
        })
    }

    pub(super) fn each_line(
        &self,
        connection: &Connection,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        // All rows are read in one transaction, so that they are of one state of the database.
        let transaction =
            connection.unchecked_transaction().map_err(|err| cannot_read(err, &self.database))?;
        let mut tables = self.tables(&transaction)?;
        for row in self.rows(&transaction)? {
            let data = self.data(&mut tables, &row)?;
            each(&line(&row.head, data.as_deref()))?;
        }
        Ok(())
    }

    pub(super) fn tables<'c>(&self, connection: &'c Connection) -> Result<Vec<Statement<'c>>> {
        let tables = self.document.tables.iter();
        tables
            .map(|table| connection.prepare(table.select))
            .collect::<rusqlite::Result<_>>()
            .map_err(|err| cannot_read(err, &self.database))
    }

    pub(super) fn rows(&self, connection: &Connection) -> Result<Vec<Row>> {
        let rows = self.read_rows(connection).map_err(|err| cannot_read(err, &self.database))?;
        if rows.iter().all(|row| row.table < self.document.tables.len()) {
            Ok(rows)
        } else {
            Err(self.broken())
        }
    }

    fn read_rows(&self, connection: &Connection) -> rusqlite::Result<Vec<Row>> {
        let mut statement = connection.prepare(self.document.rows)?;
        let rows = statement.query_map([&self.session], |row| {
            let table = usize::from(row.get::<_, u16>(0)?);
            Ok(Row { table, rowid: row.get(1)?, head: row.get(2)? })
        })?;
        rows.collect()
    }

    pub(super) fn data(&self, tables: &mut [Statement<'_>], row: &Row) -> Result<Option<Vec<u8>>> {
        let read = tables[row.table].query_row([row.rowid], |found| {
            Ok(match found.get_ref(0)? {
                ValueRef::Null => None,
                ValueRef::Integer(number) => Some(number.to_string().into_bytes()),
                ValueRef::Real(number) => Some(number.to_string().into_bytes()),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes.to_vec()),
            })
        });
        read.map_err(|err| cannot_read(err, &self.database))
    }

    pub(super) fn broken(&self) -> Error {
        let what = "what was to be written is not what the rows can hold; nothing was changed";
        Error::new(ErrorKind::Broken, what).at(&self.address())
    }
}

pub(super) fn sessions_of(
    database: &Path,
    which: &Which<'_>,
) -> Result<(&'static Database, Vec<StoredSession>)> {
    reading(database, |connection| {
        let kind =
            kind_of(connection).map_err(|err| cannot_read(err, database))?.ok_or_else(|| {
                let what = "this database is of no agent that epitome knows";
                Error::new(ErrorKind::UnknownFormat, what).at(database)
            })?;
        let (only, id) = match which {
            Which::All => ("?1 IS NULL", None),
            Which::Id(id) => ("id = ?1", Some(*id)),
            Which::PartsOf(id) => ("parent = ?1", Some(*id)),
            Which::TwoRoots => ("parent IS NULL AND ?1 IS NULL LIMIT 2", None),
        };
        let extra_column = match kind.glance {
            ListedBy::Transcript => "",
            ListedBy::Database => ", title, folder, context",
        };
        let all = kind.sessions;
        let sql =
            format!("SELECT id, parent, modified, size{extra_column} FROM ({all}) WHERE {only}");
        let found = stored_rows(connection, &sql, id, kind.glance, database);
        Ok((kind, found.map_err(|err| cannot_read(err, database))?))
    })
}

fn stored_rows(
    connection: &Connection,
    sql: &str,
    id: Option<&str>,
    glance: ListedBy,
    database: &Path,
) -> rusqlite::Result<Vec<StoredSession>> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([id])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.extend(stored(row, glance, database)?);
    }
    Ok(found)
}

/// A session, from the row that lists it; `None` for a row without an id.
fn stored(
    row: &rusqlite::Row<'_>,
    glance: ListedBy,
    database: &Path,
) -> rusqlite::Result<Option<StoredSession>> {
    // A value of an unexpected type is ignored.
    let Some(id) = text_at(row, 0)? else { return Ok(None) };
    let modified = match number_at(row, 2)? {
        Some(milliseconds) => UNIX_EPOCH + Duration::from_millis(milliseconds),
        None => connection::written(database),
    };
    let session_row = match glance {
        ListedBy::Transcript => None,
        ListedBy::Database => Some(SessionRow {
            title: text_at(row, 4)?,
            cwd: text_at(row, 5)?.map(|place| folder(&place)),
            context: number_at(row, 6)?.map(Tokens),
        }),
    };
    let size = Bytes(number_at(row, 3)?.unwrap_or(0));
    Ok(Some(StoredSession { id, parent: text_at(row, 1)?, modified, size, row: session_row }))
}

fn text_at(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    })
}

fn number_at(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Option<u64>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Integer(number) => u64::try_from(number).ok(),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    })
}

/// Vacuums a database: removes unused space from its file. Its content is unchanged.
///
/// # Errors
///
/// The errors of opening and of writing the database, for example `Locked`.
pub fn vacuum(database: &Path) -> Result<()> {
    let connection = open_to_write(database)?;
    connection.execute_batch("VACUUM").map_err(|err| cannot_write(err, database))
}

/// Deletes the rows of these tables whose `column` is `id`, in one transaction. Missing tables are
/// skipped.
///
/// # Errors
///
/// The errors of opening and of writing the database, for example `Locked`.
pub fn delete(database: &Path, tables: &[&str], column: &str, id: &str) -> Result<()> {
    let mut connection = open_to_write(database)?;
    delete_rows(&mut connection, tables, column, id).map_err(|err| cannot_write(err, database))
}

fn delete_rows(
    connection: &mut Connection,
    tables: &[&str],
    column: &str,
    id: &str,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for table in tables {
        let known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
        if transaction.prepare(known)?.exists([table])? {
            let rows = format!("DELETE FROM {table} WHERE {column} = ?1");
            transaction.execute(&rows, [id])?;
        }
    }
    transaction.commit()
}

fn kind_of(connection: &Connection) -> rusqlite::Result<Option<&'static Database>> {
    let mut statement =
        connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    let names: Vec<String> = names.collect::<rusqlite::Result<_>>()?;
    let mut kinds = databases();
    Ok(kinds.find(|kind| kind.tables.iter().all(|table| names.iter().any(|name| name == table))))
}
