//! Sessions that are rows of an SQLite database.
//!
//! The rows of a session are read as the lines of a document (see [`epitome_formats::database`]),
//! which is then parsed like a file. A replacement is one transaction. It compares every row with
//! what was read, and changes only the JSON of rows that differ; rows that epitome itself makes are
//! inserted and deleted. SQLite guarantees that all of it is done or nothing, even if the process
//! is killed, and that other programs see one state or the other.
//!
//! Without the feature `sqlite` a database is recognised, but reading or writing it is an error.

#[cfg(not(feature = "sqlite"))]
mod absent;
#[cfg(feature = "sqlite")]
mod connection;
#[cfg(feature = "sqlite")]
mod replace;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::database::{Database, Document, ListedBy};
use epitome_model::{Bytes, Tokens};

#[cfg(not(feature = "sqlite"))]
use absent::sessions_of;
#[cfg(not(feature = "sqlite"))]
pub use absent::{delete, vacuum};
#[cfg(feature = "sqlite")]
use sqlite::sessions_of;
#[cfg(feature = "sqlite")]
pub use sqlite::{delete, vacuum};

/// The rows of one session.
#[derive(Clone, Debug)]
pub struct Rows {
    database: PathBuf,
    kind: &'static Database,
    /// The id of the session. In a build without SQLite, the part of the address after `#`, or
    /// empty.
    session: String,
    document: &'static Document,
}

/// The only kind of database in a build without SQLite.
static UNKNOWN: Database =
    Database { agent: "", tables: &[], sessions: "", glance: ListedBy::Transcript, documents: &[] };
static UNKNOWN_DOCUMENT: Document =
    Document { name: "", rows: "", tables: &[], is_made: |_| false };

/// Which sessions of a database to read.
#[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "none can be asked for"))]
enum Which<'a> {
    All,
    Id(&'a str),
    PartsOf(&'a str),
    /// Sessions without a parent. At most two are read: enough to see that there are several.
    TwoRoots,
}

/// A session of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// The id of the session.
    pub id: String,
    /// For a sub-agent's session: the id of the session that it belongs to.
    pub parent: Option<String>,
    /// When the session was last changed; if the database does not say this, when the database was
    /// last written.
    pub modified: SystemTime,
    /// The total length of the session's rows as lines.
    pub size: Bytes,
    /// What a list of sessions shows, if the database has columns for it.
    pub row: Option<SessionRow>,
}

/// What a list of sessions shows of a session, read from columns of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The title of the session, or the beginning of its first message.
    pub title: Option<String>,
    /// The working directory of the session.
    pub cwd: Option<String>,
    /// The tokens of the context that a resume would send, as the agent counted them.
    pub context: Option<Tokens>,
}

impl Rows {
    /// The rows that `name` refers to in a database. The name is the id of a session; if the rows
    /// are not the conversation, it is followed by a dot and the name of a document. `None` if the
    /// database has no such session or document, or cannot be read. A build without SQLite does not
    /// look: it returns rows that cannot be read.
    pub fn find(database: &Path, name: &str) -> Option<Rows> {
        let (id, of_it) = name.split_once('.').unwrap_or((name, ""));
        if cfg!(not(feature = "sqlite")) {
            return Some(Rows::unread(database, name));
        }
        let (kind, sessions) = sessions_of(database, &Which::Id(id)).ok()?;
        let document = kind.documents.iter().find(|document| document.name == of_it)?;
        let session = sessions.into_iter().next()?.id;
        Some(Rows { database: database.to_owned(), kind, session, document })
    }

    /// The session without a parent, if the database can be read and has exactly one. A build
    /// without SQLite does not look: it returns rows that cannot be read.
    pub fn only_session(database: &Path) -> Option<Rows> {
        if cfg!(not(feature = "sqlite")) {
            return Some(Rows::unread(database, ""));
        }
        let (kind, sessions) = sessions_of(database, &Which::TwoRoots).ok()?;
        let [session] = sessions.as_slice() else { return None };
        let session = session.id.clone();
        let document = kind.documents.first()?;
        Some(Rows { database: database.to_owned(), kind, session, document })
    }

    /// Rows in a build without SQLite, of which only the address is known. Reading or writing them
    /// is an error. They are taken for an existing conversation, so that the archive keeps what
    /// they may need.
    fn unread(database: &Path, name: &str) -> Rows {
        let database = database.to_owned();
        let session = name.to_owned();
        Rows { database, kind: &UNKNOWN, session, document: &UNKNOWN_DOCUMENT }
    }

    /// The path of the database.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// Whether epitome writes to this kind of database.
    pub fn is_writable(&self) -> bool {
        let tables = self.kind.documents.iter().flat_map(|document| document.tables);
        tables.into_iter().any(|table| table.update.is_some())
    }

    /// The id of the session.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The same rows, in the database at another path.
    pub fn in_database(&self, database: &Path) -> Rows {
        Rows { database: database.to_owned(), ..self.clone() }
    }

    /// The same rows, with the canonical path of the database.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoPermission` and other errors of resolving the path.
    pub fn real(&self) -> Result<Rows> {
        let database = self.database.canonicalize();
        let database =
            database.map_err(|err| Error::reading(err, "the session", &self.database))?;
        Ok(self.in_database(&database))
    }

    /// The address by which the rows are found again.
    pub fn address(&self) -> PathBuf {
        if self.session.is_empty() {
            return self.database.clone();
        }
        address(&self.database, &self.session, self.document.name)
    }

    /// The agent that the database belongs to: the name of its format.
    pub fn agent(&self) -> &'static str {
        self.kind.agent
    }

    /// The addresses of [`parts`](Rows::parts); empty if the database cannot be read.
    pub fn companions(&self) -> Vec<PathBuf> {
        self.parts().unwrap_or_default().iter().map(Rows::address).collect()
    }

    /// The rows that belong to the session in addition to its conversation: its other documents,
    /// and the sessions of its sub-agents with their documents. Empty if these rows are not a
    /// conversation.
    ///
    /// # Errors
    ///
    /// The errors of reading the database, for example `Locked`.
    pub fn parts(&self) -> Result<Vec<Rows>> {
        if !self.is_conversation() {
            return Ok(Vec::new());
        }
        let mut wanted = vec![self.session.clone()];
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(id) = wanted.get(at).cloned() {
            at += 1;
            for document in self.kind.documents {
                if id != self.session || !document.name.is_empty() {
                    found.push(Rows { session: id.clone(), document, ..self.clone() });
                }
            }
            let (_, below) = sessions_of(&self.database, &Which::PartsOf(&id))?;
            for part in below {
                if !wanted.contains(&part.id) {
                    wanted.push(part.id);
                }
            }
        }
        Ok(found)
    }

    /// Whether the rows are a conversation, and not a log that belongs to one.
    pub fn is_conversation(&self) -> bool {
        self.document.name.is_empty()
    }

    /// Whether the database contains the session; true if the database cannot be read.
    pub fn exists(&self) -> bool {
        sessions_of(&self.database, &Which::Id(&self.session))
            .map_or(true, |(_, sessions)| !sessions.is_empty())
    }

    /// Makes an unnamed temporary file for the new content of the rows, which `write` writes.
    ///
    /// # Errors
    ///
    /// The error of `write`; `Disk` if the file cannot be created or written.
    pub fn write_to_temporary(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<File> {
        let failed = |err| Error::writing(err, "the session", &self.address());
        let mut out = BufWriter::new(tempfile::tempfile().map_err(failed)?);
        write(&mut out)?;
        out.into_inner().map_err(|err| failed(err.into_error()))
    }
}

/// All sessions of a database, and the kind of the database.
///
/// # Errors
///
/// `UnknownFormat` if the database is of no known kind; the errors of opening it.
pub fn sessions(database: &Path) -> Result<(&'static Database, Vec<StoredSession>)> {
    sessions_of(database, &Which::All)
}

/// Splits an address at its last `#` into a database and a name. `None` if there is no `#`, or if
/// the address is not Unicode.
pub fn split(address: &Path) -> Option<(PathBuf, &str)> {
    let (database, name) = address.to_str()?.rsplit_once('#')?;
    Some((PathBuf::from(database), name))
}

/// The address of rows.
pub fn address(database: &Path, session: &str, document: &str) -> PathBuf {
    let mut address = database.as_os_str().to_owned();
    address.push("#");
    address.push(session);
    if !document.is_empty() {
        address.push(".");
        address.push(document);
    }
    PathBuf::from(address)
}

/// The error for an address that is only a database, if the database does not have exactly one
/// session without a parent. If the database cannot be read, the error of reading it.
pub fn several_sessions_error(database: &Path) -> Error {
    match sessions(database) {
        Err(err) => err,
        Ok((_, sessions)) => {
            let roots = sessions.iter().filter(|it| it.parent.is_none()).count();
            let what = format!("this is a database of {roots} sessions");
            let hint = "name one by its id, or as DATABASE#ID; `epitome list` shows them";
            Error::new(ErrorKind::UnknownFormat, what).at(database).with_hint(hint)
        }
    }
}
