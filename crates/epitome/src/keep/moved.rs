//! If the user's home folder is moved, the files in it get new paths. This module finds the kept
//! files that are one file at several paths.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::transfer::place_here;
use super::{FileKey, Vault, Version};
use crate::config::Config;
use crate::place;

/// The kept files that are the same file as `file` at other paths, because the home folder was
/// moved, and `file` itself. The oldest comes first.
///
/// After a move, the versions at the new path are numbered on from those at the old one. Older
/// versions of epitome began again at 1: then the numbers collide, and the older file is left out.
/// If that would leave out `file`, only `file` is returned.
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

/// The versions of all files that [`files_at_place`] returns, in order of their numbers, each with
/// its file.
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

/// The one of [`files_at_place`] that has the version `number`, or else the only copy of the file
/// that has it, in a home folder that was copied. `None` if there is none.
pub fn file_with_version(
    config: &Config,
    vault: &Vault,
    file: &FileKey,
    number: u64,
) -> Option<FileKey> {
    let has_number = |file: &FileKey| vault.version(file, number).is_ok();
    let joined = files_at_place(config, vault, file).into_iter().find(has_number);
    joined.or_else(|| {
        // In a home that was copied, the old place has versions of its own.
        let mut copies =
            vault.files().filter(|it| is_copy(config, vault, file, it) && has_number(it));
        copies.next().filter(|_| copies.next().is_none()).cloned()
    })
}

/// Whether `other` is the same file as `file` at another path, but [`files_at_place`] leaves it
/// out, because their version numbers collide, or because the home folder was copied and not moved.
pub(super) fn is_apart(config: &Config, vault: &Vault, file: &FileKey, other: &FileKey) -> bool {
    is_copy(config, vault, file, other) && !files_at_place(config, vault, file).contains(other)
}

/// Whether `other` is the same file as `file` at another path, in a home folder that was moved or
/// copied.
fn is_copy(config: &Config, vault: &Vault, file: &FileKey, other: &FileKey) -> bool {
    let here = |file: &FileKey| place_here(config, vault, file).ok();
    is_same_part(file, other) && here(file).is_some() && here(file) == here(other)
}

/// Whether the same file was also kept at a newer path, because its home folder was moved.
pub(super) fn is_superseded(config: &Config, vault: &Vault, file: &FileKey) -> bool {
    same_files(config, vault, file).last().is_some_and(|newest| newest != file)
}

/// For a file without versions: the number of the last version of the same file at another path, in
/// a home folder that was moved or copied; 0 if there is none.
pub(super) fn number_before(config: &Config, vault: &Vault, file: &FileKey) -> u64 {
    let copies = vault.files().filter(|other| is_copy(config, vault, file, other));
    copies.filter_map(|file| last_number(vault, file)).max().unwrap_or(0)
}

/// The [`number_before`] of each of `files` that has no versions.
pub(super) fn numbers_before<'f>(
    config: &Config,
    vault: &Vault,
    files: impl IntoIterator<Item = &'f FileKey>,
) -> BTreeMap<FileKey, u64> {
    let new = files.into_iter().filter(|file| vault.versions(file).next().is_none());
    new.map(|file| (file.clone(), number_before(config, vault, file))).collect()
}

/// The path of a file in the present home folder, if the file was kept at another path: in a home
/// folder that was moved since, or on another machine. Otherwise `None`.
pub(super) fn moved_to(config: &Config, vault: &Vault, file: &FileKey) -> Option<PathBuf> {
    let here = place_here(config, vault, file).ok()?;
    let is_own = file.machine == vault.machine();
    // If the old path exists, too, the home folder was copied and not moved.
    let is_moved = here != file.path && !(is_own && place::exists(&file.path));
    is_moved.then_some(here)
}

/// The path of a kept file in the present home folder, or else the path at which it was kept.
pub fn present_path(config: &Config, vault: &Vault, file: &FileKey) -> PathBuf {
    moved_to(config, vault, file).unwrap_or_else(|| file.path.clone())
}

/// All kept files that are the same file as `file`, also those whose version numbers collide. The
/// one at the present path comes last. The others are in the order of their last changes.
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

/// Whether two keys are equal, except perhaps for their paths.
fn is_same_part(one: &FileKey, other: &FileKey) -> bool {
    (&one.machine, &one.agent, &one.session, &one.part)
        == (&other.machine, &other.agent, &other.session, &other.part)
}

fn last_number(vault: &Vault, file: &FileKey) -> Option<u64> {
    vault.versions(file).next_back().map(|version| version.number)
}
