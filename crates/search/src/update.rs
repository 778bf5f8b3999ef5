//! Updates the index from the sessions.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use epitome::agents::SessionFile;
use epitome::history::archive_stamp;
use epitome::redact::rules;
use epitome::render::{RenderOptions, RenderSource};
use epitome::{Config, ErrorKind};
use epitome_model::Role;
use epitome_redact::Finder;
use epitome_render::{Detail, SessionText, Story, session_texts};
use rayon::prelude::*;
use rusqlite::types::Value;
use rusqlite::{Connection, named_params, params, params_from_iter};

use super::conditions::spaced;
use super::index::Index;
use super::tables::{self, IndexedSession, MessagePlace};
use super::{REDACTED, Result, Search, SearchError, terms, text};

/// The memory that an update may use: KiB for pages of the database, and bytes for words that are
/// not yet written to it.
const PAGES: u32 = 64 << 10;
const WORDS: u32 = 32 << 20;
/// The number of messages that are prepared on one thread and then written together.
const BATCH: usize = 64;
/// The number of sessions that are read in parallel, and the size in bytes from which on they are
/// read one at a time.
const READERS: usize = 4;
const LARGE: u64 = 32 << 20;
/// A transaction is committed after this many bytes of sessions, or after this many sessions, so
/// that searches find the sessions that were indexed so far.
const STEP: (u64, usize) = (128 << 20, 2_000);

/// The progress of an update, in sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of sessions that are done.
    pub done: usize,
    /// Number of all sessions that the update reads.
    pub of: usize,
}

/// The result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// The index is up to date.
    Done(UpdateCounts),
    /// Another process or thread is updating the index. Until it has finished, new messages may not
    /// be found.
    Elsewhere,
}

/// The counts of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpdateCounts {
    /// Number of sessions that are new or changed, including sessions that could not be read.
    pub sessions: usize,
    /// Number of messages that were added.
    pub written: usize,
    /// Number of sessions that were removed from the index.
    pub gone: usize,
    /// Number of sessions that could not be read.
    pub unreadable: usize,
}

impl Search {
    /// Makes the index contain these sessions and no others, so all sessions of the scope must be
    /// passed. Reads only sessions that are new or changed, and calls `tell` after each of them, on
    /// any thread.
    ///
    /// # Errors
    ///
    /// `Damaged` if the index is found to be damaged during the update, and an empty one has
    /// replaced it; after any other error, what was committed before stays. `Rules` or `Library` if
    /// the user's rules are invalid. Otherwise the errors of [`find`](Search::find).
    pub fn update(
        &self,
        files: &[SessionFile],
        tell: &(dyn Fn(Progress) + Sync),
    ) -> Result<Update> {
        // If the index was damaged, it was replaced by an empty one, and everything is indexed
        // again.
        let looked = match self.read(|connection| stale(&self.config, connection, files)) {
            Err(SearchError::Damaged) => {
                self.read(|connection| stale(&self.config, connection, files))
            }
            looked => looked,
        };
        if looked?.is_empty() {
            return Ok(Update::Done(UpdateCounts::default()));
        }
        let rules = rules(&self.config, &[])?.only(&REDACTED).map_err(SearchError::Rules)?;
        let finder = Finder::new(rules).map_err(SearchError::Rules)?;
        let Some(lock) = self.place.lock()? else { return Ok(Update::Elsewhere) };
        let index = self.place.index()?;
        let written = match &index {
            Some(index) => self.write(index, files, &finder, tell),
            None => Err(SearchError::Damaged),
        };
        self.of.store(0, Ordering::Relaxed);
        drop(lock);
        match written {
            Err(SearchError::Damaged) => self.delete(index.as_ref()),
            written => written.map(Update::Done),
        }
    }

    fn write(
        &self,
        index: &Index,
        files: &[SessionFile],
        finder: &Finder,
        tell: &(dyn Fn(Progress) + Sync),
    ) -> Result<UpdateCounts> {
        let connection = index.open()?;
        connection.execute_batch(&format!("PRAGMA cache_size = -{PAGES}"))?;
        let sql = "INSERT INTO words (words, rank) VALUES ('hashsize', ?)";
        connection.execute(sql, [WORDS])?;
        // Another process may have done a part of the update since the first comparison.
        let Stale { changed, gone } = stale(&self.config, &connection, files)?;
        self.done.store(0, Ordering::Relaxed);
        self.of.store(changed.len(), Ordering::Relaxed);
        index.unseal()?;
        let work = Work {
            search: self,
            connection: Mutex::new(connection),
            finder,
            tell,
            of: changed.len(),
            large: Mutex::new(()),
            written: AtomicUsize::new(0),
            unreadable: AtomicUsize::new(0),
        };
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(READERS));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|err| SearchError::Folder(std::io::Error::other(err)))?;
        work.connection().execute_batch("BEGIN IMMEDIATE")?;
        gone.iter().try_for_each(|session| delete_session(&work.connection(), *session))?;
        for step in steps(&changed) {
            pool.install(|| step.par_iter().try_for_each(|file| work.update_session(file)))?;
            work.connection().execute_batch("COMMIT; BEGIN IMMEDIATE")?;
        }
        work.connection().execute_batch("COMMIT")?;
        index.seal(work.connection.into_inner().unwrap_or_else(PoisonError::into_inner))?;
        Ok(UpdateCounts {
            sessions: changed.len(),
            written: work.written.into_inner(),
            gone: gone.len(),
            unreadable: work.unreadable.into_inner(),
        })
    }
}

/// The differences between an index and the sessions.
struct Stale<'a> {
    changed: Vec<&'a SessionFile>,
    gone: Vec<i64>,
}

impl Stale<'_> {
    fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }
}

/// The length of a session, its modification time in nanoseconds since 1970, and the state of its
/// packs in the archive. A session whose stamp is the one in the index counts as unchanged.
type Stamp = (i64, i64, i64);

/// The stamp of a session. `id` is the id by which the session's packs in the archive are found.
fn stamp(config: &Config, file: &SessionFile, id: &str) -> Stamp {
    let since = file.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let size = i64::try_from(file.size.0).unwrap_or(i64::MAX);
    let modified = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
    (size, modified, archive_stamp(config, file.agent, id).cast_signed())
}

/// Compares an index with the sessions.
fn stale<'a>(
    config: &Config,
    connection: &Connection,
    files: &'a [SessionFile],
) -> rusqlite::Result<Stale<'a>> {
    let mut known = connection.prepare("SELECT key, size, modified, archive, id FROM sessions")?;
    let known = known.query_map([], |row| {
        let stamp = (row.get(1)?, row.get(2)?, row.get(3)?);
        Ok((row.get(0)?, (stamp, row.get(4)?)))
    })?;
    let known: HashMap<i64, (Stamp, String)> = known.collect::<rusqlite::Result<_>>()?;
    let mut seen = HashSet::with_capacity(files.len());
    let mut changed = Vec::new();
    for file in files {
        let key = tables::path(&file.path);
        seen.insert(key);
        let known = known.get(&key);
        if known.is_none_or(|(known, id)| *known != stamp(config, file, id)) {
            changed.push(file);
        }
    }
    // The newest first, because users most often search these.
    changed.sort_by_key(|file| std::cmp::Reverse(file.modified));
    let gone = known.into_keys().filter(|key| !seen.contains(key)).collect();
    Ok(Stale { changed, gone })
}

/// Splits the sessions into steps, each of which is committed.
fn steps<'f, 'a>(files: &'f [&'a SessionFile]) -> Vec<&'f [&'a SessionFile]> {
    let mut steps = Vec::new();
    let mut start = 0;
    let mut bytes = 0;
    for (idx, file) in files.iter().enumerate() {
        bytes += file.size.0;
        if bytes >= STEP.0 || idx + 1 - start >= STEP.1 || idx + 1 == files.len() {
            steps.push(&files[start..=idx]);
            start = idx + 1;
            bytes = 0;
        }
    }
    steps
}

/// An update in progress.
struct Work<'a> {
    search: &'a Search,
    connection: Mutex<Connection>,
    finder: &'a Finder,
    tell: &'a (dyn Fn(Progress) + Sync),
    of: usize,
    large: Mutex<()>,
    written: AtomicUsize,
    unreadable: AtomicUsize,
}

impl Work<'_> {
    /// Brings one session up to date in the index. If it cannot be read, its indexed messages stay.
    fn update_session(&self, file: &SessionFile) -> rusqlite::Result<()> {
        let alone = (file.size.0 >= LARGE)
            .then(|| self.large.lock().unwrap_or_else(PoisonError::into_inner));
        match self.read(file) {
            Some(read) => self.put(file, &read)?,
            None => drop(self.unreadable.fetch_add(1, Ordering::Relaxed)),
        }
        drop(alone);
        let done = self.search.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.tell)(Progress { done, of: self.of });
        Ok(())
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the messages of a session. A file that is not a session has no messages. Returns
    /// `None` if the session cannot be read at the moment, or if its path is not UTF-8.
    fn read(&self, file: &SessionFile) -> Option<SessionContent> {
        let path = file.path.to_str()?;
        let stamp = stamp(&self.search.config, file, &file.id);
        let indexed = |id: &str, project: Option<&str>, title: String| IndexedSession {
            path: path.to_owned(),
            agent: file.agent.to_owned(),
            id: id.to_owned(),
            project: project.map(str::to_owned),
            title,
        };
        let reading = match RenderSource::open(&self.search.config, &file.path, Some(file.agent)) {
            Ok(reading) => reading,
            Err(err) if err.kind() == ErrorKind::UnknownFormat => {
                let indexed = indexed(&file.id, None, String::new());
                let folders = Vec::new();
                let messages = Vec::new();
                return Some(SessionContent { stamp, indexed, folders, messages });
            }
            Err(_) => return None,
        };
        // The folders are stored as hashes; their names are stored only in redacted text.
        let cwd = reading.session.history.session.transcript.head.cwd.as_deref().map(Path::new);
        let folders: Vec<i64> =
            cwd.into_iter().flat_map(Path::ancestors).map(tables::path).collect();
        let archive = self.search.config.archive();
        let how = RenderOptions {
            detail: Detail::Steps,
            redact: Some(self.finder),
            compact: None,
            archive: &archive,
            prices: None,
        };
        let content = reading.with_stories(
            &how,
            |_| String::new(),
            |stories| {
                let head = &stories[0].session.transcript.head;
                let id = head.id.as_deref().unwrap_or(&file.id);
                // The id in the session may differ from the id in the file's name. The session's
                // packs in the archive are found by the former, which is known only after reading.
                let archive = archive_stamp(&self.search.config, file.agent, id).cast_signed();
                let stamp = if id == file.id { stamp } else { (stamp.0, stamp.1, archive) };
                let indexed = indexed(id, head.cwd.as_deref(), stories[0].title());
                let messages = stories
                    .iter()
                    .enumerate()
                    .flat_map(|(number, story)| messages_of(story, number))
                    .collect();
                SessionContent { stamp, indexed, folders: folders.clone(), messages }
            },
        );
        match (content, reading.failure()) {
            (Ok((content, _)), None) => Some(content),
            (Ok(_), Some(_)) | (Err(_), _) => None,
        }
    }

    /// Writes the new messages of a session, and deletes messages that the session no longer has.
    fn put(&self, file: &SessionFile, read: &SessionContent) -> rusqlite::Result<()> {
        let session = tables::path(&file.path);
        let mut old = messages(&self.connection(), session)?;
        let new = read
            .messages
            .iter()
            .filter(|(place, text)| old.get_mut(&place.hash(text)).and_then(Vec::pop).is_none());
        let new: Vec<&(MessagePlace, String)> = new.collect();
        let gone: Vec<i64> = old.into_values().flatten().collect();
        delete_messages(&self.connection(), &gone)?;
        for batch in new.chunks(BATCH) {
            let batch: Vec<StoredMessage<'_>> =
                batch.iter().map(|(place, text)| StoredMessage::new(place, text)).collect();
            insert(&self.connection(), session, &batch)?;
        }
        self.written.fetch_add(new.len(), Ordering::Relaxed);
        insert_session(&self.connection(), session, read.stamp, read)
    }
}

/// The indexed messages of a session: the numbers of the messages with each hash.
fn messages(connection: &Connection, session: i64) -> rusqlite::Result<HashMap<i64, Vec<i64>>> {
    let sql = "SELECT hash, number FROM messages WHERE session = ? ORDER BY number DESC";
    let mut stored = connection.prepare(sql)?;
    let rows = stored.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut found: HashMap<i64, Vec<i64>> = HashMap::new();
    for row in rows {
        let (hash, number) = row?;
        found.entry(hash).or_default().push(number);
    }
    Ok(found)
}

/// A message in the form in which it is stored.
struct StoredMessage<'a> {
    place: &'a MessagePlace,
    hash: i64,
    words: String,
    text: Value,
}

impl<'a> StoredMessage<'a> {
    fn new(place: &'a MessagePlace, text: &str) -> StoredMessage<'a> {
        let words = terms::normalized(text);
        let hash = place.hash(text);
        StoredMessage { place, hash, words, text: text::stored(text) }
    }
}

fn insert(
    connection: &Connection,
    session: i64,
    batch: &[StoredMessage<'_>],
) -> rusqlite::Result<()> {
    let columns = MessagePlace::COLUMNS;
    let mut message = connection.prepare(&format!(
        "INSERT INTO messages ({columns}, session, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    ))?;
    let mut indexed = connection.prepare("INSERT INTO words (rowid, text) VALUES (?, ?)")?;
    let mut stored = connection.prepare("INSERT INTO texts (message, text) VALUES (?, ?)")?;
    for StoredMessage { place, hash, words, text } in batch {
        let own = [session.into(), (*hash).into()];
        let number = message.insert(params_from_iter(place.values().into_iter().chain(own)))?;
        indexed.execute(params![number, words])?;
        stored.execute(params![number, text])?;
    }
    Ok(())
}

fn insert_session(
    connection: &Connection,
    session: i64,
    (size, modified, archive): Stamp,
    read: &SessionContent,
) -> rusqlite::Result<()> {
    let IndexedSession { path, agent, id, project, title } = &read.indexed;
    connection.execute(
        "INSERT OR REPLACE INTO sessions VALUES (:key, :path, :size, :modified, :archive, :agent,
             :id, :id_lower, :project, :project_words, :title)",
        named_params! {
            ":key": session,
            ":path": path,
            ":size": size,
            ":modified": modified,
            ":archive": archive,
            ":agent": agent,
            ":id": id,
            ":id_lower": id.to_lowercase(),
            ":project": project,
            ":project_words": project.as_deref().map(|it| spaced(&terms::normalized(it))),
            ":title": title,
        },
    )?;
    connection.execute("DELETE FROM folders WHERE session = ?", [session])?;
    let mut insert = connection.prepare("INSERT OR IGNORE INTO folders VALUES (?, ?)")?;
    read.folders.iter().try_for_each(|folder| insert.execute([session, *folder]).map(drop))
}

/// Deletes messages by their numbers.
fn delete_messages(connection: &Connection, messages: &[i64]) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM messages WHERE number = ?",
        "DELETE FROM words WHERE rowid = ?",
        "DELETE FROM texts WHERE message = ?",
    ] {
        let mut delete = connection.prepare(sql)?;
        messages.iter().try_for_each(|message| delete.execute([message]).map(drop))?;
    }
    Ok(())
}

/// Deletes a session with its messages.
fn delete_session(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    let messages: Vec<i64> = messages(connection, session)?.into_values().flatten().collect();
    delete_messages(connection, &messages)?;
    connection.execute("DELETE FROM folders WHERE session = ?", [session])?;
    connection.execute("DELETE FROM sessions WHERE key = ?", [session]).map(drop)
}

/// What the index contains of a session.
struct SessionContent {
    /// The stamp. Length and time were taken before the session was read.
    stamp: Stamp,
    indexed: IndexedSession,
    /// The hashes of the folder in which the session was run, and of the folders above it.
    folders: Vec<i64>,
    messages: Vec<(MessagePlace, String)>,
}

/// The messages of one story. The story with number 0 is the session itself; the other stories are
/// its sub-agents.
fn messages_of(story: &Story<'_>, number: usize) -> impl Iterator<Item = (MessagePlace, String)> {
    session_texts(story).map(move |said| {
        let SessionText { anchor, item, turn, role, kind, time, is_unsent, text } = said;
        let role = match role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::System => "system",
        };
        let role = role.to_owned();
        let kind = kind.name().to_owned();
        let sub_agent = number.checked_sub(1);
        let archived = is_unsent;
        (MessagePlace { role, kind, sub_agent, anchor, item, turn, time, archived }, text)
    })
}
