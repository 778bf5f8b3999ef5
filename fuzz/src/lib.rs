//! Fuzz targets. `session` covers every reader; the others have a target each. What must hold is in
//! the crate `properties`, whose tests run it without a fuzzer, over the files in `seeds` and the
//! corpus cases of `testing/fixtures`.
//!
//! With a nightly compiler: `EPITOME_FORMAT=claude cargo fuzz run session fuzz/corpus/claude
//! fuzz/seeds/claude`. Without one, a target reads files once:
//! `EPITOME_FORMAT=claude cargo run -p epitome-fuzz --bin session -- FILE…`.

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
