//! Checks that each package can be installed, used and removed on this machine.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};

use super::library::Packages;
use super::npm::{self, Npm};
use super::{Package, runs_here, text};
use xtask::{cargo, print};

/// Maximum time from the start of the installation to the end of the first command, in seconds.
const LONGEST: f64 = 10.0;

/// Installs each package into an empty folder, runs `demo` and `list`, and uninstalls the package.
/// A static program also runs in an empty root.
///
/// # Errors
///
/// If the program does not run on this machine; or if any of this fails, takes too long, or leaves
/// something behind.
pub(super) fn all(
    package: &Package,
    archive: &Path,
    wheel: &Path,
    npm: Option<&Npm>,
) -> anyhow::Result<()> {
    ensure!(package.runs_here(), "{} does not run on this machine", package.target);
    let name = archive.file_name().and_then(OsStr::to_str).context("a file has a name")?;
    let folder = name.trim_end_matches(".tar.gz");
    check("archive", |place| {
        cargo::run(&["tar", "-xzf", text(archive)?, "-C", text(place)?], &[])?;
        Ok((place.join(folder).join("epitome"), Vec::new()))
    })?;
    check("wheel", |place| {
        let (venv, python) = (place.join("venv"), place.join("venv/bin/python"));
        cargo::run(&["python3", "-m", "venv", text(&venv)?], &[])?;
        let pip = [text(&python)?, "-m", "pip", "--quiet", "--disable-pip-version-check"];
        let words = |more: &[&str]| line(&pip, more);
        run(&words(&["install", "--no-index", "--no-deps", text(wheel)?]))?;
        let completions = "share/bash-completion/completions/epitome";
        has(&venv, &["share/man/man1/epitome.1", completions])?;
        Ok((place.join("venv/bin/epitome"), words(&["uninstall", "--yes", "epitome-cli"])))
    })?;
    if let Some(npm) = npm {
        check("npm", |place| {
            let prefix = [npm::PROGRAM, "--prefix", text(place)?, "--global", "--silent"];
            let words = |more: &[&str]| line(&prefix, more);
            let files = [text(&npm.holder_file)?, text(&npm.runner_file)?];
            // The packages for other platforms are not on a registry yet.
            run(&words(&["install", "--omit=optional", files[0], files[1]]))?;
            has(place, &["share/man/man1/epitome.1"])?;
            Ok((place.join("bin/epitome"), words(&["uninstall", "epitome", &npm.holder])))
        })?;
    }
    if package.target.ends_with("musl") {
        in_an_empty_root(package)?;
    }
    Ok(())
}

/// Installs the packages of the library into empty folders, and uses both. A library for musl is
/// not run on a machine with glibc.
///
/// # Errors
///
/// If any of this fails.
pub(super) fn library(target: &str, packages: &Packages) -> anyhow::Result<()> {
    if !runs_here(target) || target.ends_with("-musl") {
        print(&format!("the library for {target}: skipped, it does not run on this machine"));
        return Ok(());
    }
    let place = tempfile::tempdir()?;
    let (venv, python) = (place.path().join("venv"), place.path().join("venv/bin/python"));
    let python = text(&python)?;
    cargo::run(&["python3", "-m", "venv", text(&venv)?], &[])?;
    let install = ["-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-index"];
    let wheel = text(&packages.wheel)?;
    cargo::run(&[&[python][..], &install, &["--no-deps", wheel]].concat(), &[])?;
    cargo::run(&[python, "-c", PYTHON], &[])?;
    let folder = text(place.path())?;
    let (module, selector) = (&packages.npm.module, &packages.npm.selector);
    let install = [npm::PROGRAM, "--prefix", folder, "--silent", "install", "--offline"];
    cargo::run(&[&install[..], &[text(module)?, text(selector)?]].concat(), &[])?;
    let script = place.path().join("check.mjs");
    fs::write(&script, NODE)?;
    cargo::run(&["node", text(&script)?], &[])?;
    print(&format!("the library for {target}: installed and used by Python and Node"));
    Ok(())
}

/// Uses the library in Python.
const PYTHON: &str = r#"
import epitome
messages = [{"role": "user", "content": "Hello."}]
assert len(epitome.Context().view(messages)) == 1
"#;

/// Uses the library in Node, as a native module and as WebAssembly.
const NODE: &str = r#"
import assert from "node:assert/strict";
import { Context } from "@epitome-cli/context";
import { Context as WasmContext, load } from "@epitome-cli/context/wasm";
await load();
const messages = [{ role: "user", content: "Hello." }];
const view = await new Context({ count: "estimate" }).view(messages);
assert.equal(view.length, 1);
assert.deepEqual(await new WasmContext().view(messages), view);
"#;

/// Installs a package into an empty folder with `install`, which returns the program and the
/// command that uninstalls it; runs the program with an empty home; and uninstalls the package.
fn check(
    name: &str,
    install: impl FnOnce(&Path) -> anyhow::Result<(PathBuf, Vec<String>)>,
) -> anyhow::Result<()> {
    let (place, home) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let begin = Instant::now();
    let (program, uninstall) = install(place.path())?;
    let command = |word: &str| -> anyhow::Result<()> {
        let mut command = Command::new(&program);
        command.arg(word).env_clear().env("HOME", home.path());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        let output = command.output().with_context(|| format!("{}", program.display()))?;
        ensure!(output.status.success(), "{name}: epitome {word}: {}", output.status);
        Ok(())
    };
    command("demo")?;
    let seconds = begin.elapsed().as_secs_f64();
    command("list")?;
    ensure!(seconds < LONGEST, "{name}: the first command took {seconds:.1} s");
    if !uninstall.is_empty() {
        run(&uninstall)?;
        ensure!(!program.exists(), "{name}: {} is left", program.display());
    }
    print(&format!("{name}: installed, `demo` after {seconds:.1} s, `list`, uninstalled"));
    left_in(home.path())
}

/// Checks that the program left nothing but its cache in a home.
fn left_in(home: &Path) -> anyhow::Result<()> {
    let mut left = Vec::new();
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { left.push(path) }
        }
    }
    left.retain(|path| !path.iter().any(|part| part == "cache"));
    ensure!(left.is_empty(), "left in the home: {left:?}");
    Ok(())
}

/// Checks that a package has installed these files too.
fn has(place: &Path, files: &[&str]) -> anyhow::Result<()> {
    for file in files {
        ensure!(place.join(file).is_file(), "{} is not installed", place.join(file).display());
    }
    Ok(())
}

/// Runs the static program where nothing else is: no C library, no shell, no terminal database.
/// Only the administrator may change the root: if this user cannot, not even with `sudo` without a
/// password, the check is skipped with a report.
fn in_an_empty_root(package: &Package) -> anyhow::Result<()> {
    let Some(chroot) = chroot() else {
        print("empty root: skipped, only the administrator can try it");
        return Ok(());
    };
    let root = tempfile::tempdir()?;
    fs::copy(&package.program, root.path().join("epitome"))?;
    fs::create_dir(root.path().join("tmp"))?;
    for word in ["demo", "list"] {
        let (program, args) = chroot.split_first().context("a command has a name")?;
        let mut command = Command::new(program);
        command.args(args).arg(root.path()).args(["/epitome", word]);
        command.env_clear().env("HOME", "/home");
        // `PATH`: `chroot` must be found.
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        let status = command.stdout(std::process::Stdio::null()).status();
        let status = status.with_context(|| format!("cannot run {program}"))?;
        ensure!(status.success(), "empty root: epitome {word}: {status}");
    }
    print("empty root: `demo` and `list` run");
    Ok(())
}

/// The command that changes the root; `None` if this user may not run it.
fn chroot() -> Option<&'static [&'static str]> {
    const WAYS: [&[&str]; 2] = [&["chroot"], &["sudo", "--non-interactive", "chroot"]];
    let may = |way: &&[&str]| {
        let mut command = Command::new(way[0]);
        command.args(&way[1..]).args(["/", "true"]).stderr(std::process::Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    WAYS.into_iter().find(may)
}

fn line(begin: &[&str], end: &[&str]) -> Vec<String> {
    begin.iter().chain(end).map(|word| (*word).to_owned()).collect()
}

fn run(line: &[String]) -> anyhow::Result<()> {
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    cargo::run(&line, &[])
}
