//! `cargo xtask demo`: the main job on a session that ships with the repository.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{cargo, print};

/// What the session is called where it is compacted.
const SESSION: &str = "session.jsonl";

/// Builds epitome, compacts a recorded session, shows what was removed, restores, compares.
///
/// # Errors
///
/// When the program does not build, says no, or does not give the session back as it was.
pub(crate) fn run() -> Result<()> {
    let epitome = cargo::epitome("release")?;
    let folder = tempfile::tempdir().context("no folder to work in")?;
    let recorded = fixtures::get("pi", "pricing");
    let original = recorded.bytes();
    let session = folder.path().join(SESSION);
    std::fs::write(&session, &original).context("the session cannot be copied")?;
    print("A recorded session of the agent pi, in a folder of its own:\n");

    let shell = |args: &[&str]| {
        print(&format!("$ epitome {}", args.join(" ")));
        let said = said(&epitome, folder.path(), args)?;
        print(&said);
        Ok::<String, anyhow::Error>(said)
    };
    shell(&["inspect", SESSION])?;
    shell(&["compact", SESSION])?;
    let compacted = std::fs::read(&session).context("the compacted session")?;
    let reference = reference(&compacted).context("the compacted session holds no stub")?;
    shell(&["show", &reference, "--lines", "1..5"])?;
    shell(&["restore", SESSION])?;
    let restored = std::fs::read(&session).context("the restored session")?;
    ensure!(restored == original, "the restored session is not what it was");
    print(&format!(
        "{} bytes became {} and are {} again: the same, byte for byte.",
        original.len(),
        compacted.len(),
        restored.len()
    ));
    Ok(())
}

fn said(epitome: &Path, folder: &Path, args: &[&str]) -> Result<String> {
    let out = Command::new(epitome)
        .args(args)
        .current_dir(folder)
        .env("EPITOME_HOME", folder.join("home"))
        .output()
        .with_context(|| format!("{} does not run", epitome.display()))?;
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    ensure!(out.status.success(), "{}{}", said, String::from_utf8_lossy(&out.stderr));
    Ok(said)
}

/// The first reference that stands in a compacted session.
fn reference(session: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(session);
    let (_, rest) = text.split_once("[epitome ")?;
    rest.split_once(':').map(|(reference, _)| reference.to_owned())
}
