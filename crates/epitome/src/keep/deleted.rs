//! Sessions that their agents have deleted.

use std::path::PathBuf;

use epitome_model::Bytes;
use jiff::Timestamp;
use serde::Serialize;

use super::moved::{is_superseded, versions_at_place};
use super::{FileKey, Vault, place_here};
use crate::config::Config;
use crate::place;

/// A kept session that does not exist any more. Its serde form is the JSON of `epitome list
/// --deleted --json` (`docs/json.md`), to which members are only added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeletedSession {
    /// The name of the agent.
    pub agent: String,
    /// The id of the session.
    pub session: String,
    /// The address at which the session was.
    #[serde(serialize_with = "epitome_model::lossy_path")]
    pub path: PathBuf,
    /// The name of the other machine that kept the session. `None` if this machine kept it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// When the session was first seen to be deleted. If another machine still had it: when it was
    /// last seen to change there.
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
/// first. Sessions that another machine kept and this one does not have are included. A session
/// counts as moved, and not as deleted, if this machine has kept another file with the same id that
/// still exists and is not shorter. (The length is compared because Gemini CLI gives several files
/// the same id.)
pub fn deleted_sessions(
    config: &Config,
    vault: &Vault,
    agent: Option<&str>,
) -> Vec<DeletedSession> {
    let is_wanted =
        |file: &&FileKey| file.part.is_none() && agent.is_none_or(|agent| agent == file.agent);
    let files = vault.files().filter(is_wanted);
    let mut found: Vec<DeletedSession> =
        files.filter_map(|file| deleted(config, vault, file)).collect();
    found.sort_by(|one, other| (other.deleted, &one.path).cmp(&(one.deleted, &other.path)));
    found
}

fn deleted(config: &Config, vault: &Vault, file: &FileKey) -> Option<DeletedSession> {
    let is_other = file.machine != vault.machine();
    let last = vault.versions(file).next_back().filter(|last| is_other || last.is_deleted())?;
    if is_superseded(config, vault, file) {
        return None;
    }
    let versions = versions_at_place(config, vault, file);
    let content = versions.iter().map(|(_, version)| *version).rfind(|it| !it.is_deleted())?;
    let is_elsewhere = vault.files().any(|other| {
        (&other.agent, &other.session, &other.part) == (&file.agent, &file.session, &None)
            && other.machine == vault.machine()
            && vault
                .versions(other)
                .next_back()
                .is_some_and(|last| !last.is_deleted() && last.digest.len >= content.digest.len)
            && !is_superseded(config, vault, other)
    });
    let is_here =
        is_other && place_here(config, vault, file).is_ok_and(|path| place::exists(&path));
    (!is_elsewhere && !is_here).then(|| DeletedSession {
        agent: file.agent.clone(),
        session: file.session.clone(),
        path: file.path.clone(),
        machine: is_other.then(|| file.machine.clone()),
        deleted: last.seen,
        modified: content.modified,
        bytes: Bytes(content.digest.len),
        version: content.number,
    })
}
