//! `cargo xtask ci`: what CI runs, in its order, up to the first failure.
//!
//! What the steps build: `test`, `tables`, `chaos` and `e2e` share what `test` compiles, the
//! program and `lab` included ([`cargo::EVERYTHING`]); `clippy` and `doc` share what they check of
//! dependencies.

mod quick;

use std::collections::BTreeSet;
use std::env::consts::EXE_SUFFIX;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use xtask::{cargo, print, say, skips};

use crate::tidy;

struct Step {
    name: &'static str,
    run: Run,
}

enum Run {
    /// Commands, their words separated by spaces.
    Commands(&'static [&'static str]),
    /// Arguments of `cargo lab`, separated by spaces: one run of it for each text.
    Lab(&'static [&'static str]),
    Function(fn() -> anyhow::Result<()>),
}

use Run::{Commands, Function, Lab};

const FMT: Run = Commands(&["cargo fmt --all --check"]);
const CLIPPY: Run =
    Commands(&["cargo clippy --workspace --all-targets --all-features --locked -- -D warnings"]);
const DOC: Run = Commands(&[
    "cargo doc --workspace --no-deps --locked --config build.rustdocflags=[\"-Dwarnings\"]",
]);
/// The test command of the README comes first; then cheap steps come before expensive ones.
const STEPS: &[Step] = &[
    Step { name: "test", run: Function(test) },
    Step { name: "fmt", run: FMT },
    Step { name: "tidy", run: Function(tidy::run) },
    Step { name: "clippy", run: CLIPPY },
    Step { name: "doc", run: DOC },
    Step { name: "features", run: Function(features) },
    Step { name: "tables", run: Lab(&["recipes --check", "leaderboard --check"]) },
    Step { name: "chaos", run: Lab(&["chaos --minutes 1", "chaos --only proxy --cases 20"]) },
    Step { name: "deny", run: Function(deny) },
    Step { name: "e2e", run: Lab(&["e2e"]) },
];

/// The steps of the inner loop: a minute or two after a change in one crate.
const QUICK: &[Step] = &[
    Step { name: "fmt", run: FMT },
    Step { name: "tidy", run: Function(tidy::run) },
    Step { name: "clippy", run: CLIPPY },
    Step { name: "test", run: Function(quick::test) },
];

impl Step {
    fn run(&self) -> anyhow::Result<()> {
        match &self.run {
            Commands(commands) => commands.iter().try_for_each(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                cargo::run(&words, &[])
            }),
            Lab(lines) => lines.iter().try_for_each(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                lab(&words)
            }),
            Function(function) => function(),
        }
    }
}

/// Runs every step, or the named ones, and prints how long each took and what was skipped.
/// `--quick` runs the steps that find most mistakes soonest, and prints what it leaves out.
///
/// # Errors
///
/// The error of the first step that fails; an error if a name is not that of a step.
pub(crate) fn run(names: &[&str]) -> anyhow::Result<()> {
    let (is_quick, names) = match names {
        ["--quick", names @ ..] => (true, names),
        names => (false, names),
    };
    let steps = if is_quick { QUICK } else { STEPS };
    if let Some(unknown) = names.iter().find(|name| !steps.iter().any(|step| step.name == **name)) {
        let known: Vec<&str> = steps.iter().map(|step| step.name).collect();
        bail!("there is no step `{unknown}`: there are {}", known.join(", "));
    }
    let chosen: Vec<&Step> =
        steps.iter().filter(|step| names.is_empty() || names.contains(&step.name)).collect();
    skips::begin(&cargo::target()?)?;
    let mut times: Vec<(&str, Duration)> = Vec::new();
    let mut done = Ok(());
    for (n, step) in chosen.iter().enumerate() {
        let head = format!("── {} of {}: {} ", n + 1, chosen.len(), step.name);
        say(&format!("{head}{}", "─".repeat(70 - head.chars().count())));
        let begin = Instant::now();
        done = step.run().with_context(|| format!("{} failed", step.name));
        times.push((step.name, begin.elapsed()));
        if done.is_err() {
            break;
        }
    }
    if is_quick {
        quick::leaves_out();
    }
    report(&times);
    done?;
    print("all is well");
    Ok(())
}

/// How long the steps took, and what was skipped.
fn report(times: &[(&str, Duration)]) {
    let all: Duration = times.iter().map(|(_, time)| *time).sum();
    for (name, time) in times.iter().copied().chain([("all", all)]) {
        print(&format!("{name:<8} {:>7.1} s", time.as_secs_f64()));
    }
    let skipped = skips::end();
    match skipped.len() {
        0 => print("nothing was skipped"),
        n => print(&format!("skipped ({n}):")),
    }
    for line in skipped {
        print(&format!("  {line}"));
    }
}

/// Maximum number of crates in the engine's dependency tree, itself included: `docs/library.md`
/// lists them.
const ENGINE_CRATES: usize = 40;

/// Checks the number of crates in the engine's dependency tree, the library without its features,
/// and that an absent feature of the store is an error that says so.
fn features() -> anyhow::Result<()> {
    let tree = ["-p", "epitome-engine", "-e", "normal", "--prefix", "none", "--no-dedupe"];
    let tree = cargo::output(&[&["cargo", "tree", "--locked"][..], &tree].concat())?;
    let crates: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let n = crates.len();
    anyhow::ensure!(n <= ENGINE_CRATES, "epitome-engine brings {n} crates: {crates:?}");
    cargo::run(&["cargo", "check", "-p", "epitome", "--no-default-features", "--locked"], &[])?;
    let store = ["-p", "epitome-store", "--no-default-features", "--lib", "--locked", "absent"];
    cargo::run(&[&["cargo", "test"], &store[..]].concat(), &[])
}

/// Runs the tests with a home that looks used and is full of sessions, which no test may read or
/// change.
fn test() -> anyhow::Result<()> {
    lab(&[&["used-home", "cargo", "test"], cargo::EVERYTHING].concat())
}

/// Runs `cargo lab` as a program that has the same features as the tests: `cargo run` would build
/// its dependencies with others.
fn lab(args: &[&str]) -> anyhow::Result<()> {
    cargo::run(&cargo::build_of(&["--bin", "lab", "--bin", "epitome"]), &[])?;
    let program = cargo::target()?.join("debug").join(format!("lab{EXE_SUFFIX}"));
    let program = program.to_string_lossy();
    cargo::run(&[&[&*program], args].concat(), &[])
}

/// Checks licences, sources and advisories; tidy checks the first two as well.
fn deny() -> anyhow::Result<()> {
    if cargo::output(&["cargo", "deny", "--version"]).is_err() {
        let why = "cargo-deny is not installed (licences were looked at, by tidy)";
        skips::skipped("advisories of dependencies", why);
        return Ok(());
    }
    cargo::run(&["cargo", "deny", "check"], &[])
}
