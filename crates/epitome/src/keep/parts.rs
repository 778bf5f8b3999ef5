//! The kept files that belong to a session, such as those of its sub-agents.

use std::path::{Path, PathBuf};

use super::{FileKey, Vault, place_here};
use crate::config::Config;

/// The kept files that belong to the session whose own file is `file`.
pub(super) fn parts_of<'v>(config: &Config, vault: &'v Vault, file: &FileKey) -> Vec<&'v FileKey> {
    let place = place(config, vault, file);
    let parts = vault.files().filter(|it| it.part.is_some() && is_same_session(it, file));
    parts
        .filter(|part| {
            let own = own_files(config, vault, part);
            own.is_empty() || own.iter().any(|own| self::place(config, vault, own) == place)
        })
        .collect()
}

/// The own files of the session to which the kept file `part` belongs: several if the session was
/// kept at several paths, because its home folder was moved, or if nothing tells them apart.
///
/// If a project's folder was copied, its sessions are in two folders under one id. A file belongs
/// to the session with whose folder it has the most folders in common.
pub(super) fn own_files<'v>(config: &Config, vault: &'v Vault, part: &FileKey) -> Vec<&'v FileKey> {
    let place = place(config, vault, part);
    let common = |own: &&FileKey| {
        let own = self::place(config, vault, own);
        let folder = own.parent().into_iter().flat_map(Path::components);
        folder.zip(place.components()).take_while(|(one, other)| one == other).count()
    };
    let mut own: Vec<&FileKey> =
        vault.files().filter(|it| it.part.is_none() && is_same_session(it, part)).collect();
    let most = own.iter().map(common).max();
    own.retain(|own| Some(common(own)) == most);
    own
}

/// Where a file is or would be on this machine, or else where another machine kept it.
fn place(config: &Config, vault: &Vault, file: &FileKey) -> PathBuf {
    place_here(config, vault, file).unwrap_or_else(|_| file.path.clone())
}

fn is_same_session(one: &FileKey, other: &FileKey) -> bool {
    (&one.machine, &one.agent, &one.session) == (&other.machine, &other.agent, &other.session)
}
