//! Runs of commands that compact sessions: which there were, what they saved, and which of their
//! sessions can be undone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use epitome_model::{Bytes, Tokens};
use jiff::Timestamp;

use crate::archive::{Generation, Run, SessionKey};
use crate::config::Config;
use crate::error::Result;
use crate::find;
use crate::in_place::compactions_in;
use crate::place;

/// Whether what a run did is still in its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// All of it is.
    InEffect,
    /// A part of it was undone.
    Partly,
    /// None of it is.
    Undone,
    /// None of its sessions can be read any more.
    Gone,
}

/// A run of a command that compacted sessions.
#[derive(Clone, Debug)]
pub struct LoggedRun {
    /// Its id and command.
    pub run: Run,
    /// When it made its first compaction.
    pub at: Timestamp,
    /// The recipes that it used.
    pub recipes: BTreeSet<String>,
    /// Its sessions.
    pub sessions: Vec<RunSession>,
    /// Whether it was undone.
    pub state: RunState,
}

/// A session that a run compacted, with what belongs to it.
#[derive(Clone, Debug)]
pub struct RunSession {
    /// Which.
    pub key: SessionKey,
    /// Where it is; if the session itself was not compacted, where what belongs to it is.
    pub path: PathBuf,
    /// The files that were compacted.
    pub files: Vec<PathBuf>,
    /// What a resume sent before and after, of all its files.
    pub tokens: (Tokens, Tokens),
    /// The lengths of its files before and after.
    pub bytes: (Bytes, Bytes),
    /// Whether it was undone.
    pub state: RunState,
}

/// All runs, and how many compactions older versions made, which stored no run.
#[derive(Clone, Debug, Default)]
pub struct RunLog {
    /// The newest first.
    pub runs: Vec<LoggedRun>,
    /// Generations without a run.
    pub without_run: u64,
}

impl LoggedRun {
    /// What a resume of all its sessions sent before and after.
    pub fn tokens(&self) -> (Tokens, Tokens) {
        let sum = |of: fn(&RunSession) -> Tokens| self.sessions.iter().map(of).sum();
        (sum(|it| it.tokens.0), sum(|it| it.tokens.1))
    }

    /// The lengths of all its files before and after.
    pub fn bytes(&self) -> (Bytes, Bytes) {
        let sum = |of: fn(&RunSession) -> Bytes| self.sessions.iter().map(of).sum();
        (sum(|it| it.bytes.0), sum(|it| it.bytes.1))
    }
}

/// All runs that the archive knows, read from it and compared with the sessions as they are.
///
/// # Errors
///
/// `NoPermission`, `Unreadable` when the archive cannot be listed.
pub fn runs(config: &Config) -> Result<RunLog> {
    let mut log = RunLog::default();
    let mut of_runs: HashMap<Run, Vec<Generation>> = HashMap::new();
    let archive = config.archive();
    for key in archive.sessions()? {
        for generation in archive.generations(&key)?.whole {
            match &generation.run {
                Some(run) => of_runs.entry(run.clone()).or_default().push(generation),
                // Giving bytes back is no compaction.
                None if generation.is_way_back() => {}
                None => log.without_run += 1,
            }
        }
    }
    let mut known = HashMap::new();
    let logged = of_runs.into_iter().map(|(run, made)| logged(config, run, made, &mut known));
    log.runs = logged.collect();
    log.runs.sort_by(|one, other| (other.at, &other.run).cmp(&(one.at, &one.run)));
    Ok(log)
}

/// The generations in effect of files that were looked at. None: the file cannot be read.
type InEffect = HashMap<PathBuf, Option<BTreeSet<u64>>>;

fn logged(
    config: &Config,
    run: Run,
    generations: Vec<Generation>,
    known: &mut InEffect,
) -> LoggedRun {
    let at = generations.iter().map(|it| it.made).min().unwrap_or_default();
    let recipes = generations.iter().map(|it| it.recipe.clone()).collect();
    let mut families: BTreeMap<SessionKey, Vec<Generation>> = BTreeMap::new();
    for generation in generations {
        let whose = generation.part_of.clone().unwrap_or_else(|| generation.key());
        families.entry(whose).or_default().push(generation);
    }
    let of_family = |(key, made): (SessionKey, Vec<Generation>)| session(config, key, &made, known);
    let sessions: Vec<RunSession> = families.into_iter().map(of_family).collect();
    let state = together(sessions.iter().map(|session| session.state));
    LoggedRun { run, at, recipes, sessions, state }
}

fn session(
    config: &Config,
    key: SessionKey,
    made: &[Generation],
    known: &mut InEffect,
) -> RunSession {
    let own = made.iter().find(|it| it.part_of.is_none()).or(made.first());
    let path = own.map(|it| it.path.clone()).unwrap_or_default();
    let state = together(made.iter().map(|generation| {
        let numbers = known.entry(generation.path.clone()).or_insert_with(|| {
            let found = compactions_in(config, &generation.path)?;
            Some(found.into_iter().map(|it| it.number).collect())
        });
        match numbers {
            None => RunState::Gone,
            Some(numbers) if numbers.contains(&generation.number) => RunState::InEffect,
            Some(_) => RunState::Undone,
        }
    }));
    RunSession {
        key,
        path,
        files: made.iter().map(|it| it.path.clone()).collect::<BTreeSet<_>>().into_iter().collect(),
        tokens: (
            made.iter().map(|it| it.tokens_before).sum(),
            made.iter().map(|it| it.tokens_after).sum(),
        ),
        bytes: (
            made.iter().map(|it| Bytes(it.before.len)).sum(),
            made.iter().map(|it| Bytes(it.after.len)).sum(),
        ),
        state,
    }
}

/// The state of a whole by those of its parts.
fn together(parts: impl Iterator<Item = RunState>) -> RunState {
    // What cannot be read says nothing of the others.
    let known: Vec<RunState> = parts.filter(|part| *part != RunState::Gone).collect();
    match known.first() {
        None => RunState::Gone,
        Some(first) if known.iter().all(|part| part == first) => *first,
        Some(_) => RunState::Partly,
    }
}

/// The sessions of which the archive has a generation that is `wanted`, by path. What belongs to
/// another of them is left out: it is given back with it.
///
/// # Errors
///
/// `NoPermission`, `Unreadable` when the archive cannot be listed.
pub fn archived_sessions(
    config: &Config,
    agent: Option<&str>,
    wanted: impl Fn(&Generation) -> bool,
) -> Result<Vec<PathBuf>> {
    let archive = config.archive();
    let mut paths: BTreeMap<SessionKey, PathBuf> = BTreeMap::new();
    let mut chosen: BTreeSet<SessionKey> = BTreeSet::new();
    for key in archive.sessions()? {
        if agent.is_some_and(|agent| agent != key.agent) {
            continue;
        }
        let generations = archive.generations(&key)?.whole;
        let mut made = generations.iter().filter(|it| !it.is_way_back() && wanted(it));
        if let Some(first) = made.next() {
            chosen.insert(first.part_of.clone().unwrap_or_else(|| key.clone()));
            chosen.insert(key.clone());
        }
        if let Some(newest) = generations.last() {
            paths.insert(key, newest.path.clone());
        }
    }
    let of_chosen = chosen.iter().filter_map(|key| paths.get(key));
    let found: BTreeSet<PathBuf> = of_chosen.filter(|path| place::exists(path)).cloned().collect();
    let belonging = found.iter().flat_map(|path| find::companions(path));
    let belonging: BTreeSet<PathBuf> = belonging.map(|path| real(&path)).collect();
    Ok(found.into_iter().filter(|path| !belonging.contains(&real(path))).collect())
}

fn real(path: &Path) -> PathBuf {
    place::Place::of(path).real().unwrap_or_else(|_| path.to_owned())
}
