//! The error that the crates above the pure ones return: what kind it is, which file it is about,
//! and what a person can do about it.
//!
//! Programs decide by [`ErrorKind`], never by the text. The constructors are for the crates of
//! epitome.
//!
//! # Absent
//!
//! Input and output: an [`io::Error`] is only classified here.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A result with this error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is nothing by that name.
    NotFound,
    /// It is a folder, a pipe or a device, and no file.
    NotAFile,
    /// The system does not allow it.
    NoPermission,
    /// It is there and cannot be read.
    Unreadable,
    /// Another program has it open.
    InUse,
    /// The agent has its own lock on it.
    HeldByAgent,
    /// It is no session that any format knows.
    UnknownFormat,
    /// It changed while it was worked on.
    Changed,
    /// Another epitome is working on it.
    Locked,
    /// It has more than one name on disk.
    HardLinked,
    /// Something else has that name already.
    Exists,
    /// It could not be written: the disk is full, or fails.
    Disk,
    /// Something of the archive is missing or damaged.
    Archive,
    /// The archive holds nothing of this session, or not what was asked for.
    NotArchived,
    /// A newer epitome wrote it.
    NewerFormat,
    /// It was asked for something that would break a law.
    Refused,
    /// epitome reads sessions of this format and never writes them.
    ReadOnly,
    /// A setting means nothing.
    Settings,
    /// There is no recipe of that name, or its file cannot be read or is no recipe.
    Recipe,
    /// An internal promise does not hold: nothing was written.
    Broken,
}

/// What went wrong: a kind, a short sentence, and what caused it.
///
/// `Display` is one short sentence in lower case; the causes are behind
/// [`source`](StdError::source).
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    hint: Option<String>,
    cause: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of a kind, with a short sentence in lower case.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        let message = message.into();
        Error(Box::new(Inner { kind, message, path: None, hint: None, cause: None }))
    }

    /// An error met while reading `path`.
    pub fn reading(err: io::Error, what: &str, path: &Path) -> Error {
        let err = match Error::inside(err) {
            Ok(ours) => return ours,
            Err(err) => err,
        };
        let kind = kind_of(&err).unwrap_or(ErrorKind::Unreadable);
        Error::new(kind, format!("cannot read {what}")).at(path).because(err)
    }

    /// An error met while writing `path`.
    pub fn writing(err: io::Error, what: &str, path: &Path) -> Error {
        let err = match Error::inside(err) {
            Ok(ours) => return ours,
            Err(err) => err,
        };
        let kind = kind_of(&err).unwrap_or(ErrorKind::Disk);
        Error::new(kind, format!("cannot write {what}")).at(path).because(err)
    }

    /// One of ours that travelled through an [`io::Error`].
    fn inside(err: io::Error) -> std::result::Result<Error, io::Error> {
        if err.get_ref().is_some_and(|inner| inner.is::<Error>()) {
            let inner = err.into_inner().and_then(|inner| inner.downcast::<Error>().ok());
            return Ok(*inner.expect("it was just seen to be one of ours"));
        }
        Err(err)
    }

    /// With the file or folder that it is about.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Error {
        self.0.path = Some(path.to_owned());
        self
    }

    /// With what caused it.
    #[must_use]
    pub fn because(mut self, cause: impl StdError + Send + Sync + 'static) -> Error {
        self.0.cause = Some(Arc::new(cause));
        self
    }

    /// With what a person can do about it, in the place of what the kind says.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// With another kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Error {
        self.0.kind = kind;
        self
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file or folder that it is about.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref().or(match self.0.kind {
            ErrorKind::InUse | ErrorKind::HeldByAgent => {
                Some("close the agent that has the session open, then try again")
            }
            ErrorKind::Changed => Some("the agent may be running; try again when it is idle"),
            ErrorKind::Locked => Some("wait until the other epitome is done"),
            ErrorKind::HardLinked => Some("copy the file, so that it has one name, and try again"),
            ErrorKind::Disk => Some("free some space on that disk; nothing was changed"),
            ErrorKind::Archive => Some("`epitome archive verify` says what is damaged"),
            ErrorKind::NewerFormat => Some("update epitome"),
            ErrorKind::Exists => Some("choose another name, or remove what is there"),
            ErrorKind::NotArchived => Some(
                "`epitome archive ls` shows the sessions that were compacted on this machine; \
                 EPITOME_HOME says where the archive is, if it is not the usual place",
            ),
            ErrorKind::NotFound
            | ErrorKind::Settings
            | ErrorKind::Recipe
            | ErrorKind::UnknownFormat
            | ErrorKind::NotAFile
            | ErrorKind::NoPermission
            | ErrorKind::Unreadable
            | ErrorKind::Refused
            | ErrorKind::ReadOnly => None,
            ErrorKind::Broken => Some("nothing was written; please report this"),
        })
    }
}

/// The kind that an error of the system tells by itself.
#[expect(clippy::wildcard_enum_match_arm, reason = "the kinds of the system grow")]
fn kind_of(err: &io::Error) -> Option<ErrorKind> {
    match err.kind() {
        io::ErrorKind::NotFound => Some(ErrorKind::NotFound),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some(ErrorKind::NoPermission)
        }
        io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => Some(ErrorKind::NotAFile),
        io::ErrorKind::StorageFull
        | io::ErrorKind::QuotaExceeded
        | io::ErrorKind::FileTooLarge
        | io::ErrorKind::WriteZero => Some(ErrorKind::Disk),
        _ => None,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match &self.0.path {
            Some(path) => write!(f, ": {}", path.display()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)?;
        let mut cause = self.source();
        while let Some(err) = cause {
            write!(f, ": {err}")?;
            cause = err.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.cause {
            Some(cause) => Some(&**cause),
            None => None,
        }
    }
}

/// An error of a writer that was handed in from outside.
impl From<io::Error> for Error {
    fn from(err: io::Error) -> Error {
        match Error::inside(err) {
            Ok(ours) => ours,
            Err(err) => {
                let kind = kind_of(&err).unwrap_or(ErrorKind::Disk);
                Error::new(kind, "cannot write").because(err)
            }
        }
    }
}

/// So that an error of ours survives a trip through [`io::Write`].
impl From<Error> for io::Error {
    fn from(err: Error) -> io::Error {
        io::Error::other(err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_where_and_why() {
        let cause = io::Error::from(io::ErrorKind::StorageFull);
        let err = Error::writing(cause, "the session", Path::new("/a/b"));
        assert_eq!(err.kind(), ErrorKind::Disk);
        assert_eq!(err.to_string(), "cannot write the session: /a/b");
        assert_eq!(err.source().map(ToString::to_string).as_deref(), Some("no storage space"));
        assert_eq!(err.hint(), Some("free some space on that disk; nothing was changed"));
    }

    #[test]
    fn an_error_of_ours_survives_a_trip_through_io() {
        let ours = Error::new(ErrorKind::Changed, "it changed").at(Path::new("/a"));
        let back = Error::writing(io::Error::from(ours), "the session", Path::new("/b"));
        assert_eq!(
            (back.kind(), back.to_string().as_str()),
            (ErrorKind::Changed, "it changed: /a")
        );
    }
}
