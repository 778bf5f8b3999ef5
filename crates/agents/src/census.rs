//! All sessions on this machine, for a question whose answer decides about originals: what could
//! not be read is part of the answer.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::named;
use epitome_model::{Ref, Source};
use epitome_store::archive::SessionKey;
use epitome_store::place::{self, is_database};
use epitome_store::rows;
use epitome_store::session::writer;
use memchr::memmem;

use crate::environment::Environment;
use crate::find::{all, companions_of};
use crate::session_file::SessionFile;
use crate::unread::Unread;
use crate::{AGENTS, named as agent_named};

/// Where a session says its id.
const HEAD: u64 = 64 << 10;
/// The folder of what Claude Code's sub-agents did, in a folder named like their session.
const PARTS: &str = "subagents";
/// Shorter ids may be found in a session by chance.
const SHORTEST_ID: usize = 8;

/// What is known of the sessions on this machine.
#[derive(Debug, Default)]
pub struct Census {
    /// Files by the agent and the id that their names say.
    by_name: BTreeMap<SessionKey, Vec<PathBuf>>,
    /// Ids that were asked for and are in the first bytes of some file.
    named: HashSet<String>,
    /// What the stubs in all files stand for.
    pub stubs: HashSet<Ref>,
    /// Folders, files and databases that are there and cannot be read.
    pub unread: Vec<Error>,
}

/// Whether a session is at a path.
#[derive(Debug)]
pub enum Presence {
    /// It is.
    There,
    /// It is not, and that can be seen.
    Gone,
    /// It cannot be told.
    Unknown(Error),
}

impl Census {
    /// Looks at all sessions of all agents that are ever written.
    pub fn take(environment: &Environment, wanted: &[SessionKey]) -> Census {
        let mut census = Census::default();
        let found = all(environment, None);
        census.unread.extend(found.unread.into_iter().filter(is_there));
        census.by_name = by_name(found.sessions);
        let mut files: Vec<PathBuf> = census.by_name.values().flatten().cloned().collect();
        // Sub-agents of any session.
        let unread = &mut Unread::default();
        let parts = AGENTS.iter().flat_map(|agent| agent.sub_agent_sessions(environment, unread));
        files.extend(parts.map(|it| it.path));
        files.sort();
        files.dedup();
        let ids: Vec<&str> = wanted
            .iter()
            .filter(|key| !census.by_name.contains_key(*key))
            .map(|key| root_of(&key.id))
            .filter(|id| id.len() >= SHORTEST_ID)
            .collect();
        for file in files {
            let read = read(&file, &ids, &mut census.stubs, &mut census.named);
            census.unread.extend(read.err().filter(is_there));
        }
        census
    }

    /// The files of a session that agents keep under its id.
    pub fn files_of(&self, key: &SessionKey) -> &[PathBuf] {
        self.by_name.get(key).map_or(&[], Vec::as_slice)
    }

    /// Whether a file is known of the session, or of the one that it is a part of.
    pub fn knows(&self, key: &SessionKey) -> bool {
        let root = SessionKey::new(key.agent.clone(), root_of(&key.id));
        self.by_name.contains_key(key)
            || self.by_name.contains_key(&root)
            || self.named.contains(root_of(&key.id))
    }

    /// Whether a session is at an address.
    pub fn presence(&self, address: &Path) -> Presence {
        if let Some((database, id)) = rows::split(address)
            && is_database(&database)
        {
            return in_database(&database, id);
        }
        let unknown = |err, what, path: &Path| Presence::Unknown(Error::reading(err, what, path));
        match fs::metadata(address) {
            Ok(_) => return Presence::There,
            Err(err) if err.kind() != io::ErrorKind::NotFound => {
                return unknown(err, "the file", address);
            }
            Err(_) => {}
        }
        // A folder that is empty may be of a disk that is not there, in an agent's home as well.
        let folder = address.parent().unwrap_or(Path::new(""));
        // What a sub-agent did is in a folder of its session's.
        let of_part = folder.parent().and_then(Path::parent).filter(|_| folder.ends_with(PARTS));
        let folder = of_part.unwrap_or(folder);
        let is_listed =
            |folder: &Path| fs::read_dir(folder).map(|mut entries| entries.next().is_some());
        let is_empty = || io::Error::other("the folder is empty");
        match is_listed(folder) {
            Ok(true) => Presence::Gone,
            Ok(false) => unknown(is_empty(), "the folder", folder),
            // That the folder itself was removed is seen beside what is left.
            Err(err) if err.kind() == io::ErrorKind::NotFound => {
                match folder.parent().map(is_listed) {
                    Some(Ok(true)) => Presence::Gone,
                    Some(_) | None => unknown(err, "the folder", folder),
                }
            }
            Err(err) => unknown(err, "the folder", folder),
        }
    }
}

/// The files that agents keep under the ids of sessions and of what belongs to them.
pub fn places(environment: &Environment) -> BTreeMap<SessionKey, Vec<PathBuf>> {
    by_name(all(environment, None).sessions)
}

fn by_name(sessions: Vec<SessionFile>) -> BTreeMap<SessionKey, Vec<PathBuf>> {
    let mut by_name: BTreeMap<SessionKey, Vec<PathBuf>> = BTreeMap::new();
    for session in sessions {
        // Nothing was ever removed from what is only read.
        if named(session.agent).is_some_and(|format| writer(format).is_err()) {
            continue;
        }
        let Some(agent) = agent_named(session.agent) else { continue };
        for companion in companions_of(Some(agent), &session.path) {
            let id = match rows::split(&companion) {
                Some((_, id)) => id.to_owned(),
                None => agent.part_id(&session.id, &companion),
            };
            let key = SessionKey::new(session.agent, id);
            by_name.entry(key).or_default().push(companion);
        }
        let key = SessionKey::new(session.agent, session.id);
        by_name.entry(key).or_default().push(session.path);
    }
    by_name
}

/// The id of the session that a part belongs to: `ID.agent-…`, `ID.events`.
fn root_of(id: &str) -> &str {
    id.split_once('.').map_or(id, |(root, _)| root)
}

fn in_database(database: &Path, id: &str) -> Presence {
    match rows::sessions(database) {
        Ok((_, sessions)) if sessions.iter().any(|it| it.id == root_of(id)) => Presence::There,
        Ok(_) => Presence::Gone,
        Err(err) => Presence::Unknown(err),
    }
}

/// Whether an error is of something that is there and should have been read.
fn is_there(err: &Error) -> bool {
    !matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotAFile | ErrorKind::UnknownFormat)
}

/// Looks for stubs in a file, and for ids at its beginning.
fn read(
    file: &Path,
    ids: &[&str],
    stubs: &mut HashSet<Ref>,
    named: &mut HashSet<String>,
) -> Result<()> {
    const BEGINNING: &[u8] = b"[epitome k";
    let source = place::open(file)?;
    let bytes = source.read(0..source.len());
    for at in memmem::find_iter(&bytes, BEGINNING) {
        let digits = &bytes[at + BEGINNING.len()..];
        let digits = &digits[..digits.len().min(Ref::DIGITS)];
        stubs.extend(std::str::from_utf8(digits).ok().and_then(|it| it.parse().ok()));
    }
    let head = &bytes[..bytes.len().min(HEAD as usize)];
    let is_here = |id: &&&str| memmem::find(head, id.as_bytes()).is_some();
    named.extend(ids.iter().filter(is_here).map(|id| (*id).to_owned()));
    source.failure().map_or(Ok(()), Err)
}
