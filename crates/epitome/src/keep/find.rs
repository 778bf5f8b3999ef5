//! Finds a session in the vault, whether or not it still exists.

use std::path::Path;

use epitome_agents::{self as agents, SessionMatch, find_agent};

use super::moved::moved_to;
use super::{FileKey, Vault};
use crate::config::Config;
use crate::place::Place;

/// The result of looking a session up in the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaultMatch {
    /// The session, or a file that belongs to one.
    Session(FileKey),
    /// The text may mean any of these sessions.
    AnyOf(Vec<FileKey>),
    /// The vault has no such session.
    Nothing,
}

/// The kept session that a user means by a path, an id, or the prefix of an id.
///
/// The session that an agent lists under the text has precedence. Then come kept sessions with this
/// path or id, deleted or not, and then files that belong to a session. If a session was kept at
/// several paths, a path on this machine has precedence over one on another machine, then a path
/// whose last version is not a deletion over one whose last version is, and then the path that was
/// changed last.
pub fn find(config: &Config, vault: &Vault, text: &str, agent: Option<&str>) -> VaultMatch {
    // A blank text, for example an unset variable, means no session, although every id begins with
    // the empty text.
    if text.trim().is_empty() {
        return VaultMatch::Nothing;
    }
    let all = vault.files().filter(|file| agent.is_none_or(|agent| agent == file.agent));
    let all: Vec<&FileKey> = all.collect();
    if let SessionMatch::File(path) = agents::find_session(&config.agents, text, agent) {
        let real = real(&path);
        let at = all.iter().filter(|file| file.path == path || self::real(&file.path) == real);
        let at = newest_places(vault, at.copied().collect());
        if !at.is_empty() {
            return choice(at);
        }
    }
    let path = std::path::absolute(text).unwrap_or_default();
    let at = newest_places(vault, all.iter().copied().filter(|it| it.path == path).collect());
    if !at.is_empty() {
        return choice(at);
    }
    // If the home folder was moved, the session may have been kept only at its old path.
    let is_moved_to = |file: &&FileKey| moved_to(config, vault, file).as_ref() == Some(&path);
    let at = newest_places(vault, all.iter().copied().filter(is_moved_to).collect());
    if !at.is_empty() {
        return choice(at);
    }
    let is_meant = |file: &FileKey| {
        let by_id = find_agent(&file.agent).is_some_and(|it| it.matches(&file.session, text));
        by_id || file.session.starts_with(text)
    };
    let sessions = all.iter().filter(|file| file.part.is_none() && is_meant(file));
    let mut found: Vec<&FileKey> = sessions.copied().collect();
    if found.is_empty() {
        let parts = all
            .iter()
            .filter(|file| file.part.as_deref().is_some_and(|part| part.starts_with(text)));
        found = parts.copied().collect();
    }
    if found.iter().any(|file| file.session == text) {
        found.retain(|file| file.session == text);
    }
    choice(newest_places(vault, found))
}

fn choice(mut found: Vec<FileKey>) -> VaultMatch {
    match found.len() {
        0 => VaultMatch::Nothing,
        1 => VaultMatch::Session(found.swap_remove(0)),
        _ => VaultMatch::AnyOf(found),
    }
}

/// Of the kept files of each session in `found`, the one that [`find`] prefers.
fn newest_places(vault: &Vault, found: Vec<&FileKey>) -> Vec<FileKey> {
    let rank = |file: &FileKey| {
        let last = vault.versions(file).next_back();
        let exists = last.is_some_and(|last| !last.is_deleted());
        (file.machine == vault.machine(), exists, last.map(|last| last.seen))
    };
    let mut newest: Vec<FileKey> = Vec::new();
    for file in found {
        let same = newest.iter().position(|it| {
            (&it.agent, &it.session, &it.part) == (&file.agent, &file.session, &file.part)
        });
        match same {
            Some(at) if rank(file) > rank(&newest[at]) => newest[at] = file.clone(),
            Some(_) => {}
            None => newest.push(file.clone()),
        }
    }
    newest
}

fn real(path: &Path) -> std::path::PathBuf {
    Place::parse(path).real().unwrap_or_else(|_| path.to_owned())
}
