//! The agents themselves, from the npm registry this machine is set up with, and the SDKs that
//! stand in for others, from that of Python.
//!
//! They lie in `$EPITOME_AGENTS`, or in `.cache/agents` of the workspace; each package has a folder
//! of its own, and a mark that is written last, so that an interrupted installation is done again.

use crate::sandbox::Agent;
use anyhow::{Context, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// pi is made for this node; whatever the machine has is only used to run `npm`.
const NODE: &str = "node@22.23.3";
const PI: &str = "@earendil-works/pi-coding-agent@1.5.2";
/// pi loads it when it reads an image.
const PI_IMAGES: &str = "@silvia-odwyer/photon-node@0.3.4";
const CLAUDE: &str = "@anthropic-ai/claude-code@2.1.329";
const CODEX: &str = "@openai/codex@0.169.0";
const GEMINI: &str = "@google/gemini-cli@0.61.0";
/// Made for services that bring nothing along: libraries and fonts come with it.
const CHROMIUM: &str = "@sparticuz/chromium@153.0.0";
const OPENCODE: &str = "opencode-ai@1.18.33";
const QWEN: &str = "@qwen-code/qwen-code@0.15.10";

const TYPESCRIPT: &str = "typescript@7.0.2";
const NODE_TYPES: &str = "@types/node@26.6.6";

/// Programs that read sessions. Its program is in a package of its own for each system.
pub(crate) const CCUSAGE: &str = "ccusage@20.0.24";
/// The last one that is no name for the program above.
pub(crate) const CCUSAGE_CODEX: &str = "@ccusage/codex@18.0.11";
pub(crate) const CLAUDE_CODE_LOG: &str = "claude-code-log@1.7.0";

const MARK: &str = ".ok";

/// The version of an agent that is installed.
pub(crate) fn version(agent: Agent) -> &'static str {
    let package = match agent {
        Agent::Pi | Agent::PiChat => PI,
        Agent::Claude => CLAUDE,
        Agent::Codex | Agent::CodexScripts => CODEX,
        Agent::Gemini => GEMINI,
        Agent::Opencode => OPENCODE,
        Agent::Qwen => QWEN,
    };
    package.rsplit_once('@').map_or(package, |(_, version)| version)
}

/// The folder the agents are installed in.
pub fn cache() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/agents");
    std::env::var_os("EPITOME_AGENTS").map_or_else(default, PathBuf::from)
}

/// A node 22 and pi's program for it.
///
/// # Errors
///
/// When `npm` is missing, or the registry is out of reach and pi is not installed yet.
pub fn pi() -> anyhow::Result<(PathBuf, PathBuf)> {
    let node = node()?;
    let folder = once("pi", &|folder| {
        // The bundle in the package is whole: its dependencies would be installed for nothing.
        npm(folder, Some(&node), &["pack", "--silent", PI])?;
        let archive = fs::read_dir(folder)?
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
            .context("`npm pack` left no archive")?;
        checked(Command::new("tar").arg("xzf").arg(archive).current_dir(folder))?;
        npm(folder, Some(&node), &["install", "--no-audit", "--no-fund", PI_IMAGES])
    })?;
    Ok((node, folder.join("package/dist/bundle/cli.js")))
}

/// Claude Code's program.
///
/// # Errors
///
/// When `npm` is missing, or the registry is out of reach and it is not installed yet.
pub fn claude() -> anyhow::Result<PathBuf> {
    let node = node()?;
    let install =
        |folder: &Path| npm(folder, Some(&node), &["install", "--no-audit", "--no-fund", CLAUDE]);
    Ok(once("claude", &install)?.join("node_modules/.bin/claude"))
}

/// A node 22 and the script that starts Codex.
///
/// # Errors
///
/// When `npm` is missing, or the registry is out of reach and it is not installed yet.
pub fn codex() -> anyhow::Result<(PathBuf, PathBuf)> {
    let node = node()?;
    let install =
        |folder: &Path| npm(folder, Some(&node), &["install", "--no-audit", "--no-fund", CODEX]);
    let folder = once("codex", &install)?;
    Ok((node, folder.join("node_modules/@openai/codex/bin/codex.js")))
}

/// A node 22 and Gemini CLI's program for it.
///
/// # Errors
///
/// When `npm` is missing, or the registry is out of reach and it is not installed yet.
pub fn gemini() -> anyhow::Result<(PathBuf, PathBuf)> {
    let node = node()?;
    let install =
        |folder: &Path| npm(folder, Some(&node), &["install", "--no-audit", "--no-fund", GEMINI]);
    let folder = once("gemini", &install)?;
    Ok((node, folder.join("node_modules/@google/gemini-cli/bundle/gemini.js")))
}

/// OpenCode's program.
///
/// # Errors
///
/// When `npm` is missing, or the registry is out of reach and it is not installed yet.
pub fn opencode() -> anyhow::Result<PathBuf> {
    let node = node()?;
    let install =
        |folder: &Path| npm(folder, Some(&node), &["install", "--no-audit", "--no-fund", OPENCODE]);
    Ok(once("opencode", &install)?.join("node_modules/.bin/opencode"))
}

/// A node 22 and Qwen Code's program for it.
///
/// # Errors
///
/// When `npm` is missing, or the registry is out of reach and it is not installed yet.
pub fn qwen() -> anyhow::Result<(PathBuf, PathBuf)> {
    let node = node()?;
    let install =
        |folder: &Path| npm(folder, Some(&node), &["install", "--no-audit", "--no-fund", QWEN]);
    let folder = once("qwen", &install)?;
    Ok((node, folder.join("node_modules/@qwen-code/qwen-code/cli.js")))
}

/// A Chromium without a screen, with what a bare machine has not: the folder with the program
/// `chromium`, libraries in `al2023/lib` and `fonts`.
///
/// # Errors
///
/// When `npm` is missing, the registry is out of reach and it is not installed yet, or the system
/// is none that it runs on.
pub fn chromium() -> anyhow::Result<PathBuf> {
    let node = node()?;
    once("chromium", &|folder| {
        npm(folder, Some(&node), &["install", "--no-audit", "--no-fund", CHROMIUM])?;
        // It unpacks itself where temporary files go, and its libraries where it believes itself to
        // be in such a service.
        let unpack = "import('@sparticuz/chromium').then((it) => it.default.executablePath())";
        let mut command = Command::new(&node);
        command.args(["-e", unpack]).current_dir(folder);
        command.env("TMPDIR", folder).env("AWS_EXECUTION_ENV", "AWS_Lambda_nodejs22.x");
        checked(&mut command)?;
        // That it runs is seen now: it is made for x86-64 Linux alone.
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
/// When there is no `python3`, or the registry is out of reach and they are not installed yet.
pub fn python() -> anyhow::Result<PathBuf> {
    let pins = Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/requirements.txt");
    // Other pins are another folder.
    let name = format!("python-{}", fs::read_to_string(&pins)?.len());
    let install = |folder: &Path| {
        checked(Command::new("python3").args(["-m", "venv", "venv"]).current_dir(folder))?;
        let mut pip = Command::new(folder.join("venv/bin/python"));
        checked(pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&pins))
    };
    Ok(once(&name, &install)?.join("venv/bin/python"))
}

/// A node 22 and the compiler of TypeScript, with the types of node beside it.
///
/// # Errors
///
/// When `npm` is missing, or the registry is out of reach and they are not installed yet.
pub fn typescript() -> anyhow::Result<(PathBuf, PathBuf)> {
    let node = node()?;
    let line = ["install", "--no-audit", "--no-fund", TYPESCRIPT, NODE_TYPES];
    let folder = once("typescript", &|folder| npm(folder, Some(&node), &line))?;
    Ok((node, folder.join("node_modules/typescript/bin/tsc")))
}

/// A node 22 and the script that starts `ccusage`.
///
/// # Errors
///
/// When `npm` is missing, or the registry is out of reach and it is not installed yet.
pub fn ccusage() -> anyhow::Result<(PathBuf, PathBuf)> {
    let node = node()?;
    let line = ["install", "--no-audit", "--no-fund", CCUSAGE];
    let folder = once("ccusage", &|folder| npm(folder, Some(&node), &line))?;
    Ok((node, folder.join("node_modules/ccusage/src/cli.js")))
}

/// A node 22 and the script of `@ccusage/codex`.
///
/// # Errors
///
/// When `npm` is missing, or the registry is out of reach and it is not installed yet.
pub fn ccusage_codex() -> anyhow::Result<(PathBuf, PathBuf)> {
    let node = node()?;
    let line = ["install", "--no-audit", "--no-fund", CCUSAGE_CODEX];
    let folder = once("ccusage-codex", &|folder| npm(folder, Some(&node), &line))?;
    Ok((node, folder.join("node_modules/@ccusage/codex/dist/index.js")))
}

/// The program `claude-code-log`.
///
/// # Errors
///
/// When there is no `python3`, or the registry is out of reach and it is not installed yet.
pub fn claude_code_log() -> anyhow::Result<PathBuf> {
    let install = |folder: &Path| {
        checked(Command::new("python3").args(["-m", "venv", "venv"]).current_dir(folder))?;
        let mut pip = Command::new(folder.join("venv/bin/python"));
        let package = CLAUDE_CODE_LOG.replace('@', "==");
        checked(pip.args(["-m", "pip", "install", "--quiet", &package]))
    };
    Ok(once("claude-code-log", &install)?.join("venv/bin/claude-code-log"))
}

fn node() -> anyhow::Result<PathBuf> {
    let install = |folder: &Path| npm(folder, None, &["install", "--no-audit", "--no-fund", NODE]);
    Ok(once("node", &install)?.join("node_modules/node/bin/node"))
}

/// Runs `install` in an empty folder, unless it has already been run to its end.
fn once(name: &str, install: &dyn Fn(&Path) -> anyhow::Result<()>) -> anyhow::Result<PathBuf> {
    let cache = cache();
    fs::create_dir_all(&cache).with_context(|| cache.display().to_string())?;
    let cache = fs::canonicalize(cache)?;
    let folder = cache.join(name);
    // Tests of several processes may want the same agent; the lock goes with the open file.
    let lock = File::create(cache.join(format!("{name}.lock")))?;
    lock.lock()?;
    if !folder.join(MARK).exists() {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("package.json"), r#"{"private":true}"#)?;
        install(&folder).with_context(|| format!("cannot install {name}"))?;
        File::create(folder.join(MARK))?;
    }
    Ok(folder)
}

fn npm(folder: &Path, node: Option<&Path>, args: &[&str]) -> anyhow::Result<()> {
    let mut npm = Command::new("npm");
    npm.args(args).current_dir(folder);
    if let Some(bin) = node.and_then(Path::parent) {
        let old = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(bin.to_path_buf()).chain(std::env::split_paths(&old));
        npm.env("PATH", std::env::join_paths(paths)?);
    }
    checked(&mut npm)
}

fn checked(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
