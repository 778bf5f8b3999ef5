//! Packages of the program: an archive, a wheel and npm packages, and whether each installs.
//!
//! maturin with zig does the work, `wheel` and `npm`; all come from package registries
//! (`packaging/README.md`).

mod check;
mod npm;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::{cargo, print, say};

/// What is packaged, and where the packages go.
pub(super) struct Package {
    version: String,
    target: String,
    /// The program.
    program: PathBuf,
    /// The folder of the packages.
    out: PathBuf,
}

/// Builds the program for a target, and makes its packages in `target/package`.
///
/// # Errors
///
/// When a tool is missing or fails.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let (mut target, mut profile, mut check) = (host()?, "dist".to_owned(), false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().map(|it| (*it).to_owned()).context("an option has a value");
        match *arg {
            "--target" => target = value()?,
            "--profile" => profile = value()?,
            "--check" => check = true,
            other => anyhow::bail!("package: what is `{other}`?"),
        }
    }
    let out = cargo::target()?.join("package");
    let (package, wheel) = Package::build(target, profile, out)?;
    let archive = package.archive()?;
    let packed = npm::pack(&package)?;
    let all: Vec<&Path> = [&archive, &wheel].into_iter().chain(&packed).map(|it| &**it).collect();
    package.checksums(&all)?;
    for path in &all {
        print(&format!("{:>9}  {}", size(path)?, path.display()));
    }
    if check { check::all(&package, &archive, &wheel, &packed) } else { Ok(()) }
}

/// The target of this machine.
fn host() -> anyhow::Result<String> {
    let said = cargo::output(&["rustc", "-vV"])?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names its host")?.to_owned())
}

fn size(path: &Path) -> anyhow::Result<String> {
    Ok(format!("{} KB", fs::metadata(path)?.len() / 1_000))
}

impl Package {
    /// Builds the program and its wheel, which holds the list of what it is made of (CycloneDX).
    /// For Linux, zig links it: to a C library as old as that of 2014, or to none.
    fn build(target: String, profile: String, out: PathBuf) -> anyhow::Result<(Package, PathBuf)> {
        say(&format!("building epitome for {target}"));
        let folder = out.join("wheel");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let mut line = vec!["build", "--profile", &profile, "--target", &target];
        line.extend(["--out", text(&folder)?]);
        if target.contains("linux") {
            line.push("--zig");
        }
        let mut maturin = cargo::command("maturin");
        maturin.args(&line).current_dir(cargo::root().join("packaging/python"));
        let status = maturin.status().context("cannot run maturin")?;
        ensure!(status.success(), "maturin failed");
        if let Some(processor) = target.strip_suffix("-unknown-linux-musl") {
            // A program without a C library runs beside any.
            let wheel = only_file(&folder)?;
            let tags = format!("manylinux_2_17_{processor}.musllinux_1_2_{processor}");
            let line = ["wheel", "tags", "--remove", "--platform-tag", &tags, text(&wheel)?];
            cargo::run(&line, &[])?;
        }
        let made = only_file(&folder)?;
        let wheel = out.join(made.file_name().context("a file has a name")?);
        fs::rename(&made, &wheel)?;
        fs::remove_dir(&folder)?;
        let folder = if profile == "dev" { "debug" } else { &profile };
        let name = if target.contains("windows") { "epitome.exe" } else { "epitome" };
        let program = cargo::target()?.join(&target).join(folder).join(name);
        ensure!(program.is_file(), "{}: there is no program", program.display());
        Ok((Package { version: version()?, target, program, out }, wheel))
    }

    /// The program with its licences, manual page and completions.
    fn archive(&self) -> anyhow::Result<PathBuf> {
        let name = format!("epitome-{}-{}", self.version, self.target);
        let folder = self.out.join(&name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        let program = self.program.file_name().context("a file has a name")?;
        fs::copy(&self.program, folder.join(program))?;
        for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            fs::copy(cargo::root().join(file), folder.join(file))?;
        }
        if self.runs_here() {
            let program = self.program.to_str().context("a path is text")?;
            fs::write(folder.join("epitome.1"), cargo::output(&[program, "man"])?)?;
            for shell in ["bash", "zsh", "fish"] {
                let script = cargo::output(&[program, "completions", shell])?;
                fs::write(folder.join(format!("epitome.{shell}")), script)?;
            }
        }
        let archive = self.out.join(format!("{name}.tar.gz"));
        let (to, from) = (text(&archive)?, text(&self.out)?);
        cargo::run(&["tar", "-czf", to, "-C", from, &name], &[])?;
        fs::remove_dir_all(&folder)?;
        Ok(archive)
    }

    /// Adds the SHA-256 of each package to `SHA256SUMS`.
    fn checksums(&self, files: &[&Path]) -> anyhow::Result<()> {
        let names = files.iter().map(|it| text(it.file_name().map_or(*it, Path::new)));
        let names: Vec<&str> = names.collect::<anyhow::Result<_>>()?;
        let mut command = cargo::command("sha256sum");
        let output = command.args(&names).current_dir(&self.out).output()?;
        ensure!(output.status.success(), "sha256sum: {}", output.status);
        fs::write(self.out.join(format!("SHA256SUMS-{}", self.target)), output.stdout)?;
        Ok(())
    }

    /// Whether this machine can run it.
    fn runs_here(&self) -> bool {
        let system = match std::env::consts::OS {
            "macos" => "darwin",
            other => other,
        };
        self.target.starts_with(std::env::consts::ARCH) && self.target.contains(system)
    }
}

fn version() -> anyhow::Result<String> {
    let manifest: toml::Table = fs::read_to_string(cargo::root().join("Cargo.toml"))?.parse()?;
    let version = manifest["workspace"]["package"]["version"].as_str();
    Ok(version.context("the workspace has a version")?.to_owned())
}

fn only_file(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut files = fs::read_dir(folder)?;
    Ok(files.next().with_context(|| format!("{}: empty", folder.display()))??.path())
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a path is text")
}
