//! The vault (the versions of sessions that `epitome keep` has stored) in memory. It is read whole
//! once; later, only what is new in it is read.

use std::sync::{Mutex, PoisonError};

use axum::http::StatusCode;
use epitome::keep::Vault;

use crate::options::Options;
use crate::problem::Problem;

/// The vault. `None` until it is read for the first time.
#[derive(Default)]
pub(crate) struct VaultCache(Mutex<Option<Vault>>);

impl VaultCache {
    /// Calls `look` with the vault as it is on disk now.
    pub(crate) fn with<T>(
        &self,
        options: &Options,
        look: impl FnOnce(&Vault) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.as_mut() {
            Some(vault) => drop(vault.refresh()?),
            None => drop(known.insert(options.config.vault()?)),
        }
        known.as_ref().map_or_else(|| Err(not_kept()), look)
    }
}

/// The error for a version that the vault does not have.
pub(crate) fn not_kept() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "this version was not kept")
        .hint("`epitome history SESSION` lists the versions of a session")
}
