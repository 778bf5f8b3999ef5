//! Whole copies of sessions, kept in addition to the archive.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::{SessionKey, safe_name};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::source::{FileSource, copy};
use crate::store::{disk, write_new};

/// Where a whole copy is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackupPlace {
    /// In the folder of the archive.
    Archive,
    /// Next to the session: most agents list it there as a session.
    Beside,
}

/// Copies a session unchanged to `NAME.uncompressed.jsonl`, where `NAME` is the name of the
/// session's file without its extension or, if the session is not one file, is made from its id. If
/// that file exists, it stays, and the copy is named `NAME.uncompressed.2.jsonl`, and so on.
/// Returns the path of the copy.
///
/// # Errors
///
/// `Exists` if there are 1,000 copies already; `Disk` or `NoPermission` if the copy cannot be
/// written; the errors of reading the session.
pub fn keep_backup(
    config: &Config,
    session: &FileSource,
    key: &SessionKey,
    place: BackupPlace,
) -> Result<PathBuf> {
    let folder = match place {
        BackupPlace::Archive => {
            let folder = config.archived(key);
            disk::private_folder(&folder)?;
            folder
        }
        BackupPlace::Beside => session.path().parent().unwrap_or(Path::new(".")).to_owned(),
    };
    // A session in a database has no file of its own, and its id may be any text, even a path to
    // another folder.
    let stem = if session.path().is_file() {
        session.path().file_stem().unwrap_or_default().to_string_lossy()
    } else {
        safe_name(&key.id).into()
    };
    let len = epitome_model::Source::len(session);
    let mut number = 1_u64;
    loop {
        let count = if number == 1 { String::new() } else { format!(".{number}") };
        let path = folder.join(format!("{stem}.uncompressed{count}.jsonl"));
        match write_new(&path, |out| copy(session, 0..len, out)) {
            Ok(()) => return Ok(path),
            Err(err) if err.kind() == ErrorKind::Exists && number < 1_000 => number += 1,
            Err(err) => return Err(Error::new(err.kind(), "cannot keep a backup").because(err)),
        }
    }
}

/// Whether a file below the home of epitome is a copy that [`keep_backup`] made.
pub(crate) fn is_backup(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = name.strip_suffix(".jsonl").and_then(|it| it.rsplit_once(".uncompressed"));
    let Some((_, number)) = number else { return false };
    number.is_empty() || number.strip_prefix('.').is_some_and(|it| it.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::FileSource;

    #[test]
    fn an_id_leads_to_no_other_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        let elsewhere = dir.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).expect("a folder");
        let here = dir.path().join("here");
        std::fs::create_dir(&here).expect("a folder");
        let home = dir.path().join("home");
        let config = Config::from_folders(dir.path(), &home, &home, |_| None);
        let evil = [elsewhere.join("evil").to_string_lossy().into_owned(), "../up".to_owned()];
        for id in evil {
            let key = SessionKey::new("opencode", id);
            for place in [BackupPlace::Archive, BackupPlace::Beside] {
                // A session in a database: its address names the database and the session, and no
                // file has that name.
                let file = tempfile::tempfile().expect("a file");
                let rows = FileSource::new(file, &here.join("opencode.db#x")).expect("a source");
                let path = keep_backup(&config, &rows, &key, place).expect("a backup");
                let folder = match place {
                    BackupPlace::Archive => config.archived(&key),
                    BackupPlace::Beside => here.clone(),
                };
                assert_eq!(path.parent(), Some(&*folder), "{}", path.display());
                assert!(is_backup(&path), "{}", path.display());
            }
        }
        assert_eq!(std::fs::read_dir(&elsewhere).expect("a folder").count(), 0);
    }
}
