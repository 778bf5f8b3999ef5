//! Finds all sessions on this machine, the session that a user means, and the files that belong to
//! a session.
//!
//! Of a session in a file of its own, this module reads at most the beginning.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use epitome_error::{Error, Result};
use epitome_formats::{Format, sniff};
use epitome_store::archive::Generation;
use epitome_store::compressed;
use epitome_store::place::{self, Place, is_database};
use epitome_store::regular;
use epitome_store::rows;
use epitome_store::session::{HEADS, format_of};
use epitome_store::source::FileSource;
use epitome_store::store::{User, users_of};

use crate::agent::{Agent, AgentLock, HookTarget, Resume};
use crate::environment::Environment;
use crate::session_file::SessionFile;
use crate::unread::UnreadErrors;
use crate::{AGENTS, find_agent};

/// The result of looking a session up by a text that the user typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionMatch {
    /// The session at this address. Whether there is a session at the address is not checked.
    File(PathBuf),
    /// Several sessions, each of which the text may mean.
    AnyOf(Vec<SessionFile>),
    /// No session.
    Nothing,
}

/// The sessions that were found.
#[derive(Debug, Default)]
pub struct FoundSessions {
    /// The sessions, ordered by path.
    pub sessions: Vec<SessionFile>,
    /// Errors, with paths, of the agents' folders, files and databases that could not be read and
    /// may hold more sessions.
    pub unread: Vec<Error>,
}

/// The sessions of all agents on this machine, or of one agent, ordered by path. Errors are
/// ignored: [`all`] reports them.
pub fn sessions(environment: &Environment, agent: Option<&str>) -> Vec<SessionFile> {
    all(environment, agent).sessions
}

/// The sessions of all agents on this machine, or of one agent, and the errors of what could not be
/// read.
pub fn all(environment: &Environment, agent: Option<&str>) -> FoundSessions {
    let mut unread = UnreadErrors::default();
    let mut sessions: Vec<SessionFile> =
        chosen(agent).flat_map(|agent| agent.sessions(environment, &mut unread)).collect();
    sessions.sort_by(|one, other| one.path.cmp(&other.path));
    FoundSessions { sessions, unread: unread.into_errors() }
}

/// For each agent, a folder in or below which it keeps sessions, whether or not the folder exists.
pub fn folders(environment: &Environment) -> Vec<PathBuf> {
    AGENTS.iter().map(|agent| agent.folder(environment)).collect()
}

/// The session that a user means by a path, by `DATABASE#ID`, by an id or its beginning, or by the
/// beginning of a file's name.
pub fn find_session(environment: &Environment, text: &str, agent: Option<&str>) -> SessionMatch {
    // An empty text, such as the value of an unset variable, would match every id.
    if text.trim().is_empty() {
        return SessionMatch::Nothing;
    }
    let path = Path::new(text);
    if is_database(path) {
        return in_named_database(path, "");
    }
    if let Some((database, name)) = rows::split(path)
        && !path.exists()
        && is_database(&database)
    {
        let is_there = matches!(Place::parse(path), Place::Rows(_));
        return if is_there {
            SessionMatch::File(path.to_owned())
        } else {
            in_named_database(&database, name)
        };
    }
    if path.exists()
        || path.components().count() > 1
        || text.ends_with(".jsonl")
        || text.ends_with(".jsonl.zst")
        || text.ends_with(".json")
    {
        return SessionMatch::File(path.to_owned());
    }
    let is_meant = |file: &SessionFile| {
        let by_id = find_agent(file.agent).is_some_and(|agent| agent.matches(&file.id, text));
        by_id || file.stem().starts_with(text)
    };
    let mut found: Vec<SessionFile> =
        sessions(environment, agent).into_iter().filter(is_meant).collect();
    if found.is_empty() {
        let unread = &mut UnreadErrors::default();
        let parts = chosen(agent).flat_map(|it| it.sub_agent_sessions(environment, unread));
        found.extend(parts.filter(is_meant));
    }
    if let Some(exact) = found.iter().position(|file| file.id == text || file.stem() == text) {
        // If several sessions have this id, the user must give a path.
        if found.iter().filter(|file| file.id == text).count() < 2 {
            return SessionMatch::File(found.swap_remove(exact).path);
        }
        found.retain(|file| file.id == text);
    }
    match found.len() {
        0 => SessionMatch::Nothing,
        1 => SessionMatch::File(found.swap_remove(0).path),
        _ => SessionMatch::AnyOf(found),
    }
}

/// The existing files that may contain the session of a generation: the file that the generation
/// records; the files of the agent's sessions with the same id; and, if the generation is of a part
/// of a session, the files of the sub-agents of that session.
pub fn files_of(environment: &Environment, generation: &Generation) -> Vec<PathBuf> {
    let mut found = vec![generation.path.clone()];
    let (id, part) = generation.session.split_once('.').unwrap_or((&generation.session, ""));
    let whole = generation.part_of.as_ref().map(|key| &*key.id);
    for session in sessions(environment, Some(&generation.agent)) {
        if session.id == generation.session {
            found.push(session.path);
        } else if Some(&*session.id) == whole {
            found.extend(companions_of(find_agent(session.agent), &session.path));
        } else if session.id == id {
            let companions = companions_of(find_agent(session.agent), &session.path).into_iter();
            found.extend(companions.filter(|path| path.to_string_lossy().contains(part)));
        }
    }
    found.retain(|path| place::exists(path));
    found
}

/// The files and rows that belong to a session, without the session's own file or row: those of its
/// sub-agents, and other rows that a database keeps for the session. Errors are ignored.
pub fn companions(session: &Path) -> Vec<PathBuf> {
    of_place(&Place::parse(session), session, &mut UnreadErrors::default())
}

/// Like [`companions`], for a session whose [`Place`] was parsed before; errors are returned.
///
/// # Errors
///
/// The first error, such as `NoPermission` or `Unreadable`, if a folder or file that may belong to
/// the session cannot be read.
pub fn companions_at(place: &Place, session: &Path) -> Result<Vec<PathBuf>> {
    let mut unread = UnreadErrors::default();
    let found = of_place(place, session, &mut unread);
    match unread.into_errors().into_iter().next() {
        Some(err) => Err(err),
        None => Ok(found),
    }
}

fn of_place(place: &Place, session: &Path, unread: &mut UnreadErrors) -> Vec<PathBuf> {
    match place {
        Place::Rows(rows) => rows.companions(),
        Place::Spread(spread) => spread.companions(),
        Place::File(_) => match format_at(session) {
            Some(format) => find_agent(format.name)
                .map(|agent| agent.sub_agents(session, unread))
                .unwrap_or_default(),
            // The file is damaged or missing, so its agent is unknown. Files of its sub-agents may
            // still exist: each agent looks for files with the names that it gives them.
            None => AGENTS.iter().flat_map(|agent| agent.sub_agents(session, unread)).collect(),
        },
    }
}

/// Like [`companions`], for a session that `agent` wrote. Empty if `agent` is `None` and the
/// session is one file.
pub fn companions_of(agent: Option<&dyn Agent>, session: &Path) -> Vec<PathBuf> {
    match Place::parse(session) {
        Place::Rows(rows) => rows.companions(),
        Place::Spread(spread) => spread.companions(),
        Place::File(_) => agent
            .map(|agent| agent.sub_agents(session, &mut UnreadErrors::default()))
            .unwrap_or_default(),
    }
}

/// The agent that wrote a session file, recognised by the file's first bytes. `None` if they have
/// no known format, or if the file cannot be read.
pub fn agent_of(session: &Path) -> Option<&'static dyn Agent> {
    find_agent(format_at(session)?.name)
}

/// The format of a file; `None` if it cannot be read or is of no known format. Of a compressed file
/// only the beginning is decompressed.
fn format_at(session: &Path) -> Option<&'static Format> {
    let source = FileSource::open(session).ok()?;
    if !compressed::is_compressed(&source).ok()? {
        return format_of(&source);
    }
    HEADS.iter().find_map(|&length| {
        let mut head = Vec::new();
        let file = regular::open(session).ok()?;
        zstd::Decoder::new(file).ok()?.take(length).read_to_end(&mut head).ok()?;
        sniff(&head)
    })
}

/// The sessions of the sub-agents that belong to a session.
pub fn sub_agents(session: &Path) -> Vec<PathBuf> {
    let mut found = companions(session);
    if let Place::Rows(_) = Place::parse(session) {
        found.retain(|path| match Place::parse(path) {
            Place::Rows(rows) => rows.is_conversation(),
            Place::File(_) | Place::Spread(_) => false,
        });
    }
    found
}

/// The agents that can resume sessions which other programs wrote, and how.
pub fn resumable_agents() -> impl Iterator<Item = (&'static dyn Agent, Resume)> {
    AGENTS.iter().filter_map(|agent| Some((*agent, agent.resume()?)))
}

/// The agents with a hook for the end of a session, and that hook.
pub fn agents_with_hooks() -> impl Iterator<Item = (&'static dyn Agent, HookTarget)> {
    AGENTS.iter().filter_map(|agent| Some((*agent, agent.hook()?)))
}

/// The processes that use a session: those that have its file open, and those that use it according
/// to an agent's own files or locks.
///
/// Rows of a database have no users: the database has its own locks.
pub fn users(environment: &Environment, session: &Path) -> Vec<User> {
    users_at(environment, &Place::parse(session), session)
}

/// Like [`users`], for a session whose [`Place`] was parsed before.
pub fn users_at(environment: &Environment, place: &Place, session: &Path) -> Vec<User> {
    if let Place::Rows(_) = place {
        return Vec::new();
    }
    let mut users = users_of(session);
    // Each agent ignores sessions that are not in its folder.
    users.extend(AGENTS.iter().flat_map(|agent| agent.users(environment, session)));
    users.sort();
    users.dedup_by_key(|user| user.pid);
    users
}

/// Deletes the offsets into a session's file that the session's agent has stored. They would be
/// wrong after the file is replaced, and the agent computes them again.
///
/// # Errors
///
/// `Disk` when the agent's store cannot be written.
pub fn forget(environment: &Environment, session: &Path) -> Result<()> {
    AGENTS.iter().try_for_each(|agent| agent.forget(environment, session))
}

/// Returns an error if a change of a session from byte `from` on would move offsets to which
/// another session refers.
///
/// # Errors
///
/// `Refused`, with a message that names the other session. `NoPermission` or `Unreadable` if it
/// cannot be found out whether there is one.
pub fn check_places(session: &Path, from: u64) -> Result<()> {
    agent_of(session).map_or(Ok(()), |agent| agent.check_places(session, from))
}

/// Takes the agent's own lock against other writers of a session; `None` if there is no lock that
/// can be taken. The agent does not open the session until the lock is dropped.
///
/// # Errors
///
/// The processes that hold the lock.
pub fn lock(
    environment: &Environment,
    session: &Path,
) -> std::result::Result<Option<AgentLock>, Vec<User>> {
    for agent in AGENTS {
        if let Some(lock) = agent.lock(environment, session)? {
            return Ok(Some(lock));
        }
    }
    Ok(None)
}

/// The agent with this name, or all agents if `agent` is `None`.
fn chosen(agent: Option<&str>) -> impl Iterator<Item = &'static dyn Agent> {
    AGENTS.iter().copied().filter(move |it| agent.is_none_or(|agent| agent == it.name()))
}

/// The session in a database that a user means by `text`: an id, the beginning of one, or an empty
/// text.
fn in_named_database(database: &Path, text: &str) -> SessionMatch {
    let mut found = SessionFile::of_database(database, &mut UnreadErrors::default());
    // An empty text means any session without a parent. An id, or the beginning of one, may also
    // mean a sub-agent's session.
    found.retain(
        |(parent, it)| {
            if text.is_empty() { parent.is_none() } else { it.id.starts_with(text) }
        },
    );
    let mut found: Vec<SessionFile> = found.into_iter().map(|(_, session)| session).collect();
    match found.len() {
        // The caller opens the database, and then reports that it contains no session.
        0 if text.is_empty() => SessionMatch::File(database.to_owned()),
        0 => SessionMatch::Nothing,
        1 => SessionMatch::File(found.swap_remove(0).path),
        _ => SessionMatch::AnyOf(found),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Writes a session, and next to it files with the names that Claude Code and Gemini CLI give
    /// to the files of sub-agents. Returns those that belong to the session, relative to its
    /// folder.
    fn found(name: &str, bytes: &[u8]) -> Vec<String> {
        let dir = tempfile::tempdir().expect("a folder");
        let put = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(&path, bytes).expect("a file");
            path
        };
        let session = put(&format!("{name}.jsonl"), bytes);
        put(&format!("{name}/subagents/agent-1.jsonl"), b"{}\n");
        put("123ae7f3-9b4a-4ac1-9a17-d404baffc5a5/2.jsonl", b"{}\n");
        let relative = |path: PathBuf| {
            let path = path.strip_prefix(dir.path()).expect("below it").to_owned();
            path.to_string_lossy().into_owned()
        };
        companions(&session).into_iter().map(relative).collect()
    }

    #[test]
    fn a_blank_text_means_no_session() {
        let home = tempfile::tempdir().expect("a folder");
        let session = home.path().join(".claude/projects/-p/0f3c9a52.jsonl");
        fs::create_dir_all(session.parent().expect("a folder")).expect("a folder");
        fs::write(&session, "{}\n").expect("a session");
        let environment = Environment::from_home(home.path());
        let find = |text: &str| find_session(&environment, text, None);
        assert_eq!([find(""), find(" ")], [SessionMatch::Nothing, SessionMatch::Nothing]);
        assert_eq!(find("0f3c"), SessionMatch::File(session));
    }

    #[test]
    fn sub_agents_are_looked_for_as_the_agent_of_the_session_names_them() {
        const NAME: &str = "session-2026-11-20T23-12-123ae7f3";
        let of_claude = format!("{NAME}/subagents/agent-1.jsonl");
        let of_gemini = "123ae7f3-9b4a-4ac1-9a17-d404baffc5a5/2.jsonl".to_owned();
        for (agent, expect) in [
            ("claude", vec![of_claude.clone()]),
            ("gemini", vec![of_gemini.clone()]),
            ("pi", vec![]),
            ("codex", vec![]),
        ] {
            let bytes = fixtures::get(agent, "pricing").bytes();
            assert_eq!(found(NAME, &bytes), expect, "{agent}");
        }
        assert_eq!(found(NAME, b""), [of_claude, of_gemini], "an empty file may be of any agent");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_of_sub_agents_that_cannot_be_read_is_an_error() {
        const NAME: &str = "session-2026-11-20T23-12-123ae7f3";
        const GEMINI: &str = "123ae7f3-9b4a-4ac1-9a17-d404baffc5a5";
        let claude = format!("{NAME}/subagents");
        for (agent, folder) in [("claude", claude.as_str()), ("gemini", GEMINI)] {
            let dir = tempfile::tempdir().expect("a folder");
            let session = dir.path().join(format!("{NAME}.jsonl"));
            fs::write(&session, fixtures::get(agent, "pricing").bytes()).expect("a file");
            let folder = dir.path().join(folder);
            fs::create_dir_all(folder.parent().expect("a folder")).expect("a folder");
            // A symbolic link to itself is unreadable for every user, even for root.
            std::os::unix::fs::symlink(&folder, &folder).expect("a link");
            let strict = companions_at(&Place::parse(&session), &session);
            let strict = strict.map_err(|err| (err.kind(), err.path().map(Path::to_owned)));
            let expect = Err((epitome_error::ErrorKind::Unreadable, Some(folder)));
            assert_eq!(strict, expect, "{agent}");
            assert_eq!(companions(&session), Vec::<PathBuf>::new(), "{agent}");
        }
    }
}
