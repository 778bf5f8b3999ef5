//! Installs and removes session-end hooks in agents' settings. A hook calls epitome when a session
//! ends, so that a transcript of the session is written.
//!
//! A change is planned as an [`Install`] or an [`Uninstall`], which can be shown to the user, and
//! is then carried out. All other bytes of an agent's settings stay unchanged. Epitome records the
//! text that it inserts, and removes only that.

mod branch;
pub(crate) mod purge;
pub(crate) mod record;
mod run;
pub(crate) mod settings;
mod uninstall;

use std::fs;
use std::path::{Path, PathBuf};

use epitome_agents::{HookTarget, agents_with_hooks};
use epitome_formats::{Hook, Setting, command};

pub use branch::{Branch, top};
pub use purge::Purge;
pub use record::{LeftOut, Rule};
pub use run::{
    DeferredSession, EndedSession, defer, is_free, keep, log, parse_ended_session, rules_of,
    session_of, take_ready, wait,
};
pub use uninstall::{FileChange, Uninstall};

use crate::archive::GcMode;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::render::RenderForm;
use crate::store::{disk, one_name, write_over_with};
use record::{Installed, Record, difference, hash, lock, missing};
use settings::put;
use uninstall::back;

/// For which sessions transcripts are written when they end, and how: the options of the command
/// line.
#[derive(Clone, Debug, Default)]
pub struct HookRequest {
    /// Only sessions that are run in this folder or below it. `None`: all sessions.
    pub project: Option<PathBuf>,
    /// The forms in which transcripts are written. If empty: HTML.
    pub formats: Vec<RenderForm>,
    /// The folder to write to. `None`: if a branch is given, a folder in the repository's `.git`;
    /// otherwise `.transcripts` in the project; without a project, a folder in epitome's data
    /// folder.
    pub out: Option<PathBuf>,
    /// The branch of the project's repository to commit to. `None`: nothing is committed.
    pub branch: Option<String>,
    /// The name of the recipe with which transcripts are shortened before they are written. `None`:
    /// they are written whole.
    pub compact: Option<String>,
    /// Whether the session itself is compacted when it has ended.
    pub shrink: bool,
}

/// A planned installation. Nothing is changed yet.
#[derive(Clone, Debug)]
pub struct Install {
    /// The file of the agent's settings, or the hook's own file.
    pub file: PathBuf,
    /// The current text of the file; `None` if it does not exist.
    pub before: Option<String>,
    /// The text of the file after the installation.
    pub after: String,
    /// The rule that is installed: of which sessions transcripts are written, and where.
    pub rule: Rule,
    /// What the user still has to do after the installation, as a sentence. `None`: nothing.
    pub afterwards: Option<&'static str>,
    installed: Installed,
}

/// The agents whose settings support a session-end hook.
pub fn agents() -> impl Iterator<Item = &'static str> {
    agents_with_hooks().map(|(agent, _)| agent.name())
}

/// The installed rules. Each says of which sessions of an agent transcripts are written, and where.
///
/// # Errors
///
/// `Unreadable` or `NewerFormat` if the record of installed hooks cannot be parsed; the errors of
/// reading it.
pub fn rules(config: &Config) -> Result<Vec<Rule>> {
    Ok(Record::load(config)?.rules)
}

/// A hook that is installed in an agent's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledHook {
    /// The agent.
    pub agent: String,
    /// The file of the agent's settings, or the hook's own file.
    pub file: PathBuf,
    /// Whether the file still contains the hook as it was installed.
    pub is_there: bool,
}

/// The hooks that are installed.
///
/// # Errors
///
/// `Unreadable` if the record of installed hooks cannot be parsed; `NewerFormat` if a newer epitome
/// wrote it; the errors of reading the record or an agent's settings.
pub fn list_installed(config: &Config) -> Result<Vec<InstalledHook>> {
    let record = Record::load(config)?;
    let installed = record.installed.iter().map(|it| {
        let is_there = matches!(back(it)?, FileChange::Text { .. } | FileChange::Gone { .. });
        Ok(InstalledHook { agent: it.agent.clone(), file: it.file.clone(), is_there })
    });
    installed.collect()
}

impl Install {
    /// Plans to install a hook that calls `program` when a session of the agent ends.
    ///
    /// # Errors
    ///
    /// `Refused` if the agent is unknown or has no such hook, if the branch cannot be used, or if
    /// the folder for the transcripts is a link that leads out of the project; `Unreadable` if the
    /// agent's settings or the manifest in that folder cannot be parsed; `Exists` if another
    /// program wrote the manifest or the index in that folder, or if the hook is a file of its own
    /// and there is another file of that name already; the errors of reading any of these files or
    /// the record of installed hooks.
    pub fn plan(
        config: &Config,
        agent: &str,
        program: &Path,
        wish: &HookRequest,
    ) -> Result<Install> {
        let record = Record::load(config)?;
        let HookTarget { hook, settings } = hook(agent)?;
        let rule = rule(config, agent, wish, &record)?;
        let program = program.to_string_lossy();
        let home = config.home.to_string_lossy();
        let mut words = vec![&*program, "hook", agent];
        if config.home_is_given {
            words.extend(["--home", &*home]);
        }
        let file = real(&settings(&config.agents).join(hook.file));
        let before = read(&file)?;
        let known = record.installed.iter().find(|it| it.agent == agent && it.file == file);
        let (base, installed) = plan_file(agent, hook, &file, before.as_deref(), known, &words)?;
        let after = installed.1;
        let (at, removed, inserted) = difference(base.as_deref().unwrap_or_default(), &after);
        let installed = Installed {
            at,
            removed: removed.to_owned(),
            inserted: inserted.to_owned(),
            after: hash(&after),
            made: base.is_none(),
            ..installed.0
        };
        let afterwards = hook.afterwards.filter(|_| before.as_deref() != Some(&after));
        Ok(Install { file, before, after, rule, afterwards, installed })
    }

    /// Whether the agent's settings change.
    pub fn changes_settings(&self) -> bool {
        self.before.as_deref() != Some(&self.after)
    }

    /// Creates the output folder, or checks the branch out into it; then writes the record and the
    /// settings. Returns the rule that was installed.
    ///
    /// # Errors
    ///
    /// `Changed` if the settings changed since the plan; `Exists` if the branch must be checked out
    /// in a folder that contains something else; `HardLinked` if the file of the settings has
    /// several names; `Disk` or `NoPermission` if a file cannot be written; the errors of git, and
    /// of reading the record or the settings. The agent's settings are unchanged then.
    pub fn carry_out(mut self, config: &Config) -> Result<Rule> {
        let _lock = lock(config, "lock")?;
        let before = Record::load(config)?;
        if read(&self.file)? != self.before {
            return Err(Error::new(ErrorKind::Changed, "the settings changed meanwhile")
                .at(&self.file)
                .with_hint("try again"));
        }
        let done = self.prepare().and_then(|()| {
            let mut record = before.clone();
            record.installed.retain(|it| it.agent != self.rule.agent);
            record.installed.push(self.installed.clone());
            let replaced = record.rules.extract_if(.., |it| is_same(it, &self.rule));
            record.replaced.extend(replaced);
            record.replaced.retain(|rule| rule.out != self.rule.out);
            record.rules.push(self.rule.clone());
            record.store(config)?;
            if self.changes_settings() { replace(&self.file, &self.after) } else { Ok(()) }
        });
        if let Err(err) = done {
            before.store(config).ok();
            purge::empty(&self.rule.made);
            return Err(err);
        }
        Ok(self.rule)
    }

    /// Creates the output folder, or checks the branch out into it. If the rule has a line that
    /// makes git ignore the folder, appends it to git's file of ignore patterns, unless the file
    /// ends with that line already.
    fn prepare(&mut self) -> Result<()> {
        let rule = &self.rule;
        match &rule.branch {
            Some(branch) => branch.check_out(&rule.out)?,
            None => disk::private_folder(&rule.out)?,
        }
        let Some(LeftOut { file, text }) = &rule.left_out else { return Ok(()) };
        let now = read(file)?.unwrap_or_default();
        if now.ends_with(text.as_str()) {
            return Ok(());
        }
        replace(file, &(now + text))
    }
}

/// Plans the change of a settings file. Returns its text without epitome's hook (`None` if the file
/// would not exist), the record of the hook, and its text with the hook. `now` is the current text,
/// `known` the record of an earlier installation. The caller adds to the new record how the text
/// changes.
fn plan_file(
    agent: &str,
    hook: &Hook,
    file: &Path,
    now: Option<&str>,
    known: Option<&Installed>,
    words: &[&str],
) -> Result<(Option<String>, (Installed, String))> {
    let unknown = Installed {
        agent: agent.to_owned(),
        file: file.to_owned(),
        made: now.is_none(),
        folders: known.map_or_else(|| missing_above(file), |it| it.folders.clone()),
        entry: None,
        keys: 0,
        at: 0,
        removed: String::new(),
        inserted: String::new(),
        after: String::new(),
    };
    // An earlier installation is removed from the text first, so that there is at most one hook.
    let base = match known.map(back).transpose()? {
        Some(FileChange::Text { after, .. }) => Some(after),
        Some(FileChange::Gone { .. }) => None,
        Some(FileChange::Kept { .. } | FileChange::Nothing { .. }) | None => now.map(str::to_owned),
    };
    match hook.setting {
        Setting::Own(text) => {
            if base.is_some() {
                let what = "a file of that name is there already";
                return Err(Error::new(ErrorKind::Exists, what).at(file));
            }
            Ok((None, (unknown, text(words))))
        }
        Setting::Listed { list, entry } => {
            let entry = entry(&command(words));
            let (after, keys) =
                put(base.as_deref().unwrap_or_default(), list, &entry).map_err(|err| {
                    let what = "the settings are not as the agent's should be";
                    Error::new(ErrorKind::Unreadable, what).at(file).because(err)
                })?;
            Ok((base, (Installed { entry: Some(entry), keys, ..unknown }, after)))
        }
    }
}

fn rule(config: &Config, agent: &str, wish: &HookRequest, record: &Record) -> Result<Rule> {
    let project = wish.project.as_deref().map(real);
    let repository = project.as_deref().and_then(top);
    let known = record.rules.iter().find(|rule| rule.agent == agent && rule.project == project);
    let branch = match (&wish.branch, &repository) {
        (None, _) => None,
        (Some(name), Some(repository)) => Some(Branch::look_up(repository, name)?),
        (Some(_), None) => {
            let what = "a branch needs a project that is in a git repository";
            return Err(Error::new(ErrorKind::Refused, what));
        }
    };
    let out = match (&wish.out, &branch, &project) {
        (Some(out), _, _) => {
            std::path::absolute(out).map_err(|err| Error::reading(err, "the folder", out))?
        }
        (None, Some(branch), _) => branch::usual_place(&branch.repository, &branch.name)?,
        (None, None, Some(project)) => project.join(".transcripts"),
        (None, None, None) => config.home.join("transcripts"),
    };
    let leads_out = project
        .as_ref()
        .is_some_and(|project| out.starts_with(project) && !real(&out).starts_with(project));
    if leads_out {
        let what = "the folder for the transcripts is a link that leads out of the project";
        let err = Error::new(ErrorKind::Refused, what).at(&out);
        return Err(err.with_hint("name where it leads with --out"));
    }
    crate::render::ours(&out)?;
    // The branch, the folders and the ignore line that an earlier installation created become part
    // of this rule, so that they are removed together with it.
    let mut all = record.rules.iter().chain(&record.replaced);
    let earlier = all.find(|rule| rule.out == out);
    let branch = branch.map(|branch| Branch {
        made: branch.made
            || earlier.and_then(|rule| rule.branch.as_ref()).is_some_and(|it| it.made),
        ..branch
    });
    let left_out = match earlier.or(known.filter(|rule| rule.out == out)) {
        Some(rule) => rule.left_out.clone(),
        None => repository.as_deref().and_then(|it| left_out(it, &out)),
    };
    Ok(Rule {
        agent: agent.to_owned(),
        project,
        formats: if wish.formats.is_empty() {
            vec![RenderForm::Html]
        } else {
            wish.formats.clone()
        },
        made: earlier.map_or_else(|| missing(&out), |rule| rule.made.clone()),
        out,
        compact: wish.compact.clone(),
        shrink: wish.shrink,
        branch,
        settings: config.settings.clone(),
        left_out,
    })
}

/// The line that makes git ignore an output folder inside the project's working tree. `None` if no
/// line is needed (the folder is not inside it, is its top folder, is in git's own folder, or is
/// ignored already), or if git's ignore patterns cannot be read.
fn left_out(repository: &Path, out: &Path) -> Option<LeftOut> {
    let common = branch::common(repository).ok()?;
    let inside = real(out).strip_prefix(real(repository)).ok()?.to_str()?.to_owned();
    if inside.is_empty()
        || real(out).starts_with(real(&common))
        || branch::is_ignored(repository, out)
    {
        return None;
    }
    let file = common.join("info/exclude");
    let now = read(&file).ok()?.unwrap_or_default();
    let gap = if now.is_empty() || now.ends_with('\n') { "" } else { "\n" };
    Some(LeftOut { file, text: format!("{gap}/{inside}/\n") })
}

/// Whether two rules are for the same agent and the same project. A new rule replaces such an
/// earlier rule.
fn is_same(one: &Rule, other: &Rule) -> bool {
    one.agent == other.agent && one.project == other.project
}

fn hook(agent: &str) -> Result<HookTarget> {
    epitome_agents::find_agent(agent).and_then(|agent| agent.hook()).ok_or_else(|| {
        let known = agents().collect::<Vec<_>>().join(", ");
        let what = format!("{agent} cannot run epitome when a session ends");
        Error::new(ErrorKind::Refused, what).with_hint(format!("these can: {known}"))
    })
}

pub(crate) fn missing_above(file: &Path) -> Vec<PathBuf> {
    file.parent().map(missing).unwrap_or_default()
}

/// A path whose symbolic links are resolved, as far as the path exists.
pub(crate) fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for there in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (there.canonicalize(), path.strip_prefix(there)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path
}

pub(crate) fn read(file: &Path) -> Result<Option<String>> {
    match regular::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(Error::reading(err, "the settings", file)),
    }
}

/// Returns an error for a file that is read-only or has several hard links.
fn check_replaceable(meta: &fs::Metadata, file: &Path) -> Result<()> {
    if meta.permissions().readonly() {
        let what = "the settings are marked read-only";
        return Err(Error::new(ErrorKind::NoPermission, what).at(file));
    }
    one_name(meta, file, "the settings have more than one name on disk")
}

pub(crate) fn unchanged(file: &Path, before: &str) -> Result<()> {
    if read(file)?.as_deref() == Some(before) {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::Changed, "the settings changed meanwhile")
            .at(file)
            .with_hint("try again"))
    }
}

/// Replaces the content of a file and keeps its mode. A file that does not exist is created.
/// Temporary files of killed processes in the same folder are removed.
///
/// # Errors
///
/// `Disk` or `NoPermission` if the file cannot be written; `NoPermission` also if it is marked
/// read-only; `HardLinked` if it has several names, because the others would keep the old text.
pub(crate) fn replace(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        disk::private_folder(folder)?;
        disk::sweep(folder, GcMode::Remove);
    }
    let meta = match fs::metadata(file) {
        Ok(meta) => Some(meta),
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => None,
        Err(err) => return Err(Error::reading(err, "the settings", file)),
    };
    if let Some(meta) = &meta {
        check_replaceable(meta, file)?;
    }
    let mode = meta.map(|meta| meta.permissions());
    write_over_with(file, mode, |out| Ok(out.write_all(text.as_bytes())?))
}

#[cfg(test)]
mod tests;
