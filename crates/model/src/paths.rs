//! Paths in JSON: bytes that are not Unicode become U+FFFD.

use std::path::Path;

use serde::Serializer;

/// Serialises a path, for `#[serde(serialize_with)]`.
///
/// # Errors
///
/// The errors of the serialiser.
pub fn lossy_path<S: Serializer>(path: impl AsRef<Path>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.as_ref().display())
}

/// Serialises a path that may be missing, for `#[serde(serialize_with)]`.
///
/// # Errors
///
/// The errors of the serialiser.
pub fn lossy_path_option<S: Serializer, P: AsRef<Path>>(
    path: &Option<P>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => lossy_path(path, to),
        None => to.serialize_none(),
    }
}
