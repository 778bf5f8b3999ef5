//! The log of commands that compacted sessions: what each run saved, and whether its compactions
//! are still in effect.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use epitome_model::{Bytes, Tokens, lossy_path};
use jiff::Timestamp;
use serde::Serialize;

use crate::archive::{Generation, Generations, Run, SessionKey, Sessions};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::ops::{Change, compactions_in};
use crate::place;
use epitome_agents as agents;

/// Whether a run's compactions are still in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// All compactions of the run are in effect, apart from those in files that cannot be read any
    /// more.
    InEffect,
    /// Some compactions of the run were undone, and some are in effect.
    PartlyUndone,
    /// All compactions of the run were undone, apart from those in files that cannot be read any
    /// more.
    Undone,
    /// None of the files that the run compacted can be read any more.
    Gone,
}

/// A run of a command that compacted sessions. Its serde form is the JSON of `epitome log --json`
/// (`docs/json.md`), to which members are only added.
#[derive(Clone, Debug, Serialize)]
pub struct LoggedRun {
    /// The id of the run.
    #[serde(rename = "run")]
    pub id: String,
    /// The name of the command, such as `compact` or `watch`.
    pub command: String,
    /// When the run made its first compaction.
    pub at: Timestamp,
    /// The names of the recipes that the run used.
    pub recipes: BTreeSet<String>,
    /// The tokens of the contexts of all the run's sessions before and after the run's compactions,
    /// in sum.
    pub context_tokens: Change<Tokens>,
    /// The length of all the run's files before and after the run's compactions, in sum.
    pub disk_bytes: Change<Bytes>,
    /// Whether the compactions of the run are still in effect.
    pub state: RunState,
    /// The sessions that the run compacted.
    pub sessions: Vec<RunSession>,
}

/// A session that a run compacted, with the files that belong to it.
#[derive(Clone, Debug, Serialize)]
pub struct RunSession {
    /// The path of the session. If the session's own file was not compacted, the path of another
    /// file that belongs to it.
    #[serde(rename = "session", serialize_with = "lossy_path")]
    pub path: PathBuf,
    /// The agent of the session.
    pub agent: String,
    /// The id of the session in the archive.
    pub id: String,
    /// The files of the session that the run compacted.
    #[serde(skip)]
    pub files: Vec<PathBuf>,
    /// The tokens of the contexts of all the session's files before and after the run's
    /// compactions, in sum.
    pub context_tokens: Change<Tokens>,
    /// The length of the session's files before and after the run's compactions, in sum.
    pub disk_bytes: Change<Bytes>,
    /// Whether the run's compactions of this session are still in effect.
    pub state: RunState,
}

/// All runs in the archive, and what could not be assigned to a run.
#[derive(Clone, Debug, Default)]
pub struct RunLog {
    /// All runs, the newest first.
    pub runs: Vec<LoggedRun>,
    /// The number of compactions that belong to no run, such as those of older versions of epitome.
    pub without_run: u64,
    /// The errors of parts of the archive that are damaged or cannot be read: they may belong to
    /// any run, or to one that is not listed.
    pub unread: Vec<Error>,
    /// The errors of sessions that exist but cannot be read: it is unknown whether they were
    /// undone.
    pub unread_sessions: Vec<Error>,
}

/// The result of looking up a run by the beginning of its id.
#[derive(Clone, Debug)]
pub enum RunMatch {
    /// Exactly one run.
    Run(Box<LoggedRun>),
    /// Several runs whose ids begin with the text, or all runs if the text is empty.
    AnyOf(Vec<LoggedRun>),
    /// No run.
    Nothing,
}

impl RunLog {
    /// The run whose id begins with `id`. An empty `id` names no single run: all runs are returned.
    pub fn find(self, id: &str) -> RunMatch {
        let mut found: Vec<LoggedRun> = self.runs;
        found.retain(|it| it.id.starts_with(id));
        match (found.len(), id.is_empty()) {
            (0, _) => RunMatch::Nothing,
            (1, false) => RunMatch::Run(Box::new(found.swap_remove(0))),
            (_, _) => RunMatch::AnyOf(found),
        }
    }

    /// The newest run that is at least partly in effect.
    ///
    /// # Errors
    ///
    /// The first error in [`unread`](RunLog::unread) or
    /// [`unread_sessions`](RunLog::unread_sessions), if there is one: what cannot be read may
    /// belong to a newer run.
    pub fn last_in_effect(self) -> Result<Option<LoggedRun>> {
        if let Some(err) = self.unread.into_iter().chain(self.unread_sessions).next() {
            let what = "it is not known which run was the last: not all that was compacted can be \
                        read";
            let hint = "`epitome log` lists the runs that are known, `epitome undo RUN` undoes one";
            return Err(Error::new(err.kind(), what).because(err).with_hint(hint));
        }
        let mut runs = self.runs.into_iter();
        Ok(runs.find(|run| matches!(run.state, RunState::InEffect | RunState::PartlyUndone)))
    }
}

/// All runs in the archive, compared with the sessions as they are now.
///
/// ```
/// use epitome::ops::{Compact, OpenSession, Restore};
/// use epitome::runs::{RunState, runs};
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::from_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// assert!(runs(&config)?.runs.is_empty());
/// Compact::new(&recipe, &counter, &run).run(&OpenSession::new(&config, &path))?;
/// assert_eq!(runs(&config)?.runs[0].state, RunState::InEffect);
/// Restore::default().run(&OpenSession::new(&config, &path))?;
/// assert_eq!(runs(&config)?.runs[0].state, RunState::Undone);
/// # Ok::<(), epitome::Error>(())
/// ```
///
/// # Errors
///
/// `Archive` if the archive, or the folder of a session in it, cannot be listed.
pub fn runs(config: &Config) -> Result<RunLog> {
    let mut log = RunLog::default();
    let mut of_runs: HashMap<Run, Vec<Generation>> = HashMap::new();
    let archive = config.archive();
    let Sessions { keys, unread } = archive.sessions_found()?;
    log.unread = unread;
    for key in keys {
        let found = archive.generations(&key)?;
        log.unread.extend(found.damaged);
        for generation in found.whole {
            match &generation.run {
                Some(run) => of_runs.entry(run.clone()).or_default().push(generation),
                // A restore is not a compaction.
                None if generation.is_restore() => {}
                None => log.without_run += 1,
            }
        }
    }
    let mut known =
        Known { config, in_effect: HashMap::new(), places: OnceCell::new(), unread: Vec::new() };
    let logged = of_runs.into_iter().map(|(run, made)| logged(run, made, &mut known));
    log.runs = logged.collect();
    log.unread_sessions = known.unread;
    log.runs.sort_by(|one, other| {
        (other.at, &other.id, &other.command).cmp(&(one.at, &one.id, &one.command))
    });
    Ok(log)
}

/// The state of the files of sessions. Each file is read once.
struct Known<'a> {
    config: &'a Config,
    /// For each file that was looked at, the generations in effect; `None` if the file does not
    /// exist, is no session, or cannot be read.
    in_effect: HashMap<PathBuf, Option<Vec<Generation>>>,
    places: OnceCell<Places>,
    /// The errors of files that cannot be read.
    unread: Vec<Error>,
}

/// The paths of the agents' sessions, by key.
type Places = BTreeMap<SessionKey, Vec<PathBuf>>;

impl Known<'_> {
    fn state(&mut self, path: &Path, generation: &Generation) -> RunState {
        let config = self.config;
        let found = self.in_effect.entry(path.to_owned());
        let unread = &mut self.unread;
        let found = found.or_insert_with(|| match compactions_in(config, path) {
            Ok(found) => found,
            Err(err) => {
                unread.push(err);
                None
            }
        });
        match found {
            None => RunState::Gone,
            Some(found) => {
                if found
                    .iter()
                    .any(|it| it.number == generation.number || it.is_twin_of(generation))
                {
                    RunState::InEffect
                } else {
                    RunState::Undone
                }
            }
        }
    }

    /// The current path of a generation's file: the recorded path or, if the agent has moved the
    /// session, its new path.
    fn place(&mut self, generation: &Generation) -> PathBuf {
        let moved = moved_to(self.config, &self.places, &generation.key(), &generation.path);
        for path in &moved {
            if self.state(path, generation) == RunState::InEffect {
                return path.clone();
            }
        }
        moved.first().unwrap_or(&generation.path).clone()
    }
}

/// The files at which the agents keep a session that is not at `path` any more. Empty if the
/// session is still at `path`, or if it is not found.
fn moved_to(
    config: &Config,
    places: &OnceCell<Places>,
    key: &SessionKey,
    path: &Path,
) -> Vec<PathBuf> {
    if place::exists(path) {
        return Vec::new();
    }
    places.get_or_init(|| agents::places(&config.agents)).get(key).cloned().unwrap_or_default()
}

fn logged(run: Run, generations: Vec<Generation>, known: &mut Known<'_>) -> LoggedRun {
    let at = generations.iter().map(|it| it.made).min().unwrap_or_default();
    let recipes = generations.iter().map(|it| it.recipe.clone()).collect();
    let families = families(generations, known).into_iter();
    let sessions = families.map(|(key, made)| session(key, &made, known));
    let sessions: Vec<RunSession> = sessions.collect();
    let state = together(sessions.iter().map(|session| session.state));
    let context_tokens = sessions.iter().map(|it| it.context_tokens).sum();
    let disk_bytes = sessions.iter().map(|it| it.disk_bytes).sum();
    let Run { id, command } = run;
    LoggedRun { id, command, at, recipes, context_tokens, disk_bytes, state, sessions }
}

/// A generation, and the current path of its file.
type Made = (Generation, PathBuf);

/// The generations of a run, grouped by session. Each copy of a session is a group of its own.
fn families(made: Vec<Generation>, known: &mut Known<'_>) -> Vec<(SessionKey, Vec<Made>)> {
    let mut made: Vec<Made> = made
        .into_iter()
        .map(|generation| {
            let place = known.place(&generation);
            (generation, place)
        })
        .collect();
    made.sort_by_key(|(it, place)| (it.part_of.is_some(), it.key(), place.clone(), it.number));
    let mut families: Vec<(SessionKey, Vec<Made>)> = Vec::new();
    for (generation, place) in made {
        let whose = generation.part_of.clone().unwrap_or_else(|| generation.key());
        let of_whose: Vec<usize> =
            (0..families.len()).filter(|&n| families[n].0 == whose).collect();
        let own = of_whose.iter().copied().find(|n| {
            let path = &families[*n].1[0].1;
            match generation.part_of {
                None => *path == place,
                Some(_) => of_whose.len() == 1 || agents::companions(path).contains(&place),
            }
        });
        match own {
            Some(n) => families[n].1.push((generation, place)),
            None => families.push((whose, vec![(generation, place)])),
        }
    }
    families.sort_by(|one, other| one.0.cmp(&other.0));
    families
}

fn session(key: SessionKey, made: &[Made], known: &mut Known<'_>) -> RunSession {
    let own = made.iter().find(|(it, _)| it.part_of.is_none()).or(made.first());
    let path = own.map(|(_, place)| place.clone()).unwrap_or_default();
    let state = together(made.iter().map(|(it, place)| known.state(place, it)));
    let files: BTreeSet<PathBuf> = made.iter().map(|(_, place)| place.clone()).collect();
    let generations = made.iter().map(|(generation, _)| generation);
    let tokens =
        generations.clone().map(|it| Change { before: it.tokens_before, after: it.tokens_after });
    let bytes =
        generations.map(|it| Change { before: Bytes(it.before.len), after: Bytes(it.after.len) });
    RunSession {
        path,
        agent: key.agent,
        id: key.id,
        files: files.into_iter().collect(),
        context_tokens: tokens.sum(),
        disk_bytes: bytes.sum(),
        state,
    }
}

/// The state of several compactions or sessions together.
fn together(parts: impl Iterator<Item = RunState>) -> RunState {
    // Compactions and sessions whose files cannot be read are ignored, unless no file can be read.
    let known: Vec<RunState> = parts.filter(|part| *part != RunState::Gone).collect();
    match known.first() {
        None => RunState::Gone,
        Some(first) if known.iter().all(|part| part == first) => *first,
        Some(_) => RunState::PartlyUndone,
    }
}

/// Sessions that are in the archive.
#[derive(Clone, Debug, Default)]
pub struct ArchivedSessions {
    /// The paths of the sessions.
    pub paths: Vec<PathBuf>,
    /// The errors of damaged or unreadable parts of the archive that do not belong to the sessions
    /// in `paths`. They may belong to sessions that `paths` should contain.
    pub unread: Vec<Error>,
}

/// The paths of those sessions of `agent` (`None`: of all agents) that still exist and have a
/// generation in the archive for which `wanted` returns true. Files that belong to another of these
/// sessions are left out: they are restored together with it.
///
/// # Errors
///
/// `Archive` if the archive, or the folder of a session in it, cannot be listed.
pub fn archived_sessions(
    config: &Config,
    agent: Option<&str>,
    wanted: impl Fn(&Generation) -> bool,
) -> Result<ArchivedSessions> {
    let archive = config.archive();
    let Sessions { keys, mut unread } = archive.sessions_found()?;
    let mut paths: BTreeMap<SessionKey, BTreeSet<PathBuf>> = BTreeMap::new();
    let mut chosen: BTreeSet<SessionKey> = BTreeSet::new();
    for key in keys {
        if agent.is_some_and(|agent| agent != key.agent) {
            continue;
        }
        let Generations { whole: generations, damaged, .. } = archive.generations(&key)?;
        let made = generations.iter().filter(|it| !it.is_restore() && wanted(it));
        let made: Vec<&Generation> = made.collect();
        for it in &made {
            chosen.insert(it.part_of.clone().unwrap_or_else(|| key.clone()));
            chosen.insert(key.clone());
        }
        // Damage of a wanted session is reported when the session is restored.
        if made.is_empty() {
            unread.extend(damaged);
        }
        // Each copy of a session has a path of its own, so all paths are collected.
        let all = made.into_iter().chain(generations.last());
        paths.entry(key).or_default().extend(all.map(|it| it.path.clone()));
    }
    let places = OnceCell::new();
    let mut found: BTreeSet<PathBuf> = BTreeSet::new();
    for (key, paths) in paths.iter().filter(|(key, _)| chosen.contains(key)) {
        found.extend(paths.iter().filter(|path| place::exists(path)).cloned());
        found.extend(paths.iter().flat_map(|path| moved_to(config, &places, key, path)));
    }
    let belonging = found.iter().flat_map(|path| agents::companions(path));
    let belonging: BTreeSet<PathBuf> = belonging.map(|path| real(&path)).collect();
    let paths = found.into_iter().filter(|path| !belonging.contains(&real(path))).collect();
    Ok(ArchivedSessions { paths, unread })
}

fn real(path: &Path) -> PathBuf {
    place::Place::parse(path).real().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_run_is_named_by_the_beginning_of_its_id() {
        let run = |id: &str, state| LoggedRun {
            id: id.to_owned(),
            command: "compact".to_owned(),
            context_tokens: Change::default(),
            disk_bytes: Change::default(),
            at: Timestamp::UNIX_EPOCH,
            recipes: BTreeSet::new(),
            sessions: Vec::new(),
            state,
        };
        let log = RunLog {
            runs: vec![
                run("c1", RunState::Undone),
                run("a2", RunState::PartlyUndone),
                run("a1", RunState::InEffect),
            ],
            without_run: 0,
            unread: Vec::new(),
            unread_sessions: Vec::new(),
        };
        let named = |id: &str| match log.clone().find(id) {
            RunMatch::Run(run) => vec![run.id],
            RunMatch::AnyOf(runs) => runs.into_iter().map(|run| format!("{}?", run.id)).collect(),
            RunMatch::Nothing => Vec::new(),
        };
        assert_eq!(named("a1"), ["a1"]);
        assert_eq!(named("c"), ["c1"]);
        assert_eq!(named("a"), ["a2?", "a1?"]);
        assert_eq!(named(""), ["c1?", "a2?", "a1?"], "all may be meant");
        assert_eq!(named("b"), Vec::<String>::new());
        let unread = vec![Error::new(ErrorKind::Unreadable, "cannot read the archive")];
        for log in [
            RunLog { unread: unread.clone(), ..log.clone() },
            RunLog { unread_sessions: unread, ..log.clone() },
        ] {
            let last = log.last_in_effect();
            assert_eq!(last.map(drop).map_err(|err| err.kind()), Err(ErrorKind::Unreadable));
        }
        let last = log.last_in_effect().expect("all is known").map(|run| run.id);
        assert_eq!(last.as_deref(), Some("a2"), "the newest of which something is left");
    }
}
