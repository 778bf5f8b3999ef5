//! How long versions are kept, and of which projects: the rules in the settings, and what they
//! remove.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use epitome_model::Bytes;
use epitome_store::vault::{VaultUsage, VersionNumbers};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{FileKey, KeptFile, Vault, Version};
use crate::archive::GcMode;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::session::Loaded;
use crate::settings::Settings;
use crate::settings::values::Retention;

/// The maximum number of times that [`RetentionRules::prune`] plans and removes. How many bytes a
/// removal frees is only estimated, so if the vault is too large, one removal may not be enough.
const ATTEMPTS: usize = 3;

/// What `epitome keep` keeps, and for how long: the settings `keep.…`. Without a rule, everything
/// is kept forever.
#[derive(Clone, Debug, Default)]
pub struct RetentionRules {
    /// How long a version is kept after another one has taken its place.
    pub age: Option<SignedDuration>,
    /// The size on disk that the vault should not exceed.
    pub size: Option<Bytes>,
    /// Which projects are kept.
    pub projects: ProjectRules,
    /// Whether the last content of a session stays even if the session was deleted longer ago than
    /// `age`.
    pub keeps_last: bool,
}

/// Which projects are kept.
#[derive(Clone, Debug, Default)]
pub struct ProjectRules {
    only: Option<Folders>,
    not: Option<Folders>,
}

/// Patterns of folders.
#[derive(Clone, Debug)]
struct Folders {
    /// Whether all folders match.
    all: bool,
    globs: GlobSet,
}

/// What rules removed from the vault, or would remove. Its serde form is the JSON of
/// `epitome keep --prune --json` (`docs/json.md`), to which members are only added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PruneReport {
    /// The files of which versions are removed.
    pub files: Vec<PrunedFile>,
    /// The number of versions that are removed.
    pub versions: u64,
    /// The number of sessions of which versions are removed.
    pub sessions: u64,
    /// The length of the vault on disk before the removal.
    pub bytes_before: Bytes,
    /// The length of the vault on disk after the removal. In a dry run without a rule for the size,
    /// this is an estimate.
    pub bytes_after: Bytes,
    /// Whether this is only what would be removed.
    pub dry_run: bool,
}

/// A file of which versions are removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrunedFile {
    /// The file.
    #[serde(flatten)]
    pub file: KeptFile,
    /// The numbers of the versions that are removed.
    pub removed: Vec<u64>,
    /// How many versions are kept.
    pub kept: u64,
    /// Whether only versions are kept that say that the file was deleted.
    #[serde(skip)]
    pub is_lost: bool,
}

impl RetentionRules {
    /// The rules in the settings.
    ///
    /// # Errors
    ///
    /// `Settings` if a pattern for projects is not valid.
    pub fn from_settings(settings: &Settings) -> Result<RetentionRules> {
        let Retention { days, size, projects, not_projects } = &settings.values.keep;
        let only = projects.as_deref().map(|it| Folders::new("keep.projects", it));
        let not = not_projects.as_deref().map(|it| Folders::new("keep.not_projects", it));
        let hours = days.map(|days| i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(24));
        Ok(RetentionRules {
            age: hours.map(|hours| SignedDuration::from_secs(hours.saturating_mul(3600))),
            size: size.map(Bytes),
            projects: ProjectRules { only: only.transpose()?, not: not.transpose()? },
            keeps_last: false,
        })
    }

    /// Whether there are no rules, so that everything is kept.
    pub fn is_empty(&self) -> bool {
        self.age.is_none() && self.size.is_none() && self.projects.is_empty()
    }

    /// The rules that a keeper applies without asking the user: without those for projects, and
    /// without the removal of last contents, because there may be no other copy of a deleted
    /// session.
    pub(super) fn for_keeper(&self) -> RetentionRules {
        let projects = ProjectRules::default();
        RetentionRules { age: self.age, size: self.size, projects, keeps_last: true }
    }

    /// Removes from the vault what these rules do not keep, or only reports it, as `mode` says.
    /// With a rule for the size, a report writes as much to temporary files as the removal itself
    /// writes.
    ///
    /// The newest version of a file always stays, unless its project is not kept. Bytes of a
    /// removed version that other versions contain stay in the vault.
    ///
    /// # Errors
    ///
    /// `Archive` if a part of the vault cannot be read; `Disk` or `NoPermission` if it cannot be
    /// written. Only versions that were to be removed may be lost then.
    pub fn prune(&self, config: &Config, vault: &mut Vault, mode: GcMode) -> Result<PruneReport> {
        vault.refresh()?;
        let bytes_before = Bytes(vault.size().1);
        let mut report = PruneReport { bytes_before, ..PruneReport::default() };
        report.dry_run = mode == GcMode::Show;
        report.bytes_after = bytes_before;
        match (mode, self.size) {
            (GcMode::Remove, _) => self.remove(config, vault, &mut report)?,
            // How much a removal frees is known only afterwards.
            (GcMode::Show, Some(_)) => self.remove(config, &mut vault.trial()?, &mut report)?,
            (GcMode::Show, None) => {
                let plan = self.plan(config, vault)?;
                report.add(vault, &plan.versions);
                report.bytes_after = Bytes(bytes_before.0.saturating_sub(plan.given_back));
            }
        }
        Ok(report)
    }

    /// Removes what these rules do not keep.
    fn remove(&self, config: &Config, vault: &mut Vault, report: &mut PruneReport) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let plan = self.plan(config, vault)?;
            if plan.versions.is_empty() {
                break;
            }
            report.add(vault, &plan.versions);
            report.bytes_after = Bytes(vault.remove(&plan.versions)?.after);
        }
        Ok(())
    }

    /// The versions that these rules do not keep.
    fn plan(&self, config: &Config, vault: &Vault) -> Result<Plan> {
        let mut plan = Plan::default();
        if self.is_empty() || vault.files().next().is_none() {
            return Ok(plan);
        }
        let mut usage = VaultUsage::read(vault)?;
        for file in self.projects.unwanted(vault) {
            for version in vault.versions(file) {
                plan.add(&mut usage, file, version);
            }
        }
        let mut replaced = replaced_versions(vault);
        replaced.retain(|it| !plan.has(it.file, it.version.number));
        if let Some(age) = self.age {
            let since = config.now().checked_sub(age).unwrap_or(Timestamp::MIN);
            let is_kept = |it: &Replaced<'_>| self.keeps_last && it.is_newest_content;
            for old in replaced.iter().filter(|it| it.at < since && !is_kept(it)) {
                plan.add(&mut usage, old.file, old.version);
            }
        }
        if let Some(most) = self.size {
            let mut freed = Vec::new();
            for old in replaced.iter().filter(|it| !it.is_newest_content) {
                if vault.size().1.saturating_sub(plan.given_back) <= most.0 {
                    break;
                }
                if !plan.has(old.file, old.version.number) {
                    plan.add(&mut usage, old.file, old.version);
                    freed.push(old);
                }
            }
            // A version whose removal frees nothing, because other versions need all its chunks, is
            // kept.
            for old in freed {
                if usage.is_free(old.file, old.version) {
                    plan.keep(old.file, old.version.number);
                }
            }
        }
        Ok(plan)
    }
}

/// The versions that are removed, and an estimate of the bytes that their removal frees.
#[derive(Default)]
struct Plan {
    versions: VersionNumbers,
    given_back: u64,
}

impl Plan {
    fn add<'v>(&mut self, usage: &mut VaultUsage<'v>, file: &'v FileKey, version: &Version) {
        self.given_back += usage.remove(file, version);
        self.versions.entry(file.clone()).or_default().insert(version.number);
    }

    fn has(&self, file: &FileKey, number: u64) -> bool {
        self.versions.get(file).is_some_and(|numbers| numbers.contains(&number))
    }

    fn keep(&mut self, file: &FileKey, number: u64) {
        if let Some(numbers) = self.versions.get_mut(file) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.versions.remove(file);
            }
        }
    }
}

/// A version that is not the last of its file.
struct Replaced<'v> {
    /// When the next version was seen; if the clock was set back, the latest time at which this
    /// version or one before it was seen.
    at: Timestamp,
    file: &'v FileKey,
    version: &'v Version,
    /// Whether all later versions only say that the file was deleted.
    is_newest_content: bool,
}

/// All versions of each file except the last, in the order in which they were replaced.
fn replaced_versions(vault: &Vault) -> Vec<Replaced<'_>> {
    let mut replaced = Vec::new();
    for file in vault.files() {
        let versions: Vec<&Version> = vault.versions(file).collect();
        let newest = versions.iter().rev().find(|version| !version.is_deleted());
        let newest = newest.map(|version| version.number);
        // A version was not replaced before it was seen, even if the clock was set back since.
        let mut latest = Timestamp::MIN;
        for pair in versions.windows(2) {
            latest = latest.max(pair[0].seen).max(pair[1].seen);
            replaced.push(Replaced {
                at: latest,
                file,
                version: pair[0],
                is_newest_content: newest == Some(pair[0].number),
            });
        }
    }
    replaced.sort_by_key(|it| (it.at, it.file, it.version.number));
    replaced
}

impl PruneReport {
    /// The number of sessions with a file of which no content stays.
    pub fn sessions_lost(&self) -> u64 {
        let lost = self.files.iter().filter(|file| file.is_lost);
        let sessions: BTreeSet<(&String, &String)> =
            lost.map(|file| (&file.file.agent, &file.file.session)).collect();
        sessions.len() as u64
    }

    fn add(&mut self, vault: &Vault, gone: &VersionNumbers) {
        for (file, numbers) in gone {
            self.versions += numbers.len() as u64;
            let kept_file = KeptFile::from(file);
            let mut kept = vault.versions(file).filter(|it| !numbers.contains(&it.number));
            let is_lost = kept.all(Version::is_deleted);
            let known = self.files.iter_mut().find(|it| it.file == kept_file);
            if let Some(known) = known {
                known.removed.extend(numbers);
                known.kept = known.kept.saturating_sub(numbers.len() as u64);
                known.is_lost = is_lost;
                continue;
            }
            self.files.push(PrunedFile {
                file: kept_file,
                removed: numbers.iter().copied().collect(),
                kept: (vault.versions(file).count() - numbers.len()) as u64,
                is_lost,
            });
        }
        let sessions: BTreeSet<(&String, &String)> =
            self.files.iter().map(|file| (&file.file.agent, &file.file.session)).collect();
        self.sessions = sessions.len() as u64;
    }
}

impl ProjectRules {
    /// Whether all projects are kept.
    pub fn is_empty(&self) -> bool {
        self.only.is_none() && self.not.is_none()
    }

    /// Whether sessions that were run in the folder `cwd` are kept. A session whose folder is
    /// unknown is kept, unless the rules keep only certain projects.
    pub fn keeps(&self, cwd: Option<&str>) -> bool {
        let Some(cwd) = cwd else { return self.only.as_ref().is_none_or(|only| only.all) };
        let cwd = Path::new(cwd);
        let mut names = vec![normalized(cwd)];
        if cwd.is_absolute() {
            names.extend(cwd.canonicalize());
        }
        let matches = |folders: &Folders| names.iter().any(|name| folders.has(name));
        self.only.as_ref().is_none_or(matches) && !self.not.as_ref().is_some_and(matches)
    }

    /// The kept files of sessions that were certainly run in a project that is not kept.
    fn unwanted<'v>(&self, vault: &'v Vault) -> Vec<&'v FileKey> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut is_kept: BTreeMap<(&str, &str, &str), bool> = BTreeMap::new();
        for file in vault.files().filter(|file| file.part.is_none()) {
            let Some(cwd) = folder_of(vault, file) else { continue };
            let session = (&*file.machine, &*file.agent, &*file.session);
            // A session that was moved may have several folders. It is kept if the rules keep one
            // of them.
            *is_kept.entry(session).or_default() |= self.keeps(Some(&cwd));
        }
        let is_unwanted = |file: &&FileKey| {
            is_kept.get(&(&*file.machine, &*file.agent, &*file.session)) == Some(&false)
        };
        vault.files().filter(is_unwanted).collect()
    }
}

/// The folder in which a kept session was run, as its newest version says. `None` if this version
/// cannot be read or does not say it.
fn folder_of(vault: &Vault, file: &FileKey) -> Option<String> {
    let newest = vault.versions(file).rev().find(|version| !version.is_deleted())?;
    let content = vault.open_version(file, newest.number).ok()?;
    let session = Loaded::read(content, Some(&file.agent)).ok()?;
    session.transcript.head.cwd.map(|cwd| cwd.to_string())
}

impl Folders {
    /// Compiles patterns: `*` matches any characters but `/`, and `**` matches any characters. Each
    /// pattern is matched as it is written, and once more with its symbolic links resolved.
    fn new(setting: &str, patterns: &[PathBuf]) -> Result<Folders> {
        let failed = |err: globset::Error| {
            Error::new(ErrorKind::Settings, format!("{setting} is not valid")).because(err)
        };
        let mut all = false;
        let mut globs = GlobSetBuilder::new();
        for pattern in patterns {
            // `dir/**` means `dir` and all folders below it, and so does `dir` alone.
            let mut folder = normalized(pattern);
            while folder.ends_with("**") {
                folder.pop();
            }
            all |= folder == Path::new("/");
            for name in [without_links(&folder), folder] {
                let text = name.to_string_lossy();
                let glob = GlobBuilder::new(&text).literal_separator(true).build();
                globs.add(glob.map_err(failed)?);
            }
        }
        Ok(Folders { all, globs: globs.build().map_err(failed)? })
    }

    /// Whether a pattern matches a folder or one above it.
    fn has(&self, folder: &Path) -> bool {
        self.all || folder.ancestors().any(|it| self.globs.is_match(it))
    }
}

/// The path with its `.` and `..` resolved by name only: the path need not exist.
fn normalized(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(part),
        }
    }
    normal
}

/// The pattern, with the symbolic links resolved in the folders before the first special character.
fn without_links(pattern: &Path) -> PathBuf {
    let is_special = |part: &Component<'_>| {
        part.as_os_str().to_string_lossy().contains(['*', '?', '[', ']', '{', '}', '\\'])
    };
    let plain: PathBuf = pattern.components().take_while(|part| !is_special(part)).collect();
    let Ok(real) = plain.canonicalize() else { return pattern.to_owned() };
    let rest = pattern.strip_prefix(&plain).unwrap_or(Path::new(""));
    Path::new(&globset::escape(&real.to_string_lossy()))
        .components()
        .chain(rest.components())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_kept_if_a_pattern_matches_its_folder_or_one_above() {
        let rules = |only: Option<&[&str]>, not: Option<&[&str]>| {
            let set = |it: &[&str]| {
                let patterns: Vec<PathBuf> = it.iter().map(PathBuf::from).collect();
                Folders::new("keep.projects", &patterns).expect("patterns")
            };
            ProjectRules { only: only.map(set), not: not.map(set) }
        };
        let cases = [
            (None, None, Some("/w/a"), true),
            (Some(&["/w/a"][..]), None, Some("/w/a/src"), true),
            (Some(&["/w/a/"]), None, Some("/w/a"), true),
            (Some(&["/w/a"]), None, Some("/w/ab"), false),
            (Some(&["/w/*"]), None, Some("/w/ab/c"), true),
            (Some(&["/w/*"]), None, Some("/w"), false),
            (Some(&["/**/secret"]), None, Some("/a/b/secret/c"), true),
            (Some(&["/w/a"]), None, None, false),
            (None, Some(&["/w/*-client"][..]), Some("/w/big-client/src"), false),
            (None, Some(&["/w/*-client"]), Some("/w/own"), true),
            (None, Some(&["/w/a"]), None, true),
            (Some(&["/w"]), Some(&["/w/a"]), Some("/w/a"), false),
            (Some(&["/w"]), Some(&["/w/a"]), Some("/w/b"), true),
            (Some(&["/"]), None, Some("/w/a"), true),
            (Some(&["/"]), None, None, true),
            (Some(&["/**"]), None, Some("/"), true),
            (Some(&["/w/a/**"]), None, Some("/w/a"), true),
            (Some(&["/w/a/**"]), None, Some("/w/b"), false),
            (Some(&["/w/../w/./a"]), None, Some("/w/a"), true),
            (Some(&["/w/a"]), None, Some("/w/b/../a"), true),
            (None, Some(&["/"]), Some("/w/a"), false),
            (None, Some(&["/**"]), Some("/w/a"), false),
            (None, Some(&["/w/b/../a"]), Some("/w/a/src"), false),
        ];
        for (only, not, cwd, expect) in cases {
            assert_eq!(rules(only, not).keeps(cwd), expect, "{only:?} {not:?} {cwd:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_matches_by_each_of_its_names() {
        let home = tempfile::tempdir().expect("a folder");
        let real = home.path().canonicalize().expect("a folder").join("real");
        let link = home.path().join("link");
        std::fs::create_dir_all(real.join("a")).expect("a folder");
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        for (pattern, cwd) in [(&link, &real), (&real, &link), (&link.join("*"), &real.join("a"))] {
            let only = Folders::new("keep.projects", std::slice::from_ref(pattern));
            let rules = ProjectRules { only: Some(only.expect("a pattern")), not: None };
            assert!(rules.keeps(cwd.to_str()), "{pattern:?} {cwd:?}");
        }
    }
}
