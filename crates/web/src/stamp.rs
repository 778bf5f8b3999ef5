//! Whether a session has changed since it was last read.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use epitome::Place;

/// The length, the modification time and the inode of a session's file, or of its database and the
/// database's log; of a session of many files, their number, their total length and the newest
/// modification time. A session that still has the same stamp counts as unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) String);

impl Stamp {
    pub(crate) fn read(session: &Path) -> Stamp {
        let files = match Place::parse(session) {
            Place::File(path) => vec![path],
            Place::Spread(spread) => return Stamp(of_many(&spread.files())),
            Place::Rows(rows) => {
                let database = rows.database().to_owned();
                let mut log = database.clone().into_os_string();
                log.push("-wal");
                vec![database, log.into()]
            }
        };
        Stamp(files.iter().map(|file| one(file)).collect::<Vec<_>>().join("."))
    }

    /// The stamp of a single file that is not a session.
    pub(crate) fn of_file(path: &Path) -> Stamp {
        Stamp(one(path))
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl maud::Render for Stamp {
    fn render_to(&self, to: &mut String) {
        self.0.render_to(to);
    }
}

/// One stamp for all files of a session that may have thousands: their number, total length and
/// last change.
fn of_many(files: &[PathBuf]) -> String {
    let metas = files.iter().filter_map(|file| std::fs::metadata(file).ok());
    let mut length = 0;
    let mut newest = UNIX_EPOCH;
    for meta in metas {
        length += meta.len();
        newest = meta.modified().map_or(newest, |modified| newest.max(modified));
    }
    let newest = newest.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{:x}-{length:x}-{newest:x}", files.len())
}

/// The stamp of one file. A missing file has another stamp than an empty one.
fn one(file: &Path) -> String {
    let Ok(meta) = std::fs::metadata(file) else { return "none".to_owned() };
    let modified = meta.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
    let modified = modified.unwrap_or_default().as_nanos();
    format!("{:x}-{modified:x}-{:x}", meta.len(), number(&meta))
}

#[cfg(unix)]
fn number(meta: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

#[cfg(not(unix))]
fn number(_: &std::fs::Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_many_files_changes_with_each_of_them() {
        let store = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = store.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            std::fs::write(&path, text).expect("written");
            path
        };
        let session = write("session/p/ses_a.json", r#"{"id":"ses_a"}"#);
        write("message/ses_a/msg_1.json", r#"{"id":"msg_1"}"#);
        write("part/msg_1/prt_1.json", r#"{"id":"prt_1"}"#);
        let before = Stamp::read(&session);
        assert_eq!(Stamp::read(&session), before);
        write("part/msg_1/prt_1.json", r#"{"id":"prt_1","type":"text"}"#);
        let after = Stamp::read(&session);
        assert_ne!(after, before);
        write("message/ses_a/msg_2.json", r#"{"id":"msg_2"}"#);
        assert_ne!(Stamp::read(&session), after);
    }
}
