//! A temporary home for one agent. Dropping the value removes the home.

use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The path of the home in the text of recorded sessions. It is replaced by the path of the real
/// home before a session is used, and the other way round after a recording.
pub const RECORDED_HOME: &str = "/home/dev";

/// The name of the copy of a home, next to it.
const COPY: &str = "copy";

const RECORDED_KERNEL: &str = "6.8.0-generic";

/// A home folder with a `project` in it.
#[derive(Debug)]
pub struct Home {
    _guard: TempDir,
    path: PathBuf,
    project: PathBuf,
    temporary: PathBuf,
}

impl Home {
    /// An empty home.
    ///
    /// # Errors
    ///
    /// If the temporary folder cannot be made.
    pub fn new() -> anyhow::Result<Self> {
        let guard = TempDir::with_prefix("epitome-agent-")?;
        // Agents resolve links in their working folder: use the resolved name from the start.
        let path = fs::canonicalize(guard.path())?.join("home");
        let project = path.join("project");
        fs::create_dir_all(&project)?;
        let temporary = path.join("tmp");
        fs::create_dir(&temporary)?;
        Ok(Self { _guard: guard, path, project, temporary })
    }

    /// Copies the home as it is now to the folder that [`reset`](Home::reset) restores it from.
    ///
    /// # Errors
    ///
    /// If a file cannot be copied.
    pub(crate) fn keep_copy(&self) -> anyhow::Result<()> {
        copy(&self.path, &self.path.with_file_name(COPY))
    }

    /// Makes the home what it was at [`keep_copy`](Home::keep_copy), with the same times of files.
    ///
    /// # Errors
    ///
    /// If there is no copy, or a file cannot be removed or copied.
    pub(crate) fn reset(&self) -> anyhow::Result<()> {
        fs::remove_dir_all(&self.path)?;
        copy(&self.path.with_file_name(COPY), &self.path)
    }

    /// The home folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The project's folder, where the agent works.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// The folder of temporary files.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Writes a file below the home, with its folders.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, relative: impl AsRef<Path>, content: &[u8]) -> anyhow::Result<PathBuf> {
        let path = self.path.join(relative);
        let folder = path.parent().context("a file has a folder")?;
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        fs::write(&path, content).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// The text of a recorded session, as if it had been recorded in this home.
    pub fn localise(&self, text: &str) -> String {
        text.replace(RECORDED_HOME, &self.path_text())
            .replace(&dashed(RECORDED_HOME), &dashed(&self.path_text()))
    }

    /// The text of a session without paths and kernel version of this machine.
    pub fn scrub(&self, text: &str) -> String {
        let kernel = rustix::system::uname();
        text.replace(&self.path_text(), RECORDED_HOME)
            .replace(&dashed(&self.path_text()), &dashed(RECORDED_HOME))
            .replace(&*kernel.release().to_string_lossy(), RECORDED_KERNEL)
    }

    fn path_text(&self) -> String {
        self.path.display().to_string()
    }
}

/// Copies a folder and all that is in it, with times and permissions.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(status.success(), "{} was not copied: {status}", from.display());
    Ok(())
}

/// A path as Claude Code names its folders: each character but letters and digits becomes a dash.
pub(crate) fn dashed(path: &str) -> String {
    path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// The files below `folder` that end in `.jsonl`, `depth` folders down, oldest first.
pub(crate) fn sessions_below(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    for path in entries.map(|entry| entry.path()) {
        if depth > 0 && path.is_dir() {
            found.extend(sessions_below(&path, depth - 1));
        } else if depth == 0 && path.extension().is_some_and(|extension| extension == "jsonl") {
            found.push(path);
        }
    }
    found.sort_by_key(|path| fs::metadata(path).and_then(|meta| meta.modified()).ok());
    found
}
