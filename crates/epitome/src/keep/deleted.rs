//! Sessions that their agents have deleted.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use epitome_agents::{self as agents, SessionFile, find_agent};
use epitome_model::Bytes;
use jiff::Timestamp;
use serde::Serialize;

use super::moved::{is_superseded, present_path, versions_at_place};
use super::{FileKey, Vault, place_here};
use crate::config::Config;
use crate::place;
use crate::rows;

/// A kept session that does not exist any more. Its serde form is the JSON of `epitome list
/// --deleted --json` (`docs/json.md`), to which members are only added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeletedSession {
    /// The name of the agent.
    pub agent: String,
    /// The id of the session.
    pub session: String,
    /// The address at which the session was; if the home folder was moved since, the address in the
    /// present one.
    #[serde(serialize_with = "epitome_model::lossy_path")]
    pub path: PathBuf,
    /// The name of the other machine that kept the session. `None` if this machine kept it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// When the session was first seen to be deleted: now, if no keeper has seen it yet. If another
    /// machine still had it: when it was last seen to change there.
    pub deleted: Timestamp,
    /// When the session was last modified before its deletion, if that is known.
    pub modified: Option<Timestamp>,
    /// The length of the session's last content.
    pub bytes: Bytes,
    /// The number of the version with the session's last content: what `epitome restore --at`
    /// takes.
    pub version: u64,
}

/// The sessions of `agent` (`None`: of all agents) that do not exist any more, the last deleted one
/// first. Those that no keeper has seen to be deleted yet are included, and so are sessions that
/// another machine kept and this one does not have. A session is left out if a session with its id
/// exists at another path and is not shorter: then it was moved. (The length is compared because
/// Gemini CLI gives several files the same id.)
pub fn deleted_sessions(
    config: &Config,
    vault: &Vault,
    agent: Option<&str>,
) -> Vec<DeletedSession> {
    let is_wanted =
        |file: &&FileKey| file.part.is_none() && agent.is_none_or(|agent| agent == file.agent);
    let listed = Listed { config, agent, sessions: OnceCell::new() };
    let files = vault.files().filter(is_wanted);
    let mut found: Vec<DeletedSession> =
        files.filter_map(|file| deleted(config, vault, file, &listed)).collect();
    found.sort_by(|one, other| (other.deleted, &one.path).cmp(&(one.deleted, &other.path)));
    found
}

/// The sessions that agents list now. They are listed only if one is needed.
struct Listed<'a> {
    config: &'a Config,
    agent: Option<&'a str>,
    sessions: OnceCell<Vec<SessionFile>>,
}

impl Listed<'_> {
    /// Whether a session with the id of `file` exists and has at least this length.
    fn has(&self, file: &FileKey, len: u64) -> bool {
        let list = || agents::all(&self.config.agents, self.agent).sessions;
        self.sessions.get_or_init(list).iter().any(|session| {
            (session.agent, &session.id) == (&*file.agent, &file.session) && session.size.0 >= len
        })
    }
}

fn deleted(
    config: &Config,
    vault: &Vault,
    file: &FileKey,
    listed: &Listed<'_>,
) -> Option<DeletedSession> {
    let is_other = file.machine != vault.machine();
    if is_superseded(config, vault, file) {
        return None;
    }
    let last = vault.versions(file).next_back()?;
    let versions = versions_at_place(config, vault, file);
    let content = versions.iter().map(|(_, version)| *version).rfind(|it| !it.is_deleted())?;
    let (path, is_gone) = match place_here(config, vault, file) {
        Ok(here) if is_other => (file.path.clone(), !place::exists(&here)),
        Err(_) => (file.path.clone(), true),
        // A keeper may not have seen yet that the file was deleted, or made again.
        Ok(_) => {
            let path = present_path(config, vault, file);
            let is_gone = match last.is_deleted() {
                true => !place::exists(&path),
                false => is_gone(config, &file.agent, &path),
            };
            (path, is_gone)
        }
    };
    (is_gone && !listed.has(file, content.digest.len)).then(|| DeletedSession {
        agent: file.agent.clone(),
        session: file.session.clone(),
        path,
        machine: is_other.then(|| file.machine.clone()),
        deleted: if is_other || last.is_deleted() { last.seen } else { config.now() },
        modified: content.modified,
        bytes: Bytes(content.digest.len),
        version: content.number,
    })
}

/// Whether a file at an address of an agent's session certainly does not exist any more. If the
/// folder of the agent does not exist either, the disk may not be mounted, so the answer is false.
pub(super) fn is_gone(config: &Config, agent: &str, path: &Path) -> bool {
    let is_missing = |path: &Path| {
        fs::symlink_metadata(path).is_err_and(|err| err.kind() == std::io::ErrorKind::NotFound)
    };
    if let Some((database, name)) = rows::split(path)
        && !is_missing(&database)
    {
        let id = name.split_once('.').map_or(name, |(id, _)| id);
        return rows::sessions(&database)
            .is_ok_and(|(_, sessions)| sessions.iter().all(|session| session.id != id));
    }
    let folder = find_agent(agent).map(|agent| agent.folder(&config.agents));
    is_missing(path) && folder.is_some_and(|folder| folder.is_dir())
}
