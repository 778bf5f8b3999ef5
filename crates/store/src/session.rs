//! Opens and reads sessions.

use std::path::Path;

use epitome_error::Result;
pub use epitome_formats::session::{HEADS, format_of, writer};

use crate::archive::SessionKey;
use crate::place::Place;
use crate::source::FileSource;

/// A session that was opened and read: its bytes, its transcript, and its faults.
pub type Loaded<S = FileSource> = epitome_formats::session::Loaded<S>;

/// Opens and reads the session at an address (see [`Place`]). `agent` is the name of a format;
/// `None` means that the format is recognised.
///
/// # Errors
///
/// `UnknownFormat` if no format recognises the session; the errors of opening and reading it.
pub fn load(path: &Path, agent: Option<&str>) -> Result<Loaded> {
    load_at(&Place::parse(path), path, agent)
}

/// Opens and reads the session at a place. `path` is the address of the place.
///
/// # Errors
///
/// The errors of [`load`].
pub fn load_at(place: &Place, path: &Path, agent: Option<&str>) -> Result<Loaded> {
    Loaded::read(place.open()?, agent).map_err(|err| err.with_default_path(path))
}

/// The key of a session in the archive: the name of the agent, and the id in the session. For a
/// sub-agent, whose file is named `agent-…`, the name of the file is added to the id. If the
/// session has no id, the name of the file is used instead.
pub fn key_of<S>(session: &Loaded<S>, path: &Path) -> SessionKey {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    // The file of a sub-agent contains the id of the session to which it belongs. That id alone
    // would not identify the file.
    let id = match &session.transcript.head.id {
        Some(id) if !stem.starts_with("agent-") => id.to_string(),
        Some(id) => format!("{id}.{stem}"),
        None => stem.into_owned(),
    };
    SessionKey::new(session.format.name, id)
}

#[cfg(test)]
mod tests {
    use epitome_error::ErrorKind;

    use super::*;
    use crate::step::fault;

    #[test]
    fn a_session_that_cannot_be_read_is_not_one_of_no_agent() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, fixtures::get("claude", "pricing").bytes()).expect("a session");
        let opened = |n| {
            let done = fault::with(fault::unreadable_at(n), || load(&path, None));
            done.map(drop).map_err(|err| (err.kind(), err.path().map(Path::to_owned)))
        };
        let expect = Err((ErrorKind::Unreadable, Some(path.clone())));
        let failed: Vec<bool> = (0..12)
            .map(opened)
            .map(|it| {
                assert!(it.is_ok() || it == expect, "{it:?}");
                it.is_err()
            })
            .collect();
        assert!(failed.iter().filter(|it| **it).count() > 2, "{failed:?}");
    }
}
