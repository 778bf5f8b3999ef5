//! The list of sessions that were forgotten and are not kept again.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::Vault;
use crate::archive::Hash;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::regular;
use crate::store::write_over;

/// The sessions that were forgotten, and are not kept again: hashes of agents and ids.
#[derive(Debug, Default)]
pub struct Forgotten(BTreeSet<String>);

impl Forgotten {
    /// Reads the list. The result is empty if there is no such file.
    ///
    /// # Errors
    ///
    /// `NoPermission` or `Unreadable` if the file exists and cannot be read.
    pub fn read(config: &Config) -> Result<Forgotten> {
        let path = Forgotten::path(config);
        match regular::read_to_string(&path) {
            Ok(text) => Ok(Forgotten(text.lines().map(str::to_owned).collect())),
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(Forgotten::default()),
            Err(err) => Err(Error::reading(err, "the list of forgotten sessions", &path)),
        }
    }

    /// Whether a session was forgotten.
    pub fn has(&self, agent: &str, id: &str) -> bool {
        !self.0.is_empty() && self.0.contains(&Forgotten::line(agent, id))
    }

    /// Adds a session and writes the list. Does nothing if there is no vault.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the list cannot be written.
    pub(crate) fn add(&mut self, config: &Config, agent: &str, id: &str) -> Result<()> {
        let folder = Vault::folder_in(&config.home);
        if !folder.is_dir() || !self.0.insert(Forgotten::line(agent, id)) {
            return Ok(());
        }
        let text: String = self.0.iter().map(|line| format!("{line}\n")).collect();
        write_over(&Forgotten::path(config), |out| {
            out.write_all(text.as_bytes()).map_err(Error::from)
        })
    }

    fn path(config: &Config) -> PathBuf {
        Vault::folder_in(&config.home).join("forgotten")
    }

    fn line(agent: &str, id: &str) -> String {
        Hash::compute(format!("{agent}\0{id}").as_bytes()).to_string()
    }
}
