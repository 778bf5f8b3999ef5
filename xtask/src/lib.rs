//! Shared by the project's own tools: `cargo xtask` checks the project, and builds in seconds;
//! `cargo lab` measures the program, and is built together with it.

pub mod cargo;
pub mod skips;

/// Reports progress on standard error; results are written to standard output.
#[expect(clippy::print_stderr, reason = "a program for the terminal")]
pub fn say(text: &str) {
    eprintln!("{text}");
}

/// Prints a result.
#[expect(clippy::print_stdout, reason = "a program for the terminal")]
pub fn print(text: &str) {
    println!("{text}");
}
