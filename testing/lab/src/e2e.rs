//! `cargo lab e2e`: end-to-end tests with sessions of the real agents and the real program.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};

use agents::e2e::{RecordedSession, Report};
use agents::resume::Counts;
use agents::{
    AGENTS, Agent, WRAPPED, Way, carry, command, fleet, histories, keep, node, past, python, sdk,
    versions, wrap,
};
use anyhow::{Context, ensure};

use crate::package::{
    self,
    library::{Library, LibraryPackages},
};
use fixtures::skipped;
use rayon::prelude::*;
use xtask::{cargo, print, say};

/// The page with the tables.
const PAGE: &str = "docs/agents.md";
/// The mark before the tables.
const BEGIN: &str = "<!-- begin of the table: cargo lab e2e --write -->\n";
/// The mark after the tables.
const END: &str = "<!-- end of the table -->";

/// The text between the table of resumed sessions and the table of ported sessions.
const CARRIED: &str =
    "\n`epitome port` gives a recorded session of one agent to another, which resumes it:\n\n";

/// The text between the table of ported sessions and the table of sessions at whose end the hooks
/// ran.
const KEPT: &str = "\nAfter `epitome install --branch kept --shrink` a session of one turn ends; \
                    the agent calls, a page is committed, the session compacted, and \
                    `uninstall --purge` leaves nothing:\n\n";

/// Builds `epitome` and runs end-to-end tests. `EPITOME_PROGRAM` may name a program that is built
/// already. What runs depends on the names:
///
/// - Names of agents: the session test for each of them: record, compact, resume, restore, resume.
/// - `port` (sessions go from agent to agent), `keep` (hooks at the end of sessions), `versions`
///   (deleted sessions come back; names of agents may follow), `mcp` (the model searches past
///   sessions), `command` (`/epitome`), `sdk` (SDKs and clients of the engine), `python` (the
///   Python package and its adapters), `node` (the npm package), `tools` (other programs that read
///   sessions), `wrap` (agents behind the proxy) or `viewer` (in a real Chromium): only this part.
/// - `fleet`: Spark, Ray, Daft, DuckDB and Polars. Runs only if it is named, because the packages
///   take gigabytes.
/// - `python 10000` or `node 10000`: sends so many random histories with each adapter; `python
///   4000..10000`: those with these numbers.
/// - No name: the session test for all agents, every part except `fleet`, and the tests with real
///   agents of what the recorded sessions and the model server promise.
///
/// # Errors
///
/// If the program does not build, an agent cannot be installed, or a test fails.
pub(crate) fn run(names: &[&str]) -> anyhow::Result<()> {
    let epitome = match std::env::var_os("EPITOME_PROGRAM") {
        Some(program) => program.into(),
        None => cargo::epitome("dev")?,
    };
    match names {
        ["port"] => return carried(&epitome).map(drop),
        ["keep"] => return kept(&epitome).map(drop),
        ["versions"] => return came_back(&find(&versions::TRIED)?, &epitome),
        ["versions", agents @ ..] => return came_back(&find(agents)?, &epitome),
        ["mcp"] => return searched(&epitome),
        ["command"] => return commanded(&epitome),
        ["sdk"] => return clients(&epitome),
        ["python"] => return packages(),
        ["fleet"] => return engines(),
        ["node"] => return npm_package(&epitome),
        ["python", numbers] => return python_histories(numbers),
        ["node", numbers] => return node_histories(&epitome, numbers),
        ["viewer"] => return viewer(&epitome),
        ["tools"] => return tools(&epitome),
        ["wrap"] => return wrapped(&epitome),
        _ => {}
    }
    let chosen = match names {
        [] => AGENTS.to_vec(),
        names => find(names)?,
    };
    if names.is_empty() {
        viewer(&epitome)?;
    }
    resumed(&chosen, &epitome, names.is_empty())?;
    if names.is_empty() {
        carried(&epitome)?;
        kept(&epitome)?;
        searched(&epitome)?;
        commanded(&epitome)?;
        clients(&epitome)?;
        packages()?;
        npm_package(&epitome)?;
        tools(&epitome)?;
        wrapped(&epitome)?;
        let test = ["--features", "agents/real-agents", "--test", "real_agents"];
        cargo::run(&[&["cargo", "test"], cargo::EVERYTHING, &test].concat(), &[])?;
    }
    Ok(())
}

/// Runs the tests of sessions, ports and hooks for all agents, and writes their tables into the
/// page about agents.
///
/// # Errors
///
/// As for [`run`], or if the page has no place for the tables.
pub(crate) fn write() -> anyhow::Result<()> {
    let epitome = cargo::epitome("dev")?;
    let (resumed, carried, kept) =
        (resumed(AGENTS, &epitome, false)?, carried(&epitome)?, kept(&epitome)?);
    let table = [&resumed, CARRIED, &carried, KEPT, &kept].concat();
    let page = fs::read_to_string(PAGE).context(PAGE)?;
    let (head, rest) = page.split_once(BEGIN).with_context(|| format!("{PAGE}: no {BEGIN}"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("{PAGE}: no {END}"))?;
    fs::write(PAGE, [head, BEGIN, "\n", &table, "\n", END, tail].concat()).context(PAGE)
}

/// Uses the command `/epitome` in the agents that `epitome wrap` supports.
fn commanded(epitome: &Path) -> anyhow::Result<()> {
    let mut table = Table::new(&["agent", "version", "typed", "requests", "first"]);
    table.try_all(
        WRAPPED,
        |agent| agent.name().to_owned(),
        |agent| {
            let version = agent.facts().version();
            let command::Report { agent, typed, request, requests } =
                command::run(*agent, epitome)?;
            Ok(format!("{agent} | {version} | {typed} | {requests} | {request}"))
        },
    );
    table.finish().map(drop)
}

/// Runs each agent that `epitome wrap` supports behind the proxy that it starts.
fn wrapped(epitome: &Path) -> anyhow::Result<()> {
    let columns = [
        "agent",
        "version",
        "requests",
        "first",
        "through the proxy",
        "last",
        "through it",
        "stubs",
        "more with tools",
    ];
    let mut table = Table::new(&columns);
    table.try_all(
        WRAPPED,
        |agent| agent.name().to_owned(),
        |agent| {
            let version = agent.facts().version();
            let wrap::Report { agent, requests, first, last, stubs, tools, .. } =
                wrap::run(*agent, epitome)?;
            let cells = [requests, first.0, first.1, last.0, last.1, stubs].map(|n| n.to_string());
            let tools = tools.map(|bytes| bytes.to_string()).unwrap_or_default();
            Ok(format!("{agent} | {version} | {} | {tools}", cells.join(" | ")))
        },
    );
    table.finish().map(drop)
}

/// Tests the viewer in a real Chromium.
fn viewer(epitome: &Path) -> anyhow::Result<()> {
    let epitome = epitome.to_string_lossy();
    in_browser("the viewer", "viewer", ("EPITOME_PROGRAM", &epitome))
}

/// Runs a test of the crate `browser` with a variable. `what` is what is tested. Without a
/// Chromium, reports the test as skipped; with `EPITOME_BROWSER=required`, fails.
fn in_browser(what: &str, test: &str, variable: (&str, &str)) -> anyhow::Result<()> {
    let is_required = std::env::var_os("EPITOME_BROWSER").is_some_and(|it| it == "required");
    match browser::chromium() {
        Ok(chromium) => say(&format!("{what} is looked at in {}", chromium.program.display())),
        Err(err) if is_required => return Err(err.context("there is no Chromium")),
        Err(err) => {
            let why = format!("there is no Chromium, and none can be installed: {err:#}");
            skipped(&format!("{what} in a real browser"), &why);
            return Ok(());
        }
    }
    let test = ["--features", "browser/real-browser", "--test", test];
    cargo::run(&[&["cargo", "test"], cargo::EVERYTHING, &test].concat(), &[variable])
}

/// A table of results: a head, a row for each case that succeeded, and the names of the cases that
/// failed. [`finish`](Table::finish) prints the table, and fails if a case failed.
struct Table {
    text: String,
    failed: Vec<String>,
}

impl Table {
    fn new(columns: &[&str]) -> Table {
        let rule = "---|".repeat(columns.len());
        Table { text: format!("| {} |\n|{rule}\n", columns.join(" | ")), failed: Vec::new() }
    }

    /// Tries all cases, several at once, and then adds a row for each success in the order of the
    /// cases. A failure is printed.
    fn try_all<T: Sync>(
        &mut self,
        cases: &[T],
        name: impl Fn(&T) -> String,
        cells: impl Fn(&T) -> anyhow::Result<String> + Sync + Send,
    ) {
        let rows: Vec<anyhow::Result<String>> = cases.par_iter().map(cells).collect();
        for (case, row) in cases.iter().zip(rows) {
            self.add(&name(case), row);
        }
    }

    /// Adds the row of a case, or prints why it failed.
    fn add(&mut self, name: &str, row: anyhow::Result<String>) {
        match row {
            Ok(cells) => self.text.push_str(&format!("| {cells} |\n")),
            Err(err) => {
                say(&format!("{name}: {err:#}"));
                self.failed.push(name.to_owned());
            }
        }
    }

    fn finish(self) -> anyhow::Result<String> {
        print(self.text.trim_end());
        ensure!(self.failed.is_empty(), "failed: {}", self.failed.join(", "));
        Ok(self.text)
    }
}

/// Records a session with each of these agents; compacts, resumes and restores it in each way; and
/// prints the table. With `versions`, the session is also deleted and comes back, for the agents
/// for which that is tried: a second table.
fn resumed(
    chosen: &[&'static dyn Agent],
    epitome: &Path,
    versions: bool,
) -> anyhow::Result<String> {
    let mut resumed = Table::new(&[
        "agent",
        "version",
        "way",
        "sent before",
        "after",
        "",
        "file before",
        "after",
        "appended",
        "seconds",
    ]);
    let mut came_back = Table::new(CAME_BACK);
    let sessions: Vec<(&str, anyhow::Result<SessionRows>)> = chosen
        .par_iter()
        .map(|&agent| (agent.name(), session_rows(agent, epitome, versions)))
        .collect();
    for (agent, rows) in sessions {
        match rows {
            Ok(rows) => {
                for (way, row) in rows.resumed {
                    resumed.add(&format!("{agent} · {}", way.name()), row);
                }
                if let Some(row) = rows.came_back {
                    came_back.add(agent, row);
                }
            }
            Err(err) => resumed.add(agent, Err(err)),
        }
    }
    let text = resumed.finish()?;
    if versions {
        came_back.finish()?;
    }
    Ok(text)
}

/// The rows of one agent.
struct SessionRows {
    resumed: Vec<(Way, anyhow::Result<String>)>,
    came_back: Option<anyhow::Result<String>>,
}

/// Records a session, and tries with it what [`resumed`] says. An error if it cannot be recorded.
fn session_rows(
    agent: &'static dyn Agent,
    epitome: &Path,
    versions: bool,
) -> anyhow::Result<SessionRows> {
    let session = RecordedSession::record(agent)?;
    let in_way = |way| Ok(resumed_cells(agent, &session.compact(way, epitome)?));
    let resumed = agent.facts().ways.iter().map(|&way| (way, in_way(way))).collect();
    let comes_back = versions && versions::TRIED.contains(&agent.name());
    let came_back = comes_back.then(|| came_back_cells(&session, epitome));
    Ok(SessionRows { resumed, came_back })
}

fn resumed_cells(agent: &dyn Agent, report: &Report) -> String {
    let Report { way, original, compacted, appended, seconds, .. } = report;
    let (before, after) = (original.history_bytes, compacted.history_bytes);
    format!(
        "{} | {} | {} | {before} | {after} | {:.0}% | {} | {} | {appended} | {seconds:.0}",
        agent.name(),
        agent.facts().version(),
        way.name(),
        after as f64 * 100.0 / before.max(1) as f64,
        original.file_bytes,
        compacted.file_bytes,
    )
}

/// Ports a recorded session of each agent to each other agent, and prints the table.
fn carried(epitome: &Path) -> anyhow::Result<String> {
    let mut table = Table::new(&[
        "from",
        "to",
        "calls",
        "results",
        "pictures",
        "texts found",
        "left behind",
        "seconds",
    ]);
    let ported = || AGENTS.iter().copied().filter(|agent| agent.facts().is_ported);
    let mut cases = Vec::new();
    for from in ported() {
        cases.extend(ported().filter(|to| to.name() != from.name()).map(|to| (from, to)));
    }
    table.try_all(
        &cases,
        |(from, to)| format!("{} to {}", from.name(), to.name()),
        |&(from, to)| {
            let text = String::from_utf8(fixtures::get(from.name(), "pricing").bytes())?;
            Ok(carried_cells(carry::run(from, &text, to, epitome)?))
        },
    );
    table.finish()
}

fn carried_cells(report: carry::Report) -> String {
    let carry::Report { from, to, seconds, sent_again, texts, left_behind, .. } = report;
    let left = left_behind.to_string().replace('"', "");
    let left = left.trim_matches(['{', '}']).replace(':', " ").replace(',', ", ");
    let Counts { calls, results, images, .. } = sent_again;
    format!("{from} | {to} | {calls} | {results} | {images} | {texts} | {left} | {seconds:.0}")
}

/// Tests the hooks at the end of sessions with each agent that has hooks, and prints the table.
fn kept(epitome: &Path) -> anyhow::Result<String> {
    let mut table =
        Table::new(&["agent", "version", "page", "seconds after the agent", "the log says"]);
    let has_hook = |agent: &&dyn Agent| agent.facts().hook_settings.is_some();
    let cases: Vec<&dyn Agent> = AGENTS.iter().copied().filter(has_hook).collect();
    table.try_all(
        &cases,
        |agent| agent.name().to_owned(),
        |&agent| {
            let keep::Report { page, log, after, .. } = keep::run(agent, epitome)?;
            let log = log.iter().map(|line| without_ids(line)).collect::<Vec<_>>().join("; ");
            let version = agent.facts().version();
            Ok(format!("{} | {version} | {page} | {after:.1} | {log}", agent.name()))
        },
    );
    table.finish()
}

const CAME_BACK: &[&str] =
    &["agent", "version", "lost", "files", "bytes", "then appended", "versions", "seconds"];

/// Records sessions, deletes them, restores them from the vault, and resumes them.
fn came_back(agents: &[&'static dyn Agent], epitome: &Path) -> anyhow::Result<()> {
    let mut table = Table::new(CAME_BACK);
    table.try_all(
        agents,
        |agent| agent.name().to_owned(),
        |&agent| came_back_cells(&RecordedSession::record(agent)?, epitome),
    );
    table.finish().map(drop)
}

fn came_back_cells(session: &RecordedSession, epitome: &Path) -> anyhow::Result<String> {
    let report = versions::run(session, epitome)?;
    let versions::Report { agent, loss, files, bytes, appended, versions, seconds } = report;
    let version = agents::find_agent(agent)?.facts().version();
    let sizes = format!("{files} | {bytes} | {appended} | {versions} | {seconds:.0}");
    Ok(format!("{agent} | {version} | {loss} | {sizes}"))
}

fn find(names: &[&str]) -> anyhow::Result<Vec<&'static dyn Agent>> {
    names.iter().map(|name| agents::find_agent(name)).collect()
}

/// Lets the model of a real agent search in past sessions.
fn searched(epitome: &Path) -> anyhow::Result<()> {
    let recorded = String::from_utf8(fixtures::get("claude", "pricing").bytes())?;
    let past::Report { tools, definitions, answer } = past::run(&recorded, epitome)?;
    print(&format!(
        "claude: {} tools of `epitome mcp` ({definitions} characters), an answer of {answer}",
        tools.len()
    ));
    Ok(())
}

/// The verb of a line of the log, and for `compacted` the sizes: what is the same in every run.
fn without_ids(line: &str) -> String {
    let verb = line.split(' ').next().unwrap_or_default();
    match line.rsplit_once(": ") {
        Some((_, sizes)) if verb == "compacted" => format!("{verb} {sizes}"),
        Some(_) | None => verb.to_owned(),
    }
}

/// Checks that other programs show the same figures of the recorded sessions after a compaction.
fn tools(epitome: &Path) -> anyhow::Result<()> {
    let epitome = epitome.to_string_lossy();
    let test = ["--features", "agents/real-agents", "--test", "other_programs"];
    let line = [&["cargo", "test"], cargo::EVERYTHING, &test].concat();
    cargo::run(&line, &[("EPITOME_PROGRAM", &epitome)])
}

/// Tests the wheel of the Python package with each version of Python, and with the
/// frameworks that it has adapters for.
fn packages() -> anyhow::Result<()> {
    if !sdk::has_python() {
        skipped("the Python package", "there is no python3 with venv");
        return Ok(());
    }
    let wheel = wheel()?;
    for version in python::VERSIONS {
        match wheel.test(version)? {
            Some(printed) => print(&format!("Python {version}: {printed}")),
            None => skipped("the Python package", &format!("there is no python{version}")),
        }
    }
    print(&format!("frameworks: {}", wheel.test_frameworks()?));
    print(&format!("LiteLLM's proxy: {}", wheel.test_litellm_proxy()?));
    Ok(())
}

/// The wheel of the Python package, without optimisation. `EPITOME_WHEEL` may name a wheel that is
/// built already.
fn wheel() -> anyhow::Result<python::Wheel> {
    match std::env::var_os("EPITOME_WHEEL") {
        Some(path) => python::Wheel::at(path.into()),
        None => python::Wheel::pack(&dynamic_library("_native")?),
    }
}

/// Builds the libraries of the workspace, and returns the path of the dynamic library of this name.
fn dynamic_library(name: &str) -> anyhow::Result<PathBuf> {
    cargo::run(&cargo::build_of(&["--lib"]), &[])?;
    Ok(cargo::target()?.join("debug").join(format!("{DLL_PREFIX}{name}{DLL_SUFFIX}")))
}

/// Sends random histories with each adapter of the Python package, and prints a line for
/// every thousand.
fn python_histories(numbers: &str) -> anyhow::Result<()> {
    let wheel = wheel()?;
    let place = wheel.install_for_frameworks()?;
    for range in histories::thousands(numbers)? {
        let printed = wheel.test_histories(&place, range.clone())?;
        print(&format!("histories {} to {}: {printed}", range.start, range.end - 1));
    }
    Ok(())
}

/// Sends random histories with each adapter of the npm package, and prints a line for every
/// thousand.
fn node_histories(epitome: &Path, numbers: &str) -> anyhow::Result<()> {
    if !has_wasm()? {
        return Ok(());
    }
    let package = with_node_packages(node::Package::install)?;
    for range in histories::thousands(numbers)? {
        let printed = package.test_histories(epitome, range.clone())?;
        print(&format!("histories {} to {}: {printed}", range.start, range.end - 1));
    }
    Ok(())
}

/// Compacts sessions with each engine, and compares its rows with those of one process. The
/// variable `TEST_SESSIONS` is the number of sessions. If `TEST_ENGINE` names an engine, only that
/// one runs.
fn engines() -> anyhow::Result<()> {
    if !sdk::has_python() {
        skipped("the engines for fleets", "there is no python3 with venv");
        return Ok(());
    }
    let count = std::env::var("TEST_SESSIONS").ok().and_then(|count| count.parse().ok());
    let only = std::env::var("TEST_ENGINE").ok();
    let fixtures = fixtures::all().into_iter();
    let mut recorded: Vec<(String, Vec<u8>)> =
        fixtures.map(|it| (format!("{}-{}", it.agent, it.name), it.bytes())).collect();
    let corpus = fixtures::corpus("real sessions in the engines for fleets");
    recorded.extend(corpus.iter().map(|it| (format!("corpus-{}", it.name), it.bytes())));
    let wheel = wheel()?;
    let (fleet, printed) = fleet::Fleet::make(wheel, count.unwrap_or(2_000), &recorded)?;
    print(printed.trim());
    for engine in fleet::ENGINES {
        if only.as_deref().is_none_or(|only| only == engine.name) {
            print(fleet.run(engine)?.trim());
        }
    }
    Ok(())
}

/// Tests the npm package with each version of Node, and in a browser.
fn npm_package(epitome: &Path) -> anyhow::Result<()> {
    if !has_wasm()? {
        return Ok(());
    }
    with_node_packages(|files| {
        for printed in node::test(files, epitome)? {
            print(&printed);
        }
        let folder = node::unpack(&files[0])?;
        let package = folder.path().join("package");
        let package = package.to_string_lossy();
        in_browser("the npm package", "wasm", ("TEST_PACKAGE", &package))
    })
}

fn wasm_built_already() -> Option<PathBuf> {
    std::env::var_os("EPITOME_WASM").map(PathBuf::from)
}

/// Whether the npm packages can be built. If not, this is reported.
fn has_wasm() -> anyhow::Result<bool> {
    let is_there = wasm_built_already().is_some() || cargo::has_wasm_target()?;
    if !is_there {
        skipped("the npm package", "rustup cannot install the target wasm32-unknown-unknown");
    }
    Ok(is_there)
}

/// Builds the npm packages of the library, and calls `test` with their files: the package that
/// selects a native module, and the one for this machine. `EPITOME_NODE` and `EPITOME_WASM` may
/// name libraries that are built already.
fn with_node_packages<T>(test: impl FnOnce(&[PathBuf]) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let module = match std::env::var_os("EPITOME_NODE") {
        Some(module) => module.into(),
        None => dynamic_library("epitome_node")?,
    };
    let wasm = match wasm_built_already() {
        Some(wasm) => wasm,
        None => cargo::wasm("dev", &[])?,
    };
    let folder = tempfile::tempdir()?;
    let library = Library { target: package::host()?, module, wasm };
    let LibraryPackages { selector, module } = library.pack(folder.path())?;
    test(&[selector, module])
}

/// Checks and runs the client in TypeScript; then checks that the providers' SDKs can send through
/// each API what each recipe leaves of a conversation.
fn clients(epitome: &Path) -> anyhow::Result<()> {
    let printed = sdk::typescript(epitome)?;
    print(&format!("the client in TypeScript: {}", printed.trim().replace('\n', " ")));
    if !sdk::has_python() {
        skipped("the SDKs of providers", "there is no python3 with venv");
        return Ok(());
    }
    let mut table =
        Table::new(&["SDK", "wire", "recipe", "requests", "longest history", "last", "texts left"]);
    let recipes = sdk::recipes(epitome)?;
    let with_recipes = |&(wire, of)| recipes.iter().map(move |recipe| (wire, of, recipe.as_str()));
    let cases: Vec<(&str, &str, &str)> = sdk::WIRES.iter().flat_map(with_recipes).collect();
    table.try_all(
        &cases,
        |(wire, _, recipe)| format!("{wire} with {recipe}"),
        |&(wire, of, recipe)| {
            let report = sdk::run(epitome, wire, recipe)?;
            let sdk::Report { requests, longest, last, left } = report;
            // `pi` has only a summary, and without a model there is none.
            ensure!(left > 0 || recipe == "pi", "nothing was shortened: {report:?}");
            Ok(format!("{of} | {wire} | {recipe} | {requests} | {longest} | {last} | {left}"))
        },
    );
    table.finish().map(drop)
}
