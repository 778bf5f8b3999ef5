//! A session that operations work on. Where it is stored, and which files belong to it, is looked
//! up once.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use epitome_agents as agents;

use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::place::Place;
use crate::session::Loaded;
use crate::source::FileSource;
use crate::store::User;

/// A session with all files that belong to it: the sessions of its sub-agents, and other rows that
/// a database has for it.
///
/// The address is resolved when the value is made. The session is read, and its other files are
/// looked up, when they are first needed. An operation that replaces the session locks it and opens
/// it again.
///
/// ```
/// use epitome::ops::OpenSession;
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::from_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// let session = OpenSession::new(&config, &path);
/// assert_eq!(session.load()?.format.name, "pi");
/// assert!(session.users().is_empty(), "no process has it open");
/// // A session that does not exist is an error only when it is read.
/// let missing = OpenSession::new(&config, "no-such-session.jsonl".as_ref());
/// assert!(missing.load().is_err());
/// # Ok::<(), epitome::Error>(())
/// ```
pub struct OpenSession<'c> {
    pub(super) config: &'c Config,
    pub(super) agent: Option<&'c str>,
    own: SessionPart,
    parts: OnceCell<Result<Vec<SessionPart>>>,
    loaded: OnceCell<Result<Loaded>>,
}

/// A file of a session: the session's own file, or one that belongs to the session. In a database,
/// the rows of one session take the place of a file.
#[derive(Clone, Debug)]
pub(crate) struct SessionPart {
    /// The address: a path, or `DATABASE#ID`.
    pub path: PathBuf,
    pub place: Place,
}

impl<'c> OpenSession<'c> {
    /// The session at an address: a file, or `DATABASE#ID`. Whether it exists is not checked.
    pub fn new(config: &'c Config, path: &Path) -> OpenSession<'c> {
        OpenSession::with_agent(config, path, None)
    }

    /// The session at an address. It is read as a session of `agent`, whatever its content looks
    /// like; `None` means that the format is recognised.
    pub fn with_agent(config: &'c Config, path: &Path, agent: Option<&'c str>) -> OpenSession<'c> {
        let own = SessionPart::at(path);
        OpenSession { config, agent, own, parts: OnceCell::new(), loaded: OnceCell::new() }
    }

    /// The address of the session, as the caller wrote it.
    pub fn path(&self) -> &Path {
        &self.own.path
    }

    /// Where the session is stored.
    pub fn place(&self) -> &Place {
        &self.own.place
    }

    /// The session as it was when this value first read it.
    ///
    /// # Errors
    ///
    /// The errors of [`load`](crate::storage::load): `NotFound`, `UnknownFormat` and others.
    pub fn load(&self) -> Result<&Loaded> {
        let loaded = self.loaded.get_or_init(|| self.own.read(self.agent));
        loaded.as_ref().map_err(Error::clone)
    }

    /// Whether the session was run in the folder `project` or below it, as [`is_run_in`] decides.
    ///
    /// # Errors
    ///
    /// The errors of [`load`](OpenSession::load).
    pub fn is_run_in(&self, project: &Path) -> Result<bool> {
        Ok(is_run_in(project, self.load()?.transcript.head.cwd.as_deref()))
    }

    /// The other processes that use the session's own file at this moment. Always empty for rows of
    /// a database. For all files there is [`users_by_file`](OpenSession::users_by_file).
    pub fn users(&self) -> Vec<User> {
        self.own.users(self.config)
    }

    /// For each file of the session that other processes use, the list of these processes. The
    /// session's own file is first, if it is in use.
    pub fn users_by_file(&self) -> Vec<Vec<User>> {
        let users = self.found_members().map(|part| part.users(self.config));
        users.filter(|users| !users.is_empty()).collect()
    }

    /// The addresses of files that belong to the session and do not exist. Empty if the files that
    /// belong to the session cannot be looked up.
    pub fn missing_files(&self) -> Vec<&Path> {
        let missing = self.parts().unwrap_or_default().iter().filter(|part| match part.place {
            // The rows were found in the database, so they exist.
            Place::Rows(_) => false,
            Place::File(_) | Place::Spread(_) => part.open().is_err_and(|err| is_no_file(&err)),
        });
        missing.map(|part| part.path.as_path()).collect()
    }

    /// The session's own file.
    pub(super) fn own(&self) -> &SessionPart {
        &self.own
    }

    /// The files or rows that belong to the session in addition to its own, such as those of its
    /// sub-agents.
    ///
    /// # Errors
    ///
    /// The errors of [`agents::companions_at`], and of reading the session's database, for example
    /// `Locked`.
    pub(super) fn parts(&self) -> Result<&[SessionPart]> {
        let parts = self.parts.get_or_init(|| match &self.own.place {
            Place::Rows(rows) => Ok(rows.parts()?.into_iter().map(SessionPart::of_rows).collect()),
            Place::File(_) | Place::Spread(_) => {
                let found = agents::companions_at(&self.own.place, &self.own.path)?;
                Ok(found.iter().map(|path| SessionPart::at(path)).collect())
            }
        });
        parts.as_deref().map_err(Error::clone)
    }

    /// The session's own file, and the files that belong to it.
    ///
    /// # Errors
    ///
    /// The errors of [`OpenSession::parts`].
    pub(super) fn members(&self) -> Result<impl Iterator<Item = &SessionPart>> {
        Ok(std::iter::once(&self.own).chain(self.parts()?))
    }

    /// Like [`members`](OpenSession::members), for operations that only describe the session: if
    /// the other files cannot be looked up, only the session's own file is returned. Operations
    /// that need the other files get the error from `members`.
    pub(super) fn found_members(&self) -> impl Iterator<Item = &SessionPart> {
        std::iter::once(&self.own).chain(self.parts().unwrap_or_default())
    }
}

impl SessionPart {
    pub(crate) fn at(path: &Path) -> SessionPart {
        SessionPart { path: path.to_owned(), place: Place::parse(path) }
    }

    fn of_rows(rows: crate::rows::Rows) -> SessionPart {
        SessionPart { path: rows.address(), place: Place::Rows(rows) }
    }

    /// Opens the file to read its bytes.
    pub(super) fn open(&self) -> Result<FileSource> {
        self.place.open()
    }

    /// Opens the file and reads its transcript.
    pub(super) fn read(&self, agent: Option<&str>) -> Result<Loaded> {
        crate::session::load_at(&self.place, &self.path, agent)
    }

    /// The other processes that use the file. Always empty for rows of a database.
    pub(super) fn users(&self, config: &Config) -> Vec<User> {
        agents::users_at(&config.agents, &self.place, &self.path)
    }

    /// The address without symbolic links; unchanged if that cannot be found out, for example
    /// because the file does not exist.
    pub(crate) fn real(&self) -> PathBuf {
        self.place.real().unwrap_or_else(|_| self.path.clone())
    }
}

/// Whether `cwd`, the folder in which a session was run, is the folder `project` or below it. False
/// if the session does not record its folder, or if `project` is empty.
///
/// If there is no folder `project` on this machine, `project` may also be the end of the path of
/// `cwd` or of a folder that contains it (`group/name`, as `epitome list` prints it), or the name
/// of such a folder in Claude Code's folder of sessions (`-home-dev-group-name`).
///
/// ```
/// use epitome::ops::is_run_in;
///
/// let cwd = Some("/home/ada/group/name/src");
/// assert!(is_run_in("/home/ada/group/name".as_ref(), cwd));
/// assert!(!is_run_in("/home/ada/group/other".as_ref(), cwd));
/// assert!(!is_run_in("/home/ada".as_ref(), None));
/// assert!(!is_run_in("".as_ref(), cwd));
/// ```
pub fn is_run_in(project: &Path, cwd: Option<&str>) -> bool {
    let Some(cwd) = cwd.map(Path::new).filter(|_| !project.as_os_str().is_empty()) else {
        return false;
    };
    let given = std::path::absolute(project).unwrap_or_else(|_| project.to_owned());
    match project.canonicalize() {
        Ok(real) => cwd.starts_with(given) || cwd.starts_with(real),
        Err(_) => {
            cwd.starts_with(given)
                || cwd.ancestors().any(|it| {
                    it.ends_with(project)
                        || project == Path::new(&agents::project_folder_name(&it.to_string_lossy()))
                })
        }
    }
}

/// Whether an error means that a file next to a session is not part of the session, because it is
/// no session or no file. Such a file stays as it is.
pub(crate) fn is_no_part(err: &Error) -> bool {
    err.kind() == ErrorKind::UnknownFormat || is_no_file(err)
}

/// Whether an error means that there is no file at a path, but a folder, a pipe, a dangling link,
/// or nothing.
pub(super) fn is_no_file(err: &Error) -> bool {
    matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotAFile)
}

/// Whether two paths lead to the same file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other
        || match (one.canonicalize(), other.canonicalize()) {
            (Ok(one), Ok(other)) => one == other,
            (Err(_), _) | (_, Err(_)) => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_a_folder_or_the_end_of_its_path() {
        for (project, expect) in [
            ("/home/dev/group", true),
            ("/home/dev/gro", false),
            ("group/my_app", true),
            ("my_app", true),
            ("app", false),
            ("-home-dev-group-my-app", true),
            ("-home-dev-gro", false),
            ("", false),
        ] {
            let is_run = is_run_in(Path::new(project), Some("/home/dev/group/my_app/lib"));
            assert_eq!(is_run, expect, "{project}");
        }
        assert!(!is_run_in(Path::new("my_app"), None));
    }
}
