//! Reads the sessions on this machine that epitome can edit, so that garbage collection can decide
//! whether the removed bytes in the archive are still needed. What could not be read is part of the
//! result.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use aho_corasick::AhoCorasick;
use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::find_format;
use epitome_model::{Ref, Source, Stub};
use epitome_store::archive::SessionKey;
use epitome_store::place::{self, is_database};
use epitome_store::rows;
use epitome_store::session::{key_of, load, writer};
use memchr::memmem;

use crate::environment::Environment;
use crate::find::{all, companions_of};
use crate::session_file::SessionFile;
use crate::unread::UnreadErrors;
use crate::{AGENTS, find_agent};

/// The number of bytes at the beginning of a file that are searched for ids. The id of a session is
/// expected there.
const HEAD: u64 = 64 << 10;
/// The name of the folder with the files of Claude Code's sub-agents. This folder is in a folder
/// that has the name of the session's file, without the extension.
const PARTS: &str = "subagents";
/// A file that mentions an id of at least this many bytes shows that the id's session exists. A
/// shorter id may be in a file by chance.
const SHORTEST_ID: usize = 8;

/// The sessions on this machine that epitome can edit, and the references in their stubs.
#[derive(Debug, Default)]
pub struct Census {
    /// The files of each session, by agent and id. A file is listed under the id in its name. If
    /// its content has the id of a wanted session (see [`take`](Census::take)), it is also listed
    /// under that id: a copy of a session has the same id, but another name.
    by_id: BTreeMap<SessionKey, Vec<PathBuf>>,
    /// The ids of wanted sessions that were found in the first 64 KiB of a file. For a part of a
    /// session (a sub-agent's file, or the log `ID.events` of OpenCode), this is the id of the
    /// whole session.
    named: HashSet<String>,
    /// The references in the stubs of all files that were read.
    pub stubs: HashSet<Ref>,
    /// The errors of folders, files and databases that exist and cannot be read.
    pub unread: Vec<Error>,
}

/// Whether there is a session at a path.
#[derive(Debug)]
pub enum Presence {
    /// There is a session.
    There,
    /// There is no session. For a row: the database was read and has no such session. For a file:
    /// its folder is not empty; or the folder is missing, and the folder above it is not empty.
    Gone,
    /// It is unknown whether there is a session: the database, the file or its folder cannot be
    /// read; or the folder is empty; or the folder is missing, and the folder above it is empty,
    /// missing, or cannot be read.
    Unknown(Error),
}

impl Census {
    /// Reads all sessions of agents whose sessions epitome can write. `wanted` are the sessions of
    /// which removed bytes are in the archive.
    pub fn take(environment: &Environment, wanted: &[SessionKey]) -> Census {
        let mut census = Census::default();
        let found = all(environment, None);
        census.unread.extend(found.unread.into_iter().filter(is_there));
        census.by_id = by_name(found.sessions);
        let mut files: Vec<PathBuf> = census.by_id.values().flatten().cloned().collect();
        // Sessions of sub-agents that `all` leaves out are read, too.
        let unread = &mut UnreadErrors::default();
        let parts = AGENTS.iter().flat_map(|agent| agent.sub_agent_sessions(environment, unread));
        files.extend(parts.map(|it| it.path));
        files.sort();
        files.dedup();
        let wanted_ids = WantedIds::new(wanted);
        for file in files {
            let read = census.read(&file, &wanted_ids);
            census.unread.extend(read.err().filter(is_there));
        }
        census
    }

    /// Collects the references in the stubs of a file, and the wanted ids at its beginning. If
    /// there are such ids, reads the file as a session, because its own id may differ from that in
    /// its name.
    fn read(&mut self, file: &Path, wanted: &WantedIds<'_>) -> Result<()> {
        let beginning = Stub::BEGINNING.as_bytes();
        let source = place::open(file)?;
        let bytes = source.read(0..source.len());
        for at in memmem::find_iter(&bytes, beginning) {
            let digits = &bytes[at + beginning.len()..];
            let digits = &digits[..digits.len().min(Ref::DIGITS)];
            self.stubs.extend(std::str::from_utf8(digits).ok().and_then(|it| it.parse().ok()));
        }
        let found = wanted.find(&bytes[..bytes.len().min(HEAD as usize)]);
        source.failure().map_or(Ok(()), Err)?;
        if found.is_empty() {
            return Ok(());
        }
        self.named.extend(found.iter().map(|id| (*id).to_owned()));
        let key = key_of(&load(file, None)?, file);
        if wanted.keys.contains(&key) {
            let files = self.by_id.entry(key).or_default();
            if !files.iter().any(|known| known == file) {
                files.push(file.to_owned());
            }
        }
        Ok(())
    }

    /// The files of a session, by the id in their names or in their contents.
    pub fn files_of(&self, key: &SessionKey) -> &[PathBuf] {
        self.by_id.get(key).map_or(&[], Vec::as_slice)
    }

    /// Whether a file of the session was found, or, for a part of a session, a file of the whole
    /// session. Also true if a file mentions the id of the whole session in its first 64 KiB,
    /// unless that id is shorter than eight bytes.
    pub fn knows(&self, key: &SessionKey) -> bool {
        let root = SessionKey::new(key.agent.clone(), root_of(&key.id));
        self.by_id.contains_key(key)
            || self.by_id.contains_key(&root)
            || (root_of(&key.id).len() >= SHORTEST_ID && self.named.contains(root_of(&key.id)))
    }

    /// Whether there is a session at an address.
    pub fn presence(&self, address: &Path) -> Presence {
        if let Some((database, id)) = rows::split(address)
            && is_database(&database)
        {
            return in_database(&database, id);
        }
        match fs::metadata(address) {
            Ok(_) => return Presence::There,
            Err(err) if err.kind() != io::ErrorKind::NotFound => {
                return Presence::Unknown(Error::reading(err, "the file", address));
            }
            Err(_) => {}
        }
        // That a folder is empty does not show that the file was removed: the folder may be the
        // mount point of a missing disk, even in an agent's home.
        let folder = address.parent().unwrap_or(Path::new(""));
        // A sub-agent's file is in `<session>/subagents`, which is removed with the session. The
        // folder that contains the session's file is examined instead.
        let of_part = folder.parent().and_then(Path::parent).filter(|_| folder.ends_with(PARTS));
        let folder = of_part.unwrap_or(folder);
        match has_entries(folder) {
            Ok(true) => Presence::Gone,
            Ok(false) => {
                let err = io::Error::other("the folder is empty");
                Presence::Unknown(Error::reading(err, "the folder", folder))
            }
            // The folder is missing. If its parent has entries, the folder was removed.
            Err(err) if err.kind() == io::ErrorKind::NotFound => {
                match folder.parent().map(has_entries) {
                    Some(Ok(true)) => Presence::Gone,
                    Some(_) | None => Presence::Unknown(Error::reading(err, "the folder", folder)),
                }
            }
            Err(err) => Presence::Unknown(Error::reading(err, "the folder", folder)),
        }
    }
}

fn has_entries(folder: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(folder)?.next().is_some())
}

/// The files of all sessions, and the files and rows that belong to them, by agent and id. Sessions
/// of read-only formats are left out.
pub fn places(environment: &Environment) -> BTreeMap<SessionKey, Vec<PathBuf>> {
    by_name(all(environment, None).sessions)
}

fn by_name(sessions: Vec<SessionFile>) -> BTreeMap<SessionKey, Vec<PathBuf>> {
    let mut by_name: BTreeMap<SessionKey, Vec<PathBuf>> = BTreeMap::new();
    for session in sessions {
        // Nothing was ever removed from sessions of a read-only format.
        if find_format(session.agent).is_some_and(|format| writer(format).is_err()) {
            continue;
        }
        let Some(agent) = find_agent(session.agent) else { continue };
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

/// The sessions for which the archive holds removed bytes, and an automaton that finds their ids.
struct WantedIds<'k> {
    keys: &'k [SessionKey],
    ids: Vec<&'k str>,
    automaton: Option<AhoCorasick>,
}

impl<'k> WantedIds<'k> {
    fn new(keys: &'k [SessionKey]) -> WantedIds<'k> {
        let mut ids: Vec<&str> = keys.iter().map(|key| root_of(&key.id)).collect();
        ids.retain(|id| !id.is_empty());
        ids.sort_unstable();
        ids.dedup();
        // If there are too many ids for one automaton, each id is searched for separately.
        let automaton = AhoCorasick::new(&ids).ok();
        WantedIds { keys, ids, automaton }
    }

    /// The wanted ids that occur in `bytes`, each once.
    fn find(&self, bytes: &[u8]) -> Vec<&'k str> {
        let mut found: Vec<&str> = match &self.automaton {
            Some(automaton) => automaton
                .find_overlapping_iter(bytes)
                .map(|it| self.ids[it.pattern().as_usize()])
                .collect(),
            None => {
                let ids = self.ids.iter().copied();
                ids.filter(|id| memmem::find(bytes, id.as_bytes()).is_some()).collect()
            }
        };
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The id of the session that a part belongs to, for ids like `ID.agent-…` and `ID.events`.
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

/// Whether an error hides a possible session. False if the file is missing, is not a regular file,
/// or has no known format.
fn is_there(err: &Error) -> bool {
    !matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotAFile | ErrorKind::UnknownFormat)
}
