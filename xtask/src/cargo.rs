//! Runs cargo and other programs in the repository.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::skips;

/// The target of WebAssembly without a system.
const WASM: &str = "wasm32-unknown-unknown";

/// The folder of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The build folder of cargo.
///
/// # Errors
///
/// If the current folder does not exist.
pub fn target() -> anyhow::Result<PathBuf> {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    Ok(std::path::absolute(named.unwrap_or_else(|| root().join("target")))?)
}

/// A command that runs in the folder of the repository.
pub fn command(program: &str) -> Command {
    let mut command = match program {
        "cargo" => Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
        other => Command::new(other),
    };
    command.current_dir(root());
    // Cargo sets these variables for the program that it runs. Some build scripts (ring's) depend
    // on them: cargo would run those scripts again, and build again what depends on them.
    let of_cargo = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| of_cargo(name)) {
        command.env_remove(name);
    }
    if let Some(file) = skips::file() {
        command.env(skips::VARIABLE, file);
    }
    command
}

/// Runs a command in the folder of the repository, with these variables set.
///
/// # Errors
///
/// If the command cannot be run or fails.
pub fn run(line: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<()> {
    let (program, args) = line.split_first().context("a command has a name")?;
    let mut command = command(program);
    let status = command.args(args).envs(variables.iter().copied()).status();
    let status = status.with_context(|| format!("cannot run {program}"))?;
    ensure!(status.success(), "{}: {status}", line.join(" "));
    Ok(())
}

/// The output of a command.
///
/// # Errors
///
/// If the command cannot be run, fails, or its output is not text.
pub fn output(line: &[&str]) -> anyhow::Result<String> {
    let (program, args) = line.split_first().context("a command has a name")?;
    let output = command(program).args(args).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}\n{errors}", line.join(" "), output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// The arguments by which CI selects crates and features in every build and test: all crates, with
/// the program's features. As long as the selection is the same, cargo builds each dependency once;
/// with another one, such as `-p epitome-node`, it would build half of them again with other
/// features.
pub const EVERYTHING: &[&str] = &["--workspace", "--features", "epitome-cli/remote", "--locked"];

/// The arguments of cargo that build what is in `more`, with the features that tests have. (Without
/// a test among them, cargo leaves out the features of `dev-dependencies`.)
pub fn build_of<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["cargo", "build"], EVERYTHING, &["--test", "it"], more].concat()
}

/// Builds the program `epitome` and returns its path.
///
/// # Errors
///
/// If the program does not build.
pub fn epitome(profile: &str) -> anyhow::Result<PathBuf> {
    match profile {
        "dev" => run(&build_of(&["--bin", "epitome"]), &[])?,
        _ => run(&["cargo", "build", "--profile", profile, "-p", "epitome-cli"], &[])?,
    }
    let folder = if profile == "dev" { "debug" } else { profile };
    let name = format!("epitome{}", std::env::consts::EXE_SUFFIX);
    Ok(target()?.join(folder).join(name))
}

/// Whether the library can be built as WebAssembly: whether its target is installed, or could be
/// installed just now.
///
/// # Errors
///
/// If the compiler does not say where its targets are.
pub fn has_wasm_target() -> anyhow::Result<bool> {
    let sysroot = output(&["rustc", "--print", "sysroot"])?;
    let place = Path::new(sysroot.trim()).join("lib/rustlib").join(WASM).join("lib");
    if !place.exists() {
        // Without rustup, or without a network, it stays absent.
        let _ = output(&["rustup", "target", "add", WASM]);
    }
    Ok(place.exists())
}

/// Builds the library as WebAssembly for browsers in a profile, with these variables set, and
/// returns its path.
///
/// # Errors
///
/// If it does not build: the target must be installed, by `rustup target add
/// wasm32-unknown-unknown`.
pub fn wasm(profile: &str, variables: &[(&str, String)]) -> anyhow::Result<PathBuf> {
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, it)| (*name, &**it)).collect();
    let line = ["cargo", "build", "--locked", "-p", "epitome-wasm", "--profile", profile];
    run(&[&line[..], &["--target", WASM]].concat(), &variables).with_context(|| {
        format!("if the target is missing, `rustup target add {WASM}` installs it")
    })?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target()?.join(WASM).join(folder).join("epitome_wasm.wasm"))
}
