//! Versions that are sent to other machines or received from them.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use epitome_agents::find_agent;
pub use epitome_store::vault::{ReceivedVersions, StagedVersions, VaultPack};

use super::{FileKey, Forgotten, Vault};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};

/// All kept files of the session to which `file` belongs, from all machines.
pub fn files_of_session(vault: &Vault, file: &FileKey) -> BTreeSet<FileKey> {
    let is_of = |it: &&FileKey| (&it.agent, &it.session) == (&file.agent, &file.session);
    vault.files().filter(is_of).cloned().collect()
}

/// Adds received versions to the vault, which is created if it does not exist. Left out are
/// sessions that were forgotten on this machine, and files that name this machine as their own but
/// are neither in its vault nor in the folder of their agent, here or in another home.
///
/// # Errors
///
/// The errors of [`Vault::receive`]; `Disk` or `NoPermission` if the vault cannot be created; the
/// errors of reading the list of forgotten sessions.
pub fn receive_versions(config: &Config, staged: StagedVersions) -> Result<ReceivedVersions> {
    let mut vault = config.create_vault()?;
    let forgotten = Forgotten::read(config)?;
    let own = vault.machine().to_owned();
    let known: BTreeSet<FileKey> =
        vault.files().filter(|file| file.machine == own).cloned().collect();
    vault.receive(staged, &|file| {
        // A version of this machine is restored to the path that it names, so the path must be a
        // known one, or in the folder of the agent. A path in the folder that the agent had in
        // another home is moved to the present folder.
        let is_safe = file.machine != own
            || known.contains(file)
            || is_in_place(config, file)
            || moved_place(config, file).is_some();
        is_safe && !forgotten.has(&file.agent, &file.session)
    })
}

/// Whether the path of a kept file is in the folder of its agent.
fn is_in_place(config: &Config, file: &FileKey) -> bool {
    let folder = find_agent(&file.agent).map(|agent| agent.folder(&config.agents));
    is_plain(&file.path) && folder.is_some_and(|folder| file.path.starts_with(folder))
}

/// Whether a path has no `..`.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| part != Component::ParentDir)
}

/// Where a kept file is on this machine, or would be. For a file of another machine, or of a home
/// that was moved, that is the same place in the folder in which its agent keeps sessions here.
///
/// # Errors
///
/// `Unsupported` if a file of another machine was not in such a folder there.
pub fn place_here(config: &Config, vault: &Vault, file: &FileKey) -> Result<PathBuf> {
    if is_in_place(config, file) {
        return Ok(file.path.clone());
    }
    match moved_place(config, file) {
        Some(path) => Ok(path),
        None if file.machine == vault.machine() => Ok(file.path.clone()),
        None => {
            let what = "another machine kept this where its agent keeps no sessions here";
            Err(Error::new(ErrorKind::Unsupported, what)
                .at(&file.path)
                .with_hint("`--out FILE` writes the version to a file"))
        }
    }
}

/// For a file that was in the folder of its agent on another machine or in another home: the same
/// place in the agent's folder on this machine.
fn moved_place(config: &Config, file: &FileKey) -> Option<PathBuf> {
    let folder = find_agent(&file.agent)?.folder(&config.agents);
    let rest = below(&folder, &config.agents.home, &file.path)?;
    Some(folder.join(rest))
}

/// The end of a path, after the folder of an agent. This folder is `folder` on this machine, and
/// may be in another home elsewhere: if it is `/home/me/.claude/projects` here, it may be
/// `/srv/you/.claude/projects` in `path`. `None` if the path is not in such a folder.
fn below(folder: &Path, home: &Path, path: &Path) -> Option<PathBuf> {
    let tail = folder.strip_prefix(home).ok().filter(|tail| !tail.as_os_str().is_empty())?;
    let mut at = path;
    while let Some(parent) = at.parent() {
        if at.ends_with(tail) {
            let rest = path.strip_prefix(at).ok()?;
            return is_plain(rest).then(|| rest.to_owned());
        }
        at = parent;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_another_machine_has_its_place_here() {
        let folder = Path::new("/home/me/.claude");
        let rest = |path: &str| below(folder, Path::new("/home/me"), Path::new(path));
        assert_eq!(rest("/srv/x/.claude/projects/-p/1.jsonl"), Some("projects/-p/1.jsonl".into()));
        for other in ["/srv/x/claude/1.jsonl", "/etc/passwd", "/x/.claude/../../etc/passwd"] {
            assert_eq!(rest(other), None, "{other}");
        }
        assert_eq!(below(Path::new("/srv/claude"), Path::new("/home/me"), folder), None);
    }
}
