//! `cargo lab used-home`: runs a command, for example the tests, with a home that looks used, which
//! the command may not change.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use xtask::{cargo, print};

/// The environment variables that say where agents and epitome store files, each with its folder
/// below the home.
const FOLDERS: &[(&str, &str)] = &[
    ("HOME", ""),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("EPITOME_HOME", ".local/share/epitome"),
    ("EPITOME_CONFIG", ".config/epitome"),
    ("CLAUDE_CONFIG_DIR", ".claude"),
    ("CODEX_HOME", ".codex"),
    ("COPILOT_HOME", ".copilot"),
    ("GEMINI_CLI_HOME", ""),
    ("PI_CODING_AGENT_DIR", ".pi/agent"),
];

/// The variables of cargo and rustup, which keep the real folders, each with its default folder.
const TOOLS: &[(&str, &str)] = &[("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")];

/// Runs a command with a home that looks used, and checks that the command changed nothing in it.
///
/// # Errors
///
/// If the command fails or a file of the home was changed.
pub(crate) fn run(line: &[&str]) -> anyhow::Result<()> {
    let home = Home::new(&cargo::epitome("dev")?)?;
    let variables = home.variables();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    cargo::run(line, &variables)?;
    home.is_unchanged()
}

/// A temporary home, which is removed when this is dropped.
struct Home {
    folder: tempfile::TempDir,
    listing: Vec<(PathBuf, String)>,
}

impl Home {
    /// Makes a home full of sessions.
    ///
    /// # Errors
    ///
    /// If `program` cannot compact the sessions, or the disk is full.
    fn new(program: &Path) -> anyhow::Result<Home> {
        let folder = tempfile::Builder::new().prefix("used-home-").tempdir()?;
        chaos::fill(folder.path(), program).context("a home full of sessions")?;
        let listing = listing(folder.path())?;
        Ok(Home { folder, listing })
    }

    /// The environment variables that make this the home of a command, except for cargo and rustup,
    /// which keep their real folders.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let below = |name: &str| self.folder.path().join(name).to_string_lossy().into_owned();
        let folders = FOLDERS.iter().map(|(variable, name)| (*variable, below(name)));
        let real = std::env::home_dir().unwrap_or_default();
        let tools = TOOLS.iter().filter_map(|(variable, name)| {
            let named = std::env::var(variable).ok().map(PathBuf::from);
            let folder = named.unwrap_or_else(|| real.join(name));
            folder.is_dir().then(|| (*variable, folder.to_string_lossy().into_owned()))
        });
        folders.chain(tools).collect()
    }

    /// Checks that no file was added, removed or changed.
    ///
    /// # Errors
    ///
    /// If there is such a file; the error has the names of all.
    fn is_unchanged(&self) -> anyhow::Result<()> {
        let now = listing(self.folder.path())?;
        let changed: Vec<String> = (now.iter().filter(|it| !self.listing.contains(it)))
            .chain(self.listing.iter().filter(|it| !now.contains(it)))
            .map(|(path, _)| path.display().to_string())
            .collect();
        ensure!(changed.is_empty(), "tests changed the user's home: {}", changed.join(", "));
        print(&format!("the {} files of a used home are what they were", now.len()));
        Ok(())
    }
}

/// Every file and folder below a folder, each file with a hash of its content.
fn listing(folder: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            let meta = path.symlink_metadata()?;
            let what = if meta.is_dir() {
                open.push(path.clone());
                "a folder".to_owned()
            } else {
                blake3::hash(&fs::read(&path)?).to_string()
            };
            found.push((path, what));
        }
    }
    found.sort();
    Ok(found)
}
