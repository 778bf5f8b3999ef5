//! What the project does to itself: checks, tests, tables.

mod recipes;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["recipes", rest @ ..] => recipes::run(rest),
        _ => Err(anyhow::anyhow!("usage: cargo xtask recipes [FOLDER…]")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("xtask: {err:#}");
            ExitCode::FAILURE
        }
    }
}
