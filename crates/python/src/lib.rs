//! The module `epitome._native`: the library for Python. `docs/python.md` has a guide.
//!
//! Every function takes a JSON object and returns JSON, `{"error": …}` included: the package around
//! it, in `python/epitome`, has the types, the documentation and the exceptions. Python's global
//! lock is released while a function works.
//!
//! # Absent
//!
//! - Models: a program in Python asks its own, and passes the answer.
//! - Decisions: they are in `epitome`.

mod answer;
mod live;
mod sessions;

use pyo3::prelude::*;

/// The module.
#[pymodule]
#[pyo3(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::live::Engine;
    #[pymodule_export]
    use crate::sessions::call;
}
