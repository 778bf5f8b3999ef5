//! Keeps versions of all sessions: what an agent wrote stays available after the agent overwrites,
//! cuts or deletes it.
//!
//! A [`Keeper`] scans the sessions of agents and adds what is new to the
//! [vault](epitome_store::vault). [`find`](fn@find) finds a session in the vault, also one that its
//! agent has deleted, [`VersionHistory`] lists its versions, and [`RestoreVersion`] restores one.
//!
//! ```
//! use epitome::keep::{Keeper, VaultMatch, VersionHistory, find};
//!
//! # let home = tempfile::tempdir().expect("a folder");
//! # let config = epitome::Config::from_home(home.path());
//! # let folder = home.path().join(".pi/agent/sessions/--p--");
//! # std::fs::create_dir_all(&folder).expect("a folder");
//! # let path = folder.join("2026-11-18T12-00-00-000Z_0001.jsonl");
//! # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
//! let mut keeper = Keeper::open(&config)?;
//! assert_eq!(keeper.scan()?.kept.len(), 1);
//! std::fs::remove_file(&path).expect("a session");
//! assert_eq!(keeper.scan()?.kept.len(), 1);
//! let vault = config.vault()?;
//! let found = find(&config, &vault, "0001", None);
//! let VaultMatch::Session(file) = found else { panic!("it is kept") };
//! let history = VersionHistory::read(&config, &vault, &file)?;
//! assert_eq!(history.versions.len(), 2);
//! assert!(!history.exists);
//! # Ok::<(), epitome::Error>(())
//! ```

mod compacted;
mod deleted;
mod find;
mod forgotten;
mod history;
mod moved;
mod orphans;
mod parts;
mod prune;
mod restore;
mod transfer;
mod unfinished;
mod watch;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use epitome_agents::{self as agents, AGENTS, FoundSessions, SessionFile, find_agent};
use epitome_model::{Bytes, Source as _};
use jiff::Timestamp;
use serde::Serialize;

pub use deleted::{DeletedSession, deleted_sessions};
pub use epitome_store::vault::{
    Cause, ContentChange, FileKey, FileStamp, Vault, VaultReport, Version,
};
pub use find::{VaultMatch, find};
pub use forgotten::Forgotten;
pub use history::{HistoryVersion, VersionHistory, VersionReason};
pub use moved::{file_with_version, files_at_place, present_path, versions_at_place};
pub use prune::{ProjectRules, PruneReport, PrunedFile, RetentionRules};
pub use restore::{InterruptedRestore, RestoreVersion, RestoredVersion, VersionFolder};
pub(crate) use restore::{complete_restores_of, interrupted_restores, remove_abandoned};
pub use transfer::{
    ReceivedVersions, StagedVersions, VaultPack, files_of_session, place_here, receive_versions,
};
pub use watch::{FolderWatch, Stopper, Wake};

use crate::archive::GcMode;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::ops::{OpenSession, is_run_in};
use crate::place::Place;
use crate::regular;
use crate::rows;
use crate::vault::{Batch, Committed, Put};

/// The maximum number of attempts to add versions to the vault. An attempt fails, for example, if
/// another keeper has added versions meanwhile.
const ATTEMPTS: usize = 5;
/// The time between two scans of everything, if the system reports the changes in every folder.
const RESCAN: Duration = Duration::from_mins(10);
/// The time between two scans of everything, if the system does not report the changes in every
/// folder.
const POLL: Duration = Duration::from_secs(30);
/// The minimum time between two applications of the [`RetentionRules`].
const PRUNE: Duration = Duration::from_hours(24);
/// If this machine has this many packs in the vault, they are merged even while files keep
/// changing.
const MANY_PACKS: usize = 512;
/// The maximum time after which a file is read again that changed all the time while it was read.
const SOON: Duration = Duration::from_secs(2);

/// Scans sessions, and adds what is new to the vault.
pub struct Keeper<'a> {
    config: &'a Config,
    vault: Vault,
    /// Only sessions of this agent. `None`: of all agents.
    pub agent: Option<&'a str>,
    /// Only sessions that were run in this folder or below it. `None`: all sessions.
    pub project: Option<&'a Path>,
    /// Which projects are kept from now on, how long versions are kept, and how large the vault may
    /// be. [`prune_if_due`](Keeper::prune_if_due) removes versions that exceed the age or the size.
    pub rules: RetentionRules,
    /// When the rules were applied last.
    pruned: Option<Instant>,
    /// For each path, the state that the file had when its content was last added to the vault or
    /// found in it.
    known: HashMap<PathBuf, Known>,
    /// The results of [`is_in_project`](Keeper::is_in_project), by the paths of the sessions.
    in_project: HashMap<PathBuf, bool>,
    /// The files that the last scan found, by path.
    listed: HashMap<PathBuf, Candidate>,
}

/// The state of a file whose content the vault has. A file that is still in this state did not
/// change since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// A file with this stamp.
    File(FileStamp),
    /// The rows of a session in a database, or a session of many files: the time when they were
    /// last modified, and their total length.
    Listed(SystemTime, Bytes),
}

/// What a scan did.
#[derive(Clone, Debug, Default)]
pub struct ScanReport {
    /// The versions that were added or, in the report of [`Keeper::plan`], would be added.
    pub kept: Vec<KeptVersion>,
    /// The number of files that the scan found, including those that did not change. The rows of a
    /// session in a database count as one file.
    pub files: u64,
    /// Files that changed all the time while they were read; the next scan reads them again.
    pub changing: Vec<PathBuf>,
    /// The errors of sessions, folders and databases that could not be read.
    pub unread: Vec<Error>,
    /// The interrupted restores that were completed before anything was kept.
    pub completed: Vec<InterruptedRestore>,
    /// The errors of interrupted restores that could not be completed.
    pub unfinished: Vec<Error>,
    /// What the retention rules removed from the vault, if they were applied.
    pub pruned: Option<PruneReport>,
}

/// A kept file, as reports name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptFile {
    /// The name of the agent.
    pub agent: String,
    /// The id of the session.
    pub session: String,
    /// The name of the file, if it belongs to the session but is not the session's main file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The address of the file.
    #[serde(serialize_with = "epitome_model::lossy_path")]
    pub path: PathBuf,
}

impl From<&FileKey> for KeptFile {
    fn from(file: &FileKey) -> KeptFile {
        KeptFile {
            agent: file.agent.clone(),
            session: file.session.clone(),
            part: file.part.clone(),
            path: file.path.clone(),
        }
    }
}

/// A version that was added to the vault, or would be added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptVersion {
    /// The file.
    #[serde(flatten)]
    pub file: KeptFile,
    /// The number of the version.
    pub version: u64,
    /// What changed.
    pub change: ChangeName,
    /// The length of the content before the change; 0 if there was none.
    pub bytes_before: Bytes,
    /// The length of the content after the change.
    pub bytes: Bytes,
}

/// The name of a [`ContentChange`] in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeName {
    /// The first version.
    First,
    /// Bytes were appended.
    Appended,
    /// Bytes were removed from the end.
    Cut,
    /// The content is that of an earlier version.
    Back,
    /// The content changed in another way.
    Rewritten,
    /// The file was deleted.
    Deleted,
}

impl From<ContentChange> for ChangeName {
    fn from(change: ContentChange) -> ChangeName {
        match change {
            ContentChange::First => ChangeName::First,
            ContentChange::Appended => ChangeName::Appended,
            ContentChange::Cut => ChangeName::Cut,
            ContentChange::Back(_) => ChangeName::Back,
            ContentChange::Rewritten => ChangeName::Rewritten,
            ContentChange::Deleted => ChangeName::Deleted,
        }
    }
}

impl ChangeName {
    /// What changed in a content that is `bytes` long and was `before` long, in a few words.
    pub fn describe(self, bytes: Bytes, before: Bytes) -> String {
        let difference = match bytes.0.checked_sub(before.0) {
            Some(more) => format!("+{}", Bytes(more)),
            None => format!("-{}", Bytes(before.0 - bytes.0)),
        };
        match self {
            ChangeName::First => format!("first seen, {bytes}"),
            ChangeName::Appended => difference,
            ChangeName::Cut => format!("cut, {difference}"),
            ChangeName::Back => format!("as before, {difference}"),
            ChangeName::Rewritten => format!("rewritten, {difference}"),
            ChangeName::Deleted => "deleted".to_owned(),
        }
    }
}

/// A file that may have a new version.
#[derive(Clone, Debug)]
struct Candidate {
    agent: String,
    session: String,
    part: Option<String>,
    path: PathBuf,
    /// When the session was last modified, and its length, as the list of sessions states them.
    /// `None` for a file that belongs to the session but is not its main file.
    listed: Option<(SystemTime, Bytes)>,
}

impl<'a> Keeper<'a> {
    /// A keeper for the sessions of all agents and projects. Creates the vault if it does not
    /// exist.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the vault cannot be created; `Archive` if it cannot be listed.
    pub fn open(config: &'a Config) -> Result<Keeper<'a>> {
        Ok(Keeper::over(config, config.create_vault()?))
    }

    /// A keeper that is used only for [`plan`](Keeper::plan). Does not create a vault.
    ///
    /// # Errors
    ///
    /// The errors of [`Vault::open`].
    pub fn open_dry(config: &'a Config) -> Result<Keeper<'a>> {
        Ok(Keeper::over(config, config.vault()?))
    }

    fn over(config: &'a Config, vault: Vault) -> Keeper<'a> {
        let mut known = HashMap::new();
        for file in vault.files().filter(|file| file.machine == vault.machine()) {
            let last = vault.versions(file).next_back();
            if let Some(stamp) = last.and_then(|version| version.stamp) {
                known.insert(file.path.clone(), Known::File(stamp));
            }
        }
        Keeper {
            config,
            vault,
            agent: None,
            project: None,
            rules: RetentionRules::default(),
            pruned: None,
            known,
            in_project: HashMap::new(),
            listed: HashMap::new(),
        }
    }

    /// Removes the versions that the rules for age and size do not keep, except the last content of
    /// a deleted session. Does nothing and returns `None` if there are no such rules, or if this
    /// keeper applied them in the last 24 hours. The rules for projects remove nothing here: they
    /// say what is kept from now on.
    ///
    /// # Errors
    ///
    /// The errors of [`RetentionRules::prune`].
    pub fn prune_if_due(&mut self) -> Result<Option<PruneReport>> {
        let rules = self.rules.for_keeper();
        if rules.is_empty() || self.pruned.is_some_and(|at| at.elapsed() < PRUNE) {
            return Ok(None);
        }
        self.pruned = Some(Instant::now());
        rules.prune(self.config, &mut self.vault, GcMode::Remove).map(Some)
    }

    /// The vault.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// Scans all sessions, and keeps what is new. Skips files that certainly did not change since
    /// the vault got their content.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the vault cannot be written; `Archive` if it cannot be listed;
    /// `Locked` if another epitome adds to it all the time; the errors of reading the list of
    /// forgotten sessions. A session that cannot be read is not an error: the report names it.
    pub fn scan(&mut self) -> Result<ScanReport> {
        let report = self.scan_all()?;
        self.vault.merge()?;
        Ok(report)
    }

    /// As [`scan`](Keeper::scan), without merging packs.
    fn scan_all(&mut self) -> Result<ScanReport> {
        let restores = restore::complete_restores(self.config, &mut self.vault);
        remove_abandoned(self.config);
        for _ in 0..ATTEMPTS {
            let (candidates, mut report) = self.candidates(self.agent);
            report.completed.clone_from(&restores.completed);
            report.unfinished.clone_from(&restores.errors);
            let deleted = self.deleted(&candidates, &report.unread);
            let is_kept = self.keep(&candidates, &deleted, &mut report)?;
            self.listed = candidates.into_iter().map(|it| (it.path.clone(), it)).collect();
            if is_kept {
                return Ok(report);
            }
        }
        Err(self.never_current())
    }

    /// Keeps what is new in the files at these paths, which have changed. If a path is in the
    /// folder of an agent or is that of an agent's database, and no earlier scan found a file at
    /// the path or that file does not exist any more, the sessions of that agent are listed again.
    /// All other paths at which no scan found a file are ignored.
    ///
    /// # Errors
    ///
    /// The errors of [`scan`](Keeper::scan).
    pub fn scan_changed(&mut self, paths: &BTreeSet<PathBuf>) -> Result<ScanReport> {
        let report = self.scan_paths(paths)?;
        self.vault.merge()?;
        Ok(report)
    }

    /// As [`scan_changed`](Keeper::scan_changed), without merging packs.
    fn scan_paths(&mut self, paths: &BTreeSet<PathBuf>) -> Result<ScanReport> {
        for _ in 0..ATTEMPTS {
            let mut candidates = Vec::new();
            let mut report = ScanReport::default();
            let mut deleted = Vec::new();
            for agent in self.agents_to_list(paths) {
                let (found, listed) = self.candidates(Some(agent));
                report.unread.extend(listed.unread);
                deleted.extend(self.deleted_of(Some(agent), &found, &report.unread));
                self.listed.retain(|_, known| known.agent != agent);
                self.listed.extend(found.iter().map(|it| (it.path.clone(), it.clone())));
                candidates.extend(found);
            }
            let is_new = |it: &&Candidate| candidates.iter().all(|other| other.path != it.path);
            let changed = paths.iter().filter_map(|path| self.listed.get(path)).filter(is_new);
            let changed: Vec<Candidate> = changed.cloned().collect();
            candidates.extend(changed);
            report.files = candidates.len() as u64;
            if self.keep(&candidates, &deleted, &mut report)? {
                return Ok(report);
            }
        }
        Err(self.never_current())
    }

    /// Keeps what changes, until the [`Stopper`] of `watch` ends the waiting. Calls `each` with the
    /// report of each scan. Everything is scanned at the beginning and every `every`; `None` means
    /// every 10 minutes, or every 30 seconds if the system does not report the changes in every
    /// folder.
    ///
    /// # Errors
    ///
    /// The errors of [`scan`](Keeper::scan) and [`prune_if_due`](Keeper::prune_if_due), and those
    /// of `each`.
    pub fn watch<E: From<Error>>(
        &mut self,
        watch: &mut FolderWatch,
        every: Option<Duration>,
        mut each: impl FnMut(&FolderWatch, &ScanReport) -> Result<(), E>,
    ) -> Result<(), E> {
        let _running = hold_running(self.config);
        self.add_folders(watch);
        let mut report = self.scan_all()?;
        self.add_folders(watch);
        let mut scanned = Instant::now();
        loop {
            report.pruned = self.prune_if_due()?;
            each(watch, &report)?;
            // Packs are merged when no file changes, or if there are very many packs: changes that
            // are made during a merge are kept only after the merge, which reads many bytes.
            let packs = self.vault.pack_numbers(self.vault.machine()).len();
            if watch.is_quiet() || packs >= MANY_PACKS {
                self.vault.merge()?;
            }
            // A file that was being written is read again with the next changes, and at the latest
            // after `SOON`.
            let usual = if watch.polls() { POLL } else { RESCAN };
            let every = every.unwrap_or(usual).saturating_sub(scanned.elapsed());
            let left = if report.changing.is_empty() { every } else { SOON.min(every) };
            report = match watch.wait(left) {
                Wake::Stop => return Ok(()),
                Wake::Changed(paths) => {
                    let again = report.changing.iter().cloned();
                    let paths: BTreeSet<PathBuf> = paths.into_iter().chain(again).collect();
                    self.scan_paths(&paths)?
                }
                Wake::Everything => {
                    let report = self.scan_all()?;
                    self.add_folders(watch);
                    scanned = Instant::now();
                    report
                }
            };
        }
    }

    /// Watches the folders of agents, and the folders of sessions that are outside of these.
    fn add_folders(&self, watch: &mut FolderWatch) {
        for agent in AGENTS.iter().filter(|it| self.agent.is_none_or(|name| name == it.name())) {
            // If sessions of the agent are in a database, the folders in its folder are not
            // watched: they may contain many files that are not sessions.
            let is_deep = self
                .listed
                .values()
                .all(|it| it.agent != agent.name() || rows::split(&it.path).is_none());
            watch.add(&agent.folder(&self.config.agents), is_deep);
        }
        for known in self.listed.values() {
            let file = rows::split(&known.path).map(|(database, _)| database);
            let file = file.unwrap_or_else(|| known.path.clone());
            let agent = find_agent(&known.agent).map(|it| it.folder(&self.config.agents));
            if let Some(folder) = file.parent()
                && !agent.is_some_and(|agent| folder.starts_with(agent))
            {
                watch.add(folder, false);
            }
        }
    }

    /// The agents whose sessions must be listed again: those for which one of the paths is in the
    /// agent's folder or is that of its database, and is not the path of a file that an earlier
    /// scan found and that still exists.
    fn agents_to_list(&self, paths: &BTreeSet<PathBuf>) -> Vec<&'static str> {
        let is_known = |path: &Path| self.listed.contains_key(path) && path.exists();
        let mut found = BTreeSet::new();
        for path in paths.iter().filter(|path| !is_known(path)) {
            let agents = AGENTS.iter().filter(|agent| {
                let folder = agent.folder(&self.config.agents);
                path.starts_with(&folder) || self.is_database_of(agent.name(), path)
            });
            found.extend(agents.map(|agent| agent.name()));
        }
        let is_wanted = |name: &&str| self.agent.is_none_or(|agent| agent == *name);
        found.into_iter().filter(is_wanted).collect()
    }

    /// Whether a path is that of a database with sessions of an agent, or of a file that belongs to
    /// the database, such as its write-ahead log.
    fn is_database_of(&self, agent: &str, path: &Path) -> bool {
        self.listed.values().filter(|it| it.agent == agent).any(|it| {
            rows::split(&it.path).is_some_and(|(database, _)| {
                path.as_os_str()
                    .as_encoded_bytes()
                    .starts_with(database.as_os_str().as_encoded_bytes())
            })
        })
    }

    fn never_current(&self) -> Error {
        let what = "another epitome is adding to the vault all the time";
        Error::new(ErrorKind::Locked, what).at(&Vault::folder_in(&self.config.home))
    }

    /// Returns what [`scan`](Keeper::scan) would keep, and what cannot be read. Nothing is written.
    pub fn plan(&mut self) -> ScanReport {
        let (candidates, mut report) = self.candidates(self.agent);
        let deleted = self.deleted(&candidates, &report.unread);
        for candidate in &candidates {
            match self.planned(candidate) {
                Ok(kept) => report.kept.extend(kept),
                Err(err) => report.unread.push(err.with_default_path(&candidate.path)),
            }
        }
        for file in &deleted {
            let last = self.vault.versions(file).next_back();
            report.kept.extend(last.map(|last| KeptVersion {
                version: last.number + 1,
                change: ChangeName::Deleted,
                bytes: Bytes(0),
                ..kept_version(file, last, last.digest.len)
            }));
        }
        report
    }

    fn planned(&self, candidate: &Candidate) -> Result<Option<KeptVersion>> {
        let source = match Place::parse(&candidate.path) {
            Place::File(path) => crate::source::FileSource::open(&path)?,
            place @ (Place::Rows(_) | Place::Spread(_)) => place.open()?,
        };
        let file = candidate.key(&self.vault);
        let Some(change) = self.vault.difference(&file, &source)? else { return Ok(None) };
        let last = self.vault.versions(&file).next_back();
        let number = match last {
            Some(last) => last.number,
            None => moved::number_before(self.config, &self.vault, &file),
        };
        Ok(Some(KeptVersion {
            file: KeptFile::from(&file),
            version: number + 1,
            change: change.into(),
            bytes_before: Bytes(last.map_or(0, |last| last.digest.len)),
            bytes: Bytes(source.len()),
        }))
    }

    /// Adds what is new to the vault. Returns false if another keeper was faster: nothing was added
    /// then.
    fn keep(
        &mut self,
        candidates: &[Candidate],
        deleted: &[FileKey],
        report: &mut ScanReport,
    ) -> Result<bool> {
        // Sessions that were forgotten after they were listed are also left out.
        let forgotten = Forgotten::read(self.config)?;
        let keys: Vec<FileKey> = candidates.iter().map(|it| it.key(&self.vault)).collect();
        let counted = moved::numbers_before(self.config, &self.vault, &keys);
        let mut proved = Vec::new();
        let mut batch = self.vault.begin(self.config.now());
        batch.count_from(counted);
        for (candidate, key) in candidates.iter().zip(&keys) {
            let is_forgotten = forgotten.has(&candidate.agent, &candidate.session);
            if is_forgotten || candidate.is_known(&self.known) {
                continue;
            }
            match candidate.put(&mut batch, key) {
                Ok(Put::Changing) => report.changing.push(candidate.path.clone()),
                Ok(Put::Same(stamp)) => {
                    let known = stamp.map(Known::File).or(candidate.listed());
                    proved.extend(known.map(|known| (candidate.path.clone(), known)));
                }
                Ok(Put::New(_)) => {
                    let listed = candidate.listed();
                    proved.extend(listed.map(|known| (candidate.path.clone(), known)));
                }
                // The file was deleted since it was listed.
                Err(err) if err.kind() == ErrorKind::NotFound => {}
                Err(err) if is_of_vault(&err, self.config) => return Err(err),
                Err(err) => report.unread.push(err.with_default_path(&candidate.path)),
            }
        }
        for file in deleted {
            batch.put_deleted(file);
        }
        let written = match batch.commit()? {
            Committed::Written(written) => written,
            Committed::Stale => return Ok(false),
        };
        for (file, version) in &written {
            let before = self.vault.version(file, version.number - 1);
            let before = before.map_or(0, |before| before.digest.len);
            report.kept.push(kept_version(file, version, before));
            match version.stamp {
                Some(stamp) => drop(self.known.insert(file.path.clone(), Known::File(stamp))),
                None => drop(self.known.remove(&file.path)),
            }
        }
        self.known.extend(proved);
        Ok(true)
    }

    /// The files of an agent's sessions (`None`: of all agents) that are to be kept, and a report
    /// with the errors of what could not be read.
    fn candidates(&mut self, agent: Option<&str>) -> (Vec<Candidate>, ScanReport) {
        let FoundSessions { sessions, mut unread } = agents::all(&self.config.agents, agent);
        // Without this list, forgotten sessions would be kept again. So if it cannot be read,
        // nothing is kept.
        let forgotten = match Forgotten::read(self.config) {
            Ok(forgotten) => forgotten,
            Err(err) => {
                unread.push(err);
                return (Vec::new(), ScanReport { unread, ..ScanReport::default() });
            }
        };
        let mut candidates = Vec::new();
        for session in sessions {
            if forgotten.has(session.agent, &session.id) || !self.is_in_project(&session) {
                continue;
            }
            candidates.push(Candidate {
                agent: session.agent.to_owned(),
                session: session.id.clone(),
                part: None,
                path: session.path.clone(),
                listed: Some((session.modified, session.size)),
            });
            for path in agents::companions_of(find_agent(session.agent), &session.path) {
                candidates.push(Candidate {
                    agent: session.agent.to_owned(),
                    session: session.id.clone(),
                    part: Some(part_name(&path)),
                    path,
                    listed: None,
                });
            }
        }
        self.add_orphans(agent, &forgotten, &mut candidates);
        let files = candidates.len() as u64;
        (candidates, ScanReport { files, unread, ..ScanReport::default() })
    }

    /// Whether a session may be kept, by the folder in which it was run: this must be in `project`,
    /// if that is set, and in a project that `rules` keep. False if the session cannot be read. The
    /// result is cached for sessions that could be read.
    fn is_in_project(&mut self, session: &SessionFile) -> bool {
        if self.project.is_none() && self.rules.projects.is_empty() {
            return true;
        }
        if let Some(known) = self.in_project.get(&session.path) {
            return *known;
        }
        let opened = OpenSession::new(self.config, &session.path);
        let Ok(read) = opened.load() else { return false };
        let cwd = read.transcript.head.cwd.as_deref();
        let is_wanted = self.project.is_none_or(|project| is_run_in(project, cwd));
        let is_in = is_wanted && self.rules.projects.keeps(cwd);
        self.in_project.insert(session.path.clone(), is_in);
        is_in
    }

    /// Kept files that certainly do not exist any more, and whose deletion is not recorded yet.
    fn deleted(&self, candidates: &[Candidate], unread: &[Error]) -> Vec<FileKey> {
        self.deleted_of(self.agent, candidates, unread)
    }

    fn deleted_of(
        &self,
        agent: Option<&str>,
        candidates: &[Candidate],
        unread: &[Error],
    ) -> Vec<FileKey> {
        let here: BTreeSet<&Path> = candidates.iter().map(|it| it.path.as_path()).collect();
        let machine = self.vault.machine();
        let own = self.vault.files().filter(|file| file.machine == machine);
        let gone = own.filter(|file| {
            let last = self.vault.versions(file).next_back();
            let is_wanted = agent.is_none_or(|agent| agent == file.agent);
            is_wanted
                && last.is_some_and(|last| !last.is_deleted())
                && !here.contains(file.path.as_path())
                && unread.iter().all(|err| err.path().is_none_or(|at| !file.path.starts_with(at)))
                && deleted::is_gone(self.config, &file.agent, &file.path)
                && !self.is_moved(file, &here)
        });
        gone.cloned().collect()
    }

    /// Whether a missing file was not deleted but moved, together with its home folder: the scan
    /// found it at its new path, or versions of it were kept there. `here` are the paths of the
    /// files that the scan found and that are to be kept.
    fn is_moved(&self, file: &FileKey, here: &BTreeSet<&Path>) -> bool {
        moved::moved_to(self.config, &self.vault, file).is_some_and(|to| here.contains(&*to))
            || moved::is_superseded(self.config, &self.vault, file)
    }
}

impl Candidate {
    fn key(&self, vault: &Vault) -> FileKey {
        FileKey {
            machine: vault.machine().to_owned(),
            agent: self.agent.clone(),
            session: self.session.clone(),
            part: self.part.clone(),
            path: self.path.clone(),
        }
    }

    /// For the rows of a session in a database or a session of many files: the state that the list
    /// of sessions gives. If it is the same in two lists, the session did not change between them.
    /// `None` for a single file, and for a file that is not the session's main file.
    fn listed(&self) -> Option<Known> {
        let is_file = matches!(Place::parse(&self.path), Place::File(_));
        let (modified, size) = self.listed.filter(|_| !is_file)?;
        Some(Known::Listed(modified, size))
    }

    /// Whether the file certainly did not change since the vault got its content.
    fn is_known(&self, known: &HashMap<PathBuf, Known>) -> bool {
        match known.get(&self.path) {
            None => false,
            Some(Known::Listed(modified, size)) => self.listed == Some((*modified, *size)),
            Some(Known::File(stamp)) => {
                fs::metadata(&self.path).is_ok_and(|meta| FileStamp::from_metadata(&meta) == *stamp)
            }
        }
    }

    fn put(&self, batch: &mut Batch<'_>, key: &FileKey) -> Result<Put> {
        match Place::parse(&self.path) {
            // A compressed file is kept as it is.
            Place::File(path) => batch.put_file(key, &path),
            place @ (Place::Rows(_) | Place::Spread(_)) => {
                let modified = self.listed.and_then(|(at, _)| Timestamp::try_from(at).ok());
                batch.put_snapshot(key, &place.open()?, modified)
            }
        }
    }
}

/// The file that keepers lock while they keep versions continually.
fn running_file(config: &Config) -> PathBuf {
    Vault::folder_in(&config.home).join("keeping")
}

/// Marks this process as one that keeps versions continually, until the returned file is dropped.
/// During this time, [`is_running`] returns true. [`Keeper::watch`] calls this itself. Returns
/// `None` if the mark cannot be set; this process keeps versions nevertheless.
pub fn hold_running(config: &Config) -> Option<fs::File> {
    let mut options = fs::File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    let file = regular::open_with(options, &running_file(config)).ok()?;
    file.lock_shared().ok()?;
    Some(file)
}

/// Whether a process of this machine keeps versions continually at the moment, as `epitome keep`
/// and `epitome watch --keep` without `--once` do. False where the file system has no locks.
pub fn is_running(config: &Config) -> bool {
    let file =
        regular::open_with(fs::File::options().read(true).write(true), &running_file(config));
    file.is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)))
}

/// The name of a file that belongs to a session: the file's name without its extension or, for rows
/// of a database, what follows `#` in their address.
fn part_name(path: &Path) -> String {
    match rows::split(path) {
        Some((_, name)) => name.to_owned(),
        None => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

/// Whether an error is probably one of the vault, and not of the file that was to be kept. Then no
/// other file can be kept either.
fn is_of_vault(err: &Error, config: &Config) -> bool {
    let folder = Vault::folder_in(&config.home);
    matches!(err.kind(), ErrorKind::Disk | ErrorKind::Archive)
        || err.path().is_some_and(|path| path.starts_with(folder))
}

fn kept_version(file: &FileKey, version: &Version, before: u64) -> KeptVersion {
    KeptVersion {
        file: KeptFile::from(file),
        version: version.number,
        change: version.change.into(),
        bytes_before: Bytes(before),
        bytes: Bytes(version.digest.len),
    }
}
