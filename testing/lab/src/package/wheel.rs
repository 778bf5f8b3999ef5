//! The wheel: maturin builds it from a folder with the licences. The manual page and completions,
//! which the program prints, are added afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::{Package, only_file, text};
use xtask::cargo;

/// The variable for the time of files, and the time that maturin sets: 1980-01-01, the earliest in
/// a ZIP archive.
pub(super) const TIME: (&str, &str) = ("SOURCE_DATE_EPOCH", "315532800");

/// Builds the program and its wheel.
///
/// # Errors
///
/// If maturin is missing or fails.
pub(super) fn build(
    target: &str,
    profile: &str,
    out: &Path,
    licences: &Path,
) -> anyhow::Result<PathBuf> {
    let source = staged(out, licences)?;
    let folder = empty(&out.join("wheel"))?;
    let mut line = vec!["build", "--profile", profile, "--target", target];
    line.extend(["--out", text(&folder)?]);
    if target.contains("linux") {
        line.push("--zig");
    }
    let mut maturin = cargo::command("maturin");
    maturin.args(&line).current_dir(&source).envs(without_paths()?).envs([TIME]);
    let status = maturin.status().context("cannot run maturin")?;
    ensure!(status.success(), "maturin failed");
    fs::remove_dir_all(&source)?;
    if let Some(processor) = target.strip_suffix("-unknown-linux-musl") {
        // A static program needs no C library of the system, so the wheel gets the tags of
        // systems with glibc and with musl.
        let wheel = only_file(&folder)?;
        let tags = format!("manylinux_2_17_{processor}.musllinux_1_2_{processor}");
        let line = ["wheel", "tags", "--remove", "--platform-tag", &tags, text(&wheel)?];
        cargo::run(&line, &[TIME])?;
    }
    only_file(&folder)
}

/// Makes a copy of `packaging/python` with the licences, because a wheel can only have files of the
/// folder that it is built from.
fn staged(out: &Path, licences: &Path) -> anyhow::Result<PathBuf> {
    let source = empty(&out.join("python"))?;
    let from = cargo::root().join("packaging/python");
    fs::copy(from.join("README.md"), source.join("README.md"))?;
    let manifest = cargo::root().join("crates/cli/Cargo.toml");
    let project = fs::read_to_string(from.join("pyproject.toml"))?;
    // A backslash would begin an escape sequence in TOML.
    let manifest = text(&manifest)?.replace('\\', "/");
    let project = project.replace("../../crates/cli/Cargo.toml", &manifest);
    fs::write(source.join("pyproject.toml"), project)?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(cargo::root().join(file), source.join(file))?;
    }
    fs::copy(licences, source.join(super::LICENCES))?;
    Ok(source)
}

/// Adds the manual page and completions, if the program could print them, to a wheel, and moves the
/// wheel to the other packages.
///
/// # Errors
///
/// If `wheel` is missing or fails.
pub(super) fn finish(package: &Package, wheel: &Path) -> anyhow::Result<PathBuf> {
    let built = wheel.parent().context("a file is in a folder")?;
    if let Some(pages) = &package.pages {
        let folder = empty(&package.out.join("unpacked"))?;
        cargo::run(&["wheel", "unpack", "--dest", text(&folder)?, text(wheel)?], &[])?;
        let unpacked = only_file(&folder)?;
        let data = format!("epitome_cli-{}.data/data/share", package.version);
        for (path, page) in [
            ("man/man1/epitome.1", &pages.man),
            ("bash-completion/completions/epitome", &pages.bash),
            ("zsh/site-functions/_epitome", &pages.zsh),
            ("fish/vendor_completions.d/epitome.fish", &pages.fish),
        ] {
            let path = unpacked.join(&data).join(path);
            fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
            fs::write(path, page)?;
        }
        let line = ["wheel", "pack", "--dest-dir", text(built)?, text(&unpacked)?];
        cargo::run(&line, &[TIME])?;
        fs::remove_dir_all(&folder)?;
    }
    let made = only_file(built)?;
    let place = package.out.join(made.file_name().context("a file has a name")?);
    fs::rename(&made, &place)?;
    fs::remove_dir(built)?;
    Ok(place)
}

/// Environment variables for a reproducible build: with them, compilers write fixed paths into the
/// program instead of paths of this machine.
///
/// # Errors
///
/// If a path is not known.
pub(super) fn without_paths() -> anyhow::Result<Vec<(&'static str, String)>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("no home")?;
    let sysroot = cargo::output(&["rustc", "--print", "sysroot"])?;
    let (root, registry) = (cargo::root(), home.join("registry/src"));
    let places =
        [(text(&root)?, "/epitome"), (text(&registry)?, "/crates"), (sysroot.trim(), "/rust")];
    let given = |name: &str| std::env::var(name).unwrap_or_default();
    let all = |variable: &'static str, option: &str| {
        let options = places.iter().map(|(from, to)| format!(" {option}={from}={to}"));
        (variable, given(variable) + &String::from_iter(options))
    };
    Ok(vec![all("RUSTFLAGS", "--remap-path-prefix"), all("CFLAGS", "-ffile-prefix-map")])
}

/// An empty folder at this path.
///
/// # Errors
///
/// If it cannot be made.
pub(super) fn empty(folder: &Path) -> anyhow::Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    Ok(folder.to_owned())
}
