//! One target a reader. What must hold is in the crate `properties`, whose tests run it without a
//! fuzzer, over the files in `seeds`.
//!
//! With a nightly compiler: `cargo fuzz run claude fuzz/corpus/claude fuzz/seeds/claude`. Without
//! one, a target replays files: `cargo run --manifest-path fuzz/Cargo.toml --bin claude -- FILE…`.

/// A target: under a fuzzer it takes what it is given, otherwise the files it is called with.
#[macro_export]
macro_rules! target {
    ($body:path) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $body(bytes));

        #[cfg(not(fuzzing))]
        fn main() -> std::io::Result<()> {
            $crate::replay($body)
        }
    };
}

/// Runs `body` over the files that the program is called with.
///
/// # Errors
///
/// When a file cannot be read.
pub fn replay(body: fn(&[u8])) -> std::io::Result<()> {
    for path in std::env::args_os().skip(1) {
        body(&std::fs::read(path)?);
    }
    Ok(())
}
