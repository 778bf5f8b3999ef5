//! Errors of object storage as [`Error`]s with a hint.

use std::error::Error as StdError;
use std::path::Path;

use epitome_error::{Error, ErrorKind};

/// Whether a request that failed was one that reads or one that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Parts of error messages which show that the service refused the credentials, although the crate
/// `object_store` reports another error: for listings, and for keys that have expired (S3 answers
/// 400).
const REFUSALS: [&str; 6] = [
    "status code: 401",
    "status code: 403",
    "ExpiredToken",
    "InvalidToken",
    "RequestTimeTooSkewed",
    "TokenRefreshRequired",
];

/// The kind of the error of a request.
pub(crate) fn kind(err: &object_store::Error, access: Access) -> ErrorKind {
    match err {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => ErrorKind::NoPermission,
        _ if is_refusal(err) => ErrorKind::NoPermission,
        _ => match access {
            Access::Read => ErrorKind::Unreadable,
            Access::Write => ErrorKind::Disk,
        },
    }
}

/// The error of a request for the object at `location`.
pub(crate) fn failed(err: object_store::Error, access: Access, location: &Path) -> Error {
    let kind = kind(&err, access);
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

/// Whether a service refused credentials.
fn is_refusal(err: &object_store::Error) -> bool {
    let mut cause: Option<&dyn StdError> = Some(err);
    while let Some(err) = cause {
        let text = err.to_string();
        if REFUSALS.iter().any(|it| text.contains(it)) {
            return true;
        }
        cause = err.source();
    }
    false
}

/// Whether a request might have been carried out although it failed, because only the response was
/// lost.
pub(crate) fn is_uncertain(err: &object_store::Error) -> bool {
    matches!(err, object_store::Error::Generic { .. }) && !is_refusal(err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.into() }
    }

    #[test]
    fn an_expired_key_is_a_refusal_and_a_lost_connection_is_not() {
        let location = Path::new("s3://bucket/x");
        for (text, access, kind) in [
            ("status code: 400: <Code>ExpiredToken</Code>", Access::Write, ErrorKind::NoPermission),
            ("status code: 403 Forbidden: <Error/>", Access::Read, ErrorKind::NoPermission),
            ("connection reset", Access::Read, ErrorKind::Unreadable),
            ("connection reset", Access::Write, ErrorKind::Disk),
        ] {
            let is_refused = kind == ErrorKind::NoPermission;
            assert_eq!(is_uncertain(&generic(text)), !is_refused, "{text}");
            let err = failed(generic(text), access, location);
            assert_eq!(err.kind(), kind, "{text}");
            let hint = err.hint().expect("a hint");
            assert_eq!(hint.contains("AWS_ACCESS_KEY_ID"), is_refused, "{hint}");
            assert_eq!(hint.contains("the network"), !is_refused, "{hint}");
        }
    }
}
