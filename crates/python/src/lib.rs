//! The module `epitome._native`: the library for Python. `docs/python.md` has a guide.
//!
//! The methods of [`fleet::Fleet`] take and return columns. The other functions take and return
//! JSON, which is `{"error": …}` after an error. The package around this module, in
//! `python/epitome`, has the types, the documentation and the exceptions. Python's global lock is
//! released while a function works.
//!
//! # Absent
//!
//! - What a function does: that is in `epitome_bindings`.

mod fleet;

use pyo3::prelude::*;

/// The context of an agent that is running.
#[pyclass(frozen, module = "epitome._native")]
struct Engine {
    engine: epitome_bindings::Engine,
}

#[pymethods]
impl Engine {
    /// An engine that is not started.
    #[new]
    fn new() -> Engine {
        Engine { engine: epitome_bindings::Engine::new() }
    }

    /// Starts the engine, and returns `{"ok":true}` or an error.
    fn start(&self, py: Python<'_>, options: &[u8]) -> String {
        py.detach(|| self.engine.start(options))
    }

    /// The answer to a request, as `docs/engine.md` describes both.
    fn answer(&self, py: Python<'_>, line: &[u8]) -> String {
        let line = line.to_vec();
        py.detach(|| self.engine.answer(line))
    }
}

/// Calls the function `name` with a request, and returns its result as JSON.
#[pyfunction]
fn call(py: Python<'_>, name: &str, request: &[u8]) -> String {
    py.detach(|| epitome_bindings::call(name, request))
}

/// The module.
#[pymodule]
#[pyo3(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::Engine;
    #[pymodule_export]
    use crate::call;
    #[pymodule_export]
    use crate::fleet::Fleet;
}
