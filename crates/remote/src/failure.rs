//! Errors of object storage as [`Error`]s with a hint.

use std::error::Error as StdError;
use std::path::Path;

use epitome_error::{Error, ErrorKind};

/// What was done when an error occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Parts of the messages of services that refuse credentials with a status that does not say so.
const EXPIRED: [&str; 4] =
    ["ExpiredToken", "TokenRefreshRequired", "RequestTimeTooSkewed", "InvalidToken"];

/// The error of a request for the object at `location`.
pub(crate) fn failed(err: object_store::Error, access: Access, location: &Path) -> Error {
    let kind = match &err {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => ErrorKind::NoPermission,
        _ if has_expired(&err) => ErrorKind::NoPermission,
        _ => match access {
            Access::Read => ErrorKind::Unreadable,
            Access::Write => ErrorKind::Disk,
        },
    };
    let what = match (kind, access) {
        (ErrorKind::NoPermission, _) => "the remote archive refuses access",
        (_, Access::Read) => "cannot read the remote archive",
        (_, Access::Write) => "cannot write the remote archive",
    };
    let error = Error::new(kind, what).at(location);
    match kind {
        ErrorKind::NotFound => error.because(err),
        ErrorKind::NoPermission => error.because(err).with_hint(
            "check the access key in the environment (for S3 AWS_ACCESS_KEY_ID, \
             AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN): it may be wrong or expired, or may not \
             read and write there",
        ),
        _ => error.because(err).with_hint(
            "check the network and `archive.url`; nothing is lost, `epitome archive push` tries \
             again",
        ),
    }
}

/// Whether a service refused credentials. Services report some refusals as other errors.
fn has_expired(err: &object_store::Error) -> bool {
    let mut cause: Option<&dyn StdError> = Some(err);
    while let Some(err) = cause {
        let text = err.to_string();
        if EXPIRED.iter().any(|it| text.contains(it)) {
            return true;
        }
        cause = err.source();
    }
    false
}

/// Whether a request might have been carried out although it failed: the answer was lost.
pub(crate) fn is_uncertain(err: &object_store::Error) -> bool {
    matches!(err, object_store::Error::Generic { .. }) && !has_expired(err)
}
