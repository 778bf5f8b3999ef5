//! The context of a running agent as a WebAssembly module, for browsers and for workers without
//! native code. `docs/typescript.md` has a guide.
//!
//! The module imports nothing. Its functions exchange bytes through two buffers, so that none takes
//! a pointer: the caller asks for an [`input`] of some length, writes a request into it, calls
//! [`start`] or [`answer`], which returns the length of the answer, and reads that from [`output`].
//! [`answer`] takes and gives the same JSON as `epitome_bindings::Engine`. The package around the
//! module, in `crates/node/npm`, has the types, the documentation and the errors.
//!
//! A panic ends the call with a trap. After that, the instance of the module must not be used any
//! more.
//!
//! # Absent
//!
//! - The vocabulary: tokens are estimated, because the vocabulary is larger than the rest of the
//!   module.
//! - Files: logs are in memory, and a recipe is a name or a text.
//! - Stored sessions.

// Only the attribute that exports a function needs unsafe code.
#![expect(unsafe_code, reason = "exported functions have names of their own")]

mod engine;

use std::cell::RefCell;

use engine::Engine;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<String> = const { RefCell::new(String::new()) };
    /// The engines by their numbers.
    static ENGINES: RefCell<Vec<Option<Engine>>> = const { RefCell::new(Vec::new()) };
}

/// Begins a request of `len` bytes. Returns a pointer to the buffer into which the caller writes
/// it.
#[unsafe(no_mangle)]
pub extern "C" fn input(len: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        *input = vec![0; len];
        input.as_mut_ptr()
    })
}

/// A pointer to the last answer. It is valid until the next call of any function.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// Starts an engine with the options in the input. Returns the length of the answer: the number of
/// the engine, as `{"engine":0}`, or an error.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> usize {
    let answer = match Engine::start(&INPUT.take()) {
        Ok(engine) => format!(r#"{{"engine":{}}}"#, insert(engine)),
        Err(err) => engine::error(&err),
    };
    set_output(answer)
}

/// Answers the request in the input, and returns the length of the answer. If no engine with this
/// number is running, the answer is an error.
#[unsafe(no_mangle)]
pub extern "C" fn answer(engine: usize) -> usize {
    let request = INPUT.take();
    let answer = ENGINES.with_borrow_mut(|engines| match engines.get_mut(engine) {
        Some(Some(engine)) => engine.answer(request),
        Some(None) | None => engine::error(&engine::not_running()),
    });
    set_output(answer)
}

/// Stops an engine and frees its memory. An engine that is started later may get its number.
#[unsafe(no_mangle)]
pub extern "C" fn stop(engine: usize) {
    ENGINES.with_borrow_mut(|engines| {
        if let Some(engine) = engines.get_mut(engine) {
            *engine = None;
        }
    });
}

/// Keeps an engine, and returns its number.
fn insert(engine: Engine) -> usize {
    ENGINES.with_borrow_mut(|engines| match engines.iter().position(Option::is_none) {
        Some(free) => {
            engines[free] = Some(engine);
            free
        }
        None => {
            engines.push(Some(engine));
            engines.len() - 1
        }
    })
}

fn set_output(answer: String) -> usize {
    let len = answer.len();
    OUTPUT.set(answer);
    len
}
