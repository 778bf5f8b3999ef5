//! The npm packages: one for each platform that holds the program, and one that runs it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::Package;
use crate::cargo;

/// Targets, and what node calls their system and processor.
const PLATFORMS: [(&str, &str, &str); 6] = [
    ("x86_64-unknown-linux-musl", "linux", "x64"),
    ("aarch64-unknown-linux-musl", "linux", "arm64"),
    ("x86_64-apple-darwin", "darwin", "x64"),
    ("aarch64-apple-darwin", "darwin", "arm64"),
    ("x86_64-pc-windows-msvc", "win32", "x64"),
    ("aarch64-pc-windows-msvc", "win32", "arm64"),
];

/// Packs the package for the platform of a target, if that has one, and the one that runs it.
///
/// # Errors
///
/// When npm is missing or fails.
pub(super) fn pack(package: &Package) -> anyhow::Result<Vec<PathBuf>> {
    let platform = PLATFORMS.iter().find(|(target, ..)| *target == package.target);
    let Some((_, system, processor)) = platform else { return Ok(Vec::new()) };
    let name = format!("epitome-{system}-{processor}");
    let folder = package.out.join("npm");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let holder = folder.join(&name);
    fs::create_dir_all(holder.join("bin"))?;
    let file = package.program.file_name().context("a file has a name")?;
    fs::copy(&package.program, holder.join("bin").join(file))?;
    let mut about = facts(&name, package);
    about["os"] = json!([system]);
    about["cpu"] = json!([processor]);
    about["files"] = json!(["bin"]);
    write(&holder, &about)?;
    let runner = folder.join("epitome");
    fs::create_dir(&runner)?;
    for file in ["epitome.js", "README.md"] {
        fs::copy(cargo::root().join("packaging/npm").join(file), runner.join(file))?;
    }
    let mut about = facts("epitome", package);
    about["bin"] = json!({"epitome": "epitome.js"});
    about["files"] = json!(["epitome.js"]);
    about["engines"] = json!({"node": ">=18"});
    let all = PLATFORMS.iter().map(|(_, system, processor)| {
        (format!("epitome-{system}-{processor}"), Value::from(package.version.clone()))
    });
    about["optionalDependencies"] = Value::Object(all.collect());
    write(&runner, &about)?;
    let packed = [&holder, &runner].into_iter().map(|from| tarball(package, from)).collect();
    fs::remove_dir_all(&folder)?;
    packed
}

fn facts(name: &str, package: &Package) -> Value {
    json!({
        "name": name,
        "version": package.version,
        "description": "Shrinks the sessions of AI coding agents, and can restore every byte",
        "license": "MIT OR Apache-2.0",
    })
}

fn write(folder: &Path, about: &Value) -> anyhow::Result<()> {
    Ok(fs::write(folder.join("package.json"), format!("{about:#}\n"))?)
}

fn tarball(package: &Package, from: &Path) -> anyhow::Result<PathBuf> {
    let out = super::text(&package.out)?;
    let line = ["pack", "--silent", "--pack-destination", out];
    let output = cargo::command("npm").args(line).current_dir(from).output();
    let output = output.context("cannot run npm")?;
    ensure!(output.status.success(), "npm pack: {}", output.status);
    let name = String::from_utf8(output.stdout)?;
    Ok(package.out.join(name.trim()))
}
