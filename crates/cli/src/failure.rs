//! Errors as people see them, and the exit status of the program.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use epitome::storage::User;
use epitome::{Error, ErrorKind, causes};
use serde::Serialize;

use crate::text::{BOLD, RED, YELLOW, visible};

/// The result of a command.
pub type Result<T> = std::result::Result<T, Failure>;

/// The exit status: see `docs/exit-codes.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// The reader of the output has gone: not an error.
    Quiet = 0,
    /// A bug of epitome.
    Bug = 1,
    /// An invalid command line, setting, recipe and the like.
    Usage = 2,
    /// Something cannot be found or read, most often a session.
    Unreadable = 3,
    /// Something was refused: the session is in use, an invariant would be violated, the user
    /// answered no, and the like.
    Refused = 4,
    /// An error of the disk, the archive or the system.
    Disk = 5,
    /// A scan found something.
    Found = 6,
    /// A simulation did not meet the conditions of `--gate`.
    Missed = 7,
    /// Stopped by Ctrl-C, after the work in progress was finished.
    Stopped = 130,
}

/// An error with its causes and hints.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    #[serde(skip)]
    pub status: Status,
    /// The name of the kind, for programs: `in-use`.
    pub kind: &'static str,
    /// The kind of the library error from which the failure was made, if any.
    #[serde(skip)]
    pub error: Option<ErrorKind>,
    pub message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

impl Failure {
    pub fn new(status: Status, kind: &'static str, message: impl Into<String>) -> Failure {
        let message = message.into();
        Failure { status, kind, error: None, message, causes: Vec::new(), hints: Vec::new() }
    }

    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Status::Usage, "usage", message)
    }

    /// A failure with the status `Disk` because of an error of the operating system. Not for errors
    /// of writing the output.
    pub fn disk(message: impl Into<String>, err: &io::Error) -> Failure {
        Failure::new(Status::Disk, "disk", message).because(err)
    }

    /// The warning that `--force` prints before it replaces a session that other programs can write
    /// to; `None` if there are no such programs.
    pub fn force_warning(users: &[User]) -> Option<String> {
        let writing: Vec<String> =
            users.iter().filter(|it| it.writes).map(name_of_process).collect();
        (!writing.is_empty()).then(|| {
            format!(
                "{} can write to the session: from now on, anything it writes to its open file is \
                 lost; end the agent, or let it open the session again",
                writing.join(", ")
            )
        })
    }

    /// Whether the failure was made from a library error of one of these kinds.
    pub fn is_of(&self, kinds: &[ErrorKind]) -> bool {
        self.error.is_some_and(|kind| kinds.contains(&kind))
    }

    /// A failure while something was written or the archive was read. If the status would be
    /// `Unreadable`, it is `Disk` instead, because the disk is at fault, not the session.
    pub fn writing(err: Error) -> Failure {
        Failure::from(err.while_writing())
    }

    /// Adds the path of the file, unless the message contains it.
    #[must_use]
    pub fn with_path(mut self, path: &Path) -> Failure {
        let name = path.display().to_string();
        if !self.message.contains(&name) {
            self.message = format!("{}: {name}", self.message);
        }
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }

    #[must_use]
    pub fn because(mut self, cause: &(dyn StdError + 'static)) -> Failure {
        self.causes.push(cause.to_string());
        self.causes.extend(causes(cause).map(ToString::to_string));
        self
    }

    /// Replaces `worst` by this failure if `worst` is empty or has a lower exit status.
    pub fn add_to(self, worst: &mut Option<Failure>) {
        if worst.as_ref().is_none_or(|it| it.status < self.status) {
            *worst = Some(self);
        }
    }

    /// The message and its causes, joined by colons.
    pub fn one_line(&self) -> String {
        let parts = std::iter::once(&self.message).chain(&self.causes);
        parts.map(String::as_str).collect::<Vec<_>>().join(": ")
    }

    pub fn exit(&self) -> ExitCode {
        ExitCode::from(self.status as u8)
    }

    /// The text for people: `error: ` and the message, or after Ctrl-C the message alone; then a
    /// line for each cause and each hint. Empty if the reader of the output has gone.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if self.status == Status::Quiet {
            return text;
        }
        if self.status == Status::Stopped {
            let _ = writeln!(text, "{YELLOW}{}{YELLOW:#}", indented(&self.message));
        } else {
            let _ = writeln!(text, "{RED}error:{RED:#} {}", indented(&self.message));
        }
        for cause in &self.causes {
            let _ = writeln!(text, "  {BOLD}cause:{BOLD:#} {}", indented(cause));
        }
        for hint in &self.hints {
            let _ = writeln!(text, "  {BOLD}hint:{BOLD:#} {}", indented(hint));
        }
        text
    }
}

fn indented(text: &str) -> String {
    visible(text).trim_end().replace('\n', "\n         ")
}

impl From<Error> for Failure {
    fn from(err: Error) -> Failure {
        let status = match status(err.kind()) {
            // While something is written, the disk is at fault, not the session.
            Status::Unreadable if err.is_while_writing() => Status::Disk,
            other => other,
        };
        let mut failure = Failure::new(status, err.kind().name(), err.to_string());
        failure.error = Some(err.kind());
        failure.causes = causes(&err).map(ToString::to_string).collect();
        failure.hints.extend(err.hint().into_iter().flat_map(str::lines).map(str::to_owned));
        if err.kind() == ErrorKind::NotAFile
            && let Some(folder) = err.path().filter(|path| path.is_dir())
        {
            let folder = folder.display();
            failure.hints.push(format!("`epitome serve --dir {folder}` shows the sessions in it"));
            failure.hints.push("`epitome list` shows the sessions of this machine".to_owned());
        }
        if err.kind() == ErrorKind::InUse {
            let force =
                "--force replaces it nevertheless; a running agent may then write to the old file";
            failure.hints.push(force.to_owned());
        }
        failure
    }
}

/// Only for errors of writing to standard output or standard error, because the message says that
/// the output cannot be written. For others there is [`Failure::disk`].
impl From<io::Error> for Failure {
    fn from(err: io::Error) -> Failure {
        if err.kind() == io::ErrorKind::BrokenPipe {
            return Failure::new(Status::Quiet, "quiet", "the output is closed");
        }
        Failure::new(Status::Disk, "disk", "cannot write the output").because(&err)
    }
}

fn name_of_process(user: &User) -> String {
    match (user.name.as_str(), user.pid) {
        ("", pid) => format!("process {pid}"),
        // The process belongs to another user, and its id is hidden.
        (name, 0) => name.to_owned(),
        (name, pid) => format!("{name} (process {pid})"),
    }
}

fn status(kind: ErrorKind) -> Status {
    match kind {
        ErrorKind::NotFound
        | ErrorKind::NotAFile
        | ErrorKind::NoPermission
        | ErrorKind::Unreadable
        | ErrorKind::UnknownFormat => Status::Unreadable,
        ErrorKind::InUse
        | ErrorKind::HeldByAgent
        | ErrorKind::Changed
        | ErrorKind::Locked
        | ErrorKind::HardLinked
        | ErrorKind::Exists
        | ErrorKind::Refused
        | ErrorKind::Invariant
        | ErrorKind::ReadOnly => Status::Refused,
        ErrorKind::Unsupported
        | ErrorKind::Usage
        | ErrorKind::Ambiguous
        | ErrorKind::Settings
        | ErrorKind::Recipe => Status::Usage,
        ErrorKind::Disk | ErrorKind::Archive | ErrorKind::NotArchived | ErrorKind::NewerFormat => {
            Status::Disk
        }
        ErrorKind::Broken => Status::Bug,
        _ => Status::Bug,
    }
}
