//! Where OpenCode keeps its databases.

use std::path::PathBuf;

use super::unread::Unread;
use super::{SessionFile, file_of, stem};
use crate::config::Config;
use crate::spread::Spread;

/// The sessions in the files of releases before 1.2. They stay there when later ones use a
/// database.
pub(super) fn files(config: &Config, unread: &mut Unread) -> Vec<SessionFile> {
    let spread = Spread::all(&config.opencode.join("storage"), "opencode");
    let found = spread.into_iter().filter_map(|spread| {
        let file = file_of(spread.session().to_owned(), "opencode", spread.id(), unread)?;
        Some(SessionFile { size: spread.size(), ..file })
    });
    found.collect()
}

/// The database that OpenCode was told to use, or all in its folder: each channel has its own.
pub(super) fn databases(config: &Config, unread: &mut Unread) -> Vec<PathBuf> {
    if let Some(database) = &config.opencode_database {
        return vec![database.clone()];
    }
    let mut found = unread.files_in(&config.opencode);
    found.retain(|path| {
        stem(path).starts_with("opencode") && path.extension().is_some_and(|it| it == "db")
    });
    found
}
