//! Ports a session to another agent: makes a new session, checks it against that agent's
//! invariants, and writes it where the agent looks for sessions.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use epitome_agents as agents;
use epitome_agents::{Agent, NewSession, Resume};
use epitome_api::{LeftBehind, RequestBody};
use epitome_formats::NewSessionValues;
use epitome_model::Source;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit, Zoned};

use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::session::Loaded;
use crate::source::Spliced;
use crate::store::{disk, write_new};

/// The number of bytes that are hashed at once.
const CHUNK: u64 = 1 << 20;

/// A session that was made for another agent and is not on disk yet.
pub struct PortedSession {
    /// The agent that the session is made for.
    pub agent: &'static dyn Agent,
    /// How that agent resumes the session.
    pub resume: Resume,
    /// The id of the new session.
    pub id: String,
    /// The folder in which the session will be run.
    pub cwd: PathBuf,
    /// The content of the new session, and what could not be ported.
    pub made: RequestBody,
    time: Zoned,
}

impl PortedSession {
    /// Makes a session for `agent` from another session. The new session will be run in the folder
    /// `cwd`. `None` means the folder in which the other session was run, if that is recorded;
    /// otherwise the current folder.
    ///
    /// ```
    /// use epitome::{agents, port::PortedSession, storage};
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::from_home(home.path());
    /// # let path = home.path().join("session.jsonl");
    /// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// let session = storage::load(&path, None)?;
    /// let claude = agents::find_agent("claude").expect("an agent");
    /// let ported = PortedSession::make(&config, &session, claude, Some(home.path()))?;
    /// ported.write(&ported.place(&config)?)?;
    /// assert_eq!(storage::load(&ported.place(&config)?, None)?.format.name, "claude");
    /// // Sessions of some agents are only read.
    /// let cursor = agents::find_agent("cursor").expect("an agent");
    /// assert!(PortedSession::make(&config, &session, cursor, None).is_err());
    /// # Ok::<(), epitome::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Unreadable` if the session has no messages that can be ported; `Refused` if no session can
    /// be made for this agent, or if the result would violate one of its invariants; `Broken` if
    /// the result could not be read back.
    pub fn make<S: Source>(
        config: &Config,
        session: &Loaded<S>,
        agent: &'static dyn Agent,
        cwd: Option<&Path>,
    ) -> Result<PortedSession> {
        let Some((make, resume)) = agent.format().make.zip(agent.resume()) else {
            let what = format!("no session can be made for {}", agent.name());
            return Err(Error::new(ErrorKind::Refused, what));
        };
        let Loaded { source, transcript, .. } = session;
        let cwd = folder(cwd.or(transcript.head.cwd.as_deref().map(Path::new)))?;
        let time = config.now();
        let id = id(time, source, agent.name());
        let utc = time.round(Unit::Millisecond).unwrap_or(time).to_zoned(TimeZone::UTC);
        let timestamp = utc.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string();
        let given = NewSessionValues {
            id: &id,
            cwd: &cwd.to_string_lossy(),
            time: &timestamp,
            millis: time.as_millisecond(),
        };
        let made = make(transcript, source, &given);
        let ported = PortedSession { agent, resume, id, cwd, made, time: utc };
        ported.check()?;
        Ok(ported)
    }

    /// Records that the sub-agents of the session at `path` were not ported, with their number.
    pub fn without_sub_agents_of(&mut self, path: &Path) {
        let n = agents::sub_agents(path).len();
        if n > 0 {
            self.made.left.insert(LeftBehind::SubAgents, n as u64);
        }
    }

    /// The path at which the agent looks for the session.
    ///
    /// # Errors
    ///
    /// `Refused` if that path is unknown.
    pub fn place(&self, config: &Config) -> Result<PathBuf> {
        let new = NewSession { id: &self.id, cwd: &self.cwd, time: &self.time };
        (self.resume.place)(&config.agents, &new)
    }

    /// Writes the session to a new file and creates missing folders. On Unix, only the owner can
    /// read what is created.
    ///
    /// # Errors
    ///
    /// `Exists` if the file exists; `Disk` or `NoPermission` if it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            disk::private_folder(folder)?;
        }
        let body = self.made.body.as_bytes();
        write_new(path, |to| Spliced::new(&body, Vec::new())?.copy_to(to))
    }

    /// Reads the new session again, and checks it against the agent's invariants.
    fn check(&self) -> Result<()> {
        let format = self.agent.format();
        if self.made.messages == 0 {
            return Err(Error::new(
                ErrorKind::Unreadable,
                "the session says nothing that could be carried over",
            ));
        }
        let body = self.made.body.as_bytes();
        let mut faults = Vec::new();
        let read = (format.read)(&body, &mut faults);
        if let Some(violation) = format.invariants.check(&read, &body).first() {
            let what = format!("{} would refuse the session: {}", format.name, violation.what);
            return Err(Error::new(ErrorKind::Refused, what));
        }
        let is_known = (format.sniff)(body) && faults.is_empty();
        let is_it = read.head.id.as_deref() == Some(&self.id) && !read.context.is_empty();
        if !is_known || !is_it {
            return Err(Error::new(ErrorKind::Broken, "the converted session is incomplete"));
        }
        Ok(())
    }
}

/// The path of the folder `cwd` (`None`: of the current folder) without symbolic links, as a
/// program that runs in the folder sees it. If there is no such folder, the absolute path.
fn folder(cwd: Option<&Path>) -> Result<PathBuf> {
    let cwd = match cwd {
        Some(cwd) => std::path::absolute(cwd),
        None => std::env::current_dir(),
    };
    let cwd = cwd.map_err(|err| Error::reading(err, "the current folder", Path::new(".")))?;
    Ok(cwd.canonicalize().unwrap_or(cwd))
}

/// A UUID of version 7: the time, and a hash of the time, the session and the target. Porting a
/// session twice at the same nanosecond gives the same id: the second [`PortedSession::write`] then
/// fails, because the file exists.
fn id(time: Timestamp, source: &dyn Source, target: &str) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(target.as_bytes()).update(&time.as_nanosecond().to_le_bytes());
    let mut at = 0;
    loop {
        let bytes = source.read(at..(at + CHUNK).min(source.len()));
        if bytes.is_empty() {
            break;
        }
        hash.update(&bytes);
        at += bytes.len() as u64;
    }
    let hash = hash.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_bytes()[..16]);
    bytes[..6].copy_from_slice(&time.as_millisecond().to_be_bytes()[2..]);
    bytes[6] = 0x70 | bytes[6] & 0x0f;
    bytes[8] = 0x80 | bytes[8] & 0x3f;
    let mut id = String::new();
    for (n, byte) in bytes.iter().enumerate() {
        let dash = if matches!(n, 4 | 6 | 8 | 10) { "-" } else { "" };
        let _ = write!(id, "{dash}{byte:02x}");
    }
    id
}
