//! What an installed hook does at the end of a session.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use epitome_redact::Finder;
use epitome_render::{Detail, Listing};
use serde::{Deserialize, Serialize};

pub use epitome_formats::{EndedSession, parse_ended_session};

use super::real;
use super::record::{Record, Rule, lock};
use crate::archive::Hash;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::recipes;
use crate::regular;
use crate::render::{ListPrices, RenderOptions, RenderSource, render_into, update_index};
use crate::store::{disk, write_over};
use epitome_agents::{self as agents, SessionMatch};

/// A log that is longer than this, in bytes, is renamed, and a new one is begun.
const LOG: u64 = 1 << 20;

/// The pause between two checks whether a session is in use.
const LOOK: Duration = Duration::from_millis(200);

/// An ended session that is compacted later, because it was still in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeferredSession {
    /// The path of the session.
    pub session: PathBuf,
    /// The name of the agent.
    pub agent: String,
    /// The id of the agent's process that ran the session.
    pub process: Option<u32>,
}

/// The path of the session that an agent's hook event is about: the file that the event names, if
/// it exists, otherwise the session with the event's id. `None` if no session or several have this
/// id, or if it is the id of a sub-agent's session, which is handled together with the session that
/// started it.
pub fn session_of(config: &Config, agent: &str, ended: &EndedSession) -> Option<PathBuf> {
    let file = ended.file.as_deref().map(PathBuf::from).filter(|file| file.is_file());
    file.or_else(|| {
        let id = ended.id.as_deref()?;
        match agents::find_session(&config.agents, id, Some(agent)) {
            SessionMatch::File(path) => {
                let sessions = agents::sessions(&config.agents, Some(agent));
                sessions.iter().any(|session| session.path == path).then_some(path)
            }
            SessionMatch::AnyOf(_) | SessionMatch::Nothing => None,
        }
    })
}

/// The rules that apply to sessions of an agent that are run in the folder `cwd`. If the folder is
/// unknown (`None`), only rules for all projects apply.
///
/// # Errors
///
/// `Unreadable` or `NewerFormat` if the record of installed hooks cannot be parsed; the errors of
/// reading it.
pub fn rules_of(config: &Config, agent: &str, cwd: Option<&str>) -> Result<Vec<Rule>> {
    let cwd = cwd.map(|cwd| real(Path::new(cwd)));
    let mut rules = Record::load(config)?.rules;
    rules.retain(|rule| {
        rule.agent == agent
            && match (&rule.project, &cwd) {
                (None, _) => true,
                (Some(project), Some(cwd)) => cwd.starts_with(project),
                (Some(_), None) => false,
            }
    });
    Ok(rules)
}

/// Renders a session into the folder and in the forms that `rule` names, without the secrets that
/// `redact` finds. If the rule has a branch, the result is committed.
///
/// # Errors
///
/// `Recipe` if the rule names a recipe that does not exist; the errors of reading the session and
/// the list prices, of writing the transcript, and of git.
pub fn keep(config: &Config, rule: &Rule, session: &Path, redact: &Finder) -> Result<Listing> {
    // Only one process at a time may write to a folder.
    let name = Hash::compute(rule.out.as_os_str().as_encoded_bytes()).to_string();
    let _lock = lock(config, &format!("{}.lock", &name[..16]))?;
    let recipe = rule.compact.as_deref().map(|name| recipes::find(config, name)).transpose()?;
    let archive = config.archive();
    let prices = ListPrices::from_config(config)?;
    let how = RenderOptions {
        detail: Detail::Steps,
        redact: Some(redact),
        compact: recipe.as_ref(),
        archive: &archive,
        prices: Some(&prices),
    };
    if let Some(branch) = &rule.branch {
        // Files that are in the folder already are committed first. If the branch is not checked
        // out in the folder, this fails before anything is written.
        branch.commit(&rule.out, "Keep what was there")?;
    }
    let reading = RenderSource::open(config, session, Some(&rule.agent))?;
    let (listing, _) = render_into(&rule.out, &reading, &how, &rule.formats, &[])?;
    reading.failure().map_or(Ok(()), Err)?;
    update_index(&rule.out, vec![listing.clone()])?;
    if let Some(branch) = &rule.branch {
        let title: String = listing.facts.title.chars().take(60).collect();
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        branch.commit(&rule.out, &format!("Keep {}: {title}", listing.name))?;
    }
    Ok(listing)
}

/// Whether a session is not in use: the process that ran it has ended, and no other process has it
/// open.
pub fn is_free(config: &Config, session: &Path, process: Option<u32>) -> bool {
    !process.is_some_and(agents::is_running) && agents::users(&config.agents, session).is_empty()
}

/// Waits until a session is not in use, for at most `at_most`. Returns whether it is not in use.
pub fn wait(config: &Config, session: &Path, process: Option<u32>, at_most: Duration) -> bool {
    let begin = Instant::now();
    loop {
        if is_free(config, session, process) {
            return true;
        }
        if begin.elapsed() >= at_most {
            return false;
        }
        std::thread::sleep(LOOK);
    }
}

/// Records that a session is going to be compacted later.
///
/// # Errors
///
/// `Disk` or `NoPermission` if the record cannot be written.
pub fn defer(config: &Config, later: &DeferredSession) -> Result<()> {
    let path = place(config, &later.session);
    disk::private_folder(&folder(config))?;
    let text = serde_json::to_string(later)
        .map_err(|err| Error::new(ErrorKind::Broken, "it cannot be written").because(err))?;
    write_over(&path, |out| Ok(out.write_all(text.as_bytes())?))
}

/// Removes those deferred sessions from the queue that are not in use any more, and returns them. A
/// caller that cannot compact one must [`defer`] it again.
pub fn take_ready(config: &Config) -> Vec<DeferredSession> {
    let entries = fs::read_dir(folder(config)).into_iter().flatten().flatten();
    let mut found: Vec<(PathBuf, DeferredSession)> = entries
        .filter_map(|entry| {
            let path = entry.path();
            let later: DeferredSession =
                serde_json::from_slice(&regular::read(&path).ok()?).ok()?;
            Some((path, later))
        })
        .filter(|(_, later)| is_free(config, &later.session, later.process))
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    // Several processes may do this at once: only the process that has removed an entry's file
    // returns the entry.
    found.retain(|(path, _)| fs::remove_file(path).is_ok());
    found.into_iter().map(|(_, later)| later).collect()
}

/// Appends a line to the log of hooks. Errors are ignored.
pub fn log(config: &Config, line: &str) {
    let path = config.hooks().join("log");
    if fs::metadata(&path).is_ok_and(|meta| meta.len() > LOG) {
        fs::rename(&path, path.with_extension("old")).ok();
    }
    // The folder is not created: without an installation, no log is written.
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let line = line.replace(['\n', '\r'], " ");
    if let Ok(mut file) = regular::open_with(&mut options, &path) {
        writeln!(file, "{} {line}", config.now().strftime("%Y-%m-%dT%H:%M:%SZ")).ok();
    }
}

fn folder(config: &Config) -> PathBuf {
    config.hooks().join("later")
}

fn place(config: &Config, session: &Path) -> PathBuf {
    let name = Hash::compute(session.as_os_str().as_encoded_bytes()).to_string();
    folder(config).join(&name[..32])
}

#[cfg(test)]
mod tests {
    use epitome_redact::Rules;

    use super::*;

    #[test]
    fn a_session_is_not_kept_whole_if_the_recipe_of_the_rule_is_unknown() {
        let home = tempfile::tempdir().expect("a folder");
        let config = Config::from_home(home.path());
        let rule = Rule {
            agent: "claude".to_owned(),
            project: None,
            formats: Vec::new(),
            out: home.path().join("out"),
            compact: Some("unknown".to_owned()),
            shrink: false,
            branch: None,
            settings: home.path().to_owned(),
            left_out: None,
            made: Vec::new(),
        };
        let finder = Finder::new(Rules::built_in()).expect("rules");
        let kept = keep(&config, &rule, &home.path().join("s.jsonl"), &finder);
        assert_eq!(kept.err().map(|err| err.kind()), Some(ErrorKind::Recipe));
    }
}
