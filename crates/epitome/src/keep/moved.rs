//! Kept files that are one file of this machine: a home that is moved gives its files new paths.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::transfer::place_here;
use super::{FileKey, Vault, Version};
use crate::config::Config;
use crate::place;

/// The kept files that are at the same place of this machine as `file`, in the order in which they
/// were kept: `file`, and what its machine kept of it in homes that were moved since.
///
/// The versions of such files have different numbers, because a keeper goes on counting in a moved
/// home. Files whose numbers are taken are left out, but `file` itself never is: older versions of
/// epitome began again at 1.
pub fn files_at_place(config: &Config, vault: &Vault, file: &FileKey) -> Vec<FileKey> {
    let mut joined: Vec<FileKey> = Vec::new();
    let mut first = u64::MAX;
    for other in same_files(config, vault, file).into_iter().rev() {
        let lowest = vault.versions(&other).next().map(|version| version.number);
        let highest = last_number(vault, &other);
        if let (Some(lowest), Some(highest)) = (lowest, highest)
            && highest < first
        {
            first = lowest;
            joined.insert(0, other);
        }
    }
    if joined.contains(file) { joined } else { vec![file.clone()] }
}

/// The versions of all files at the place of `file`, in order of their numbers, each with its file.
pub fn versions_at_place<'v>(
    config: &Config,
    vault: &'v Vault,
    file: &FileKey,
) -> Vec<(FileKey, &'v Version)> {
    let mut versions = Vec::new();
    for file in files_at_place(config, vault, file) {
        versions.extend(vault.versions(&file).map(|version| (file.clone(), version)));
    }
    versions
}

/// The file at the place of `file` that has the version `number`, if one has it.
pub fn file_with_version(
    config: &Config,
    vault: &Vault,
    file: &FileKey,
    number: u64,
) -> Option<FileKey> {
    let mut files = files_at_place(config, vault, file).into_iter();
    files.find(|file| vault.version(file, number).is_ok())
}

/// Whether `other` is at the place of `file`, but cannot be joined with it, because its numbers are
/// taken.
pub(super) fn is_apart(config: &Config, vault: &Vault, file: &FileKey, other: &FileKey) -> bool {
    same_files(config, vault, file).contains(other)
        && !files_at_place(config, vault, file).contains(other)
}

/// Whether `file` was kept in a home that was moved since, and is kept at its new place as well.
pub(super) fn is_superseded(config: &Config, vault: &Vault, file: &FileKey) -> bool {
    same_files(config, vault, file).last().is_some_and(|newest| newest != file)
}

/// The number of the last version at the place of a file that has no version of its own yet; 0 if
/// there is none.
pub(super) fn number_before(config: &Config, vault: &Vault, file: &FileKey) -> u64 {
    let numbers = same_files(config, vault, file).into_iter();
    numbers.filter_map(|file| last_number(vault, &file)).max().unwrap_or(0)
}

/// As [`number_before`], for those of some files that have no versions.
pub(super) fn numbers_before<'f>(
    config: &Config,
    vault: &Vault,
    files: impl IntoIterator<Item = &'f FileKey>,
) -> BTreeMap<FileKey, u64> {
    let new = files.into_iter().filter(|file| vault.versions(file).next().is_none());
    new.map(|file| (file.clone(), number_before(config, vault, file))).collect()
}

/// The path of a file in the present home, if it was kept in one that was moved since.
pub(super) fn moved_to(config: &Config, vault: &Vault, file: &FileKey) -> Option<PathBuf> {
    let here = place_here(config, vault, file).ok()?;
    let is_own = file.machine == vault.machine();
    // With a file at both places, the home was copied.
    let is_moved = here != file.path && !(is_own && place::exists(&file.path));
    is_moved.then_some(here)
}

/// The path of a kept file in the present home.
pub(super) fn present_path(config: &Config, vault: &Vault, file: &FileKey) -> PathBuf {
    moved_to(config, vault, file).unwrap_or_else(|| file.path.clone())
}

/// All kept files with the place of `file`, also those whose numbers are taken: first those of
/// homes that were moved, and among them first the one that was changed first.
fn same_files(config: &Config, vault: &Vault, file: &FileKey) -> Vec<FileKey> {
    let place = present_path(config, vault, file);
    let mut same: Vec<FileKey> = vault
        .files()
        .filter(|other| is_same_part(file, other) && present_path(config, vault, other) == place)
        .cloned()
        .collect();
    same.sort_by_key(|file| {
        (file.path == place, vault.versions(file).next_back().map(|last| last.seen))
    });
    same
}

/// Whether two keys differ in their paths alone.
fn is_same_part(one: &FileKey, other: &FileKey) -> bool {
    (&one.machine, &one.agent, &one.session, &one.part)
        == (&other.machine, &other.agent, &other.session, &other.part)
}

fn last_number(vault: &Vault, file: &FileKey) -> Option<u64> {
    vault.versions(file).next_back().map(|version| version.number)
}
