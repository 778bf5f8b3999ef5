//! Finds a Chromium on this machine.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

/// The names that the packages of operating systems give to Chromium's program.
const NAMES: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

/// A program, and the environment variables that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chromium {
    /// The program.
    pub program: PathBuf,
    /// Where the program finds libraries and fonts, if these are installed with it.
    pub variables: Vec<(String, String)>,
}

/// Returns the Chromium that `EPITOME_CHROMIUM` names; if the variable is not set, the Chromium of
/// the system; if the system has none, one from the npm registry.
///
/// # Errors
///
/// If none is found, and none can be installed or the installed one shows no page.
pub fn chromium() -> anyhow::Result<Chromium> {
    let named = env::var_os("EPITOME_CHROMIUM").filter(|name| !name.is_empty()).map(PathBuf::from);
    if let Some(program) = named.or_else(of_the_system) {
        return Ok(Chromium { program, variables: Vec::new() });
    }
    let folder = agents::install::chromium()?;
    let below = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let variables = [("LD_LIBRARY_PATH", "al2023/lib"), ("FONTCONFIG_PATH", "fonts")];
    let variables = variables.map(|(name, folder)| (name.to_owned(), below(folder)));
    let chromium = Chromium { program: folder.join("chromium"), variables: variables.into() };
    check_renders(&chromium)?;
    Ok(chromium)
}

/// Fails if a Chromium cannot render a page. The Chromium from the npm registry is built for one
/// system; on some others it starts, and then crashes with each page.
fn check_renders(chromium: &Chromium) -> anyhow::Result<()> {
    let profile = tempfile::tempdir()?;
    let profile = format!("--user-data-dir={}", profile.path().display());
    // Chromium may also hang. `timeout` is available on the system that this Chromium is built for.
    let shown = Command::new("timeout")
        .args(["--signal=KILL", "30"])
        .arg(&chromium.program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        .args(["--disable-dev-shm-usage", &profile, "--dump-dom", "data:text/html,<p>shown</p>"])
        .envs(chromium.variables.iter().map(|(name, value)| (name, value)))
        .output()?;
    let is_shown = String::from_utf8_lossy(&shown.stdout).contains("<p>shown</p>");
    ensure!(is_shown, "the Chromium from the npm registry shows no page on this system");
    Ok(())
}

fn of_the_system() -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&folders).collect();
    let is_there = |path: &PathBuf| Path::is_file(path);
    NAMES.iter().flat_map(|name| folders.iter().map(move |it| it.join(name))).find(is_there)
}
