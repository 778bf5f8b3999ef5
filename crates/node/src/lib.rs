//! The native module of the npm package `@epitome-cli/context`: the library for Node.
//! `docs/typescript.md` has a guide.
//!
//! Requests and answers are JSON; after an error, the answer is `{"error": …}`. The package around
//! this module, in `npm`, has the types, the documentation and the errors. `call` and
//! `answer_later` work on a thread of Node's pool, so that the event loop goes on.
//!
//! # Absent
//!
//! - What a function does: that is in `epitome_bindings`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use napi::bindgen_prelude::AsyncTask;
use napi::{Env, Error, Result, Task};
use napi_derive::napi;

/// The context of an agent that is running.
#[napi]
#[derive(Default)]
pub struct Engine {
    engine: Arc<epitome_bindings::Engine>,
}

#[napi]
impl Engine {
    /// An engine that is not started.
    #[napi(constructor)]
    pub fn new() -> Engine {
        Engine::default()
    }

    /// Starts the engine, and returns `{"ok":true}` or an error.
    #[napi]
    pub fn start(&self, options: String) -> String {
        self.engine.start(options.as_bytes())
    }

    /// Stops the engine. Another engine can then open its log.
    #[napi]
    pub fn stop(&self) {
        self.engine.stop();
    }

    /// The answer to a request, as `docs/engine.md` describes both.
    #[napi]
    pub fn answer(&self, line: String) -> String {
        self.engine.answer(line.into_bytes())
    }

    /// Like `answer`, but works on another thread, and returns a promise of the answer.
    #[napi]
    pub fn answer_later(&self, line: String) -> AsyncTask<Answer> {
        AsyncTask::new(Answer { engine: Arc::clone(&self.engine), line })
    }
}

/// Calls the function `name` with a request on another thread, and returns a promise of its result
/// as JSON.
#[napi]
pub fn call(name: String, request: String) -> AsyncTask<Call> {
    AsyncTask::new(Call { name, request })
}

/// The task that answers a request to an engine on another thread.
pub struct Answer {
    engine: Arc<epitome_bindings::Engine>,
    line: String,
}

impl Task for Answer {
    type Output = String;
    type JsValue = String;

    fn compute(&mut self) -> Result<String> {
        let line = std::mem::take(&mut self.line).into_bytes();
        catch_panic(|| self.engine.answer(line))
    }

    fn resolve(&mut self, _: Env, answer: String) -> Result<String> {
        Ok(answer)
    }
}

/// The task that calls a function on stored sessions on another thread.
pub struct Call {
    name: String,
    request: String,
}

impl Task for Call {
    type Output = String;
    type JsValue = String;

    fn compute(&mut self) -> Result<String> {
        catch_panic(|| epitome_bindings::call(&self.name, self.request.as_bytes()))
    }

    fn resolve(&mut self, _: Env, answer: String) -> Result<String> {
        Ok(answer)
    }
}

/// Does the work. If the work panics, the result is an error, which rejects the promise. If nothing
/// caught a panic on a thread of Node's pool, the panic would end the process.
fn catch_panic(work: impl FnOnce() -> String) -> Result<String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Error::from_reason("a bug in epitome"))
}
