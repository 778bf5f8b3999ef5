//! The npm packages: for each platform one with the program, and one for all platforms that runs
//! it.
//!
//! The packages of platforms are in a scope, so that no one else can take the name for a platform
//! that is added later.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::Package;
use xtask::cargo;

/// Targets, with the names that node has for the target's system and processor.
const PLATFORMS: [(&str, &str, &str); 6] = [
    ("x86_64-unknown-linux-musl", "linux", "x64"),
    ("aarch64-unknown-linux-musl", "linux", "arm64"),
    ("x86_64-apple-darwin", "darwin", "x64"),
    ("aarch64-apple-darwin", "darwin", "arm64"),
    ("x86_64-pc-windows-msvc", "win32", "x64"),
    ("aarch64-pc-windows-msvc", "win32", "arm64"),
];

/// npm itself; on Windows it is a script, and is found only by its whole name.
pub(super) const PROGRAM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

/// The scope of the packages with the program.
const SCOPE: &str = "@epitome-cli";

/// The target whose build keeps the package that runs the program: this package is the same for all
/// targets, and a release has it once.
const RUNNER: &str = "x86_64-unknown-linux-musl";

/// The packages of a target.
pub(super) struct Npm {
    /// The name that the package with the program has in the registry.
    pub holder: String,
    pub holder_file: PathBuf,
    pub runner_file: PathBuf,
}

impl Npm {
    /// The packages that are part of a release: the package with the program and, for the target
    /// [`RUNNER`], the package that runs it.
    pub fn released(&self, target: &str) -> Vec<&Path> {
        let all = [&*self.holder_file, &*self.runner_file];
        all[..if target == RUNNER { 2 } else { 1 }].to_vec()
    }

    /// Deletes the package that runs the program if it is not part of the release.
    ///
    /// # Errors
    ///
    /// If the file cannot be deleted.
    pub fn leave_released(&self, target: &str) -> anyhow::Result<()> {
        if target != RUNNER {
            fs::remove_file(&self.runner_file)?;
        }
        Ok(())
    }
}

/// Packs the package with the program for the platform of a target, and the package that runs the
/// program. `None` if npm packages are not made for the target.
///
/// # Errors
///
/// If npm is missing or fails.
pub(super) fn pack(package: &Package) -> anyhow::Result<Option<Npm>> {
    let platform = PLATFORMS.iter().find(|(target, ..)| *target == package.target);
    let Some((_, system, processor)) = platform else { return Ok(None) };
    let name = format!("{SCOPE}/{system}-{processor}");
    let folder = package.out.join("npm");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let holder = folder.join("holder");
    fs::create_dir_all(holder.join("bin"))?;
    let file = package.program.file_name().context("a file has a name")?;
    fs::copy(&package.program, holder.join("bin").join(file))?;
    let mut about = facts(&name, package);
    about["os"] = json!([system]);
    about["cpu"] = json!([processor]);
    about["files"] = json!(["bin", super::LICENCES]);
    let says = format!("The program for {system} {processor} of the package `epitome`.\n");
    fs::write(holder.join("README.md"), format!("# {name}\n\n{says}"))?;
    fs::copy(&package.licences, holder.join(super::LICENCES))?;
    write(&holder, &about)?;
    let runner = folder.join("epitome");
    fs::create_dir(&runner)?;
    for file in ["epitome.js", "README.md"] {
        fs::copy(cargo::root().join("packaging/npm").join(file), runner.join(file))?;
    }
    let mut about = facts("epitome", package);
    about["bin"] = json!({"epitome": "epitome.js"});
    about["files"] = json!(["epitome.js"]);
    if let Some(pages) = &package.pages {
        fs::write(runner.join("epitome.1"), &pages.man)?;
        about["man"] = json!("./epitome.1");
    }
    about["engines"] = json!({"node": ">=18"});
    let all = PLATFORMS.iter().map(|(_, system, processor)| {
        (format!("{SCOPE}/{system}-{processor}"), Value::from(package.version.clone()))
    });
    about["optionalDependencies"] = Value::Object(all.collect());
    write(&runner, &about)?;
    for place in [&holder, &runner] {
        for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
            fs::copy(cargo::root().join(file), place.join(file))?;
        }
    }
    let holder_file = tarball(&package.out, &holder)?;
    let runner_file = tarball(&package.out, &runner)?;
    fs::remove_dir_all(&folder)?;
    Ok(Some(Npm { holder: name, holder_file, runner_file }))
}

fn facts(name: &str, package: &Package) -> Value {
    json!({
        "name": name,
        "version": package.version,
        "description": "Shrinks the sessions of AI coding agents, and can restore every byte",
        "license": "MIT OR Apache-2.0",
        "keywords": ["ai", "agents", "context", "compaction", "sessions"],
    })
}

/// Writes the manifest of a package.
///
/// # Errors
///
/// If it cannot be written.
pub(super) fn write(folder: &Path, about: &Value) -> anyhow::Result<()> {
    Ok(fs::write(folder.join("package.json"), format!("{about:#}\n"))?)
}

/// Packs a folder, and returns the file.
///
/// # Errors
///
/// If npm is missing or fails.
pub(super) fn tarball(out: &Path, from: &Path) -> anyhow::Result<PathBuf> {
    let line = ["pack", "--silent", "--pack-destination", super::text(out)?];
    let output = cargo::command(PROGRAM).args(line).current_dir(from).output();
    let output = output.context("cannot run npm")?;
    ensure!(output.status.success(), "npm pack: {}", output.status);
    let name = String::from_utf8(output.stdout)?;
    Ok(out.join(name.trim()))
}
