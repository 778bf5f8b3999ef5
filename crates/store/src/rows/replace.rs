//! Replaces the rows of a session in one transaction that compares every row with what was read.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};

use epitome_formats::database::{data, line, split};
use epitome_model::{Bytes, Source};
use rusqlite::{Connection, Statement, TransactionBehavior};

use super::Rows;
use super::connection::{cannot_write, open_to_write};
use super::sqlite::Row;
use crate::source::FileSource;
use crate::store::ReplaceReport;
use epitome_error::{Error, ErrorKind, Result};

impl Rows {
    /// Replaces the lines `before` by the lines `after`, in one transaction. Only rows that differ
    /// are written. Rows that epitome itself makes are inserted or deleted if their lines are new
    /// or missing in `after`. Rows that another program has added since `before` was read stay, and
    /// follow the lines of `after`.
    ///
    /// # Errors
    ///
    /// `Changed` if a row is not what was read any more; `Locked` if another program writes for
    /// longer than epitome waits; `NoPermission` or `Disk` if the database cannot be written;
    /// `Broken` if a line belongs to no row. The database is unchanged then.
    pub fn replace(&self, before: &FileSource, after: &File) -> Result<ReplaceReport> {
        let mut connection = open_to_write(&self.database)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = transaction.map_err(|err| cannot_write(err, &self.database))?;
        let carried = {
            let tables = self.tables(&transaction)?;
            let mut work = Work { of: self, within: &transaction, tables };
            let mut changes = work.update(before, after)?;
            if changes.has_rows() {
                work.carry_out(&mut changes)?;
                work.check_written(after, changes.carried)?;
            }
            Bytes(changes.carried)
        };
        if let Some(failure) = before.failure() {
            return Err(failure);
        }
        transaction.commit().map_err(|err| cannot_write(err, &self.database))?;
        Ok(ReplaceReport { carried })
    }

    fn changed(&self) -> Error {
        Error::new(ErrorKind::Changed, "the session changed meanwhile").at(&self.address())
    }
}

/// The rows to insert and to delete.
#[derive(Default)]
struct RowChanges {
    gone: Vec<Row>,
    new: Vec<Vec<u8>>,
    /// The total length of the lines of rows that another program has added.
    carried: u64,
}

impl RowChanges {
    /// Whether there are rows to insert or to delete.
    fn has_rows(&self) -> bool {
        !self.gone.is_empty() || !self.new.is_empty()
    }
}

/// A replacement in progress.
struct Work<'w> {
    of: &'w Rows,
    within: &'w Connection,
    tables: Vec<Statement<'w>>,
}

impl Work<'_> {
    /// Compares every row with its line in `before`, and updates the rows that have another line in
    /// `after`. Returns the rows to insert and to delete.
    fn update(&mut self, before: &FileSource, after: &File) -> Result<RowChanges> {
        let rows = self.of;
        let mut old =
            Lines::new(BufReader::with_capacity(1 << 18, Reading { before, at: 0 }), rows);
        let mut new = Lines::new(from_the_beginning(after, rows)?, rows);
        let mut changes = RowChanges::default();
        for row in rows.rows(self.within)? {
            let stands = rows.data(&mut self.tables, &row)?;
            let is = line(&row.head, stands.as_deref());
            let Some(was) = old.next()? else {
                changes.carried += is.len() as u64 + 1;
                continue;
            };
            if was != is {
                return Err(rows.changed());
            }
            let becomes = new.next()?;
            if becomes.as_ref() == Some(&is) {
                continue;
            }
            let text = becomes.as_deref().and_then(|it| data(it, &row.head, stands.as_deref()));
            match text {
                Some(text) => self.set(&row, text)?,
                // Only rows that epitome made may be deleted.
                None if (rows.document.is_made)(&is) => {
                    new.put_back(becomes);
                    changes.gone.push(row);
                }
                None => return Err(rows.broken()),
            }
        }
        if old.next()?.is_some() {
            return Err(rows.changed());
        }
        while let Some(line) = new.next()? {
            changes.new.push(line);
        }
        Ok(changes)
    }

    /// Replaces the JSON of a row.
    fn set(&self, row: &Row, data: &[u8]) -> Result<()> {
        let update = self.of.document.tables[row.table].update;
        let (Ok(text), Some(update)) = (std::str::from_utf8(data), update) else {
            return Err(self.of.broken());
        };
        self.expect_one_row(self.within.execute(update, (row.rowid, text)))
    }

    /// Deletes and inserts rows.
    fn carry_out(&self, changes: &mut RowChanges) -> Result<()> {
        // In reverse order: a row must be deleted before the one to which it refers.
        for row in changes.gone.drain(..).rev() {
            let table = &self.of.document.tables[row.table];
            let remove = table.remove.ok_or_else(|| self.of.broken())?;
            self.expect_one_row(self.within.execute(remove, [row.rowid]))?;
        }
        for line in changes.new.drain(..) {
            let add = self.addition(&line).ok_or_else(|| self.of.broken())?;
            let (head, data) = split(&line).ok_or_else(|| self.of.broken())?;
            self.expect_one_row(self.within.execute(add, (&self.of.session, head, data)))?;
        }
        Ok(())
    }

    /// The SQL that inserts the row of a line, if epitome makes such rows.
    fn addition(&self, line: &[u8]) -> Option<&'static str> {
        let mut tables = self.of.document.tables.iter();
        let table = tables.find(|table| line.starts_with(table.begins.as_bytes()))?;
        table.add.filter(|_| (self.of.document.is_made)(line))
    }

    /// Returns an error unless a statement has changed exactly one row.
    fn expect_one_row(&self, changed: rusqlite::Result<usize>) -> Result<()> {
        match changed.map_err(|err| cannot_write(err, &self.of.database))? {
            1 => Ok(()),
            _ => Err(self.of.broken()),
        }
    }

    /// Returns an error unless the rows are now those that were to be written, followed by those
    /// that another program has added.
    fn check_written(&mut self, after: &File, mut carried: u64) -> Result<()> {
        let rows = self.of;
        let mut new = Lines::new(from_the_beginning(after, rows)?, rows);
        for row in rows.rows(self.within)? {
            let stands = rows.data(&mut self.tables, &row)?;
            let is = line(&row.head, stands.as_deref());
            match new.next()? {
                Some(wanted) if wanted == is => {}
                // Another program has added a row before a row that epitome has added.
                Some(_) => return Err(rows.changed()),
                None => carried = carried.saturating_sub(is.len() as u64 + 1),
            }
        }
        match (new.next()?, carried) {
            (None, 0) => Ok(()),
            (_, _) => Err(rows.changed()),
        }
    }
}

fn from_the_beginning<'f>(mut file: &'f File, rows: &Rows) -> Result<BufReader<&'f File>> {
    file.rewind().map_err(|err| Error::writing(err, "the session", &rows.address()))?;
    Ok(BufReader::with_capacity(1 << 18, file))
}

/// Reads lines, without their line feeds.
struct Lines<'r, R> {
    from: R,
    of: &'r Rows,
    waiting: Option<Vec<u8>>,
}

impl<'r, R: BufRead> Lines<'r, R> {
    fn new(from: R, of: &'r Rows) -> Lines<'r, R> {
        Lines { from, of, waiting: None }
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        if let Some(line) = self.waiting.take() {
            return Ok(Some(line));
        }
        let mut line = Vec::new();
        let read = self.from.read_until(b'\n', &mut line);
        if read.map_err(|err| Error::writing(err, "the session", &self.of.address()))? == 0 {
            return Ok(None);
        }
        line.pop_if(|byte| *byte == b'\n');
        Ok(Some(line))
    }

    fn put_back(&mut self, line: Option<Vec<u8>>) {
        self.waiting = line;
    }
}

/// Reads a source from its beginning to its end.
struct Reading<'a> {
    before: &'a FileSource,
    at: u64,
}

impl Read for Reading<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let bytes = Source::read(self.before, self.at..self.at + into.len() as u64);
        into[..bytes.len()].copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}
