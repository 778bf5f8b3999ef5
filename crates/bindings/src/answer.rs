//! Answers as JSON.

use epitome::pipe::error_json;
use epitome::{Error, ErrorKind, Result};
use serde::Serialize;
use serde_json::json;

/// Does the work of a function, and returns its result as JSON, or `{"error": …}` if it fails.
pub fn answer<T: Serialize>(work: impl FnOnce() -> Result<T>) -> String {
    let text = work().and_then(|result| serde_json::to_string(&result).map_err(no_json));
    text.unwrap_or_else(|err| error(&err))
}

/// An error as JSON: `{"error": …}`.
pub fn error(err: &Error) -> String {
    json!({ "error": error_json(err) }).to_string()
}

fn no_json(err: serde_json::Error) -> Error {
    Error::new(ErrorKind::Broken, err.to_string())
}
