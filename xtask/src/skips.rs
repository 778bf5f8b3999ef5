//! Skipped checks with their reasons: steps and tests report them, and `cargo xtask ci` prints
//! them.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The variable that names the file of skips for tests and other programs (`fixtures::skips`).
pub(crate) const VARIABLE: &str = "EPITOME_SKIPS";

/// The file to which tests and steps add lines.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Begins an empty list of skipped checks, in a file in `folder`. All commands that are started
/// from now on add to it.
///
/// # Errors
///
/// If the folder cannot be written.
pub fn begin(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let path = folder.join(format!("skips-{}", std::process::id()));
    fs::write(&path, "")?;
    let _ = FILE.set(path);
    Ok(())
}

/// The file of the list of skipped checks, once a list was begun.
pub(crate) fn file() -> Option<&'static Path> {
    FILE.get().map(PathBuf::as_path)
}

/// Reports that a step, or a part of it, is skipped.
pub fn skipped(what: &str, why: &str) {
    crate::say(&format!("skipped: {what}: {why}"));
    let file = file().and_then(|path| OpenOptions::new().append(true).open(path).ok());
    if let Some(mut file) = file {
        // If the file cannot be written, the step still succeeds.
        let _ = writeln!(file, "{what}: {why}");
    }
}

/// Ends the list of skipped checks and returns its lines, without repetitions.
pub fn end() -> Vec<String> {
    let Some(path) = file() else { return Vec::new() };
    let text = fs::read_to_string(path).unwrap_or_default();
    let _ = fs::remove_file(path);
    lines(&text)
}

fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_of_many_tests_is_one_line() {
        assert_eq!(lines("b: x\na: y\nb: x\n"), ["a: y", "b: x"]);
    }
}
