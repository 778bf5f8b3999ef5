//! Serialises a path as text, or as bytes if it is not Unicode.
//!
//! On Unix, the path that is read back always equals the path that was written. With another path,
//! the session would seem to have been deleted.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Bytes(Vec<u8>),
}

pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    let stored = match path.to_str() {
        Some(text) => Stored::Text(text.to_owned()),
        None => Stored::Bytes(path.as_os_str().as_encoded_bytes().to_owned()),
    };
    stored.serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    Ok(match Stored::deserialize(from)? {
        Stored::Text(text) => PathBuf::from(text),
        Stored::Bytes(bytes) => of_bytes(bytes),
    })
}

#[cfg(unix)]
fn of_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(not(unix))]
fn of_bytes(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}
