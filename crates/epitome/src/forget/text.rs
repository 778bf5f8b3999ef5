//! Forgets a text, or several.

use std::path::{Path, PathBuf};

use epitome_agents::{self as agents, FoundSessions, find_agent};
use epitome_model::Source;
use epitome_redact::{Finder, Rules};
use epitome_store::forgotten::ForgottenText;

use super::incomplete;
use super::replace::{replacements, why_left};
use super::{ForgetAction, ForgetReport, ForgottenCopy, LeftOutText, PlaceKind, Proof, home};
use crate::archive::{GcMode, Generation};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result, sentence};
use crate::keep::remove_abandoned;
use crate::ops::archived::key_in_archive;
use crate::ops::{LockedFile, SessionPart, is_same_file, replace_all};
use crate::place;
use crate::redact::FORGOTTEN_RULE;
use crate::restore::adapt_to_masks;
use crate::session::Loaded;

/// Forgets a text, or several: a secret that an agent has seen, for example.
pub struct ForgetText {
    text: ForgottenText,
    finder: Finder,
    /// The texts that rules found and that are not forgotten.
    pub(super) left_out: Vec<LeftOutText>,
    /// Whether the text is also replaced in the sessions of agents. Otherwise the report names the
    /// sessions that have the text, and a compaction or a keeper may store the text again.
    pub sessions: bool,
}

/// A file of a session that has the text, or cannot be read.
struct SessionPlace {
    agent: &'static str,
    path: PathBuf,
    count: u64,
    /// Why the file cannot be read or changed, if that is so.
    reason: Option<String>,
}

impl ForgetText {
    /// Prepares to forget `text`. The text is neither written to disk nor printed.
    ///
    /// # Errors
    ///
    /// The errors of [`check`](epitome_store::forgotten::check), for example if the text is too
    /// short.
    pub fn new(text: &str) -> Result<ForgetText> {
        ForgetText::from_text(ForgottenText::new(text)?, &[text])
    }

    /// Prepares to forget `texts`. `text` finds the same texts in all spellings.
    pub(super) fn from_text(text: ForgottenText, texts: &[&str]) -> Result<ForgetText> {
        let failed = |err| Error::new(ErrorKind::Usage, "the text cannot be searched").because(err);
        let rules = Rules::parse(&rule(texts)).map_err(failed)?;
        let finder = Finder::new(rules).map_err(failed)?;
        Ok(ForgetText { text, finder, left_out: Vec::new(), sessions: false })
    }

    /// Returns where the text is, and what [`run`](ForgetText::run) would do with it. Nothing is
    /// written.
    ///
    /// # Errors
    ///
    /// `Refused` if the text is in epitome's own records, such as the path or id of a session,
    /// because masking would damage them. `Archive` if a part of the vault or the archive cannot be
    /// read; the errors of reading files below the home of epitome.
    pub fn plan(&self, config: &Config) -> Result<ForgetReport> {
        let mut report = self.report(config)?;
        report.dry_run = true;
        Ok(report)
    }

    /// Removes the text from everything that epitome stores, except from compressed versions in the
    /// vault. If [`sessions`](ForgetText::sessions) is set, also replaces it in the sessions of
    /// agents. Then searches everything that epitome stores for the text. The report names the
    /// places where it stays. If the process is killed, call this again to complete the removal.
    ///
    /// # Errors
    ///
    /// The errors of [`plan`](ForgetText::plan); `Disk` or `NoPermission` if something cannot be
    /// written; `Archive` if the text is still stored afterwards: the error names the place. What
    /// was done until then stays done, and the hint says so. A session that cannot be changed is no
    /// error: its place has a reason.
    pub fn run(&self, config: &Config) -> Result<ForgetReport> {
        remove_abandoned(config);
        let report = self.report(config)?;
        self.carry_out(config, report).map_err(incomplete)
    }

    fn carry_out(&self, config: &Config, mut report: ForgetReport) -> Result<ForgetReport> {
        let own = self.remove_stored(config)?;
        // Sessions are changed last: if one is in use or cannot be changed, the text is removed
        // from all other places nevertheless.
        let mut sessions = self.sessions_with(config);
        if self.sessions {
            for session in sessions.iter_mut().filter(|session| session.reason.is_none()) {
                session.reason = self.replace_in(config, session).err().map(|err| sentence(&err));
            }
        }
        report.places.retain(|place| place.kind != PlaceKind::Session);
        for session in &sessions {
            self.add_session(&mut report, session);
        }
        let proof = match self.prove(config, &own) {
            // A keeper or another process may have stored the text again meanwhile.
            Err(err) if err.kind() == ErrorKind::Archive => {
                let own = self.remove_stored(config)?;
                self.prove(config, &own)?
            }
            proved => proved?,
        };
        report.proof = Some(proof);
        Ok(report)
    }

    /// Searches the vault and all files below the home of epitome for the text, except `own`, the
    /// files of sessions. Returns an error if the text is still in one of them.
    fn prove(&self, config: &Config, own: &[PathBuf]) -> Result<Proof> {
        let versions = config.vault()?.versions_with(&self.text)?;
        if let Some((file, _)) = versions.into_iter().next() {
            let what = "a version still has what was to be forgotten";
            return Err(Error::new(ErrorKind::Archive, what).at(&file.path));
        }
        if let Some(file) = self.leftovers_with(own)?.first() {
            let what = "a temporary file still has what was to be forgotten";
            return Err(Error::new(ErrorKind::Archive, what).at(&file.0));
        }
        home::prove(config, own, |_, bytes| self.text.is_in(bytes))
    }

    /// The temporary files of killed processes, next to these files of sessions, that have the
    /// text, and how often each has it.
    fn leftovers_with(&self, own: &[PathBuf]) -> Result<Vec<(PathBuf, u64)>> {
        let mut found = Vec::new();
        for file in home::leftovers(own, GcMode::Show) {
            let count = self.text.find(&home::read(&file)?).len() as u64;
            if count > 0 {
                found.push((file, count));
            }
        }
        Ok(found)
    }

    /// Adds to the report what was done with a session.
    fn add_session(&self, report: &mut ForgetReport, session: &SessionPlace) {
        let left = self.occurrences(&session.path).unwrap_or(session.count);
        let is_gone = left == 0 && session.reason.is_none();
        let action = if is_gone { ForgetAction::Masked } else { ForgetAction::Stays };
        let count = if is_gone { session.count } else { left };
        report.add(PlaceKind::Session, session.path.to_string_lossy(), count, action);
        let mut reason = session.reason.clone();
        if reason.is_none() && self.sessions && !is_gone {
            reason = match read_session(session) {
                Ok(read) => why_left(&read, &self.text),
                Err(err) => Some(sentence(&err)),
            };
        }
        if let Some(place) = report.places.last_mut() {
            place.reason = reason;
        }
    }

    /// Removes the text from what epitome stores, except from compressed versions in the vault and
    /// from the files of sessions. Returns the paths of these files.
    fn remove_stored(&self, config: &Config) -> Result<Vec<PathBuf>> {
        config.vault()?.mask(&self.text)?;
        config.archive().forget_text(&self.text)?;
        home::delete_indexes(config)?;
        let own: Vec<PathBuf> = session_files(config).into_iter().map(|(_, path)| path).collect();
        home::leftovers(&own, GcMode::Remove);
        for file in home::loose_files(config)? {
            if own.contains(&file) || !self.text.is_in(&home::read(&file)?) {
                continue;
            }
            if home::is_cache(config, &file) {
                home::delete(&file)?;
            } else {
                home::mask(&file, &self.text)?;
            }
        }
        Ok(own)
    }

    fn report(&self, config: &Config) -> Result<ForgetReport> {
        check_records(config, &self.text)?;
        let left_out = self.left_out.clone();
        let mut report = ForgetReport { left_out, ..ForgetReport::default() };
        for (file, versions) in config.vault()?.versions_with(&self.text)? {
            let count = versions.len() as u64;
            report.add(PlaceKind::Vault, super::name_of(&file), count, ForgetAction::Masked);
        }
        for (file, versions) in config.vault()?.compressed_versions_with(&self.text)? {
            let count = versions.len() as u64;
            report.add(PlaceKind::Vault, super::name_of(&file), count, ForgetAction::Stays);
            if let Some(place) = report.places.last_mut() {
                let what = "these versions are compressed, and cannot be masked: `epitome forget";
                place.reason = Some(format!("{what} {}` removes all of them", file.session));
            }
        }
        for pack in config.archive().packs_with(&self.text)? {
            let name = format!("{} {}", pack.key.agent, pack.key.id);
            // If only descriptions of archived texts contain the text, it is masked in them.
            let is_deleted = pack.is_trash || pack.pieces > 0;
            let (session, blake3) = (pack.key.clone(), Some(pack.blake3));
            report.copies.push(ForgottenCopy { session, blake3 });
            let action = if is_deleted { ForgetAction::Deleted } else { ForgetAction::Masked };
            report.add(PlaceKind::Archive, name, pack.pieces, action);
            if pack.is_needed && !pack.is_trash {
                report.add_final(config, &pack.key)?;
            }
        }
        let indexes = home::search_indexes(config)?;
        for folder in &indexes {
            report.add(PlaceKind::Cache, folder.to_string_lossy(), 1, ForgetAction::Deleted);
        }
        let own = session_files(config);
        for file in home::loose_files(config)? {
            let is_known = own.iter().any(|(_, path)| *path == file)
                || indexes.iter().any(|folder| file.starts_with(folder));
            let count = self.text.find(&home::read(&file)?).len() as u64;
            if is_known || count == 0 {
                continue;
            }
            let name = file.to_string_lossy();
            if home::is_cache(config, &file) {
                report.add(PlaceKind::Cache, name, 1, ForgetAction::Deleted);
            } else {
                report.add(PlaceKind::File, name, count, ForgetAction::Masked);
            }
        }
        let own: Vec<PathBuf> = own.into_iter().map(|(_, path)| path).collect();
        for (file, count) in self.leftovers_with(&own)? {
            report.add(PlaceKind::File, file.to_string_lossy(), count, ForgetAction::Deleted);
        }
        let action = if self.sessions { ForgetAction::Masked } else { ForgetAction::Stays };
        for session in self.sessions_with(config) {
            let action = if session.reason.is_some() { ForgetAction::Stays } else { action };
            report.add(PlaceKind::Session, session.path.to_string_lossy(), session.count, action);
            if let Some(place) = report.places.last_mut() {
                place.reason = session.reason;
            }
        }
        Ok(report)
    }

    /// The files of sessions that have the text, or cannot be read.
    fn sessions_with(&self, config: &Config) -> Vec<SessionPlace> {
        let mut found = Vec::new();
        for (agent, path) in session_files(config) {
            let (count, reason) = match self.occurrences(&path) {
                Ok(0) => continue,
                Ok(count) => (count, None),
                Err(err) => (0, Some(sentence(&err))),
            };
            found.push(SessionPlace { agent, path, count, reason });
        }
        found
    }

    /// How often the text is in a file of a session; 0 if the file does not exist any more.
    fn occurrences(&self, path: &Path) -> Result<u64> {
        let source = match place::open(path) {
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(0),
            opened => opened.map_err(|err| err.with_default_path(path))?,
        };
        Ok(self.text.find(&source.read(0..source.len())).len() as u64)
    }

    /// Replaces the text in a file of a session, as far as it can be replaced. Its compactions can
    /// be undone afterwards, except for removed texts that are forgotten.
    fn replace_in(&self, config: &Config, session: &SessionPlace) -> Result<()> {
        let part = SessionPart::at(&session.path);
        let file = LockedFile::lock(config, &part, None, false)?;
        let bytes = file.source().read(0..file.source().len()).into_owned();
        let read = Loaded::read(bytes, Some(session.agent))
            .map_err(|err| err.with_default_path(&session.path))?;
        let splices =
            replacements(&read, &self.text, &self.finder).map_err(|err| err.at(&session.path))?;
        if splices.is_empty() {
            return Ok(());
        }
        let archive = config.archive();
        let key = key_in_archive(config, &read, &session.path)?;
        // A copy of the session at another path, which keeps the text, is restored with the undo
        // data of its own compactions.
        let mut generations = archive.generations(&key)?.whole;
        generations.retain(|it| is_same_file(&it.path, &part.real()) || !place::exists(&it.path));
        let adapted = adapt_to_masks(file.source(), &splices, &generations, &archive.blobs(&key))?;
        let change = file.change(splices, true)?;
        // The archive is changed first: if the process is killed in between, the next call finds
        // the text in the session and completes it.
        let replaced = adapted
            .iter()
            .try_for_each(|it| archive.replace_undo_data(it))
            .and_then(|()| replace_all(config, &[change]));
        replaced.map_err(|err| {
            let is_adapted = |it: &&Generation| adapted.iter().any(|new| new.number == it.number);
            let mut before = generations.iter().filter(is_adapted);
            let err = match before.try_for_each(|it| archive.replace_undo_data(it)) {
                Ok(()) => err,
                Err(back) => back.because(err),
            };
            err.while_writing()
        })
    }
}

/// Returns an error if a text is in epitome's own records, which could not be read without it.
pub(super) fn check_records(config: &Config, text: &ForgottenText) -> Result<()> {
    home::check_records(config, text)?;
    config.archive().check_records(text)?;
    config.vault()?.check_records(text)
}

/// The content of a file of a session.
fn read_session(session: &SessionPlace) -> Result<Loaded<Vec<u8>>> {
    let source = place::open(&session.path)?;
    Loaded::read(source.read(0..source.len()).into_owned(), Some(session.agent))
}

/// All files of sessions, also those of sub-agents, each with the name of its agent.
fn session_files(config: &Config) -> Vec<(&'static str, PathBuf)> {
    let FoundSessions { sessions, .. } = agents::all(&config.agents, None);
    let mut files = Vec::new();
    for session in sessions {
        let parts = agents::companions_of(find_agent(session.agent), &session.path);
        files.push((session.agent, session.path));
        files.extend(parts.into_iter().map(|path| (session.agent, path)));
    }
    files
}

/// A rule that finds exactly these texts, as TOML.
pub(super) fn rule(texts: &[&str]) -> String {
    let mut texts = texts.to_vec();
    // The longest first: if several alternatives of a regular expression match, it takes the first.
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let mut regex = String::new();
    for text in texts {
        if !regex.is_empty() {
            regex.push('|');
        }
        for char in text.chars() {
            // A backslash before `<` or `>` would make a word boundary of it.
            match char.is_ascii_punctuation() {
                true => regex.push_str(&format!("\\x{{{:x}}}", u32::from(char))),
                false => regex.push(char),
            }
        }
    }
    let regex = toml::Value::String(regex);
    format!("[[rules]]\nid = '{FORGOTTEN_RULE}'\nregex = {regex}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_finds_exactly_the_text() {
        for text in ["a<b-secret-003", "key-->arrow-secret", "<alpha-beta-77", "a\"b\\c'd.e é\n"] {
            let finder =
                Finder::new(Rules::parse(&rule(&[text])).expect("a rule")).expect("a finder");
            let around = format!("x {text} alpha-beta-77 aXb-secret-003");
            let found: Vec<&str> =
                finder.find(&around).iter().map(|hit| &around[hit.range.clone()]).collect();
            assert_eq!(found, [text], "{text}");
        }
    }
}
