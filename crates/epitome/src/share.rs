//! Redacted sessions that a team reads: what is stored at the address `share.url`.
//!
//! [`Team::share`] stores the page and the redacted copy of a session, [`Team::sync`] copies the
//! sessions of all members into a folder of the cache, where they are searched and read.
//!
//! ```text
//! <url>/sessions/<agent>/<id>/<name>.html    the page
//! <url>/sessions/<agent>/<id>/<name>.jsonl   the redacted copy, in the agent's format
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use epitome_remote::{Address, Retries, SharedFile, SharedFolder};
use epitome_store::archive::Hash;

use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::render::{RenderForm, RenderOptions, RenderSource, render_into};
use crate::settings::Settings;
use crate::store::disk;

/// The sessions of a team.
pub struct Team<'c> {
    config: &'c Config,
    address: Address,
    shared: SharedFolder,
}

/// A session that was shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSession {
    /// The addresses of the session's files, pages and redacted copies. Those of the session itself
    /// are before those of its sub-agents.
    pub locations: Vec<String>,
    /// The number of texts that were redacted. A text that occurs twice counts twice.
    pub redacted: usize,
}

/// The result of [`Team::sync`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeamSync {
    /// The folder with the sessions of the team.
    pub folder: PathBuf,
    /// How many sessions were copied, including those of sub-agents.
    pub copied: usize,
    /// How many copies were removed from the folder, because the session changed or is no longer
    /// shared.
    pub removed: usize,
}

impl<'c> Team<'c> {
    /// The team at the address in the setting `share.url`; `None` if that is not set.
    ///
    /// # Errors
    ///
    /// `Settings` if the setting is not a valid address; the errors of creating a folder.
    pub fn from_settings(config: &'c Config, settings: &Settings) -> Result<Option<Team<'c>>> {
        let Some(url) = &settings.values.share.url else { return Ok(None) };
        let address: Address = url.parse()?;
        let shared = SharedFolder::new(&address, &config.cloud_variables(), Retries::LONG)?;
        Ok(Some(Team { config, address, shared }))
    }

    /// Stores the page and the redacted copy of a session and of its sub-agents. Files of an
    /// earlier sharing of the same session are replaced.
    ///
    /// # Errors
    ///
    /// `Usage` if `how` redacts nothing; the errors of requests, and of writing temporary files.
    pub fn share(&self, source: &RenderSource, how: &RenderOptions<'_>) -> Result<SharedSession> {
        if how.redact.is_none() {
            return Err(Error::new(ErrorKind::Usage, "only redacted sessions are shared"));
        }
        let folder = tempfile::tempdir_in(self.config.cache("team")?)
            .map_err(|err| Error::writing(err, "the pages", &self.config.home))?;
        let formats = [RenderForm::Html, RenderForm::Jsonl];
        let (listing, found) = render_into(folder.path(), source, how, &formats, &[])?;
        let mut files = listing.files.clone();
        files.extend(listing.sub_agents.iter().flat_map(|it| it.files.clone()));
        let session = &source.session.history.session;
        let id = match session.transcript.head.id.as_deref() {
            Some(id) => id.to_owned(),
            None => listing.name.clone(),
        };
        let place = format!("{}/{}", session.format.name, part(&id));
        let earlier = self.shared.list()?;
        for file in &files {
            let path = folder.path().join(file);
            let content =
                regular::read(&path).map_err(|err| Error::reading(err, "the page", &path))?;
            self.shared.put(&format!("{place}/{file}"), content)?;
        }
        let is_old = |name: &str| {
            let file = name.strip_prefix(&*place).and_then(|rest| rest.strip_prefix('/'));
            file.is_some_and(|file| !files.iter().any(|new| new == file))
        };
        for old in earlier.iter().filter(|file| is_old(&file.name)) {
            self.shared.delete(&old.name)?;
        }
        let locate = |file: &String| self.shared.location(&format!("{place}/{file}"));
        Ok(SharedSession { locations: files.iter().map(locate).collect(), redacted: found.len() })
    }

    /// Copies the sessions of the team that are new or have changed into a folder of the cache, and
    /// removes from it those that are no longer shared.
    ///
    /// # Errors
    ///
    /// The errors of requests; `Disk` or `NoPermission` if the cache cannot be written.
    pub fn sync(&self) -> Result<TeamSync> {
        let hash = Hash::compute(self.address.to_string().as_bytes()).to_string();
        let folder = self.config.cache(&format!("team/{}", &hash[..16]))?;
        let mut sync = TeamSync { folder, ..TeamSync::default() };
        let mut kept: BTreeSet<PathBuf> = BTreeSet::new();
        for file in self.shared.list()? {
            let Some(path) = path_of(&sync.folder, &file) else { continue };
            if !path.exists() {
                self.copy(&file, &path)?;
                sync.copied += 1;
            }
            kept.insert(path);
        }
        for path in files_in(&sync.folder) {
            if !kept.contains(&path) {
                fs::remove_file(&path)
                    .map_err(|err| Error::writing(err, "the shared session", &path))?;
                sync.removed += 1;
            }
        }
        Ok(sync)
    }

    fn copy(&self, file: &SharedFile, path: &Path) -> Result<()> {
        let content = self.shared.get(&file.name)?;
        if let Some(parent) = path.parent() {
            disk::private_folder(parent)?;
        }
        crate::store::write_over(path, |out| {
            out.write_all(&content).map_err(|err| Error::writing(err, "the shared session", path))
        })
    }
}

/// The path of a shared session in the cache. It contains a hash of the version, so a copy that
/// exists is up to date. `None` for pages, and for names that epitome does not give.
fn path_of(folder: &Path, file: &SharedFile) -> Option<PathBuf> {
    let parts: Vec<&str> = file.name.split('/').collect();
    let [agent, id, name] = parts[..] else { return None };
    let stem = name.strip_suffix(".jsonl")?;
    if [agent, id, stem].into_iter().any(|it| part(it) != it || it.is_empty()) {
        return None;
    }
    let version = Hash::compute(file.version.as_bytes()).to_string();
    Some(folder.join(agent).join(id).join(format!("{}-{stem}.jsonl", &version[..8])))
}

/// A text as a part of a name: letters, digits, `-`, `_` and single dots, at most 120 bytes.
fn part(text: &str) -> String {
    let mut part: String = text
        .chars()
        .take(120)
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' })
        .collect();
    while part.starts_with('.') || part.contains("..") {
        part = part.replacen('.', "-", 1);
    }
    part
}

/// The files of the sessions, which are in `folder/AGENT/ID`.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let inside = |folder: &Path| {
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let ids = inside(folder).flat_map(|agent| inside(&agent).collect::<Vec<_>>());
    ids.flat_map(|id| inside(&id).collect::<Vec<_>>()).filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use epitome_model::Bytes;

    use super::*;

    #[test]
    fn a_name_of_others_never_leaves_the_folder() {
        let path = |name: &str| {
            let version = String::new();
            let file = SharedFile { name: name.to_owned(), version, length: Bytes(1) };
            path_of(Path::new("/c"), &file).map(|path| path.display().to_string())
        };
        // The blake3 hash of an empty text begins with `af1349b9`.
        assert_eq!(path("claude/0f3c/a.jsonl").as_deref(), Some("/c/claude/0f3c/af1349b9-a.jsonl"));
        for hostile in ["claude/../a.jsonl", "../x/a.jsonl", "a/b/c/d.jsonl", "claude/x/.jsonl"] {
            assert_eq!(path(hostile), None, "{hostile}");
        }
        assert_eq!(path("claude/0f3c/a.html"), None);
        assert_eq!(part("a/../b c"), "a--.-b-c");
    }
}
