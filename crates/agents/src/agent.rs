//! The trait that an agent implements: its folders, its locks, its hook, and how it resumes
//! sessions.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use epitome_error::Result;
use epitome_formats::{Addition, AddressSettings, Format, Hook};
use epitome_store::regular;
use epitome_store::store::User;
use jiff::Zoned;

use crate::environment::Environment;
use crate::model_address::ModelAddress;
use crate::session_file::{SessionFile, stem};
use crate::unread::UnreadErrors;

/// An agent: where it keeps sessions, and how it uses them. Most methods have a default
/// implementation.
pub trait Agent: Sync {
    /// The format of the agent's sessions.
    fn format(&self) -> &'static Format;

    /// The names of the environment variables that say where the agent keeps its files.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    /// A folder in or below which the agent keeps sessions.
    fn folder(&self, environment: &Environment) -> PathBuf;

    /// The sessions of the agent, without those of sub-agents. A sub-agent's session may be in the
    /// result if its parent was not found.
    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile>;

    /// Sessions that [`find_session`](crate::find_session) searches only if no session of
    /// [`sessions`](Agent::sessions) matches: those of sub-agents, if the agent keeps them in the
    /// same folders as other sessions. The result may contain these other sessions, too.
    fn sub_agent_sessions(&self, _: &Environment, _: &mut UnreadErrors) -> Vec<SessionFile> {
        Vec::new()
    }

    /// Whether `text`, as a user types it, may mean the session with this id.
    fn matches(&self, id: &str, text: &str) -> bool {
        id.starts_with(text)
    }

    /// Whether the name of the file at this path shows that a sub-agent wrote it, so that it
    /// belongs to another session.
    fn is_part(&self, _file: &Path) -> bool {
        false
    }

    /// The files that the sub-agents of a session wrote. Folders and files that cannot be read are
    /// reported to `unread`.
    fn sub_agents(&self, _session: &Path, _unread: &mut UnreadErrors) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The id that the archive uses for a file that a sub-agent of a session wrote.
    fn part_id(&self, session: &str, part: &Path) -> String {
        let name = stem(part);
        // A file `agent-…` contains the id of the session that started the sub-agent, and no id of
        // its own. `epitome_store::session::key_of` makes the same id.
        if name.starts_with("agent-") { format!("{session}.{name}") } else { name.into_owned() }
    }

    /// The processes that use a session according to the agent's own files or locks.
    fn users(&self, _: &Environment, _session: &Path) -> Vec<User> {
        Vec::new()
    }

    /// Takes the agent's own lock against other writers of a session. `None` if the agent has no
    /// such lock for this session, or if the lock cannot be used, for example on a file system
    /// without locks.
    ///
    /// # Errors
    ///
    /// The processes that hold the lock.
    fn lock(
        &self,
        _: &Environment,
        _session: &Path,
    ) -> std::result::Result<Option<AgentLock>, Vec<User>> {
        Ok(None)
    }

    /// Deletes the offsets into a session's file that the agent has stored. The agent then reads
    /// the file again to compute them.
    ///
    /// # Errors
    ///
    /// `Disk` if the agent's files cannot be written.
    fn forget(&self, _: &Environment, _session: &Path) -> Result<()> {
        Ok(())
    }

    /// Returns an error if another session refers to offsets in this session after byte `from`,
    /// which a change would move.
    ///
    /// # Errors
    ///
    /// `Refused`, with a message that names the other session. `NoPermission` or `Unreadable` if it
    /// cannot be found out whether there is one.
    fn check_places(&self, _session: &Path, _from: u64) -> Result<()> {
        Ok(())
    }

    /// The agent's hook for the end of a session; `None` if it has none, or if that is unknown.
    fn hook(&self) -> Option<HookTarget> {
        None
    }

    /// How an MCP server is added to the agent's settings; `None` if that is impossible or unknown.
    fn mcp(&self) -> Option<AdditionTarget> {
        None
    }

    /// How a command that prints a status line is added to the agent's settings; `None` if the
    /// agent shows no such line, or if that is unknown.
    fn status_line(&self) -> Option<AdditionTarget> {
        None
    }

    /// How the command `/epitome` is added for the agent's user; `None` if that is unknown.
    fn command(&self) -> Option<AdditionTarget> {
        None
    }

    /// The name of the agent's program, which is the first word of
    /// [`resume_command`](Agent::resume_command); `None` if that command is unknown.
    fn program(&self) -> Option<&'static str> {
        self.resume_command().and_then(|words| words.first().copied())
    }

    /// After how many days without use the agent deletes a session, according to its settings.
    /// `None` if it deletes none, or if that is unknown.
    fn kept_days(&self, _environment: &Environment) -> Option<u64> {
        None
    }

    /// How the agent resumes a session that another program wrote; `None` if it cannot, or if that
    /// is unknown.
    fn resume(&self) -> Option<Resume> {
        None
    }

    /// The command that resumes a session in the folder in which it was run. The id of the session
    /// is added as the last argument. `None` if the command is unknown.
    fn resume_command(&self) -> Option<&'static [&'static str]> {
        self.resume().map(|resume| resume.command)
    }

    /// How the agent is started with another base URL for its model; `None` if that is unknown.
    fn model_address(&self) -> Option<ModelAddress> {
        None
    }

    /// The settings that may take precedence over the base URL with which the agent is started;
    /// `None` if none are known.
    fn address_settings(&self) -> Option<AddressTarget> {
        None
    }

    /// The name of the agent, which is also the name of its format.
    fn name(&self) -> &'static str {
        self.format().name
    }
}

/// The hook with which an agent calls a program when a session ends.
#[derive(Clone, Copy, Debug)]
pub struct HookTarget {
    /// The entry or the file to add to the settings.
    pub hook: &'static Hook,
    /// The folder of the agent's settings, which the path in `hook` is relative to.
    pub settings: fn(&Environment) -> PathBuf,
}

/// A value that can be added to the settings of an agent, and the folder of these settings.
#[derive(Clone, Copy, Debug)]
pub struct AdditionTarget {
    /// The value to add to the settings.
    pub addition: &'static Addition,
    /// The folder that the path in `addition` is relative to.
    pub settings: fn(&Environment) -> PathBuf,
}

/// Settings that may take precedence over the base URL with which an agent is started.
#[derive(Clone, Copy, Debug)]
pub struct AddressTarget {
    /// The settings.
    pub settings: &'static AddressSettings,
    /// The folder that the path in `settings` is relative to.
    pub folder: fn(&Environment) -> PathBuf,
}

/// How an agent resumes a session that another program wrote.
#[derive(Clone, Copy, Debug)]
pub struct Resume {
    /// The command that resumes a session; the id of the session is added as the last argument.
    pub command: &'static [&'static str],
    /// Returns the path at which the agent looks for the session; `Refused` if that is unknown.
    pub place: fn(&Environment, &NewSession<'_>) -> Result<PathBuf>,
}

/// A new session, to be written where its agent looks for it.
#[derive(Clone, Copy, Debug)]
pub struct NewSession<'a> {
    /// The id of the session.
    pub id: &'a str,
    /// The folder in which the session will be run.
    pub cwd: &'a Path,
    /// When the session begins, in UTC.
    pub time: &'a Zoned,
}

/// An agent's own lock of a session. The agent does not open the session until this value is
/// dropped.
#[derive(Debug)]
pub struct AgentLock {
    path: PathBuf,
    _lock: File,
}

impl AgentLock {
    /// Takes the lock in the file at `path`, which is created if it does not exist. `None` if the
    /// file cannot be opened, or on a file system without locks.
    ///
    /// # Errors
    ///
    /// The path, if another process holds the lock.
    pub(crate) fn take(path: PathBuf) -> std::result::Result<Option<AgentLock>, PathBuf> {
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let Ok(lock) = regular::open_with(&mut options, &path) else { return Ok(None) };
        match lock.try_lock() {
            Ok(()) => Ok(Some(AgentLock { path, _lock: lock })),
            Err(TryLockError::WouldBlock) => Err(path),
            Err(TryLockError::Error(_)) => Ok(None),
        }
    }
}

impl Drop for AgentLock {
    fn drop(&mut self) {
        // If this fails, an empty file remains, which does no harm: agents delete or reuse their
        // lock files.
        fs::remove_file(&self.path).ok();
    }
}
