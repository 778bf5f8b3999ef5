//! `xtask e2e [AGENT…]`: sessions of the real agents, compacted by the real program.

use anyhow::{Context, ensure};
use std::path::PathBuf;
use std::process::Command;

/// Builds `epitome` and takes a session of each named agent the whole way: record, compact,
/// resume, restore, resume. All agents when none is named.
///
/// # Errors
///
/// When the program does not build, an agent cannot be installed, or the way breaks off.
pub(crate) fn run(agents: &[&str]) -> anyhow::Result<()> {
    cargo(&["build", "-p", "epitome-cli"])?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    // The agents crate runs in its own folder at times; a relative path would not reach.
    let epitome = std::path::absolute(target.join("debug/epitome"))?;
    let epitome = epitome.to_str().context("the target folder's name is not UTF-8")?;
    let run = ["run", "--quiet", "-p", "agents", "--bin", "e2e", "--", epitome];
    cargo(&[&run, agents].concat())
}

fn cargo(args: &[&str]) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let status = Command::new(cargo).args(args).current_dir(root).status()?;
    ensure!(status.success(), "cargo {}: {status}", args.join(" "));
    Ok(())
}
