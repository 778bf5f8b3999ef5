//! The error type of the crates that do input and output.
//!
//! An [`Error`] has an [`ErrorKind`] and a short message. It may also have the path of the file
//! that it is about, a cause, and a hint that tells the user what to do. Programs decide by the
//! kind and never compare the message. [`sentence`] returns an error with its causes as one line,
//! and [`causes`] iterates over the causes.
//!
//! An [`Error`] can be put into a [`std::io::Error`] and taken out again unchanged, so that a
//! reader or writer can return one. The constructors are for epitome's own crates.
//!
//! ```
//! use epitome_error::{Error, ErrorKind, sentence};
//!
//! let cause = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
//! let err = Error::reading(cause, "the session", "s.jsonl".as_ref());
//! assert_eq!(err.kind(), ErrorKind::NoPermission);
//! assert_eq!(err.path(), Some("s.jsonl".as_ref()));
//! assert!(sentence(&err).starts_with("cannot read the session: "));
//! ```
//!
//! # Absent
//!
//! - Input and output: an [`io::Error`] is only classified here.
//! - Long texts for users, and exit codes: `epitome-cli`.
//! - Faults of single records in a session, which are not errors: `epitome-model`.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A result whose error is an [`Error`] unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error, by which a program decides what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file, the directory or another thing that was requested does not exist.
    NotFound,
    /// The path does not lead to a regular file, but for example to a directory, a pipe or a
    /// device.
    NotAFile,
    /// The operating system denies access.
    NoPermission,
    /// Data that exists (a file, a folder, a database, the JSON of an API) cannot be read or
    /// parsed.
    Unreadable,
    /// What the operation needs is in use, for example because another program has the file open.
    InUse,
    /// The agent holds its own lock on the session.
    HeldByAgent,
    /// The file is not a session in a known format, or not a file of the expected kind.
    UnknownFormat,
    /// The session, or another file or database that the operation uses, changed meanwhile.
    Changed,
    /// Another epitome process has locked the session or epitome's own files, or another program
    /// has locked the database of the session.
    Locked,
    /// The file has several hard links: replacing one name would separate it from the others.
    HardLinked,
    /// A file or another thing of that name exists already, and is not replaced.
    Exists,
    /// Something could not be written, for example because the disk is full.
    Disk,
    /// Something that is needed from the archive, the vault or a remote archive is missing or
    /// damaged.
    Archive,
    /// The archive has no bytes of this session, or not those that were requested; or the vault
    /// does not have the requested version.
    NotArchived,
    /// A newer version of epitome wrote the data, in a format that this version cannot read.
    NewerFormat,
    /// The request cannot be carried out safely.
    Refused,
    /// The compacted session or request would violate an invariant.
    Invariant,
    /// The requested operation is not possible, for example for sessions of this format or with
    /// this build of epitome.
    Unsupported,
    /// epitome reads sessions of this format and never writes them.
    ReadOnly,
    /// The arguments of a command, or the members of a request to epitome, are wrong.
    Usage,
    /// The given name, id or reference is the beginning of several.
    Ambiguous,
    /// A setting is invalid.
    Settings,
    /// There is no recipe of that name, or its file cannot be read or is not a recipe.
    Recipe,
    /// An internal error: a guarantee of epitome does not hold.
    Broken,
}

impl ErrorKind {
    /// The name of the kind in JSON, in kebab case: `not-found`. Several kinds may share a name,
    /// and a few names differ from the kind, because they are older (`docs/exit-codes.md`).
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "not-found",
            ErrorKind::NotAFile => "not-a-file",
            ErrorKind::NoPermission => "no-permission",
            ErrorKind::Unreadable => "unreadable",
            ErrorKind::UnknownFormat => "unknown-format",
            ErrorKind::InUse | ErrorKind::HeldByAgent => "in-use",
            ErrorKind::Changed => "changed",
            ErrorKind::Locked => "locked",
            ErrorKind::HardLinked => "hard-linked",
            ErrorKind::Exists => "exists",
            ErrorKind::Refused => "refused",
            ErrorKind::Invariant => "law",
            ErrorKind::Unsupported | ErrorKind::Usage | ErrorKind::Recipe => "usage",
            ErrorKind::Ambiguous => "ambiguous",
            ErrorKind::ReadOnly => "read-only",
            ErrorKind::Disk => "disk",
            ErrorKind::Archive => "archive",
            ErrorKind::NotArchived => "not-archived",
            ErrorKind::NewerFormat => "newer-format",
            ErrorKind::Settings => "settings",
            ErrorKind::Broken => "bug",
        }
    }

    /// Whether an operation on many sessions skips a session with this error and still succeeds:
    /// the session is in use, locked, or changed during the operation; epitome does not write its
    /// format; or the file is no session in a known format.
    pub fn leaves_one_of_many(self) -> bool {
        matches!(
            self,
            ErrorKind::InUse
                | ErrorKind::HeldByAgent
                | ErrorKind::Locked
                | ErrorKind::Changed
                | ErrorKind::UnknownFormat
                | ErrorKind::ReadOnly
        )
    }
}

/// An error: a kind, a short message, and its cause if there is one.
///
/// `Display` prints the message, and the path if it is known; [`source`](StdError::source) returns
/// the cause.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    hint: Option<String>,
    while_writing: bool,
    cause: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error with a message: a short sentence in lower case.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        let message = message.into();
        Error(Box::new(Inner {
            kind,
            message,
            path: None,
            hint: None,
            while_writing: false,
            cause: None,
        }))
    }

    /// An error that occurred while reading `path`. `what` names what was read; the message is
    /// `cannot read`, followed by this name. An [`Error`] inside `err` is returned as it is.
    pub fn reading(err: io::Error, what: &str, path: &Path) -> Error {
        let err = match Error::inside(err) {
            Ok(ours) => return ours,
            Err(err) => err,
        };
        let kind = kind_of(&err).unwrap_or(ErrorKind::Unreadable);
        Error::new(kind, format!("cannot read {what}")).at(path).because(err)
    }

    /// An error that occurred while writing `path`. `what` names what was written; the message is
    /// `cannot write`, followed by this name. An [`Error`] inside `err` is returned as it is.
    pub fn writing(err: io::Error, what: &str, path: &Path) -> Error {
        let err = match Error::inside(err) {
            Ok(ours) => return ours,
            Err(err) => err,
        };
        let kind = kind_of(&err).unwrap_or(ErrorKind::Disk);
        Error::new(kind, format!("cannot write {what}")).at(path).because(err)
    }

    /// The [`Error`] inside an [`io::Error`]; `Err` with the [`io::Error`] itself if it contains
    /// none.
    fn inside(err: io::Error) -> std::result::Result<Error, io::Error> {
        if err.get_ref().is_some_and(|inner| inner.is::<Error>()) {
            let inner = err.into_inner().and_then(|inner| inner.downcast::<Error>().ok());
            return Ok(*inner.expect("it was just seen to be one of ours"));
        }
        Err(err)
    }

    /// Sets the path of the file or directory that the error is about, in place of an earlier one.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Error {
        self.0.path = Some(path.to_owned());
        self
    }

    /// Sets the cause: the error that led to this one.
    #[must_use]
    pub fn because(mut self, cause: impl StdError + Send + Sync + 'static) -> Error {
        self.0.cause = Some(Arc::new(cause));
        self
    }

    /// Sets the hint for the user, in place of the kind's default hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// Sets the kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Error {
        self.0.kind = kind;
        self
    }

    /// Sets the path of the file that the error is about, unless it has a path already: the path
    /// that was set where the error occurred is more precise.
    #[must_use]
    pub fn with_default_path(mut self, path: &Path) -> Error {
        self.0.path.get_or_insert_with(|| path.to_owned());
        self
    }

    /// Marks the error as one that occurred while something was written. The program `epitome` then
    /// exits with the status for disk errors, even if the kind is `Unreadable`.
    #[must_use]
    pub fn while_writing(mut self) -> Error {
        self.0.while_writing = true;
        self
    }

    /// Whether [`while_writing`](Error::while_writing) was called for this error.
    pub fn is_while_writing(&self) -> bool {
        self.0.while_writing
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The path of the file or directory that the error is about.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// What the user can do about the error: the hint that was set, or else the default hint of the
    /// kind. `None` if there is neither.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref().or(match self.0.kind {
            ErrorKind::InUse | ErrorKind::HeldByAgent => {
                Some("close the agent that has the session open, then try again")
            }
            ErrorKind::Changed => Some("the agent may be running; try again when it is idle"),
            ErrorKind::Locked => Some("wait until the other epitome is done"),
            ErrorKind::HardLinked => Some("copy the file, so that it has one name, and try again"),
            ErrorKind::Disk => causes(self).find_map(hint_of_cause),
            ErrorKind::Archive => Some("`epitome archive verify` lists what is damaged"),
            ErrorKind::NewerFormat => Some("update epitome"),
            ErrorKind::Exists => Some("choose another name, or remove what is there"),
            ErrorKind::NotArchived => Some(
                "`epitome archive ls` shows the sessions that were compacted on this machine; \
                 EPITOME_HOME says where the archive is, if it is not the usual place",
            ),
            ErrorKind::NotFound
            | ErrorKind::Usage
            | ErrorKind::Ambiguous
            | ErrorKind::Settings
            | ErrorKind::Recipe
            | ErrorKind::UnknownFormat
            | ErrorKind::NotAFile
            | ErrorKind::NoPermission
            | ErrorKind::Unreadable
            | ErrorKind::Refused
            | ErrorKind::Unsupported
            | ErrorKind::ReadOnly => None,
            ErrorKind::Invariant => {
                Some("nothing was written; `epitome inspect` says whether it is sound as it is")
            }
            ErrorKind::Broken => Some("nothing was written; please report this"),
        })
    }
}

/// The hint of the errors whose cause is a full disk.
pub const FULL_DISK_HINT: &str = "free some space on that disk; nothing was changed";

/// The hint for an error of the disk with this cause.
#[expect(clippy::wildcard_enum_match_arm, reason = "the kinds of the system grow")]
fn hint_of_cause(cause: &(dyn StdError + 'static)) -> Option<&'static str> {
    match cause.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(FULL_DISK_HINT),
        io::ErrorKind::PermissionDenied => {
            Some("check the permissions of that path and of its folder; nothing was changed")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            Some("the file system there is read-only; nothing was changed")
        }
        _ => None,
    }
}

/// The causes of an error: first its direct cause, then the cause of that error, and so on.
pub fn causes<'e>(
    err: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(err.source(), |cause| (*cause).source())
}

/// An error and its causes on one line: `cannot read the file: access denied`.
pub fn sentence(err: &(dyn StdError + 'static)) -> String {
    let texts = std::iter::once(err).chain(causes(err)).map(ToString::to_string);
    texts.collect::<Vec<_>>().join(": ")
}

/// The kind of an I/O error; `None` if its [`io::ErrorKind`] determines no kind.
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
        write!(f, "{:?}: {}", self.0.kind, sentence(self))
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

/// Lets `?` convert an I/O error that occurred while something was written. If the [`io::Error`]
/// contains an [`Error`], that one is returned.
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

/// Lets an [`Error`] pass through [`io::Write`] unchanged.
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

    /// Only a full disk is a reason to free space. The cause may be below other errors.
    #[test]
    fn the_hint_of_an_error_of_the_disk_fits_its_cause() {
        let permission =
            "check the permissions of that path and of its folder; nothing was changed";
        let read_only = "the file system there is read-only; nothing was changed";
        let cases = [
            (io::ErrorKind::StorageFull, Some(FULL_DISK_HINT)),
            (io::ErrorKind::QuotaExceeded, Some(FULL_DISK_HINT)),
            (io::ErrorKind::PermissionDenied, Some(permission)),
            (io::ErrorKind::ReadOnlyFilesystem, Some(read_only)),
            (io::ErrorKind::FileTooLarge, None),
            (io::ErrorKind::BrokenPipe, None),
            (io::ErrorKind::Other, None),
        ];
        for (cause, hint) in cases {
            let err = Error::writing(io::Error::from(cause), "the session", Path::new("/a/b"));
            assert_eq!(err.with_kind(ErrorKind::Disk).hint(), hint, "{cause:?}");
            let err = Error::writing(io::Error::from(cause), "the session", Path::new("/a/b"));
            let outer = Error::new(ErrorKind::Disk, "it failed").because(err);
            assert_eq!(outer.hint(), hint, "{cause:?}");
        }
        assert_eq!(Error::new(ErrorKind::Disk, "it failed").hint(), None);
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

    /// Programs compare the names, and scripts that work on many sessions rely on which errors skip
    /// only one session.
    #[test]
    fn kinds_keep_their_names_and_what_they_mean_for_many_sessions() {
        let kinds = [
            (ErrorKind::NotFound, "not-found", false),
            (ErrorKind::NotAFile, "not-a-file", false),
            (ErrorKind::NoPermission, "no-permission", false),
            (ErrorKind::Unreadable, "unreadable", false),
            (ErrorKind::InUse, "in-use", true),
            (ErrorKind::HeldByAgent, "in-use", true),
            (ErrorKind::UnknownFormat, "unknown-format", true),
            (ErrorKind::Changed, "changed", true),
            (ErrorKind::Locked, "locked", true),
            (ErrorKind::HardLinked, "hard-linked", false),
            (ErrorKind::Exists, "exists", false),
            (ErrorKind::Disk, "disk", false),
            (ErrorKind::Archive, "archive", false),
            (ErrorKind::NotArchived, "not-archived", false),
            (ErrorKind::NewerFormat, "newer-format", false),
            (ErrorKind::Refused, "refused", false),
            (ErrorKind::Invariant, "law", false),
            (ErrorKind::Unsupported, "usage", false),
            (ErrorKind::ReadOnly, "read-only", true),
            (ErrorKind::Usage, "usage", false),
            (ErrorKind::Ambiguous, "ambiguous", false),
            (ErrorKind::Settings, "settings", false),
            (ErrorKind::Recipe, "usage", false),
            (ErrorKind::Broken, "bug", false),
        ];
        for (kind, name, leaves_one) in kinds {
            assert_eq!((kind.name(), kind.leaves_one_of_many()), (name, leaves_one), "{kind:?}");
        }
    }
}
