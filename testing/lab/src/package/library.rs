//! The packages of the library for a target: a wheel for Python, and for Node a package with the
//! native module. The package that selects it, with the library as WebAssembly, is the same for all
//! targets.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::wheel::{TIME, empty, without_paths};
use super::{LICENCES, licences, npm, only_file, text, version};
use xtask::{cargo, say};

/// The npm package of the library.
const NAME: &str = "@epitome-cli/context";
/// The file with the native module in a package for a platform.
const MODULE: &str = "epitome.node";
/// The target of the library in browsers.
const WASM: &str = "wasm32-unknown-unknown";

/// The target whose build keeps the package that selects the native module: the package is the same
/// for all targets, and a release has it once.
const SELECTOR: &str = "x86_64-unknown-linux-gnu";

/// A target of the native module.
struct Platform {
    target: &'static str,
    /// Node's name of the system.
    system: &'static str,
    /// Node's name of the processor.
    processor: &'static str,
    /// npm's name of the C library.
    libc: Option<&'static str>,
    /// The end of the package's name.
    end: &'static str,
}

const PLATFORMS: [Platform; 8] = [
    Platform::linux("x86_64-unknown-linux-gnu", "x64", "glibc", "linux-x64-gnu"),
    Platform::linux("x86_64-unknown-linux-musl", "x64", "musl", "linux-x64-musl"),
    Platform::linux("aarch64-unknown-linux-gnu", "arm64", "glibc", "linux-arm64-gnu"),
    Platform::linux("aarch64-unknown-linux-musl", "arm64", "musl", "linux-arm64-musl"),
    Platform::other("x86_64-apple-darwin", "darwin", "x64", "darwin-x64"),
    Platform::other("aarch64-apple-darwin", "darwin", "arm64", "darwin-arm64"),
    Platform::other("x86_64-pc-windows-msvc", "win32", "x64", "win32-x64"),
    Platform::other("aarch64-pc-windows-msvc", "win32", "arm64", "win32-arm64"),
];

impl Platform {
    const fn linux(
        target: &'static str,
        processor: &'static str,
        libc: &'static str,
        end: &'static str,
    ) -> Platform {
        Platform { target, system: "linux", processor, libc: Some(libc), end }
    }

    const fn other(
        target: &'static str,
        system: &'static str,
        processor: &'static str,
        end: &'static str,
    ) -> Platform {
        Platform { target, system, processor, libc: None, end }
    }

    fn find(target: &str) -> anyhow::Result<&'static Platform> {
        let platform = PLATFORMS.iter().find(|platform| platform.target == target);
        platform.with_context(|| format!("the library has no package for {target}"))
    }

    /// The name of its package.
    fn package(&self) -> String {
        format!("{NAME}-{}", self.end)
    }
}

/// The files of the library.
pub(crate) struct Library {
    /// The target of the native module.
    pub target: String,
    /// The native module for Node.
    pub module: PathBuf,
    /// The library as WebAssembly.
    pub wasm: PathBuf,
}

/// The npm packages of the library, as they are uploaded.
pub(crate) struct LibraryPackages {
    /// The package that selects the one with the native module.
    pub selector: PathBuf,
    /// The package with the native module.
    pub module: PathBuf,
}

/// The packages of the library for a target.
pub(super) struct Packages {
    pub wheel: PathBuf,
    pub npm: LibraryPackages,
}

/// Builds the library for a target, and makes its packages.
///
/// # Errors
///
/// If a tool is missing or fails.
pub(super) fn build(target: &str, profile: &str, out: &Path) -> anyhow::Result<Packages> {
    say(&format!("building the library for {target}"));
    let wheel = wheel(target, profile, out)?;
    let module = native_module(target, profile)?;
    let wasm = cargo::wasm("wasm", &variables(WASM)?)?;
    let library = Library { target: target.to_owned(), module, wasm };
    Ok(Packages { wheel, npm: library.pack(out)? })
}

impl Packages {
    /// The packages that are part of a release: only one target keeps the package that selects the
    /// native module.
    pub fn released(&self, target: &str) -> Vec<&Path> {
        let all = [&*self.wheel, &*self.npm.module, &*self.npm.selector];
        all[..if target == SELECTOR { 3 } else { 2 }].to_vec()
    }

    /// Deletes the package that selects the native module if it is not part of the release.
    ///
    /// # Errors
    ///
    /// If the file cannot be deleted.
    pub fn leave_released(&self, target: &str) -> anyhow::Result<()> {
        if target != SELECTOR {
            fs::remove_file(&self.npm.selector)?;
        }
        Ok(())
    }
}

impl Library {
    /// Makes the npm packages.
    ///
    /// # Errors
    ///
    /// If npm is missing or fails.
    pub fn pack(&self, out: &Path) -> anyhow::Result<LibraryPackages> {
        let folder = empty(&out.join("library"))?;
        let module = npm::tarball(out, &self.module_folder(&folder)?)?;
        let selector = npm::tarball(out, &self.selector_folder(&folder)?)?;
        fs::remove_dir_all(folder)?;
        Ok(LibraryPackages { selector, module })
    }

    /// The package with the native module.
    fn module_folder(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let platform = Platform::find(&self.target)?;
        let place = empty(&folder.join("module"))?;
        fs::copy(&self.module, place.join(MODULE)).context(self.module.display().to_string())?;
        let mut about = json!({
            "name": platform.package(),
            "version": version()?,
            "description": format!("The native module of {NAME} for {}", platform.end),
            "license": "MIT OR Apache-2.0",
            "main": MODULE,
            "files": [MODULE, LICENCES],
            "os": [platform.system],
            "cpu": [platform.processor],
            "engines": { "node": ">=20" },
        });
        if let Some(libc) = platform.libc {
            about["libc"] = json!([libc]);
        }
        npm::write(&place, &about)?;
        let says = format!("The native module of the package `{NAME}` for {}.\n", platform.end);
        fs::write(place.join("README.md"), format!("# {}\n\n{says}", platform.package()))?;
        add_licences(&place, &licences::text(&self.target, &["--package", "epitome-node"])?)?;
        Ok(place)
    }

    /// The package that selects the native module, with the library as WebAssembly.
    fn selector_folder(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let place = empty(&folder.join("selector"))?;
        let from = cargo::root().join("crates/node/npm");
        for entry in fs::read_dir(&from)? {
            let file = entry?.path();
            let is_text = ["js", "ts", "md", "json"];
            if is_text.into_iter().any(|end| file.extension() == Some(OsStr::new(end))) {
                fs::copy(&file, place.join(file.file_name().context("a file has a name")?))?;
            }
        }
        fs::copy(&self.wasm, place.join("epitome.wasm"))
            .context(self.wasm.display().to_string())?;
        let manifest = fs::read_to_string(from.join("package.json"))?;
        fs::write(place.join("package.json"), with_platforms(&manifest)?)?;
        add_licences(&place, &licences::text(WASM, &["--package", "epitome-wasm"])?)?;
        Ok(place)
    }
}

/// A manifest with the packages for platforms as optional dependencies. The text is changed, and
/// not parsed JSON: Node takes the first condition of an export that is true, so the order of the
/// conditions must stay the same.
fn with_platforms(manifest: &str) -> anyhow::Result<String> {
    let about: Value = serde_json::from_str(manifest)?;
    let version = version()?;
    ensure!(about["version"] == *version, "the npm package is not of version {version}");
    let all = PLATFORMS.iter().map(|it| (it.package(), Value::from(version.clone())));
    let platforms = Value::Object(all.collect());
    let rest = manifest.strip_prefix('{').context("a manifest is an object")?;
    Ok(format!("{{\n  \"optionalDependencies\": {platforms},{rest}"))
}

/// Builds the wheel. For Linux it is linked by zig: to glibc 2.17, or to musl 1.2.
fn wheel(target: &str, profile: &str, out: &Path) -> anyhow::Result<PathBuf> {
    let source = staged(target, out)?;
    let folder = empty(&out.join("library-wheel"))?;
    let mut line = vec!["build", "--locked", "--profile", profile, "--target", target];
    line.extend(["--out", text(&folder)?]);
    match target {
        target if target.ends_with("-linux-gnu") => {
            line.extend(["--zig", "--compatibility", "manylinux2014"]);
        }
        target if target.ends_with("-linux-musl") => {
            line.extend(["--zig", "--compatibility", "musllinux_1_2"]);
        }
        _ => {}
    }
    let mut maturin = cargo::command("maturin");
    maturin.args(&line).current_dir(&source).envs(variables(target)?).envs([TIME]);
    let status = maturin.status().context("cannot run maturin")?;
    ensure!(status.success(), "maturin failed");
    fs::remove_dir_all(&source)?;
    let made = only_file(&folder)?;
    let place = out.join(made.file_name().context("a file has a name")?);
    fs::rename(&made, &place)?;
    fs::remove_dir(&folder)?;
    Ok(place)
}

/// A copy of `crates/python` without its code in Rust, with the licences: a wheel has only files of
/// its folder.
fn staged(target: &str, out: &Path) -> anyhow::Result<PathBuf> {
    let source = empty(&out.join("library-python"))?;
    let from = cargo::root().join("crates/python");
    fs::copy(from.join("README.md"), source.join("README.md"))?;
    // A backslash would be an escape in TOML.
    let manifest = text(&from.join("Cargo.toml"))?.replace('\\', "/");
    let project = fs::read_to_string(from.join("pyproject.toml"))?;
    let begin = "[tool.maturin]\n";
    ensure!(project.contains(begin), "pyproject.toml has no {begin}");
    let project = project.replace(begin, &format!("{begin}manifest-path = \"{manifest}\"\n"));
    fs::write(source.join("pyproject.toml"), project)?;
    let package = empty(&source.join("python/epitome"))?;
    for entry in fs::read_dir(from.join("python/epitome"))? {
        let file = entry?.path();
        let name = file.file_name().context("a file has a name")?;
        // Left out: a module that was built in this folder earlier, and the folders of Python's
        // cache.
        if file.is_file() && file.extension() != Some(OsStr::new("so")) {
            fs::copy(&file, package.join(name))?;
        }
    }
    add_licences(&source, &licences::text(target, &["--package", "epitome-python"])?)?;
    Ok(source)
}

/// Builds the native module for Node.
fn native_module(target: &str, profile: &str) -> anyhow::Result<PathBuf> {
    let with_glibc = format!("{target}.2.17");
    let (build, linked) = match target {
        target if target.ends_with("-linux-gnu") => ("zigbuild", &*with_glibc),
        target if target.ends_with("-linux-musl") => ("zigbuild", target),
        target => ("build", target),
    };
    let variables = variables(target)?;
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, it)| (*name, &**it)).collect();
    let line = ["cargo", build, "--locked", "-p", "epitome-node", "--profile", profile];
    cargo::run(&[&line[..], &["--target", linked]].concat(), &variables)?;
    let name = match target {
        target if target.contains("windows") => "epitome_node.dll",
        target if target.contains("apple") => "libepitome_node.dylib",
        _ => "libepitome_node.so",
    };
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(cargo::target()?.join(target).join(folder).join(name))
}

/// The environment variables of a build. They keep the paths of this machine out of it. For musl,
/// they link the C library of the system, because a module cannot contain a C library of its own.
fn variables(target: &str) -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut variables = without_paths()?;
    if target.ends_with("-musl") {
        for (_, options) in variables.iter_mut().filter(|(name, _)| *name == "RUSTFLAGS") {
            options.push_str(" -C target-feature=-crt-static");
        }
    }
    Ok(variables)
}

/// Adds our licences, and those of what is linked.
fn add_licences(place: &Path, others: &str) -> anyhow::Result<()> {
    for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(cargo::root().join(file), place.join(file))?;
    }
    Ok(fs::write(place.join(LICENCES), others)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_all_platforms_and_keeps_its_order() {
        let root = cargo::root().join("crates/node/npm/package.json");
        let manifest = fs::read_to_string(root).expect("the manifest of the package");
        let text = with_platforms(&manifest).expect("a manifest");
        let about: Value = serde_json::from_str(&text).expect("JSON");
        let platforms = about["optionalDependencies"].as_object().expect("packages");
        assert_eq!(platforms.len(), PLATFORMS.len());
        let version = version().expect("a version");
        assert_eq!(platforms["@epitome-cli/context-linux-x64-musl"], *version);
        let (types, node) = (text.find("./wasm.d.ts"), text.find("./wasm-node.js"));
        assert!(types.is_some() && types < node && node < text.find("./wasm.js"), "{text}");
    }
}
