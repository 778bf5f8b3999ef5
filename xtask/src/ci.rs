//! `cargo xtask ci`: what CI runs, in its order, up to the first failure.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::{cargo, e2e, print, say, tidy};

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
    Step { name: "test", run: test },
    Step { name: "doctest", run: doctest },
    Step { name: "fuzz", run: fuzz },
    Step { name: "deny", run: deny },
    Step { name: "e2e", run: || e2e::run(&[]) },
];

/// Runs every step, or those that are named, and says how long each took.
///
/// # Errors
///
/// What the first step says that fails; when there is no step of a name.
pub(crate) fn run(names: &[&str]) -> anyhow::Result<()> {
    if let Some(unknown) = names.iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
        bail!("there is no step `{unknown}`");
    }
    let mut times: Vec<(&str, Duration)> = Vec::new();
    for step in STEPS.iter().filter(|step| names.is_empty() || names.contains(&step.name)) {
        say(&format!("── {} {}", step.name, "─".repeat(60 - step.name.len())));
        let begin = Instant::now();
        let done = (step.run)();
        times.push((step.name, begin.elapsed()));
        if done.is_err() {
            table(&times);
        }
        done.with_context(|| format!("{} failed", step.name))?;
    }
    table(&times);
    print("all is well");
    Ok(())
}

fn table(times: &[(&str, Duration)]) {
    let all: Duration = times.iter().map(|(_, time)| *time).sum();
    for (name, time) in times.iter().copied().chain([("all", all)]) {
        print(&format!("{name:<8} {:>7.1} s", time.as_secs_f64()));
    }
}

fn fmt() -> anyhow::Result<()> {
    cargo::run(&["cargo", "fmt", "--all", "--check"], &[])?;
    cargo::run(&["cargo", "fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"], &[])
}

fn clippy() -> anyhow::Result<()> {
    let what = ["--workspace", "--all-targets", "--all-features", "--locked"];
    cargo::run(
        &[&["cargo", "clippy", "--quiet"], &what[..], &["--", "-D", "warnings"]].concat(),
        &[],
    )
}

fn doc() -> anyhow::Result<()> {
    let line = ["cargo", "doc", "--quiet", "--workspace", "--no-deps", "--locked"];
    cargo::run(&line, &[("RUSTDOCFLAGS", "-D warnings")])
}

fn test() -> anyhow::Result<()> {
    let has_nextest = cargo::output(&["cargo", "nextest", "--version"]).is_ok();
    match has_nextest {
        true => cargo::run(&["cargo", "nextest", "run", "--workspace", "--locked"], &[]),
        false => cargo::run(
            &["cargo", "test", "--quiet", "--workspace", "--all-targets", "--locked"],
            &[],
        ),
    }
}

fn doctest() -> anyhow::Result<()> {
    cargo::run(&["cargo", "test", "--quiet", "--workspace", "--doc", "--locked"], &[])
}

/// The bodies of the fuzz targets run among the tests; here it is seen that the targets compile.
/// They run with `cargo fuzz`, which wants a nightly compiler.
fn fuzz() -> anyhow::Result<()> {
    let target = cargo::target()?;
    let target = target.to_string_lossy();
    let line = ["cargo", "clippy", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--locked"];
    let more = ["--target-dir", &target, "--", "-D", "warnings"];
    cargo::run(&[&line[..], &more].concat(), &[])
}

/// Licences and sources are looked at by tidy too; advisories are known to cargo-deny alone.
fn deny() -> anyhow::Result<()> {
    if cargo::output(&["cargo", "deny", "--version"]).is_err() {
        say("cargo-deny is not installed: advisories are not looked at (licences were, by tidy)");
        return Ok(());
    }
    cargo::run(&["cargo", "deny", "check"], &[])
}
