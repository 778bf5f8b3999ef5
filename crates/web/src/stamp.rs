//! Whether a session has changed since it was last read.

use std::fmt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use epitome::Place;

/// The length, the modification time and the inode of a session's file, or of its database and the
/// database's log. A session that still has the same stamp counts as unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) String);

impl Stamp {
    pub(crate) fn read(session: &Path) -> Stamp {
        let files = match Place::parse(session) {
            Place::File(path) => vec![path],
            Place::Spread(spread) => vec![spread.session().to_owned()],
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

/// The stamp of one file. A missing file differs from an empty one.
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
