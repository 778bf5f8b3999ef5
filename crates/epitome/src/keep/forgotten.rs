//! The list of sessions that were forgotten and are not kept again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use epitome_agents::{self as agents, AGENTS, SessionMatch};
use jiff::Timestamp;

use super::Vault;
use crate::archive::Hash;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::regular;
use crate::store::write_over;

/// The sessions that were forgotten, and are not kept again: hashes of agents and ids, each with
/// the time at which the session was forgotten, if that is known.
#[derive(Debug, Default)]
pub struct Forgotten(BTreeMap<String, Option<Timestamp>>);

impl Forgotten {
    /// Reads the list. The result is empty if there is no such file.
    ///
    /// # Errors
    ///
    /// `NoPermission` or `Unreadable` if the file exists and cannot be read.
    pub fn read(config: &Config) -> Result<Forgotten> {
        let path = Forgotten::path(config);
        match regular::read_to_string(&path) {
            Ok(text) => Ok(Forgotten(text.lines().map(parse).collect())),
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(Forgotten::default()),
            Err(err) => Err(Error::reading(err, "the list of forgotten sessions", &path)),
        }
    }

    /// Whether a session was forgotten.
    pub fn has(&self, agent: &str, id: &str) -> bool {
        !self.0.is_empty() && self.0.contains_key(&hash(agent, id))
    }

    /// Looks up the session that a user means by a path or an id. `None` if it was not forgotten;
    /// otherwise the time at which it was, if that is known. The list has no ids, so a session that
    /// does not exist any more is recognised by its full id alone.
    pub fn find(
        &self,
        config: &Config,
        text: &str,
        agent: Option<&str>,
    ) -> Option<Option<Timestamp>> {
        let mut ids = BTreeSet::from([text.to_owned()]);
        if let SessionMatch::File(path) = agents::find_session(&config.agents, text, agent) {
            let listed = agents::all(&config.agents, agent).sessions.into_iter();
            ids.extend(listed.filter(|session| session.path == path).map(|session| session.id));
        }
        let names = AGENTS.iter().map(|it| it.name());
        let mut meant = names.filter(|name| agent.is_none_or(|agent| agent == *name));
        meant.find_map(|name| ids.iter().find_map(|id| self.0.get(&hash(name, id))).copied())
    }

    /// Adds a session, which is forgotten now, and writes the list. Does nothing if there is no
    /// vault.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the list cannot be written.
    pub(crate) fn add(&mut self, config: &Config, agent: &str, id: &str) -> Result<()> {
        let folder = Vault::folder_in(&config.home);
        if !folder.is_dir() || self.has(agent, id) {
            return Ok(());
        }
        self.0.insert(hash(agent, id), Some(config.now()));
        let line = |(hash, time): (&String, &Option<Timestamp>)| match time {
            Some(time) => format!("{hash} {time}\n"),
            None => format!("{hash}\n"),
        };
        let text: String = self.0.iter().map(line).collect();
        write_over(&Forgotten::path(config), |out| {
            out.write_all(text.as_bytes()).map_err(Error::from)
        })
    }

    fn path(config: &Config) -> PathBuf {
        Vault::folder_in(&config.home).join("forgotten")
    }
}

fn hash(agent: &str, id: &str) -> String {
    Hash::compute(format!("{agent}\0{id}").as_bytes()).to_string()
}

/// The hash and the time on a line of the list. Older lists have no times.
fn parse(line: &str) -> (String, Option<Timestamp>) {
    match line.split_once(' ') {
        Some((hash, time)) => (hash.to_owned(), time.parse().ok()),
        None => (line.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_session_is_listed_with_the_time_and_an_older_list_is_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let config = Config::from_home(dir.path());
        config.create_vault().expect("a vault");
        let path = Forgotten::path(&config);
        std::fs::write(&path, format!("{}\n", hash("pi", "0001"))).expect("written");
        let mut forgotten = Forgotten::read(&config).expect("a list");
        forgotten.add(&config, "pi", "0002").expect("written");
        forgotten.add(&config, "pi", "0001").expect("nothing to do");
        let again = Forgotten::read(&config).expect("a list");
        let find = |id: &str| again.find(&config, id, Some("pi"));
        assert_eq!(["0001", "0003"].map(find), [Some(None), None]);
        assert!(find("0002").flatten().is_some_and(|time| time <= config.now()));
        assert_eq!(["0001", "0002", "0003"].map(|id| again.has("pi", id)), [true, true, false]);
    }
}
