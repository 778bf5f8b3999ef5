//! Installs the agents from the machine's npm registry, and the SDKs that are tested like agents
//! from its Python registry.
//!
//! They are installed in `$EPITOME_AGENTS`, or in `.cache/agents` of the workspace. Each package
//! has a folder of its own with a mark that is written last, so that an interrupted installation is
//! repeated.

use anyhow::{Context, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The node that runs the agents, and `npm` when it installs other packages. The node of the
/// machine only installs this one.
const NODE: &str = "node@22.23.3";
/// The oldest node that the npm package is for.
const OLD_NODE: &str = "node@20.20.2";
/// A package that pi loads when it reads an image.
const PI_IMAGES: &str = "@silvia-odwyer/photon-node@0.3.4";
/// A package that pi loads when it runs an extension.
const PI_EXTENSIONS: &str = "jiti@2.7.0";
/// A Chromium for serverless machines: its libraries and fonts are included.
const CHROMIUM: &str = "@sparticuz/chromium@153.0.0";
const TYPESCRIPT: &str = "typescript@7.0.2";
const NODE_TYPES: &str = "@types/node@26.6.6";

/// The frameworks that the npm package has adapters for, and the packages that these frameworks
/// need.
const NODE_FRAMEWORKS: &[&str] = &[
    "ai@7.0.173",
    "@ai-sdk/anthropic@4.0.105",
    "@ai-sdk/openai@4.0.118",
    "@anthropic-ai/sdk@1.14.0",
    "openai@7.57.0",
    "zod@4.6.7",
    "@types/json-schema@7.0.15",
];

/// A program that reads sessions. Its binary is in a package of its own for each system.
pub(crate) const CCUSAGE: &str = "ccusage@20.0.24";
/// The last version of `@ccusage/codex` that is not a wrapper of `ccusage`.
pub(crate) const CCUSAGE_CODEX: &str = "@ccusage/codex@18.0.11";
pub(crate) const CLAUDE_CODE_LOG: &str = "claude-code-log@1.7.0";

/// The file that is written last; it contains what was installed.
const MARK: &str = ".ok";

/// The folder where the agents are installed.
pub fn cache() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/agents");
    std::env::var_os("EPITOME_AGENTS").map_or_else(default, PathBuf::from)
}

/// pi's program, for node.
///
/// # Errors
///
/// If `npm` is missing, or the registry is unreachable and pi is not installed yet.
pub fn pi(package: &str) -> anyhow::Result<PathBuf> {
    let folder = once("pi", &[package, PI_IMAGES, PI_EXTENSIONS], &|folder| {
        // The bundle in the package needs none of its other dependencies.
        run_npm(folder, &["pack", "--silent", package])?;
        let archive = fs::read_dir(folder)?
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
            .context("`npm pack` left no archive")?;
        checked(Command::new("tar").arg("xzf").arg(archive).current_dir(folder))?;
        run_npm(folder, &["install", "--no-audit", "--no-fund", PI_IMAGES, PI_EXTENSIONS])
    })?;
    Ok(folder.join("package/dist/bundle/cli.js"))
}

/// The `node_modules` with these packages (`@openai/codex@0.169.0`), in a folder that is named
/// after the first.
///
/// # Errors
///
/// If `npm` is missing, or the registry is unreachable and they are not installed yet.
pub fn npm(packages: &[&str]) -> anyhow::Result<PathBuf> {
    let name = packages.first().and_then(|package| package.rsplit_once('@'));
    let (name, _) = name.context("a package has a version")?;
    let name = name.trim_start_matches('@').replace('/', "-");
    let line = [&["install", "--no-audit", "--no-fund"], packages].concat();
    Ok(once(&name, packages, &|folder| run_npm(folder, &line))?.join("node_modules"))
}

/// A command that runs a script of a package, given relative to `node_modules`, with our node.
///
/// # Errors
///
/// As [`npm`].
pub fn node_program(package: &str, script: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(node()?);
    command.arg(npm(&[package])?.join(script));
    Ok(command)
}

/// The node that runs the agents.
///
/// # Errors
///
/// If `npm` is missing, or the registry is unreachable and it is not installed yet.
pub fn node() -> anyhow::Result<PathBuf> {
    node_of("node", NODE)
}

/// The oldest node that the npm package is for.
///
/// # Errors
///
/// As [`node`].
pub(crate) fn old_node() -> anyhow::Result<PathBuf> {
    node_of("node-old", OLD_NODE)
}

fn node_of(name: &str, package: &str) -> anyhow::Result<PathBuf> {
    let line = ["install", "--no-audit", "--no-fund", package];
    let install = |folder: &Path| checked(Command::new("npm").args(line).current_dir(folder));
    Ok(once(name, &[package], &install)?.join("node_modules/node/bin/node"))
}

/// A headless Chromium with what a minimal machine lacks: the folder with the program `chromium`,
/// libraries in `al2023/lib`, and `fonts`.
///
/// # Errors
///
/// If `npm` is missing, the registry is unreachable and it is not installed yet, or it does not run
/// on this system.
pub fn chromium() -> anyhow::Result<PathBuf> {
    let node = node()?;
    once("chromium", &[CHROMIUM], &|folder| {
        run_npm(folder, &["install", "--no-audit", "--no-fund", CHROMIUM])?;
        // The package unpacks Chromium into the temporary folder, but its libraries only on a
        // serverless machine, which it recognises by a variable.
        let unpack = "import('@sparticuz/chromium').then((it) => it.default.executablePath())";
        let mut command = Command::new(&node);
        command.args(["-e", unpack]).current_dir(folder);
        command.env("TMPDIR", folder).env("AWS_EXECUTION_ENV", "AWS_Lambda_nodejs22.x");
        checked(&mut command)?;
        // Check now that it runs: it is built for x86-64 Linux alone.
        let libraries = folder.join("al2023/lib");
        checked(
            Command::new(folder.join("chromium"))
                .arg("--version")
                .env("LD_LIBRARY_PATH", libraries),
        )
    })
}

/// A Python with the SDKs of Anthropic and OpenAI, at the versions of `sdk/requirements.txt`.
///
/// # Errors
///
/// If there is no `python3`, or the registry is unreachable and they are not installed yet.
pub fn python() -> anyhow::Result<PathBuf> {
    let pins =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/requirements.txt"))?;
    Ok(pip("python", &pins.split_whitespace().collect::<Vec<_>>())?.join("python"))
}

/// The programs of a Python environment with the frameworks that the Python package has adapters
/// for, with type checkers, and with maturin. `crates/python/tests/requirements.txt` has their
/// versions.
///
/// # Errors
///
/// As [`python`].
pub fn python_frameworks() -> anyhow::Result<PathBuf> {
    pip_file("python-frameworks", "requirements.txt")
}

/// The programs of a Python environment with LiteLLM's proxy.
///
/// # Errors
///
/// As [`python`].
pub fn litellm_proxy() -> anyhow::Result<PathBuf> {
    pip_file("litellm-proxy", "requirements-litellm-proxy.txt")
}

/// The TypeScript compiler, for node, with node's types in the same `node_modules`.
///
/// # Errors
///
/// If `npm` is missing, or the registry is unreachable and they are not installed yet.
pub fn typescript() -> anyhow::Result<PathBuf> {
    Ok(npm(&[TYPESCRIPT, NODE_TYPES])?.join("typescript/bin/tsc"))
}

/// The `node_modules` with the frameworks that the npm package has adapters for.
///
/// # Errors
///
/// As [`typescript`].
pub fn node_frameworks() -> anyhow::Result<PathBuf> {
    npm(NODE_FRAMEWORKS)
}

/// The program `claude-code-log`.
///
/// # Errors
///
/// If there is no `python3`, or the registry is unreachable and it is not installed yet.
pub fn claude_code_log() -> anyhow::Result<PathBuf> {
    let package = CLAUDE_CODE_LOG.replace('@', "==");
    Ok(pip("claude-code-log", &[&package])?.join("claude-code-log"))
}

/// The programs of a Python environment with the packages in a file of `crates/python/tests`.
fn pip_file(name: &str, file: &str) -> anyhow::Result<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/python/tests");
    let pins = fs::read_to_string(tests.join(file)).with_context(|| file.to_owned())?;
    let pins = pins.lines().filter(|line| !line.starts_with('#'));
    pip(name, &pins.collect::<Vec<_>>())
}

/// The programs of a Python environment with these packages.
fn pip(name: &str, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let install = |folder: &Path| {
        checked(Command::new("python3").args(["-m", "venv", "venv"]).current_dir(folder))?;
        let mut pip = Command::new(folder.join("venv/bin/python"));
        checked(pip.args(["-m", "pip", "install", "--quiet"]).args(packages))
    };
    Ok(once(name, packages, &install)?.join("venv/bin"))
}

/// Runs `install` in an empty folder, unless it was completed before for these packages.
fn once(
    name: &str,
    packages: &[&str],
    install: &dyn Fn(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let cache = cache();
    fs::create_dir_all(&cache).with_context(|| cache.display().to_string())?;
    let cache = fs::canonicalize(cache)?;
    let folder = cache.join(name);
    // Tests in several processes may need the same agent. Closing the file releases the lock.
    let lock = File::create(cache.join(format!("{name}.lock")))?;
    lock.lock()?;
    let installed = packages.join(" ");
    if fs::read_to_string(folder.join(MARK)).ok() != Some(installed.clone()) {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("package.json"), r#"{"private":true}"#)?;
        install(&folder).with_context(|| format!("cannot install {name}"))?;
        fs::write(folder.join(MARK), installed)?;
    }
    Ok(folder)
}

/// Runs the machine's `npm` with our node.
pub(crate) fn run_npm(folder: &Path, args: &[&str]) -> anyhow::Result<()> {
    let node = node()?;
    let old = std::env::var_os("PATH").unwrap_or_default();
    let paths = node.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&old));
    let paths = std::env::join_paths(paths)?;
    checked(Command::new("npm").args(args).current_dir(folder).env("PATH", paths))
}

fn checked(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
