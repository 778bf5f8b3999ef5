//! Options that several functions have, and the error for a value that an option cannot have.

use std::fmt::Display;

use epitome::{Error, ErrorKind, Result};
use epitome_model::{Counter, Tokens};
use epitome_tokens::{Estimate, O200k};
use serde::Deserialize;

/// How tokens are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Count {
    #[default]
    O200k,
    Estimate,
}

impl Count {
    pub fn counter(self) -> &'static dyn Counter {
        match self {
            Count::O200k => &const { O200k::new() },
            Count::Estimate => &const { Estimate::new() },
        }
    }
}

/// The option `window`: the context window of a model, in tokens.
///
/// # Errors
///
/// `Usage` if it has no tokens.
pub fn window(tokens: Option<u64>) -> Result<Option<Tokens>> {
    match tokens {
        Some(0) => Err(invalid_option("window", 0, "at least 1 token")),
        Some(_) | None => Ok(tokens.map(Tokens)),
    }
}

/// The error for an option that cannot have this value; `expected` says which values it can have.
pub fn invalid_option(name: &str, value: impl Display, expected: &str) -> Error {
    let what = format!("`{name}`: invalid value: {value}, expected {expected}");
    Error::new(ErrorKind::Usage, what)
}
