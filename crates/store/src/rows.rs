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

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use epitome_error::{Error, ErrorKind};
use epitome_model::{Bytes, Tokens};

#[cfg(not(feature = "sqlite"))]
pub use absent::{Rows, absent, sessions, vacuum};
#[cfg(feature = "sqlite")]
pub use connection::open_to_write;
#[cfg(feature = "sqlite")]
pub use sqlite::{Rows, sessions, vacuum};

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
