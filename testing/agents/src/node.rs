//! Tests of the npm package: its files are installed into an empty folder, and used by tests whose
//! types are checked, with each version of Node. The examples of its page are tests too.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use model_server::{Script, Server, Step};
use tempfile::TempDir;

use crate::histories;
use crate::install;
use crate::process;

/// Longer than any test needs.
const TIMEOUT: Duration = Duration::from_secs(3_600);
/// The page whose examples are tests.
const PAGE: &str = "docs/typescript.md";

/// Tests the npm package with the program `epitome`. `packages` are the files of its two parts: the
/// one that selects a native module, and the one with the native module for this machine. Returns a
/// line for each version of Node.
///
/// # Errors
///
/// If the package cannot be installed, a type is wrong, or a test fails.
pub fn test(packages: &[PathBuf], epitome: &Path) -> anyhow::Result<Vec<String>> {
    let package = Package::install(packages)?;
    let mut lines = Vec::new();
    for node in [install::old_node()?, install::node()?] {
        lines.push(run_tests(package.folder.path(), &node, epitome, &[])?);
    }
    Ok(lines)
}

/// A folder with the unpacked file of an npm package, in the folder `package`.
///
/// # Errors
///
/// If it cannot be unpacked.
pub fn unpack(file: &Path) -> anyhow::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    process::checked(Command::new("tar").arg("xzf").arg(file).current_dir(folder.path()))?;
    Ok(folder)
}

/// A folder with the installed package and its compiled tests.
pub struct Package {
    folder: TempDir,
}

impl Package {
    /// Installs the package in these files, and checks the types.
    ///
    /// # Errors
    ///
    /// If the package cannot be installed, or a type is wrong.
    pub fn install(packages: &[PathBuf]) -> anyhow::Result<Package> {
        let folder = install_package(packages)?;
        check_types(folder.path())?;
        Ok(Package { folder })
    }

    /// Sends the random histories with these numbers, with each adapter. Returns a line about the
    /// tests.
    ///
    /// # Errors
    ///
    /// If one of them is refused.
    pub fn test_histories(&self, epitome: &Path, range: Range<u64>) -> anyhow::Result<String> {
        let node = install::node()?;
        run_tests(self.folder.path(), &node, epitome, &histories::variables(&range))
    }
}

/// A folder with nothing but the package, the tests and the examples.
fn install_package(packages: &[PathBuf]) -> anyhow::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("package.json"), r#"{"private":true,"type":"module"}"#)?;
    // The frameworks are optional, so they are not installed with the package. The parts with
    // native modules for other systems are on no registry.
    let mut line = vec!["install", "--offline", "--no-audit", "--no-fund", "--omit=peer"];
    for package in packages {
        line.push(package.to_str().context("a path is text")?);
    }
    install::run_npm(folder.path(), &line)?;
    link_frameworks(&folder.path().join("node_modules"))?;
    copy_files(&root().join("crates/node/tests"), &folder.path().join("tests"))?;
    fs::write(folder.path().join("tests/examples.test.ts"), examples()?)?;
    Ok(folder)
}

/// Makes the frameworks that the package has adapters for available to it and to the tests.
fn link_frameworks(modules: &Path) -> anyhow::Result<()> {
    let ours = modules.join("@epitome-cli");
    for framework in files(&install::node_frameworks()?)? {
        let place = modules.join(framework.file_name().context("a folder has a name")?);
        ensure!(place != ours, "{} is the package itself", place.display());
        if !place.exists() {
            symlink(&framework, &place)?;
        }
    }
    Ok(())
}

/// The examples of the page, as one program.
fn examples() -> anyhow::Result<String> {
    let page = fs::read_to_string(root().join(PAGE)).context(PAGE)?;
    let blocks = page.split("```ts\n").skip(1);
    let examples: Vec<&str> = blocks.filter_map(|block| block.split("```").next()).collect();
    ensure!(examples.len() >= 4, "{PAGE} has {} examples", examples.len());
    Ok(examples.concat())
}

/// Checks the types of the package, of the tests and of the examples. Compiles the tests and the
/// examples.
fn check_types(folder: &Path) -> anyhow::Result<()> {
    let compiler = install::typescript()?;
    let types = compiler.ancestors().nth(3).context("it is below node_modules")?.join("@types");
    let mut command = Command::new(install::node()?);
    command
        .arg(&compiler)
        .args(["--strict", "--noUncheckedIndexedAccess", "--target", "es2022"])
        .args(["--module", "nodenext", "--types", "node", "--typeRoots"])
        .arg(types)
        .args(["--rootDir", "tests", "--outDir", "compiled"])
        .args(files(&folder.join("tests"))?)
        .current_dir(folder);
    let finished = process::run(&mut command, TIMEOUT)?;
    ensure!(finished.success(), "{}{}", finished.stdout, finished.stderr);
    Ok(())
}

/// Runs the compiled tests, with a home and a model of their own. With the variables that name
/// histories, only the tests with random histories are run.
fn run_tests(
    folder: &Path,
    node: &Path,
    epitome: &Path,
    histories: &[(&str, String)],
) -> anyhow::Result<String> {
    let home = tempfile::tempdir()?;
    let server = Server::start(Script::new([Step::text("Hello."), Step::text("Hello again.")]))?;
    let mut command = Command::new(node);
    command
        .args(["--test", "--test-reporter", "tap"])
        .args((!histories.is_empty()).then_some("--test-name-pattern=random history"))
        .envs(histories.iter().map(|(name, value)| (name, value)))
        .args(tests(&folder.join("compiled"))?)
        .env("ANTHROPIC_API_KEY", "none")
        .env("ANTHROPIC_BASE_URL", server.url())
        .env("OPENAI_API_KEY", "none")
        .env("OPENAI_BASE_URL", format!("{}/v1", server.url()))
        .env("TEST_PROGRAM", epitome)
        .env(histories::THOUGHTS, histories::thoughts())
        .env("TEST_SESSIONS", root().join("testing/fixtures/sessions"))
        .env("HOME", home.path())
        .env("EPITOME_HOME", home.path().join("epitome"))
        .env_remove("EPITOME_NODE")
        .env_remove("EPITOME_WASM")
        .current_dir(folder);
    let finished = process::run(&mut command, TIMEOUT)?;
    ensure!(finished.success(), "{}{}", finished.stdout, finished.stderr);
    let version = process::run(Command::new(node).arg("--version"), TIMEOUT)?;
    let passed = finished.stdout.lines().find(|line| line.starts_with("# pass "));
    let requests = server.exchanges().len();
    let passed = passed.context("no test ran")?.trim_start_matches("# ");
    Ok(format!("Node {}: {passed}, {requests} requests", version.stdout.trim()))
}

/// The files of compiled tests in a folder, without the files that the tests share.
fn tests(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut tests = files(folder)?;
    tests.retain(|file| file.to_string_lossy().ends_with(".test.js"));
    Ok(tests)
}

/// The files in a folder, in order.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry?.path());
    }
    files.sort();
    Ok(files)
}

fn copy_files(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for file in files(from)? {
        fs::copy(&file, to.join(file.file_name().context("a file has a name")?))?;
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
