//! What was not checked, and why: steps and tests report it here, and `cargo xtask ci` prints it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use fixtures::skips;

use crate::{cargo, say};

/// The file that tests and steps add lines to.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Begins a list without lines. Every command that xtask starts from now on adds to it.
///
/// # Errors
///
/// When the folder that cargo builds into cannot be written.
pub(crate) fn begin() -> anyhow::Result<()> {
    let folder = cargo::target()?;
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("skips-{}", std::process::id()));
    fs::write(&path, "")?;
    let _ = FILE.set(path);
    Ok(())
}

/// The file of the list, once there is one.
pub(crate) fn file() -> Option<&'static Path> {
    FILE.get().map(PathBuf::as_path)
}

/// Reports that a step, or a part of it, is not done.
pub(crate) fn skipped(what: &str, why: &str) {
    match file() {
        Some(path) => skips::add(path, what, why),
        None => say(&format!("skipped: {what}: {why}")),
    }
}

/// Ends the list and returns its lines.
pub(crate) fn end() -> Vec<String> {
    let Some(path) = file() else { return Vec::new() };
    let lines = skips::lines(&fs::read_to_string(path).unwrap_or_default());
    let _ = fs::remove_file(path);
    lines
}
