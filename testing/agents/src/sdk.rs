//! Tests with the providers' own SDKs as clients: on each SDK a small agent keeps its context short
//! with `epitome engine`, and the scripted model accepts every request or reports why not.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use model_server::{Outcome, Script, Server, Step, ToolCall};
use serde_json::{Value, json};

use crate::install;
use crate::process;

/// The APIs, and the SDK of each.
pub const WIRES: [(&str, &str); 3] =
    [("anthropic", "anthropic"), ("openai-chat", "openai"), ("openai-responses", "openai")];

/// A timeout that no conversation reaches.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Parts of the texts that recipes leave in place of what they removed.
const LEFT: [&str; 7] = [
    "[Digest of the conversation",
    "[epitome k",
    "[Previous: used ",
    "[cleared to save context]",
    "[Output removed: ",
    " truncated] ...",
    "[output: ",
];

/// The result of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Number of requests that were sent and accepted.
    pub requests: usize,
    /// Bytes of the longest history that was sent.
    pub longest: usize,
    /// Bytes of the last history that was sent.
    pub last: usize,
    /// Number of texts in the last history that the recipe left in place of what it removed.
    pub left: usize,
}

/// Whether a Python that can make environments is available to run the SDKs.
pub fn has_python() -> bool {
    let mut python = Command::new("python3");
    let asked = python.args(["-c", "import venv"]).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

/// Holds a conversation through an API with a recipe.
///
/// # Errors
///
/// If the SDKs cannot be installed, the model refuses a request, or the conversation breaks off.
pub fn run(epitome: &Path, wire: &str, recipe: &str) -> anyhow::Result<Report> {
    let python = install::python()?;
    let server = Server::start(script())?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let home = tempfile::tempdir()?;
    let mut talk = Command::new(python);
    talk.arg(here.join("sdk/loop.py"))
        .arg(here.join("../../docs/clients/engine.py"))
        .arg(epitome)
        .args([&server.url(), wire, recipe])
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("OPENAI_API_KEY")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("EPITOME_HOME", home.path())
        .env("EPITOME_CONFIG", home.path())
        .current_dir(home.path());
    let finished = process::run(&mut talk, TIMEOUT)?;
    let exchanges = server.exchanges();
    for exchange in &exchanges {
        if let Outcome::Refused(why) = &exchange.outcome {
            anyhow::bail!("{wire}, {recipe}: the model refused a request: {why}");
        }
    }
    ensure!(finished.success(), "{wire}, {recipe}: {}{}", finished.stdout, finished.stderr);
    let played = exchanges.iter().filter(|it| matches!(it.outcome, Outcome::Played { .. }));
    let histories: Vec<String> = played.map(|it| history(&it.body).to_string()).collect();
    let steps = script().steps.len();
    ensure!(histories.len() == steps, "{wire}, {recipe}: {} of {steps}", histories.len());
    let last = histories.last().context("no request was sent")?;
    Ok(Report {
        requests: histories.len(),
        longest: histories.iter().map(String::len).max().unwrap_or_default(),
        last: last.len(),
        left: LEFT.iter().map(|text| last.matches(text).count()).sum(),
    })
}

/// The names of all recipes of the program.
///
/// # Errors
///
/// If the program does not list them.
pub fn recipes(epitome: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new(epitome).args(["recipes", "--json"]).output()?;
    let rows = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    rows.map(|row| {
        let row: Value = serde_json::from_slice(row).context("`epitome recipes --json`")?;
        Ok(row["name"].as_str().context("a recipe has a name")?.to_owned())
    })
    .collect()
}

/// Checks the types of a client in TypeScript and runs a conversation with it. Returns its output.
///
/// # Errors
///
/// If node or the compiler cannot be installed, a type is wrong, or the client fails.
pub fn typescript(epitome: &Path) -> anyhow::Result<String> {
    let (node, compiler) = (install::node()?, install::typescript()?);
    let client = client("engine.ts");
    let types = compiler.ancestors().nth(3).context("it lies below node_modules")?.join("@types");
    let mut check = Command::new(&node);
    check
        .arg(&compiler)
        .args(["--noEmit", "--strict", "--target", "esnext", "--module", "esnext"])
        .args(["--moduleResolution", "bundler", "--erasableSyntaxOnly", "--types", "node"])
        .arg("--typeRoots")
        .arg(types)
        .arg(&client);
    let checked = process::run(&mut check, TIMEOUT)?;
    ensure!(checked.success(), "{}{}", checked.stdout, checked.stderr);
    let home = tempfile::tempdir()?;
    let mut talk = Command::new(&node);
    talk.arg(&client).arg(epitome).args(["--recipe", "clear-tool-uses"]);
    talk.env("EPITOME_HOME", home.path()).env("EPITOME_CONFIG", home.path());
    let finished = process::run(talk.current_dir(home.path()), TIMEOUT)?;
    ensure!(finished.success(), "{}{}", finished.stdout, finished.stderr);
    Ok(finished.stdout)
}

fn client(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients").join(name)
}

fn history(body: &Value) -> &Value {
    if body["input"].is_array() { &body["input"] } else { &body["messages"] }
}

/// Single and parallel calls, with and without reasoning, and a file that is read twice.
fn script() -> Script {
    let step = |thinking: Option<&str>, text: Option<&str>, files: &[u8]| Step {
        thinking: thinking.map(Into::into),
        text: text.map(Into::into),
        calls: files
            .iter()
            .map(|n| ToolCall { name: "read".into(), input: json!({ "path": format!("{n}.rs") }) })
            .collect(),
        ..Step::default()
    };
    Script::new([
        step(Some("One is a beginning."), Some("The first one."), &[1]),
        step(Some("Two at once go faster."), None, &[2, 3]),
        step(None, None, &[4]),
        step(Some("There are more."), Some("More of them."), &[5]),
        step(None, None, &[6]),
        step(Some("Three at once go faster still."), None, &[7, 8, 9]),
        step(Some("The first one once more."), None, &[1]),
        step(None, Some("Going on."), &[10]),
        step(Some("Almost all."), None, &[11]),
        step(Some("That was all."), Some("All of them are read."), &[]),
    ])
}
