//! Completes restores of several files whose processes were killed in between.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::super::unfinished::{IntendedFile, RestoreRecords};
use super::super::{FileKey, KeptFile, Vault, place_here};
use super::{RestoreVersion, RolledBackFile, keep_present, keep_restored};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};

/// A restore of a session that was interrupted between two of its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterruptedRestore {
    /// The session.
    #[serde(flatten)]
    pub file: KeptFile,
    /// The number of the version that was being restored.
    pub version: u64,
}

impl InterruptedRestore {
    fn new(file: &FileKey, version: u64) -> InterruptedRestore {
        InterruptedRestore { file: KeptFile::from(file), version }
    }
}

/// What was done with the restores that were interrupted.
#[derive(Clone, Debug, Default)]
pub struct CompletionReport {
    /// The restores that were completed.
    pub completed: Vec<InterruptedRestore>,
    /// The errors of those that could not be completed.
    pub errors: Vec<Error>,
}

/// Completes the restores that killed processes have begun, as far as possible: a session may be in
/// use, for example. Does nothing while another process restores several files.
pub(in super::super) fn complete_restores(config: &Config, vault: &mut Vault) -> CompletionReport {
    match RestoreRecords::try_lock(config) {
        Ok(Some(records)) => complete_all(&records, config, vault, |_| true),
        Ok(None) => CompletionReport::default(),
        Err(err) => CompletionReport { errors: vec![err], ..CompletionReport::default() },
    }
}

/// The restores of a session that were interrupted and are not completed yet.
pub(crate) fn interrupted_restores(
    config: &Config,
    agent: &str,
    session: &str,
) -> Result<Vec<InterruptedRestore>> {
    let Some(records) = RestoreRecords::lock_existing(config)? else { return Ok(Vec::new()) };
    let all =
        records.all().into_iter().map(|(_, it)| InterruptedRestore::new(&it.file(), it.number));
    Ok(all.filter(|it| (&*it.file.agent, &*it.file.session) == (agent, session)).collect())
}

/// Completes the restores of a session that were interrupted.
///
/// # Errors
///
/// The first error of those that could not be completed.
pub(crate) fn complete_restores_of(
    config: &Config,
    vault: &mut Vault,
    agent: &str,
    session: &str,
) -> Result<Vec<InterruptedRestore>> {
    let Some(records) = RestoreRecords::lock_existing(config)? else { return Ok(Vec::new()) };
    let is_wanted = |file: &FileKey| (&*file.agent, &*file.session) == (agent, session);
    let CompletionReport { completed, errors } = complete_all(&records, config, vault, is_wanted);
    errors.into_iter().next().map_or(Ok(completed), Err)
}

/// Completes those of the recorded restores for whose files `is_wanted` returns true.
pub(super) fn complete_all(
    records: &RestoreRecords,
    config: &Config,
    vault: &mut Vault,
    is_wanted: impl Fn(&FileKey) -> bool,
) -> CompletionReport {
    let mut report = CompletionReport::default();
    for (path, intention) in records.all() {
        let file = intention.file();
        if !is_wanted(&file) {
            continue;
        }
        let version = intention.number;
        let restore = RestoreVersion { file: &file, number: version, force: false };
        let done = restore.complete(config, vault, &intention.files);
        // A restore that can never be completed is reported once: its record is removed now.
        if !done.as_ref().is_err_and(may_succeed_later) {
            records.remove(&path);
        }
        match done {
            Ok(()) => report.completed.push(InterruptedRestore::new(&file, version)),
            Err(err) => {
                let what = format!(
                    "a restore of this session to version {version} was interrupted, and cannot \
                     be completed"
                );
                report.errors.push(Error::new(err.kind(), what).because(err).at(&file.path));
            }
        }
    }
    report
}

/// Whether an error may be gone when the restore is tried again.
fn may_succeed_later(err: &Error) -> bool {
    use ErrorKind::{Changed, Disk, HeldByAgent, InUse, Locked, NoPermission};
    matches!(err.kind(), Changed | Disk | HeldByAgent | InUse | Locked | NoPermission)
}

impl RestoreVersion<'_> {
    /// Completes a restore that was interrupted: restores those of `files` that are as they were
    /// before it. Files that were changed since are left as they are.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](RestoreVersion::run), with the files that are not restored yet;
    /// `Refused`, with their names, if files were changed since or are not kept any more: the
    /// others are restored nevertheless.
    fn complete(&self, config: &Config, vault: &mut Vault, files: &[IntendedFile]) -> Result<()> {
        let mut waiting = Vec::new();
        let mut replaced = Vec::new();
        let mut changed = Vec::new();
        // The home may have been moved since.
        let mut left: BTreeMap<FileKey, &IntendedFile> = BTreeMap::new();
        for file in files {
            let key = FileKey { machine: vault.machine().to_owned(), ..file.file.clone() };
            let path = place_here(config, vault, &key)?;
            left.insert(FileKey { path, ..key }, file);
        }
        for target in self.targets_here(config, vault)? {
            let Some(file) = left.remove(&target.file) else { continue };
            if target.is_as(file) {
                waiting.push(target);
            } else if target.is_replaced(file)? {
                replaced.push(target);
            } else {
                changed.push(target.file.path);
            }
        }
        changed.extend(left.into_keys().map(|file| file.path));
        let paths: Vec<PathBuf> = waiting.iter().map(|it| it.file.path.clone()).collect();
        keep_present(config, vault, &mut waiting).map_err(|err| not_restored(err, &paths))?;
        let waiting: Vec<&RolledBackFile> = waiting.iter().collect();
        self.write(config, vault, &waiting).map_err(|err| not_restored(err, &paths))?;
        let restored: Vec<&RolledBackFile> = replaced.iter().chain(waiting).collect();
        keep_restored(config, vault, &restored)?;
        match &changed[..] {
            [] => Ok(()),
            paths => Err(changed_since(paths)),
        }
    }
}

/// The error `err` with the names of the files that are not restored yet, if there are several. The
/// error for a single file names it already.
fn not_restored(err: Error, paths: &[PathBuf]) -> Error {
    if paths.len() < 2 {
        return err;
    }
    let what = format!("these files are not restored yet: {}", names(paths));
    Error::new(err.kind(), what).because(err)
}

/// The error for files that are neither as they were before a restore nor as it leaves them.
fn changed_since(paths: &[PathBuf]) -> Error {
    let what = match paths {
        [_] => "this file was changed since, by its agent or by `forget`, and stays".to_owned(),
        _ => format!(
            "these files were changed since, by their agent or by `forget`, and stay: {}",
            names(paths)
        ),
    };
    let err = Error::new(ErrorKind::Refused, what)
        .with_hint("the same `epitome restore --at` again restores all files");
    match paths {
        [path] => err.at(path),
        _ => err,
    }
}

fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}
