//! Finds sessions that are probably over, so that they can be compacted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use epitome_agents::{SessionFile, sessions};
use epitome_formats::find_format;
use epitome_model::{Bytes, Tokens, Turns, units};

use crate::config::Config;
use crate::hooks;
use crate::ops::OpenSession;
use crate::session::writer;

/// The conditions for compacting a session. All of them must be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The session has at least this many turns.
    pub after_turns: Turns,
    /// The session has at least this many bytes on disk.
    pub above: Bytes,
    /// The last write to the session was at least this long ago.
    pub older_than: Duration,
}

/// A share in thousandths: `Share(100)` is a tenth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(pub u16);

impl Share {
    /// Whether at least this share of `before` is removed if `after` is left.
    ///
    /// # Examples
    ///
    /// ```
    /// use epitome::watch::Share;
    /// use epitome_model::Tokens;
    ///
    /// let tenth = Share(100);
    /// assert!(tenth.is_saved(Tokens(1_000), Tokens(900)));
    /// assert!(!tenth.is_saved(Tokens(1_000), Tokens(901)));
    /// ```
    pub fn is_saved(self, before: Tokens, after: Tokens) -> bool {
        let saved = u128::from(before.0.saturating_sub(after.0));
        saved * 1_000 >= u128::from(self.0) * u128::from(before.0)
    }
}

/// Finds sessions that are over. [`look`](Watch::look) skips a session for which it has called
/// `compact` before and which has not changed since.
#[derive(Clone, Debug)]
pub struct Watch<'a> {
    config: &'a Config,
    /// The conditions that a session must meet to be compacted.
    pub trigger: Trigger,
    /// The minimum share of the context that must be removed; otherwise a session is skipped.
    pub least: Share,
    /// Only sessions of this agent. `None`: of all agents.
    pub agent: Option<&'a str>,
    /// Only sessions that were run in this folder or below it. `None`: all sessions.
    pub project: Option<&'a Path>,
    /// The length and modification time that each session had after the last call of `compact` for
    /// it.
    seen: HashMap<PathBuf, (u64, SystemTime)>,
}

impl<'a> Watch<'a> {
    /// Watches the sessions of all agents and projects.
    pub fn new(config: &'a Config, trigger: Trigger, least: Share) -> Watch<'a> {
        Watch { config, trigger, least, agent: None, project: None, seen: HashMap::new() }
    }

    /// The sessions of formats that epitome can write, including those that are not over yet.
    pub fn sessions(&self) -> Vec<SessionFile> {
        let mut found = sessions(&self.config.agents, self.agent);
        found.retain(|file| find_format(file.agent).is_some_and(|format| writer(format).is_ok()));
        found
    }

    /// Calls `compact` with each session that is over, and with the least share of its context that
    /// must be removed. After that, the session is skipped until it changes.
    ///
    /// Sessions that a hook deferred because they were in use, and that are not in use any more,
    /// come first, unless `dry_run` is true. The user requested their compaction when the hook was
    /// installed, so no share is required: `compact` gets `None`.
    ///
    /// # Errors
    ///
    /// The first error of `compact`.
    pub fn look<E>(
        &mut self,
        dry_run: bool,
        mut compact: impl FnMut(&Path, Option<Share>) -> Result<(), E>,
    ) -> Result<(), E> {
        let deferred = if dry_run { Vec::new() } else { hooks::take_ready(self.config) };
        deferred.iter().try_for_each(|later| compact(&later.session, None))?;
        for file in self.sessions() {
            let stamp = (file.size.0, file.modified);
            let is_seen = self.seen.get(&file.path) == Some(&stamp);
            if is_seen || !self.trigger.is_due(self.config, &file, self.project) {
                continue;
            }
            compact(&file.path, Some(self.least))?;
            let now = std::fs::metadata(&file.path).ok().filter(|_| !dry_run);
            let now = now.and_then(|now| Some((now.len(), now.modified().ok()?)));
            self.seen.insert(file.path, now.unwrap_or(stamp));
        }
        Ok(())
    }
}

/// What [`Trigger::judge`] must know to decide whether to compact a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The number of turns in the session; `None` as long as it has not been read.
    pub turns: Option<Turns>,
    /// The size of the session on disk.
    pub size: Bytes,
    /// How long ago the last write to the session was.
    pub age: Duration,
    /// Whether a process has the session open.
    pub in_use: bool,
}

/// What [`Trigger::judge`] decides about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The session is compacted.
    Due,
    /// The session is compacted if it has enough turns: it must be read to find out.
    Read,
    /// The session is too small.
    Small,
    /// The last write to the session was too recent.
    Fresh,
    /// The session is in use.
    InUse,
    /// The session has too few turns.
    Short,
}

impl Trigger {
    /// Whether a session meets the conditions now and, if `project` is given, was run in that
    /// folder or below it. The session is read only if its turns or its folder must be known.
    fn is_due(&self, config: &Config, file: &SessionFile, project: Option<&Path>) -> bool {
        let now = SystemTime::from(config.now());
        let facts = Facts {
            turns: None,
            size: file.size,
            age: now.duration_since(file.modified).unwrap_or_default(),
            in_use: false,
        };
        let session = OpenSession::new(config, &file.path);
        let cheap = self.judge(&facts);
        let is_run_in = |project| session.is_run_in(project).unwrap_or(false);
        if !matches!(cheap, Verdict::Due | Verdict::Read) || !project.is_none_or(is_run_in) {
            return false;
        }
        let read = if cheap == Verdict::Read { session.load().ok() } else { None };
        let turns = read.map(|session| {
            let units = units(&session.transcript);
            Turns(units.iter().filter(|unit| unit.starts_turn).count() as u64)
        });
        let in_use = !session.users().is_empty();
        self.judge(&Facts { turns, in_use, ..facts }) == Verdict::Due
    }

    /// The decision about a session with these facts. Conditions that are cheap to check come
    /// first.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use epitome::watch::{Facts, Trigger, Verdict};
    /// use epitome_model::{Bytes, Turns};
    ///
    /// let trigger = Trigger {
    ///     after_turns: Turns(5),
    ///     above: Bytes(100_000),
    ///     older_than: Duration::from_secs(60),
    /// };
    /// let age = Duration::from_secs(90);
    /// let facts = Facts { turns: Some(Turns(7)), size: Bytes(200_000), age, in_use: false };
    /// assert_eq!(trigger.judge(&facts), Verdict::Due);
    /// ```
    pub fn judge(&self, facts: &Facts) -> Verdict {
        if facts.size < self.above {
            return Verdict::Small;
        }
        if facts.age < self.older_than {
            return Verdict::Fresh;
        }
        if facts.in_use {
            return Verdict::InUse;
        }
        match facts.turns {
            _ if self.after_turns == Turns(0) => Verdict::Due,
            None => Verdict::Read,
            Some(turns) if turns < self.after_turns => Verdict::Short,
            Some(_) => Verdict::Due,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::fs;

    use super::*;

    #[test]
    fn what_was_looked_at_is_left_until_it_changes() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = Config::from_home(dir.path());
        config.home = dir.path().join("epitome");
        let folder = dir.path().join("pi");
        let variable = "PI_CODING_AGENT_SESSION_DIR".to_owned();
        config.agents.variables.insert(variable, folder.clone().into());
        let path = folder.join("--p--/2026-11-18T12-00-00-000Z_0001.jsonl");
        fs::create_dir_all(folder.join("--p--")).expect("a folder");
        let session = fixtures::get("pi", "pricing").bytes();
        fs::write(&path, &session).expect("a session");
        let any = Trigger { after_turns: Turns(0), above: Bytes(0), older_than: Duration::ZERO };
        let mut watch = Watch::new(&config, any, Share(100));
        let mut look = || {
            let mut found = Vec::new();
            let Ok(()) = watch.look(false, |path, least| {
                found.push((path.to_owned(), least));
                Ok::<(), Infallible>(())
            });
            found
        };
        let once = [(path.clone(), Some(Share(100)))];
        assert_eq!(look(), once);
        assert_eq!(look(), []);
        let (session_file, agent) = (path.clone(), "pi".to_owned());
        let deferred = hooks::DeferredSession { session: session_file, agent, process: None };
        hooks::defer(&config, &deferred).expect("it can be written");
        assert_eq!(look(), [(path.clone(), None)]);
        fs::write(&path, [&*session, b"\n"].concat()).expect("a session");
        assert_eq!(look(), once);
    }

    #[test]
    fn all_of_a_trigger_has_to_hold() {
        let trigger = Trigger {
            after_turns: Turns(5),
            above: Bytes(1000),
            older_than: Duration::from_secs(60),
        };
        let facts = |turns: Option<u64>, size: u64, age: u64, in_use: bool| Facts {
            turns: turns.map(Turns),
            size: Bytes(size),
            age: Duration::from_secs(age),
            in_use,
        };
        for (facts, expect) in [
            (facts(Some(5), 1000, 60, false), Verdict::Due),
            (facts(None, 1000, 60, false), Verdict::Read),
            (facts(Some(4), 1000, 60, false), Verdict::Short),
            (facts(Some(5), 999, 60, false), Verdict::Small),
            (facts(None, 1000, 59, false), Verdict::Fresh),
            (facts(Some(9), 9999, 99, true), Verdict::InUse),
        ] {
            assert_eq!(trigger.judge(&facts), expect, "{facts:?}");
        }
        let any = Trigger { after_turns: Turns(0), above: Bytes(0), older_than: Duration::ZERO };
        assert_eq!(any.judge(&facts(None, 0, 0, false)), Verdict::Due);
        assert_eq!(any.judge(&facts(None, 0, 0, true)), Verdict::InUse);
    }
}
