//! Forgets a session.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use epitome_agents::{self as agents, SessionFile, SessionMatch};
use epitome_model::plural;
use epitome_redact::Redactor;
use epitome_store::forgotten::ForgottenText;
use epitome_store::vault::VersionNumbers;

use super::{ForgetAction, ForgetReport, ForgottenCopy, PlaceKind, home};
use super::{incomplete, with_rest};
use crate::archive::{GcMode, SessionKey};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::history::History;
use crate::history::Version::AsItWas;
use crate::keep::{
    ContentChange, FileKey, Forgotten, InterruptedRestore, Vault, VaultMatch, Version,
    complete_restores_of, find, interrupted_restores, remove_abandoned,
};
use crate::ops::is_no_part;
use crate::place;
use crate::session::{key_of, load};

/// Forgets what epitome stores of a session. The session itself stays, and epitome keeps no version
/// of it again.
pub struct ForgetSession {
    /// The name of the agent.
    pub agent: String,
    /// The id of the session.
    pub id: String,
    /// The files of the session in the vault.
    files: Vec<FileKey>,
    /// The keys under which the archive of compactions has the session and the files that belong to
    /// it.
    keys: Vec<SessionKey>,
    /// The addresses of the session's files: where they were kept or compacted, and where the agent
    /// lists the session now.
    paths: BTreeSet<PathBuf>,
}

/// The result of looking up a session that is to be forgotten.
pub enum SessionChoice {
    /// The session.
    One(ForgetSession),
    /// The text may mean several sessions: their agents and ids.
    AnyOf(Vec<(String, String)>),
    /// No session was found.
    Nothing,
}

impl ForgetSession {
    /// Finds the session that a user means by a path, an id, or the prefix of an id. The session
    /// may exist only in the vault or in the archive.
    ///
    /// # Errors
    ///
    /// `Archive` if the vault or the archive cannot be listed.
    pub fn find(config: &Config, text: &str, agent: Option<&str>) -> Result<SessionChoice> {
        if text.trim().is_empty() {
            return Ok(SessionChoice::Nothing);
        }
        let vault = config.vault()?;
        let mut found: BTreeSet<(String, String)> = match find(config, &vault, text, agent) {
            VaultMatch::Session(file) => BTreeSet::from([(file.agent, file.session)]),
            VaultMatch::AnyOf(files) => {
                files.into_iter().map(|file| (file.agent, file.session)).collect()
            }
            VaultMatch::Nothing => BTreeSet::new(),
        };
        if found.is_empty() {
            let archived = config.archive().sessions_found()?.keys.into_iter();
            let is_meant = |key: &SessionKey| {
                let is_of_agent = agent.is_none_or(|agent| key.agent == agent);
                key.id.starts_with(text) && is_of_agent
            };
            found = archived.filter(is_meant).map(|key| (key.agent, key.id)).collect();
            // The ids of sub-agents may begin with the id of their session.
            if found.iter().any(|(_, id)| id == text) {
                found.retain(|(_, id)| id == text);
            }
        }
        if found.is_empty()
            && let SessionMatch::File(path) = agents::find_session(&config.agents, text, agent)
        {
            // An agent may list a file under an id that differs from the one in its content.
            let listed = agents::all(&config.agents, agent).sessions.into_iter();
            match listed.into_iter().find(|session| session.path == path) {
                Some(session) => drop(found.insert((session.agent.to_owned(), session.id))),
                None => {
                    if let Ok(session) = load(&path, agent) {
                        let key = key_of(&session, &path);
                        found.insert((key.agent, key.id));
                    }
                }
            }
        }
        if let [(agent, id)] = found.iter().collect::<Vec<_>>()[..] {
            let forget = ForgetSession::new(config, &vault, agent, id)?;
            return Ok(SessionChoice::One(forget));
        }
        match found.is_empty() {
            true => Ok(SessionChoice::Nothing),
            false => Ok(SessionChoice::AnyOf(found.into_iter().collect())),
        }
    }

    /// Teaches a redactor the secrets in all kept versions of the session, and in the present
    /// session, including what compactions removed from it. Returns what of that could not be put
    /// back, each as a sentence.
    ///
    /// # Errors
    ///
    /// `Archive` if the vault cannot be listed, or a version cannot be read; the errors of reading
    /// the session as it is now.
    pub(super) fn learn_all(
        &self,
        config: &Config,
        redactor: &mut Redactor<'_>,
    ) -> Result<Vec<String>> {
        let vault = config.vault()?;
        for file in &self.files {
            let versions: Vec<&Version> =
                vault.versions(file).filter(|version| !version.is_deleted()).collect();
            // If the agent only appended between versions, the last one contains the others.
            for chain in versions.chunk_by(|_, next| next.change == ContentChange::Appended) {
                if let Some(last) = chain.last() {
                    let source = match vault.open_decompressed(file, last.number)? {
                        Some(plain) => plain,
                        None => vault.open_version(file, last.number)?,
                    };
                    redactor.learn(&source);
                    source.failure().map_or(Ok(()), Err)?;
                }
            }
        }
        let mut missing = Vec::new();
        for path in self.paths.iter().filter(|path| place::exists(path)) {
            let session = match History::open(config, path, Some(&self.agent), AsItWas) {
                // A file that is no session, or does not exist any more, is skipped.
                Err(err) if is_no_part(&err) => continue,
                opened => opened?,
            };
            session.learn(redactor);
            if let Some(failure) = session.failure() {
                return Err(failure.with_default_path(path));
            }
            let name = path.display();
            missing.extend(session.missing.iter().map(|what| format!("{name}: {what}")));
        }
        Ok(missing)
    }

    fn new(config: &Config, vault: &Vault, agent: &str, id: &str) -> Result<ForgetSession> {
        let is_of = |file: &&FileKey| file.agent == agent && file.session == id;
        let files: Vec<FileKey> = vault.files().filter(is_of).cloned().collect();
        let mut paths: BTreeSet<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        let listed = agents::all(&config.agents, Some(agent)).sessions.into_iter();
        paths.extend(listed.filter(|session| session.id == id).map(|session| session.path));
        let archive = config.archive();
        let own = SessionKey::new(agent.to_owned(), id.to_owned());
        let mut keys = Vec::new();
        for key in archive.sessions_found()?.keys {
            let known = archive.generations(&key)?.whole;
            let belongs = known
                .iter()
                .any(|it| it.part_of.as_ref() == Some(&own) || paths.contains(&it.path));
            if key == own || key.agent == agent && belongs {
                paths.extend(known.into_iter().map(|generation| generation.path));
                keys.push(key);
            }
        }
        Ok(ForgetSession { agent: agent.to_owned(), id: id.to_owned(), files, keys, paths })
    }

    /// Returns what epitome stores of the session, and what [`run`](ForgetSession::run) would do
    /// with it. Nothing is written.
    ///
    /// # Errors
    ///
    /// `Archive` if the vault or the archive cannot be listed; the errors of reading files below
    /// the home of epitome.
    pub fn plan(&self, config: &Config) -> Result<ForgetReport> {
        let mut report = self.report(config)?;
        report.dry_run = true;
        Ok(report)
    }

    /// Removes what epitome stores of the session, and proves that it is gone. Files whose action
    /// in the report is [`ForgetAction::Stays`] are left. If the process is killed, call this again
    /// to complete the removal.
    ///
    /// # Errors
    ///
    /// The errors of [`plan`](ForgetSession::plan); `Disk` or `NoPermission` if something cannot be
    /// removed; `Archive` if something of the session is still stored afterwards: the error names
    /// the place. If a restore of the session was interrupted and cannot be completed, for example
    /// because the session is in use, the error of that: nothing is forgotten then. Nothing is
    /// forgotten either if the disk is full from the beginning. The hint says what is left.
    pub fn run(&self, config: &Config) -> Result<ForgetReport> {
        let completed = self.complete_restores(config)?;
        remove_abandoned(config);
        let report = ForgetReport { completed, ..self.report(config)? };
        // Nothing is removed from the archive if nothing can be removed from the vault.
        config.vault()?.check_readable()?;
        match self.try_removal(config) {
            // Another process may have merged parts of the vault meanwhile.
            Err(err) if err.kind() != ErrorKind::Disk => self.try_removal(config)?,
            tried => tried?,
        }
        self.carry_out(config, report.clone()).map_err(|err| self.incomplete(config, &report, err))
    }

    /// Proves that the session can be removed from the vault: that nothing in the way is damaged,
    /// and that the disk has room for the parts of the vault that are written again.
    fn try_removal(&self, config: &Config) -> Result<()> {
        let vault = config.vault()?;
        vault.trial()?.remove(&self.versions_in(&vault)).map(drop)
    }

    /// The error of a removal that was begun: its hint says what is left.
    fn incomplete(&self, config: &Config, before: &ForgetReport, err: Error) -> Error {
        let Ok(now) = self.report(config) else { return incomplete(err) };
        let is_listed =
            Forgotten::read(config).is_ok_and(|forgotten| forgotten.has(&self.agent, &self.id));
        let count = |report: &ForgetReport, kind: PlaceKind| -> u64 {
            let places = report.places.iter().filter(|place| place.kind == kind);
            places.map(|place| place.count).sum()
        };
        let [versions, packs] = [PlaceKind::Vault, PlaceKind::Archive]
            .map(|kind| (count(&now, kind), count(before, kind)));
        let left = match (versions.0 == versions.1 && packs.0 == packs.1, is_listed) {
            (true, false) => return err,
            (true, true) => {
                "nothing is removed yet, but the session is not kept any more".to_owned()
            }
            (false, _) => format!(
                "{} of {} in the vault and {} of {} in the archive are left",
                versions.0,
                plural(versions.1, "version"),
                packs.0,
                plural(packs.1, "pack"),
            ),
        };
        with_rest(err, &left)
    }

    fn carry_out(&self, config: &Config, mut report: ForgetReport) -> Result<ForgetReport> {
        // This is done first, so that no keeper adds the session again meanwhile.
        let mut forgotten = Forgotten::read(config)?;
        forgotten.add(config, &self.agent, &self.id)?;
        for session in self.present_sessions(config) {
            forgotten.add(config, &self.agent, &session.id)?;
        }
        // The archive may name the session, and the files that belong to it, by other ids.
        for key in &self.keys {
            forgotten.add(config, &key.agent, &key.id)?;
        }
        self.remove_stored(config)?;
        if self.check_gone(config).is_err() {
            // A keeper that had read the list of forgotten sessions earlier may have stored the
            // session again.
            self.remove_stored(config)?;
        }
        home::delete_indexes(config)?;
        home::leftovers(&self.all_files(config), GcMode::Remove);
        for (file, action) in self.loose_files(config)? {
            match action {
                ForgetAction::Deleted => home::delete(&file)?,
                ForgetAction::Masked => drop(home::mask(&file, &ForgottenText::new(&self.id)?)?),
                ForgetAction::Stays => {}
            }
        }
        self.check_gone(config)?;
        // Only caches are searched for the id, because texts of other sessions in packs may contain
        // it. That no pack of this session is left was checked above.
        let is_left = |file: &Path, bytes: &[u8]| {
            home::is_cache(config, file)
                && memchr::memmem::find(bytes, self.id.as_bytes()).is_some()
        };
        report.proof = Some(home::prove(config, &[], is_left)?);
        Ok(report)
    }

    /// Completes the restores of the session that were interrupted: this needs its versions.
    fn complete_restores(&self, config: &Config) -> Result<Vec<InterruptedRestore>> {
        complete_restores_of(config, &mut config.vault()?, &self.agent, &self.id).map_err(|err| {
            let hint = match err.hint() {
                Some(hint) => format!("{hint}; "),
                None => String::new(),
            };
            err.with_hint(format!("{hint}nothing was forgotten: run the same again"))
        })
    }

    /// Removes the session from the archive, and then from the vault. In this order, an interrupted
    /// removal can be repeated: the session's packs in the archive are found with paths from the
    /// vault.
    fn remove_stored(&self, config: &Config) -> Result<()> {
        for key in &self.keys {
            config.archive().forget_session(key)?;
        }
        let mut vault = config.vault()?;
        let all = self.versions_in(&vault);
        vault.remove(&all).map(drop)
    }

    /// All versions of the session's files.
    fn versions_in(&self, vault: &Vault) -> VersionNumbers {
        let own = vault.files().filter(|file| self.is_of(file)).map(|file| {
            let numbers = vault.versions(file).map(|version| version.number).collect();
            (file.clone(), numbers)
        });
        own.collect()
    }

    fn is_of(&self, file: &FileKey) -> bool {
        file.agent == self.agent && file.session == self.id
    }

    /// Returns an error if the vault or the archive still stores something of the session.
    fn check_gone(&self, config: &Config) -> Result<()> {
        let vault = config.vault()?;
        let what = "something of the session is still here";
        let left = Error::new(ErrorKind::Archive, what);
        if vault.files().any(|file| self.is_of(file)) || vault.unneeded_chunks() > 0 {
            return Err(left.at(&Vault::folder_in(&config.home)));
        }
        for key in &self.keys {
            if config.archive().size_with_trash(key)?.0 > 0 {
                return Err(left.at(&config.archived(key)));
            }
        }
        match home::leftovers(&self.all_files(config), GcMode::Show).first() {
            Some(file) => Err(left.at(file)),
            None => Ok(()),
        }
    }

    fn report(&self, config: &Config) -> Result<ForgetReport> {
        let vault = config.vault()?;
        let completed = interrupted_restores(config, &self.agent, &self.id)?;
        let mut report = ForgetReport { completed, ..ForgetReport::default() };
        for file in &self.files {
            let versions = vault.versions(file).count() as u64;
            report.add(PlaceKind::Vault, super::name_of(file), versions, ForgetAction::Deleted);
        }
        for key in &self.keys {
            let (packs, _) = config.archive().size_with_trash(key)?;
            let name = format!("{} {}", key.agent, key.id);
            report.copies.push(ForgottenCopy { session: key.clone(), blake3: None });
            report.add(PlaceKind::Archive, name, packs, ForgetAction::Deleted);
            report.add_final(config, key)?;
        }
        for folder in home::search_indexes(config)? {
            report.add(PlaceKind::Cache, folder.to_string_lossy(), 1, ForgetAction::Deleted);
        }
        for (file, action) in self.loose_files(config)? {
            let kind =
                if home::is_cache(config, &file) { PlaceKind::Cache } else { PlaceKind::File };
            report.add(kind, file.to_string_lossy(), 1, action);
        }
        for file in home::leftovers(&self.all_files(config), GcMode::Show) {
            report.add(PlaceKind::File, file.to_string_lossy(), 1, ForgetAction::Deleted);
        }
        for path in self.present_files(config) {
            report.add(PlaceKind::Session, path.to_string_lossy(), 1, ForgetAction::Stays);
        }
        Ok(report)
    }

    /// The other files below the home of epitome that contain the id of the session, and what is
    /// done with each: caches are deleted, the id is masked in the files of hooks, and others stay.
    /// Whole copies of the session next to its packs are deleted.
    /// Files of the archive, the vault, the search indexes and the session itself are left out.
    fn loose_files(&self, config: &Config) -> Result<Vec<(PathBuf, ForgetAction)>> {
        let indexes = home::search_indexes(config)?;
        let present = self.present_files(config);
        let mut found = Vec::new();
        let own_key = SessionKey::new(self.agent.clone(), self.id.clone());
        let archived = self.keys.iter().chain([&own_key]).map(|key| config.archived(key));
        let archived: Vec<PathBuf> = archived.collect();
        for file in home::loose_files(config)? {
            if archived.iter().any(|folder| file.starts_with(folder)) {
                found.push((file, ForgetAction::Deleted));
                continue;
            }
            let is_known = indexes.iter().any(|folder| file.starts_with(folder));
            let is_named = || -> Result<bool> {
                Ok(memchr::memmem::find(&home::read(&file)?, self.id.as_bytes()).is_some())
            };
            if is_known || present.contains(&file) || self.id.is_empty() || !is_named()? {
                continue;
            }
            let can_mask = file.starts_with(config.hooks()) && ForgottenText::new(&self.id).is_ok();
            let action = match (home::is_cache(config, &file), can_mask) {
                (true, _) => ForgetAction::Deleted,
                (false, true) => ForgetAction::Masked,
                (false, false) => ForgetAction::Stays,
            };
            found.push((file, action));
        }
        Ok(found)
    }

    /// The files of the session that exist, sorted.
    fn present_files(&self, config: &Config) -> Vec<PathBuf> {
        let mut present = self.all_files(config);
        present.retain(|path| place::exists(path));
        present.sort();
        present.dedup();
        present
    }

    /// The addresses of the session's files, whether they exist or not.
    fn all_files(&self, config: &Config) -> Vec<PathBuf> {
        let own = self.present_sessions(config).into_iter().map(|session| session.path);
        own.chain(self.paths.iter().cloned()).collect()
    }

    /// The sessions that the agent lists under the session's id or at one of its paths.
    fn present_sessions(&self, config: &Config) -> Vec<SessionFile> {
        let mut sessions = agents::all(&config.agents, Some(&self.agent)).sessions;
        sessions.retain(|session| session.id == self.id || self.paths.contains(&session.path));
        sessions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::Keeper;
    use crate::ops::{Compact, OpenSession};
    use crate::step::{DiskStep, fault};

    /// Two sessions that were kept together. One of them was compacted, and kept again.
    fn stored() -> (tempfile::TempDir, Config) {
        let dir = tempfile::tempdir().expect("a folder");
        let config = Config::from_home(dir.path());
        let folder = dir.path().join(".pi/agent/sessions/--p--");
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = |id: &str| folder.join(format!("2026-11-18T12-00-00-000Z_{id}.jsonl"));
        for id in ["0001", "0002"] {
            std::fs::write(path(id), fixtures::get("pi", "pricing").bytes()).expect("a session");
        }
        let mut keeper = Keeper::open(&config).expect("a vault");
        keeper.scan().expect("a scan");
        let run = config.begin_run("test");
        let recipe = crate::built_in("epitome").expect("a recipe");
        let counter = epitome_tokens::Estimate::new();
        let session = OpenSession::new(&config, &path("0001"));
        Compact::new(&recipe, &counter, &run).run(&session).expect("it is compacted");
        keeper.scan().expect("a scan");
        (dir, config)
    }

    fn found(config: &Config) -> ForgetSession {
        match ForgetSession::find(config, "0001", None).expect("a listing") {
            SessionChoice::One(found) => found,
            SessionChoice::AnyOf(_) | SessionChoice::Nothing => panic!("one session"),
        }
    }

    /// The numbers of the session's versions and packs, and whether it is on the list.
    fn state(config: &Config) -> (u64, u64, bool) {
        let report = found(config).report(config).expect("a report");
        let count = |kind: PlaceKind| {
            report.places.iter().filter(|it| it.kind == kind).map(|it| it.count).sum::<u64>()
        };
        let is_listed = Forgotten::read(config).expect("a list").has("pi", "0001");
        (count(PlaceKind::Vault), count(PlaceKind::Archive), is_listed)
    }

    /// A disk that is full from its `n`th step on: files can only be renamed and removed.
    fn full_from(n: usize) -> impl FnMut(DiskStep) -> std::io::Result<()> + 'static {
        let mut seen = 0;
        move |step| {
            if !matches!(step, DiskStep::Folder | DiskStep::Create | DiskStep::Write) {
                return Ok(());
            }
            seen += 1;
            if seen > n { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }
    }

    #[test]
    fn a_session_is_forgotten_whole_or_the_error_says_what_is_left() {
        let mut hints = BTreeSet::new();
        for n in 0.. {
            let (dir, config) = stored();
            assert_eq!(state(&config), (2, 1, false));
            let session = found(&config);
            let Err(err) = fault::with(full_from(n), move || session.run(&config)) else { break };
            assert_eq!(err.kind(), ErrorKind::Disk, "step {n}");
            let config = Config::from_home(dir.path());
            hints.insert((state(&config), err.hint().unwrap_or_default().to_owned()));
            found(&config).run(&config).expect("the same again completes it");
            assert_eq!(state(&config), (0, 0, true), "step {n}");
        }
        let nothing = "free some space on that disk; nothing was changed";
        let listed = "free some space on that disk; nothing is removed yet, but the session is \
                      not kept any more: run the same again, which completes it";
        let partly = "free some space on that disk; 2 of 2 versions in the vault and 0 of 1 pack \
                      in the archive are left: run the same again, which completes it";
        let expected = [
            ((2, 0, true), partly.to_owned()),
            ((2, 1, false), nothing.to_owned()),
            ((2, 1, true), listed.to_owned()),
        ];
        assert_eq!(hints.into_iter().collect::<Vec<_>>(), expected);
    }
}
