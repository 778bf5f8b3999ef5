//! Which Chromium there is on this machine.

use std::env;
use std::path::{Path, PathBuf};

/// What a system's package may call it.
const NAMES: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

/// A program, and the variables that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chromium {
    /// The program.
    pub program: PathBuf,
    /// Where it finds libraries and fonts, if they came with it.
    pub variables: Vec<(String, String)>,
}

/// The Chromium that `EPITOME_CHROMIUM` names, or that of the system, or else one from the npm
/// registry.
///
/// # Errors
///
/// When there is none, and none can be installed.
pub fn chromium() -> anyhow::Result<Chromium> {
    let named = env::var_os("EPITOME_CHROMIUM").filter(|name| !name.is_empty()).map(PathBuf::from);
    if let Some(program) = named.or_else(of_the_system) {
        return Ok(Chromium { program, variables: Vec::new() });
    }
    let folder = agents::install::chromium()?;
    let below = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let variables = [("LD_LIBRARY_PATH", "al2023/lib"), ("FONTCONFIG_PATH", "fonts")];
    let variables = variables.map(|(name, folder)| (name.to_owned(), below(folder)));
    Ok(Chromium { program: folder.join("chromium"), variables: variables.into() })
}

fn of_the_system() -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&folders).collect();
    let is_there = |path: &PathBuf| Path::is_file(path);
    NAMES.iter().flat_map(|name| folders.iter().map(move |it| it.join(name))).find(is_there)
}
