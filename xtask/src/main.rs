//! `cargo xtask`: the checks of the project, all that CI runs.

mod ci;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci [STEP…]            everything that CI runs, in its order, up to the first failure
  ci --quick            the inner loop: fmt, tidy, clippy, and the tests of what was changed
  tidy                  project rules that no compiler checks

What runs the program (recipes, quality, bench, e2e, chaos, package …) is `cargo lab`.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["ci", steps @ ..] => ci::run(steps),
        ["tidy"] => tidy::run(),
        _ => Err(anyhow::anyhow!(USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            xtask::say(&format!("xtask: {err:#}"));
            ExitCode::FAILURE
        }
    }
}
