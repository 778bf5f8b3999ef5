//! Builds packages of the program (an archive, a wheel, npm packages) and of the library (a wheel,
//! npm packages), and tests their installation.
//!
//! maturin and cargo-zigbuild with zig, `wheel` and `npm` do the work; all are from package
//! registries (`packaging/README.md`).

mod check;
pub(crate) mod library;
mod licences;
mod npm;
mod tarball;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use sha2::{Digest, Sha256};

use xtask::{cargo, print, say};

/// What is packaged, and the folder where the packages go.
pub(super) struct Package {
    version: String,
    target: String,
    /// The file of the program.
    program: PathBuf,
    /// The file with the licences of everything that is linked into the program.
    licences: PathBuf,
    pages: Option<Pages>,
    /// The folder of the packages.
    out: PathBuf,
}

/// Files that are installed with the program, if the kind of package supports them.
struct Pages {
    man: String,
    bash: String,
    zsh: String,
    fish: String,
    powershell: String,
}

impl Pages {
    /// The texts, each with its file name in an archive.
    fn files(&self) -> [(&'static str, &str); 5] {
        [
            ("epitome.1", &self.man),
            ("epitome.bash", &self.bash),
            ("_epitome", &self.zsh),
            ("epitome.fish", &self.fish),
            ("_epitome.ps1", &self.powershell),
        ]
    }
}

/// The name of the file with third-party licences.
const LICENCES: &str = "THIRD-PARTY-LICENSES.txt";

/// What is packaged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Program,
    Library,
}

/// Builds the program and the library for a target, and makes their packages in `target/package`.
///
/// # Errors
///
/// If an option is unknown, a tool is missing or fails, or the check of a package fails.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let (mut target, mut profile, mut check) = (host()?, "dist".to_owned(), false);
    let mut scope = Scope::All;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().map(|it| (*it).to_owned()).context("an option has a value");
        match *arg {
            "--target" => target = value()?,
            "--profile" => profile = value()?,
            "--check" => check = true,
            "--program" => scope = Scope::Program,
            "--library" => scope = Scope::Library,
            other => anyhow::bail!("package: what is `{other}`?"),
        }
    }
    let out = cargo::target()?.join("package");
    fs::create_dir_all(&out)?;
    if scope != Scope::Program {
        make_library(&target, &profile, &out, check)?;
    }
    if scope != Scope::Library {
        make_program(target, profile, out, check)?;
    }
    Ok(())
}

fn make_library(target: &str, profile: &str, out: &Path, check: bool) -> anyhow::Result<()> {
    let packages = library::build(target, profile, out)?;
    let files = packages.released(target);
    checksums(out, &format!("SHA256SUMS-library-{target}"), &files)?;
    print_sizes(&files)?;
    if check {
        check::library(target, &packages)?;
    }
    packages.leave_released(target)
}

fn make_program(target: String, profile: String, out: PathBuf, check: bool) -> anyhow::Result<()> {
    let (package, wheel) = Package::build(target, profile, out)?;
    let archive = package.archive()?;
    let npm = npm::pack(&package)?;
    let mut all: Vec<&Path> = vec![&archive, &wheel];
    all.extend(npm.iter().flat_map(|npm| npm.released(&package.target)));
    checksums(&package.out, &format!("SHA256SUMS-{}", package.target), &all)?;
    print_sizes(&all)?;
    if check {
        check::all(&package, &archive, &wheel, npm.as_ref())?;
    }
    npm.map_or(Ok(()), |npm| npm.leave_released(&package.target))?;
    Ok(fs::remove_file(&package.licences)?)
}

fn print_sizes(files: &[&Path]) -> anyhow::Result<()> {
    for path in files {
        print(&format!("{:>9}  {}", size(path)?, path.display()));
    }
    Ok(())
}

/// The target triple of this machine.
///
/// # Errors
///
/// If rustc does not name it.
pub(crate) fn host() -> anyhow::Result<String> {
    let printed = cargo::output(&["rustc", "-vV"])?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names its host")?.to_owned())
}

fn size(path: &Path) -> anyhow::Result<String> {
    Ok(format!("{} KB", fs::metadata(path)?.len() / 1_000))
}

impl Package {
    /// Builds the program and its wheel, which includes the list of the program's components
    /// (CycloneDX). For Linux, zig links the program: to a C library that may be as old as that of
    /// 2014, or statically.
    fn build(target: String, profile: String, out: PathBuf) -> anyhow::Result<(Package, PathBuf)> {
        say(&format!("building epitome for {target}"));
        fs::create_dir_all(&out)?;
        let licences = out.join(LICENCES);
        let what = ["--package", "epitome-cli", "--features", "keyring,remote"];
        fs::write(&licences, licences::text(&target, &what)?)?;
        let wheel = wheel::build(&target, &profile, &out, &licences)?;
        let folder = if profile == "dev" { "debug" } else { &profile };
        let name = if target.contains("windows") { "epitome.exe" } else { "epitome" };
        let program = cargo::target()?.join(&target).join(folder).join(name);
        ensure!(program.is_file(), "{}: there is no program", program.display());
        let mut package =
            Package { version: version()?, target, program, licences, out, pages: None };
        package.pages = package.pages()?;
        let wheel = wheel::finish(&package, &wheel)?;
        Ok((package, wheel))
    }

    /// The manual page and the completions, which the program prints; `None` if the program does
    /// not run on this machine.
    fn pages(&self) -> anyhow::Result<Option<Pages>> {
        if !self.runs_here() {
            return Ok(None);
        }
        let program = text(&self.program)?;
        let completions = |shell: &str| cargo::output(&[program, "completions", shell]);
        Ok(Some(Pages {
            man: cargo::output(&[program, "man"])?,
            bash: completions("bash")?,
            zsh: completions("zsh")?,
            fish: completions("fish")?,
            powershell: completions("powershell")?,
        }))
    }

    /// Makes the archive: the program, the documents of the project, the licences, the manual page
    /// and the completions.
    fn archive(&self) -> anyhow::Result<PathBuf> {
        let name = format!("epitome-{}-{}", self.version, self.target);
        let mut files = tarball::Files::default();
        let program = self.program.file_name().context("a file has a name")?;
        files.program(Path::new(&name).join(program), fs::read(&self.program)?);
        for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            files.text(Path::new(&name).join(file), fs::read(cargo::root().join(file))?);
        }
        files.text(Path::new(&name).join(LICENCES), fs::read(&self.licences)?);
        for (file, text) in self.pages.iter().flat_map(Pages::files) {
            files.text(Path::new(&name).join(file), text.as_bytes().to_vec());
        }
        let archive = self.out.join(format!("{name}.tar.gz"));
        fs::write(&archive, files.packed()?)?;
        Ok(archive)
    }

    /// Whether this machine can run the program.
    fn runs_here(&self) -> bool {
        runs_here(&self.target)
    }
}

/// Writes the SHA-256 of each package into a file, as `sha256sum --check` reads it.
fn checksums(out: &Path, name: &str, files: &[&Path]) -> anyhow::Result<()> {
    let mut sums = String::new();
    for file in files {
        let name = text(file.file_name().map_or(*file, Path::new))?;
        let sum = Sha256::digest(fs::read(file)?);
        let digits: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        sums.push_str(&format!("{digits}  {name}\n"));
    }
    Ok(fs::write(out.join(name), sums)?)
}

/// Whether this machine can run programs for a target.
fn runs_here(target: &str) -> bool {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    target.starts_with(std::env::consts::ARCH) && target.contains(system)
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
