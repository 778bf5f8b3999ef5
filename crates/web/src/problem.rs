//! Errors as responses to requests.

use axum::http::StatusCode;
use epitome::{Error, ErrorKind, causes};

/// An error, its causes, and what the user can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    pub(crate) hints: Vec<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Problem {
        Problem { status, message: message.into(), causes: Vec::new(), hints: Vec::new() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hints.push(hint.into());
        self
    }
}

impl From<Error> for Problem {
    fn from(err: Error) -> Problem {
        let mut problem = Problem::new(status(err.kind()), err.to_string());
        problem.causes = causes(&err).map(ToString::to_string).collect();
        problem.hints.extend(err.hint().map(str::to_owned));
        problem
    }
}

fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotFound | ErrorKind::NotArchived => StatusCode::NOT_FOUND,
        ErrorKind::NoPermission => StatusCode::FORBIDDEN,
        ErrorKind::NotAFile
        | ErrorKind::Unreadable
        | ErrorKind::UnknownFormat
        | ErrorKind::Usage
        | ErrorKind::Ambiguous
        | ErrorKind::Recipe => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::InUse
        | ErrorKind::HeldByAgent
        | ErrorKind::Changed
        | ErrorKind::Locked
        | ErrorKind::HardLinked
        | ErrorKind::Exists
        | ErrorKind::Refused
        | ErrorKind::Invariant
        | ErrorKind::Unsupported
        | ErrorKind::ReadOnly => StatusCode::CONFLICT,
        ErrorKind::Disk => StatusCode::INSUFFICIENT_STORAGE,
        ErrorKind::Archive | ErrorKind::NewerFormat | ErrorKind::Broken => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
