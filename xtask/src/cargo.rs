//! Cargo, run in the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// The repository's folder.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The folder that cargo builds into.
///
/// # Errors
///
/// When the current folder is gone.
pub(crate) fn target() -> anyhow::Result<PathBuf> {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    Ok(std::path::absolute(named.unwrap_or_else(|| root().join("target")))?)
}

/// A command in the repository's folder.
pub(crate) fn command(program: &str) -> Command {
    let mut command = match program {
        "cargo" => Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
        other => Command::new(other),
    };
    command.current_dir(root());
    command
}

/// Runs a command in the repository's folder, with these variables set.
///
/// # Errors
///
/// When it cannot be run or does not succeed.
pub(crate) fn run(line: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<()> {
    let (program, args) = line.split_first().context("a command has a name")?;
    let mut command = command(program);
    let status = command.args(args).envs(variables.iter().copied()).status();
    let status = status.with_context(|| format!("cannot run {program}"))?;
    ensure!(status.success(), "{}: {status}", line.join(" "));
    Ok(())
}

/// What a command prints.
///
/// # Errors
///
/// When it cannot be run, does not succeed, or prints what is no text.
pub(crate) fn output(line: &[&str]) -> anyhow::Result<String> {
    let (program, args) = line.split_first().context("a command has a name")?;
    let output = command(program).args(args).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}\n{said}", line.join(" "), output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// Builds the program and says where it lies.
///
/// # Errors
///
/// When it does not build.
pub(crate) fn epitome(profile: &str) -> anyhow::Result<PathBuf> {
    run(&["cargo", "build", "--quiet", "-p", "epitome-cli", "--profile", profile], &[])?;
    let folder = if profile == "dev" { "debug" } else { profile };
    let name = format!("epitome{}", std::env::consts::EXE_SUFFIX);
    Ok(target()?.join(folder).join(name))
}
