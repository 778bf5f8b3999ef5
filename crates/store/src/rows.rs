//! Sessions that are rows of an SQLite database.
//!
//! The rows of a session are read as the lines of a document (see
//! [`epitome_formats::database`]), which is then a session as any file is. To replace it is one
//! transaction: every row is compared with what was read, and of those that changed the JSON is
//! updated and nothing else; rows that epitome makes itself are added, and taken away again. SQLite
//! promises that all of it happens or nothing, whenever the process ends, and that other programs
//! see one or the other.
//!
//! Without the feature `sqlite` a database is recognised, and each use of it is an error.

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
    /// Empty if no name was given and the database cannot be read.
    session: String,
    document: &'static Document,
}

/// The only kind of database, and its document, in a build without SQLite.
static UNKNOWN: Database =
    Database { agent: "", tables: &[], sessions: "", glance: ListedBy::Transcript, documents: &[] };
static UNKNOWN_DOCUMENT: Document =
    Document { name: "", rows: "", tables: &[], is_made: |_| false };

/// Which sessions of a database.
#[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "none can be asked for"))]
enum Which<'a> {
    All,
    Id(&'a str),
    PartsOf(&'a str),
    /// Those that are no part of another; no more than two.
    TwoRoots,
}

/// A session of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its id.
    pub id: String,
    /// The session that it is a part of.
    pub parent: Option<String>,
    /// When it was last changed.
    pub modified: SystemTime,
    /// Of its rows as lines.
    pub size: Bytes,
    /// What the database says of it, if a list shows no more than that.
    pub told: Option<SessionRow>,
}

/// What a database says of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Its name, or how it begins.
    pub title: Option<String>,
    /// The folder it was run in.
    pub cwd: Option<String>,
    /// What a resume would send, as the agent counted it.
    pub context: Option<Tokens>,
}

impl Rows {
    /// The rows that `name` means in a database: the id of a session, and behind a dot what of
    /// it, if it is not the conversation.
    pub fn named(database: &Path, name: &str) -> Option<Rows> {
        let (id, of_it) = name.split_once('.').unwrap_or((name, ""));
        if cfg!(not(feature = "sqlite")) {
            return Some(Rows::unread(database, name));
        }
        let (kind, sessions) = sessions_of(database, &Which::Id(id)).ok()?;
        let document = kind.documents.iter().find(|document| document.name == of_it)?;
        let session = sessions.into_iter().next()?.id;
        Some(Rows { database: database.to_owned(), kind, session, document })
    }

    /// The only session of a database that is not a part of another.
    pub fn alone(database: &Path) -> Option<Rows> {
        if cfg!(not(feature = "sqlite")) {
            return Some(Rows::unread(database, ""));
        }
        let (kind, sessions) = sessions_of(database, &Which::TwoRoots).ok()?;
        let [session] = sessions.as_slice() else { return None };
        let (session, document) = (session.id.clone(), kind.documents.first()?);
        Some(Rows { database: database.to_owned(), kind, session, document })
    }

    /// Rows of a build without SQLite: they are known by their address, they are taken for a
    /// conversation that exists, so that nothing is removed that belongs to them, and each use of
    /// them is an error.
    fn unread(database: &Path, name: &str) -> Rows {
        let (database, session) = (database.to_owned(), name.to_owned());
        Rows { database, kind: &UNKNOWN, session, document: &UNKNOWN_DOCUMENT }
    }

    /// The file that the rows are in.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// Whether sessions of such databases are ever written.
    pub fn are_written(&self) -> bool {
        let tables = self.kind.documents.iter().flat_map(|document| document.tables);
        tables.into_iter().any(|table| table.update.is_some())
    }

    /// The id of the session.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The same rows of the database by another path.
    pub fn at(&self, database: &Path) -> Rows {
        Rows { database: database.to_owned(), ..self.clone() }
    }

    /// The same rows by the real path of their database.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoPermission` and what else a system says of paths.
    pub fn real(&self) -> Result<Rows> {
        let database = self.database.canonicalize();
        let database =
            database.map_err(|err| Error::reading(err, "the session", &self.database))?;
        Ok(self.at(&database))
    }

    /// The address by which they are found again.
    pub fn address(&self) -> PathBuf {
        if self.session.is_empty() {
            return self.database.clone();
        }
        address(&self.database, &self.session, self.document.name)
    }

    /// The name of the agent whose database it is, as that of its format.
    pub fn agent(&self) -> &'static str {
        self.kind.agent
    }

    /// The addresses of the rows that belong to the session in addition to its conversation.
    pub fn companions(&self) -> Vec<PathBuf> {
        self.parts().unwrap_or_default().iter().map(Rows::address).collect()
    }

    /// The rows that belong to the session in addition to its conversation: the rest of what is
    /// stored of it, and the sessions of its sub-agents with theirs.
    ///
    /// # Errors
    ///
    /// `Locked`, `NoPermission`, `Unreadable` when the database cannot be read.
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

    /// Whether they are a conversation, and not a log that belongs to one.
    pub fn is_conversation(&self) -> bool {
        self.document.name.is_empty()
    }

    /// Whether the database holds them. If it cannot be read they are taken to exist.
    pub fn exists(&self) -> bool {
        sessions_of(&self.database, &Which::Id(&self.session))
            .map_or(true, |(_, sessions)| !sessions.is_empty())
    }

    /// What `write` writes, in a file without a name, to be put in the place of the rows.
    ///
    /// # Errors
    ///
    /// What `write` says; `Disk`.
    pub fn written(&self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<File> {
        let failed = |err| Error::writing(err, "the session", &self.address());
        let mut out = BufWriter::new(tempfile::tempfile().map_err(failed)?);
        write(&mut out)?;
        out.into_inner().map_err(|err| failed(err.into_error()))
    }
}

/// All sessions of a database, and what kind it is of.
///
/// # Errors
///
/// `UnknownFormat` when no agent that epitome knows keeps such a database; what opening says.
pub fn sessions(database: &Path) -> Result<(&'static Database, Vec<Stored>)> {
    sessions_of(database, &Which::All)
}

/// A database and the name behind the last `#` of an address.
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

/// A database of which it is not said which session is meant.
pub fn not_one(database: &Path) -> Error {
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
