//! Sessions that were found but not read, from the names of files and from databases.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use epitome_model::Bytes;
use epitome_store::rows::{self, SessionRow};

use crate::unread::UnreadErrors;

/// A session that was found but not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile {
    /// The address of the session: a file, or `DATABASE#ID`.
    pub path: PathBuf,
    /// The name of the agent that wrote the session.
    pub agent: &'static str,
    /// The id of the session, from the name of the file or from the database.
    pub id: String,
    /// When the session was last written to.
    pub modified: SystemTime,
    /// The size of the session on disk.
    pub size: Bytes,
    /// The row of the session in its database, if the row contains everything that a list of
    /// sessions shows. A list then does not read the session.
    pub row: Option<SessionRow>,
}

impl SessionFile {
    /// The name of the file without its extension. Empty if the path is not that of a file, as for
    /// a session in a database.
    pub(crate) fn stem(&self) -> Cow<'_, str> {
        if self.path.is_file() { stem(&self.path) } else { "".into() }
    }

    /// The sessions in files. `id` returns the id in a file's name without its extension.
    pub(crate) fn of_files(
        paths: Vec<PathBuf>,
        agent: &'static str,
        id: impl Fn(&str) -> &str,
        unread: &mut UnreadErrors,
    ) -> Vec<SessionFile> {
        let found = paths.into_iter().filter_map(|path| {
            let id = id(&stem(&path)).to_owned();
            SessionFile::of_file(path, agent, id, unread)
        });
        found.collect()
    }

    /// The session in a file. `None` if the file cannot be a session, or cannot be read: see
    /// [`UnreadErrors::file`].
    pub(crate) fn of_file(
        path: PathBuf,
        agent: &'static str,
        id: String,
        unread: &mut UnreadErrors,
    ) -> Option<SessionFile> {
        let meta = unread.file(&path)?;
        let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Some(SessionFile { path, agent, id, modified, size: Bytes(meta.len()), row: None })
    }

    /// The sessions of a database, each with the id of its parent session, if it has one.
    pub(crate) fn of_database(
        database: &Path,
        unread: &mut UnreadErrors,
    ) -> Vec<(Option<String>, SessionFile)> {
        if !unread.is_there(database) {
            return Vec::new();
        }
        let (kind, sessions) = match rows::sessions(database) {
            Ok(found) => found,
            Err(err) => {
                unread.database(err);
                return Vec::new();
            }
        };
        let found = sessions.into_iter().map(|it| {
            let path = rows::address(database, &it.id, "");
            let rows::StoredSession { id, parent, modified, size, row: told } = it;
            (parent, SessionFile { path, agent: kind.agent, id, modified, size, row: told })
        });
        found.collect()
    }

    /// The sessions of a database that have no parent. The others are of sub-agents.
    pub(crate) fn roots(database: &Path, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let found = SessionFile::of_database(database, unread).into_iter();
        found.filter_map(|(parent, session)| parent.is_none().then_some(session)).collect()
    }
}

/// Whether a name ends in `.jsonl`.
pub(crate) fn is_jsonl(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}

/// The name of a file without its extension.
pub(crate) fn stem(path: &Path) -> Cow<'_, str> {
    path.file_stem().unwrap_or_default().to_string_lossy()
}
