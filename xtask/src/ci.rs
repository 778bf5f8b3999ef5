//! `cargo xtask ci`: what CI runs, in its order, up to the first failure.
//!
//! What the steps build: `clippy`, `doc` and `fuzz` share what they check of dependencies; `build`,
//! `test`, `doctest`, `chaos` and `e2e` share what `build` compiles, the program included.

mod quick;
mod used;

use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::{cargo, chaos, e2e, print, recipes, say, skips, tidy};

struct Step {
    name: &'static str,
    run: fn() -> anyhow::Result<()>,
}

/// Cheap ones first: what fails is known early.
const STEPS: &[Step] = &[
    Step { name: "fmt", run: fmt },
    Step { name: "tidy", run: tidy::run },
    Step { name: "clippy", run: clippy },
    Step { name: "doc", run: doc },
    Step { name: "features", run: features },
    Step { name: "build", run: build },
    Step { name: "tables", run: || recipes::check(false) },
    Step { name: "test", run: test },
    Step { name: "doctest", run: doctest },
    Step { name: "chaos", run: chaos::short },
    Step { name: "fuzz", run: fuzz },
    Step { name: "deny", run: deny },
    Step { name: "e2e", run: || e2e::run(&[]) },
];

/// The steps of the inner loop: a minute or two after a change in one crate.
const QUICK: &[Step] = &[
    Step { name: "fmt", run: fmt },
    Step { name: "tidy", run: tidy::run },
    Step { name: "clippy", run: clippy },
    Step { name: "test", run: quick::test },
];

/// Runs every step, or those that are named, and says how long each took and what was skipped.
/// `--quick` runs what finds most mistakes soonest, and says what it leaves out.
///
/// # Errors
///
/// What the first step says that fails; when there is no step of a name.
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
    skips::begin()?;
    let mut times: Vec<(&str, Duration)> = Vec::new();
    let mut done = Ok(());
    for (n, step) in chosen.iter().enumerate() {
        let head = format!("── {} of {}: {} ", n + 1, chosen.len(), step.name);
        say(&format!("{head}{}", "─".repeat(70 - head.chars().count())));
        let begin = Instant::now();
        done = (step.run)().with_context(|| format!("{} failed", step.name));
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

fn fmt() -> anyhow::Result<()> {
    cargo::run(&["cargo", "fmt", "--all", "--check"], &[])?;
    cargo::run(&["cargo", "fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"], &[])
}

fn clippy() -> anyhow::Result<()> {
    let what = ["--workspace", "--all-targets", "--all-features", "--locked"];
    cargo::run(&[&["cargo", "clippy"], &what[..], &["--", "-D", "warnings"]].concat(), &[])
}

fn doc() -> anyhow::Result<()> {
    let line = ["cargo", "doc", "--workspace", "--no-deps", "--locked"];
    cargo::run(&line, &[("RUSTDOCFLAGS", "-D warnings")])
}

/// The library with a part of its features: what is left out is not needed, and its absence is an
/// error that says so.
fn features() -> anyhow::Result<()> {
    const SETS: [&str; 5] =
        ["engine", "sessions", "sessions,sqlite", "sessions,models", "sessions,render"];
    for set in SETS {
        let library = ["-p", "epitome", "--no-default-features", "--features", set, "--locked"];
        cargo::run(&[&["cargo", "check"], &library[..]].concat(), &[])?;
    }
    let store = ["-p", "epitome-store", "--no-default-features", "--lib", "--locked", "absent"];
    cargo::run(&[&["cargo", "test"], &store[..]].concat(), &[])
}

/// Compiles all tests, and with them the program that later steps run.
fn build() -> anyhow::Result<()> {
    let line = ["cargo", "test", "--no-run", "--workspace", "--all-targets", "--locked"];
    if has_nextest() {
        cargo::run(&["cargo", "nextest", "run", "--no-run", "--workspace", "--locked"], &[])
    } else {
        cargo::run(&line, &[])
    }?;
    cargo::is_built("dev")
}

/// The tests, on a machine that was used: a home full of sessions, which no test may read or
/// change.
fn test() -> anyhow::Result<()> {
    build()?;
    if has_nextest() {
        return with_used_home(&["cargo", "nextest", "run", "--workspace", "--locked"]);
    }
    skips::skipped("cargo-nextest", "not installed: `cargo test` runs the tests, slower");
    with_used_home(&["cargo", "test", "--quiet", "--workspace", "--all-targets", "--locked"])
}

/// Runs a command whose home is that of a machine that was used, and checks that it changed
/// nothing there.
///
/// # Errors
///
/// When the command fails or a file of the home changed.
pub(crate) fn with_used_home(line: &[&str]) -> anyhow::Result<()> {
    let home = used::Home::new(&cargo::epitome("dev")?)?;
    let variables = home.variables();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    cargo::run(line, &variables)?;
    home.is_unchanged()
}

fn has_nextest() -> bool {
    cargo::output(&["cargo", "nextest", "--version"]).is_ok()
}

fn doctest() -> anyhow::Result<()> {
    cargo::run(&["cargo", "test", "--workspace", "--doc", "--locked"], &[])
}

/// The bodies of the fuzz targets run among the tests; here it is seen that the targets compile.
/// They run with `cargo fuzz`, which wants a nightly compiler.
fn fuzz() -> anyhow::Result<()> {
    let target = cargo::target()?;
    let target = target.to_string_lossy();
    let line = ["cargo", "clippy", "--manifest-path", "fuzz/Cargo.toml", "--locked"];
    let more = ["--target-dir", &target, "--", "-D", "warnings"];
    cargo::run(&[&line[..], &more].concat(), &[])
}

/// Licences and sources are looked at by tidy too; advisories are known to cargo-deny alone.
fn deny() -> anyhow::Result<()> {
    if cargo::output(&["cargo", "deny", "--version"]).is_err() {
        let why = "cargo-deny is not installed (licences were looked at, by tidy)";
        skips::skipped("advisories of dependencies", why);
        return Ok(());
    }
    cargo::run(&["cargo", "deny", "check"], &[])
}
