//! What the project does to itself: `cargo xtask` checks it, and builds in seconds; `cargo lab`
//! measures the program, and is built with it. This is what both use.

pub mod cargo;
pub mod skips;

/// Reports progress on standard error; what was asked for goes to standard output.
#[expect(clippy::print_stderr, reason = "a program for the terminal")]
pub fn say(text: &str) {
    eprintln!("{text}");
}

/// Prints what was asked for.
#[expect(clippy::print_stdout, reason = "a program for the terminal")]
pub fn print(text: &str) {
    println!("{text}");
}
