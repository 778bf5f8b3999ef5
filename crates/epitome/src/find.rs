//! Where agents keep sessions, which of them a person means, and who is using one.
//!
//! Nothing is read here but names of files, what databases say of their sessions, and the small
//! files and locks by which agents say which sessions they have open; the census alone looks into
//! sessions.

mod below;
mod census;
mod codex;
mod cursor;
mod gemini;
mod opencode;
mod target;
mod unread;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use epitome_model::Bytes;
use serde::Deserialize;

use crate::archive::Generation;
use crate::config::Config;
use crate::error::Error;
use crate::place::{self, Place, is_database};
use crate::regular;
use crate::rows::{self, Told};
use crate::store::{User, users_of};

pub(crate) use census::{Census, Presence, places};
pub use codex::Held;
use unread::Unread;

/// A session of an agent. It has not been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile {
    /// Where it is: a file, or `DATABASE#ID`.
    pub path: PathBuf,
    /// The name of the agent in whose folder it is.
    pub agent: &'static str,
    /// The session's id, as the name of the file or the database tells it.
    pub id: String,
    /// When it was last written.
    pub modified: SystemTime,
    /// Its size on disk.
    pub size: Bytes,
    /// What a database says of it, if a list shows no more than that: it is then not read.
    pub told: Option<Told>,
}

/// What a person means by a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    /// This file.
    File(PathBuf),
    /// Any of these sessions: the id begins all of theirs.
    AnyOf(Vec<SessionFile>),
    /// No session.
    Nothing,
}

/// Where an agent keeps sessions.
struct Home {
    /// The agent's name, as that of its format.
    agent: &'static str,
    /// The folder that is looked into.
    folder: fn(&Config) -> PathBuf,
    /// All sessions there, and what could not be looked into.
    sessions: fn(&Config, &mut Unread) -> Vec<SessionFile>,
}

/// The sessions that were found.
#[derive(Debug, Default)]
pub struct Found {
    /// By path.
    pub sessions: Vec<SessionFile>,
    /// Folders, files and databases of agents that could not be looked into, each as an error with
    /// its path. They may hold more sessions.
    pub unread: Vec<Error>,
}

/// Every agent of which a machine may have sessions.
const HOMES: &[Home] = &[
    Home {
        agent: "pi",
        folder: |config| config.pi_sessions.clone(),
        sessions: |config, unread| {
            let id = |stem: &str| stem.rsplit('_').next().unwrap_or(stem).to_owned();
            let found = pi_files(&config.pi_sessions, unread);
            session_files(found, "pi", id, unread)
        },
    },
    Home {
        agent: "claude",
        folder: |config| config.claude.join("projects"),
        sessions: |config, unread| {
            let found = claude_files(&config.claude, unread);
            session_files(found, "claude", str::to_owned, unread)
        },
    },
    Home {
        agent: "codex",
        folder: |config| config.codex.clone(),
        sessions: |config, unread| {
            let id = |stem: &str| codex::id(stem).to_owned();
            let found = codex::sessions(&config.codex, unread);
            session_files(found, "codex", id, unread)
        },
    },
    Home {
        agent: "opencode",
        folder: |config| config.opencode.clone(),
        sessions: |config, unread| {
            let databases = opencode::databases(config, unread);
            let mut found: Vec<SessionFile> =
                databases.iter().flat_map(|it| roots(it, unread)).collect();
            let moved: HashSet<String> = found.iter().map(|it| it.id.clone()).collect();
            let files = opencode::files(config, unread).into_iter();
            found.extend(files.filter(|it| !moved.contains(&it.id)));
            found
        },
    },
    Home {
        agent: "gemini",
        folder: |config| config.gemini.join("tmp"),
        sessions: |config, unread| {
            let id = |stem: &str| gemini::short_id(stem).to_owned();
            let found = gemini::files(&config.gemini, unread);
            session_files(found, "gemini", id, unread)
        },
    },
    Home { agent: "cursor", folder: |config| config.cursor.clone(), sessions: cursor::sessions },
    Home {
        agent: "epitome",
        folder: Config::logs,
        sessions: |config, unread| {
            let mut logs = unread.files_in(&config.logs());
            logs.retain(|path| is_jsonl(path));
            session_files(logs, "epitome", str::to_owned, unread)
        },
    },
    Home {
        agent: "qwen",
        folder: |config| config.qwen.join("projects"),
        sessions: |config, unread| {
            let projects = unread.files_in(&config.qwen.join("projects"));
            let chats = projects.iter().flat_map(|project| unread.files_in(&project.join("chats")));
            let found = chats.filter(|path| is_jsonl(path)).collect();
            session_files(found, "qwen", str::to_owned, unread)
        },
    },
    Home {
        agent: "amp",
        folder: |config| config.amp.join("threads"),
        sessions: |config, unread| {
            let mut found = unread.files_in(&config.amp.join("threads"));
            found.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
            session_files(found, "amp", str::to_owned, unread)
        },
    },
    Home {
        agent: "copilot",
        folder: |config| config.copilot.join("session-state"),
        sessions: |config, unread| {
            let found = copilot_files(&config.copilot, unread).into_iter();
            found.filter_map(|(path, id)| file_of(path, "copilot", id, unread)).collect()
        },
    },
];

/// All session files of the agents on this machine, or of one agent, by path. What cannot be
/// looked into is left out: [`all`] tells it.
pub fn sessions(config: &Config, agent: Option<&str>) -> Vec<SessionFile> {
    all(config, agent).sessions
}

/// All session files of the agents on this machine, or of one agent, and what could not be looked
/// into.
pub fn all(config: &Config, agent: Option<&str>) -> Found {
    let mut unread = Unread::default();
    let homes = HOMES.iter().filter(|home| agent.is_none_or(|agent| agent == home.agent));
    let mut sessions: Vec<SessionFile> =
        homes.flat_map(|home| (home.sessions)(config, &mut unread)).collect();
    sessions.sort_by(|one, other| one.path.cmp(&other.path));
    Found { sessions, unread: unread.into_errors() }
}

/// All sessions in a folder and below it, whosever they are, by path: files that end as sessions do
/// and begin as one. Links to folders are not followed.
pub fn below(folder: &Path) -> Vec<SessionFile> {
    below::sessions(folder)
}

/// The folders in which agents keep sessions, whether they are there or not.
pub fn folders(config: &Config) -> Vec<PathBuf> {
    HOMES.iter().map(|home| (home.folder)(config)).collect()
}

/// Which session a person means: a path, an id, or the beginning of one.
pub fn meant(config: &Config, text: &str, agent: Option<&str>) -> Meant {
    let path = Path::new(text);
    if is_database(path) {
        return in_named_database(path, "");
    }
    if let Some((database, name)) = rows::split(path)
        && !path.exists()
        && is_database(&database)
    {
        let is_there = matches!(Place::of(path), Place::Rows(_));
        return if is_there {
            Meant::File(path.to_owned())
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
        return Meant::File(path.to_owned());
    }
    let is_meant = |file: &SessionFile| {
        file.id.starts_with(text)
            || file.stem().starts_with(text)
            || file.agent == "gemini" && gemini::names(&file.id, text)
    };
    let mut found: Vec<SessionFile> =
        sessions(config, agent).into_iter().filter(is_meant).collect();
    if found.is_empty() && agent.is_none_or(|agent| agent == "codex") {
        // Sub-agents are meant when they are named.
        let id = |stem: &str| codex::id(stem).to_owned();
        let mut unread = Unread::default();
        let files = codex::files(&config.codex, &mut unread);
        let all = session_files(files, "codex", id, &mut unread);
        found.extend(all.into_iter().filter(is_meant));
    }
    if let Some(exact) = found.iter().position(|file| file.id == text || file.stem() == text) {
        // The same id may stand in two folders: then the path has to tell.
        if found.iter().filter(|file| file.id == text).count() < 2 {
            return Meant::File(found.swap_remove(exact).path);
        }
        found.retain(|file| file.id == text);
    }
    match found.len() {
        0 => Meant::Nothing,
        1 => Meant::File(found.swap_remove(0).path),
        _ => Meant::AnyOf(found),
    }
}

/// The files that the session of a generation may be in: the one it was made for, and those that
/// agents keep under its id.
pub fn files_of(config: &Config, generation: &Generation) -> Vec<PathBuf> {
    let mut found = vec![generation.path.clone()];
    let (id, part) = generation.session.split_once('.').unwrap_or((&generation.session, ""));
    for session in sessions(config, Some(&generation.agent)) {
        if session.id == generation.session {
            found.push(session.path);
        } else if session.id == id {
            let companions = companions(&session.path).into_iter();
            found.extend(companions.filter(|path| path.to_string_lossy().contains(part)));
        }
    }
    found.retain(|path| place::exists(path));
    found
}

/// What belongs to a session beside its own file or rows: what its sub-agents did, and what else a
/// database keeps of it.
pub fn companions(session: &Path) -> Vec<PathBuf> {
    match Place::of(session) {
        Place::Rows(rows) => return rows.companions(),
        Place::Spread(spread) => return spread.companions(),
        Place::File(_) => {}
    }
    let Some(parent) = session.parent() else { return Vec::new() };
    let of_codex = codex::sub_agents(session);
    if !of_codex.is_empty() {
        return of_codex;
    }
    let of_gemini = gemini::sub_agents(session);
    if !of_gemini.is_empty() {
        return of_gemini;
    }
    let folder = parent.join(session.file_stem().unwrap_or_default()).join("subagents");
    let mut found = files_in(&folder);
    found.retain(|path| stem(path).starts_with("agent-") && is_jsonl(path));
    found.sort();
    found
}

/// How many sub-agents worked for a session.
pub fn sub_agents(session: &Path) -> usize {
    let found = companions(session);
    match Place::of(session) {
        Place::File(_) | Place::Spread(_) => found.len(),
        Place::Rows(_) => {
            let is_said = |path: &&PathBuf| match Place::of(path) {
                Place::Rows(rows) => rows.is_conversation(),
                Place::File(_) | Place::Spread(_) => false,
            };
            found.iter().filter(is_said).count()
        }
    }
}

/// Where an agent looks for a session that it did not write itself: by its id, the folder it is
/// run in, and the time in UTC.
///
/// # Errors
///
/// `Refused` when the agent would look elsewhere, or none of that name is known.
pub fn place(
    config: &Config,
    agent: &str,
    id: &str,
    cwd: &Path,
    time: &jiff::Zoned,
) -> crate::Result<PathBuf> {
    target::place(config, agent, id, cwd, time)
}

/// Who is using a session: the processes that have its file open, and the agent that says it has
/// the session open without holding the file.
///
/// Nobody is using rows of a database: who opens it waits for the others.
pub fn users(config: &Config, session: &Path) -> Vec<User> {
    if let Place::Rows(_) = Place::of(session) {
        return Vec::new();
    }
    let mut users = users_of(session);
    users.extend(claude_users(config, session));
    users.extend(codex::users(&config.codex, session));
    users.sort();
    users.dedup_by_key(|user| user.pid);
    users
}

/// Makes the agent of a session forget what it remembers of places in the file, before the file is
/// replaced by one in which they are others: it finds them anew.
///
/// # Errors
///
/// `Disk` when what the agent remembers cannot be written.
pub fn forget(config: &Config, session: &Path) -> crate::Result<()> {
    codex::forget(&config.codex, session)
}

/// Refuses a change of a session from the byte `from` on if another session knows places behind
/// that as its own beginning.
///
/// # Errors
///
/// `Refused`, with the other's path.
pub fn check_places(session: &Path, from: u64) -> crate::Result<()> {
    codex::check_places(session, from)
}

/// Takes the lock by which the agent of a session keeps others from writing it, if it has one. No
/// agent opens the session while the result lives.
///
/// # Errors
///
/// Who has it.
pub fn hold(config: &Config, session: &Path) -> Result<Option<Held>, Vec<User>> {
    codex::hold(&config.codex, session)
}

/// `--<folder>--/<time>_<id>.jsonl`; with a folder of the user's own, files stand in it directly.
fn pi_files(root: &Path, unread: &mut Unread) -> Vec<PathBuf> {
    let mut found = unread.files_in(root);
    let folders: Vec<PathBuf> = found.iter().filter(|path| path.is_dir()).cloned().collect();
    found.extend(folders.iter().flat_map(|folder| unread.files_in(folder)));
    found.retain(|path| is_jsonl(path));
    found
}

impl SessionFile {
    /// The name of the file; what is in a database has none.
    fn stem(&self) -> std::borrow::Cow<'_, str> {
        if self.path.is_file() { stem(&self.path) } else { "".into() }
    }
}

/// The sessions of a database, each with the id of the session that it is a part of.
fn in_database(database: &Path, unread: &mut Unread) -> Vec<(Option<String>, SessionFile)> {
    if !unread.is_there(database) {
        return Vec::new();
    }
    let (kind, sessions) = match rows::sessions(database) {
        Ok(found) => found,
        Err(err) => {
            unread.database(err);
            return Vec::new();
        }
    };
    let found = sessions.into_iter().map(|it| {
        let path = rows::address(database, &it.id, "");
        let rows::Stored { id, parent, modified, size, told } = it;
        (parent, SessionFile { path, agent: kind.agent, id, modified, size, told })
    });
    found.collect()
}

/// The sessions of a database that are no part of another: what sub-agents did belongs to the
/// session that sent them.
fn roots(database: &Path, unread: &mut Unread) -> Vec<SessionFile> {
    let found = in_database(database, unread).into_iter();
    found.filter_map(|(parent, session)| parent.is_none().then_some(session)).collect()
}

/// Which session of a database a person means, by the beginning of its id.
fn in_named_database(database: &Path, text: &str) -> Meant {
    let mut found = in_database(database, &mut Unread::default());
    // Sub-agents are meant when they are named.
    found.retain(|(parent, it)| match text.is_empty() {
        true => parent.is_none(),
        false => it.id.starts_with(text),
    });
    let mut found: Vec<SessionFile> = found.into_iter().map(|(_, session)| session).collect();
    match found.len() {
        // A database of no session is told by whoever opens it.
        0 if text.is_empty() => Meant::File(database.to_owned()),
        0 => Meant::Nothing,
        1 => Meant::File(found.swap_remove(0).path),
        _ => Meant::AnyOf(found),
    }
}

/// `projects/<folder>/<id>.jsonl`. Older versions put what sub-agents did beside them.
fn claude_files(root: &Path, unread: &mut Unread) -> Vec<PathBuf> {
    let folders = unread.files_in(&root.join("projects"));
    let mut found: Vec<PathBuf> =
        folders.iter().flat_map(|folder| unread.files_in(folder)).collect();
    found.retain(|path| is_jsonl(path) && !stem(path).starts_with("agent-"));
    found
}

/// `session-state/<id>/events.jsonl`, with the ids; older versions: `session-state/<id>.jsonl`.
fn copilot_files(root: &Path, unread: &mut Unread) -> Vec<(PathBuf, String)> {
    let found = unread.files_in(&root.join("session-state")).into_iter().map(|path| {
        let id = stem(&path).into_owned();
        if is_jsonl(&path) { (path, id) } else { (path.join("events.jsonl"), id) }
    });
    found.collect()
}

fn session_files(
    paths: Vec<PathBuf>,
    agent: &'static str,
    id: impl Fn(&str) -> String,
    unread: &mut Unread,
) -> Vec<SessionFile> {
    let found = paths.into_iter().filter_map(|path| {
        let id = id(&stem(&path));
        file_of(path, agent, id, unread)
    });
    found.collect()
}

fn file_of(
    path: PathBuf,
    agent: &'static str,
    id: String,
    unread: &mut Unread,
) -> Option<SessionFile> {
    let meta = unread.file(&path)?;
    let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Some(SessionFile { path, agent, id, modified, size: Bytes(meta.len()), told: None })
}

/// `sessions/<pid>.json` stands as long as Claude Code runs, or longer when it was killed.
fn claude_users(config: &Config, session: &Path) -> Vec<User> {
    #[derive(Deserialize)]
    struct Guard {
        pid: u32,
        #[serde(rename = "sessionId")]
        session: String,
    }
    let (Ok(real), Ok(projects)) =
        (session.canonicalize(), config.claude.join("projects").canonicalize())
    else {
        return Vec::new();
    };
    // A copy elsewhere bears the same id and is nobody's.
    if !real.starts_with(projects) {
        return Vec::new();
    }
    let in_folder = real.strip_prefix(&config.claude).unwrap_or(&real);
    let is_part = |id: &str| {
        stem(in_folder) == id || in_folder.components().any(|part| part.as_os_str() == id)
    };
    files_in(&config.claude.join("sessions"))
        .iter()
        .filter_map(|path| serde_json::from_slice::<Guard>(&regular::read(path).ok()?).ok())
        .filter(|guard| is_part(&guard.session) && guard.pid != std::process::id())
        .filter_map(|guard| Some(User { pid: guard.pid, name: name_of(guard.pid)?, writes: true }))
        .collect()
}

/// Whether there is a process of that number.
pub fn is_running(process: u32) -> bool {
    name_of(process).is_some()
}

/// The name of a process; nothing when there is none of that number.
#[cfg(target_os = "linux")]
fn name_of(pid: u32) -> Option<String> {
    let name = regular::read_to_string(Path::new(&format!("/proc/{pid}/comm"))).ok()?;
    Some(name.trim_end().to_owned())
}

#[cfg(all(unix, not(target_os = "linux")))]
fn name_of(pid: u32) -> Option<String> {
    let asked = std::process::Command::new("ps")
        .args(["-o", "comm=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    let name = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    (!name.is_empty()).then_some(name)
}

/// Where nobody can be asked, the agent is taken at its word.
#[cfg(not(unix))]
fn name_of(_: u32) -> Option<String> {
    Some(String::new())
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}

fn is_jsonl(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}

fn stem(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_stem().unwrap_or_default().to_string_lossy()
}
