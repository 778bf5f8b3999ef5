//! Where OpenCode keeps its databases.

use std::path::PathBuf;

use super::{files_in, stem};
use crate::config::Config;

/// The database that OpenCode was told to use, or all in its folder: each channel has its own.
pub(super) fn databases(config: &Config) -> Vec<PathBuf> {
    if let Some(database) = &config.opencode_database {
        return vec![database.clone()];
    }
    let mut found = files_in(&config.opencode);
    found.retain(|path| {
        stem(path).starts_with("opencode") && path.extension().is_some_and(|it| it == "db")
    });
    found
}
