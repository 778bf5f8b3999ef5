//! Locks a session and the files that belong to it, and replaces them in one transaction.

use std::path::{Path, PathBuf};

use epitome_formats::find_format;
use epitome_model::{Source as _, Splice};
use tracing::info_span;

use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::place::Place;
use crate::session::{format_of, writer};
use crate::source::{FileSource, Spliced};
use crate::store::{self, Store, User};
use epitome_agents::{self as agents, AgentLock};

use super::open::SessionPart;

/// A file of a session, locked as long as this value exists: against other epitome processes, and
/// against the agent if the agent uses locks.
pub(crate) struct LockedFile {
    /// The address of the file: a path, or `DATABASE#ID`.
    pub path: PathBuf,
    /// Whether the file is a conversation, and not a log that is stored with one in a database.
    pub is_conversation: bool,
    /// The file, locked against other epitome processes.
    pub file: store::LockedSession,
    /// The agent's own lock on the session, if the agent uses such a lock.
    _agent_lock: Option<AgentLock>,
}

/// A locked file and its new content.
pub(crate) struct FileReplacement<'a> {
    pub locked: &'a LockedFile,
    pub content: Spliced<'a>,
    /// Whether bytes that are kept get another offset in the file.
    pub moves: bool,
}

impl LockedFile {
    /// Locks a file of a session. Returns an error if another process uses the file and `force` is
    /// false, if the agent holds its own lock, or if another epitome process has locked the file.
    /// `rows` are the session's rows in a database, if they were read already: when they are
    /// replaced, the database must still contain the same rows.
    pub(crate) fn lock(
        config: &Config,
        part: &SessionPart,
        rows: Option<FileSource>,
        force: bool,
    ) -> Result<LockedFile> {
        let path = part.path.as_path();
        let users = part.users(config);
        if !users.is_empty() && !force {
            return Err(in_use(ErrorKind::InUse, path, &users));
        }
        let agent_lock = agents::lock(&config.agents, path);
        let agent_lock =
            agent_lock.map_err(|users| in_use(ErrorKind::HeldByAgent, path, &users))?;
        let file = Store::new(&config.home).open_place(&part.place, rows)?;
        let is_conversation = part.place.is_conversation();
        Ok(LockedFile { path: path.to_owned(), is_conversation, file, _agent_lock: agent_lock })
    }

    pub(crate) fn source(&self) -> &FileSource {
        self.file.source()
    }

    /// Prepares to apply `splices` to the content of the file; [`replace_all`] writes the new
    /// content. `moves` is whether bytes that are kept get another offset in the file. If it is
    /// true and another session refers to such an offset, an error is returned.
    pub(crate) fn change(&self, splices: Vec<Splice>, moves: bool) -> Result<FileReplacement<'_>> {
        if let (Some(first), true) = (splices.first(), moves) {
            agents::check_places(&self.path, first.span.start)?;
        }
        Ok(FileReplacement { locked: self, content: Spliced::new(self.source(), splices)?, moves })
    }
}

/// Returns an error, before anything is written, if a file is not a session, or if epitome never
/// writes sessions of its format or sessions that are stored in this way.
pub(super) fn check_writable(part: &SessionPart, agent: Option<&str>) -> Result<()> {
    part.place.check_writable()?;
    let format = match (&part.place, agent) {
        (Place::Rows(rows), None) => find_format(rows.agent()),
        (Place::Rows(_), Some(name)) => find_format(name),
        (Place::File(_) | Place::Spread(_), _) => {
            let source = part.open()?;
            agent.map_or_else(|| format_of(&source), find_format)
        }
    };
    match format {
        Some(format) => writer(format).map(drop).map_err(|err| err.at(&part.path)),
        // Reading the file fails, and the error says why.
        None => part.read(agent).map(drop),
    }
}

/// Returns an error if a file cannot be replaced, or if a change from the offset `from` on would
/// move offsets to which another session refers. `None` means that nothing is to be changed.
/// Nothing is written or locked, and processes that use the file are not looked for.
pub(crate) fn check_replaceable(part: &SessionPart, from: Option<u64>) -> Result<()> {
    store::check_replaceable(&part.place)?;
    from.map_or(Ok(()), |from| agents::check_places(&part.path, from))
}

/// Replaces all files. First, all new files are written next to the old ones. If a file cannot be
/// replaced after that, the files that were replaced before it get their old content back. If that
/// fails for some of them, the error names these.
pub(crate) fn replace_all(config: &Config, changes: &[FileReplacement<'_>]) -> Result<()> {
    let mut prepared = Vec::new();
    for change in changes {
        let bytes = change.content.len();
        let _span = info_span!("session.replace", bytes).entered();
        prepared.push((change, change.locked.file.prepare(|out| change.content.copy_to(out))?));
    }
    for (done, (change, prepared)) in prepared.into_iter().enumerate() {
        let path = &change.locked.path;
        // The agent may have stored offsets of the old file, which would be wrong for the new one.
        let forgotten = if change.moves { agents::forget(&config.agents, path) } else { Ok(()) };
        if let Err(err) = forgotten.and_then(|()| prepared.place()) {
            return Err(take_back(&changes[..done], err));
        }
    }
    Ok(())
}

/// Undoes the replacements `done` after the error `why`. Returns `why` or, if a replacement could
/// not be undone, an error that names its file.
fn take_back(done: &[FileReplacement<'_>], why: Error) -> Error {
    let mut left = Vec::new();
    for change in done.iter().rev() {
        if change.locked.file.undo_replace(&change.content).is_err() {
            left.push(change.locked.path.display().to_string());
        }
    }
    if left.is_empty() {
        return why;
    }
    let what = format!(
        "only a part of the session was written, and could not be taken back: {}",
        left.join(", ")
    );
    let hint = "`epitome restore SESSION` restores all of it";
    Error::new(why.kind(), what).because(why).with_hint(hint)
}

fn in_use(kind: ErrorKind, path: &Path, users: &[User]) -> Error {
    let who = users.iter().map(|user| match (user.name.as_str(), user.pid) {
        ("", pid) => format!("process {pid}"),
        // The id is unknown, for example because this user may not inspect the process.
        (name, 0) => name.to_owned(),
        (name, pid) => format!("{name} (process {pid})"),
    });
    let who: Vec<String> = who.collect();
    let what = format!("the session is in use by {}", who.join(", "));
    Error::new(kind, what).at(path)
}
