//! Copies the packs of the vault to a remote archive and back: [`push_vault`] and [`pull_vault`].
//!
//! A machine pushes only its own packs, under `vault/<machine>/<number>-<hash>.pack`, so machines
//! never overwrite each other. [`push_vault`] deletes a pack from the remote archive only if this
//! home has pushed it, and only after it has pushed a pack that replaces it. What is pulled is
//! added by [`Vault::receive`](epitome_store::vault::Vault::receive).

use std::collections::BTreeSet;
use std::io::Read;

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::Bytes;
use epitome_store::archive::FolderStore;
use epitome_store::archive::pack_store::PackStore;
use epitome_store::vault::{StagedVersions, Vault};

use crate::store::{ObjectPackStore, Put, hash_of};
use crate::transfer::{PushRecord, RemoteName};

/// The folder of the vaults' packs in the remote archive.
const AREA: &str = "vault";

/// The result of [`push_vault`].
#[derive(Clone, Debug, Default)]
pub struct VaultPushReport {
    /// Number of packs that were copied.
    pub pushed: u64,
    /// Total length of the packs that were copied.
    pub bytes: Bytes,
    /// Number of packs that the remote archive had already.
    pub known: u64,
    /// Number of packs that were deleted from the remote archive, because other packs have their
    /// content or because it was removed from the vault on purpose.
    pub deleted: u64,
    /// The errors of local packs that differ from what was pushed before under their number: they
    /// are damaged. The remote archive still has the undamaged packs.
    pub damaged: Vec<Error>,
}

/// The result of [`pull_vault`].
pub struct PulledPacks {
    /// The packs, proved by their hashes.
    pub staged: StagedVersions,
    /// The errors of names that cannot be read.
    pub unread: Vec<Error>,
    /// Records, when the packs were added to the vault, that they need not be pulled again.
    pub receipt: PullReceipt,
}

/// Records which packs were pulled, for the next pull.
pub struct PullReceipt {
    record: PushRecord,
    names: BTreeSet<String>,
}

impl PullReceipt {
    /// Records that the vault has the content of these packs, so that they are not pulled again.
    pub fn note(mut self) {
        self.record.write(self.names);
    }
}

/// Copies the packs of this machine that the remote archive does not have. Then deletes from the
/// remote archive the packs that were replaced in the vault, if they are in `record`: it lists the
/// packs that this home has pushed. If a request fails, what was copied stays, and the next call
/// continues.
///
/// # Errors
///
/// The errors of the first request that fails; `Archive` if the remote archive cannot be listed or
/// has something else under the name of a pack; the errors of reading a pack, and of writing the
/// record.
pub fn push_vault(
    vault: &Vault,
    from: &FolderStore,
    to: &ObjectPackStore,
    record: &mut PushRecord,
) -> Result<VaultPushReport> {
    let machine = vault.machine();
    let mut report = VaultPushReport::default();
    if machine.is_empty() {
        return Ok(report);
    }
    let there: BTreeSet<String> = to.hashes(&format!("{AREA}/{machine}"))?.0.into_keys().collect();
    let mut here = BTreeSet::new();
    for number in vault.pack_numbers(machine) {
        here.insert(number);
        let local = format!("{machine}/{number:06}.pack");
        let pack = match from.open(&local) {
            // A merge or a removal has deleted the pack since the vault was read.
            Err(err) if err.kind() == ErrorKind::NotFound => continue,
            opened => opened?,
        };
        let hash = hash_of(&*pack, &from.location(&local))?;
        let name = RemoteName::new(AREA, machine, number, &hash);
        let pushed = record.lines().filter_map(|line| RemoteName::parse(AREA, line));
        if pushed.into_iter().any(|it| it.number == number && it.hash != name.hash) {
            let what = "a part of the vault is not what was pushed before: it is damaged here";
            report.damaged.push(Error::new(ErrorKind::Archive, what).at(&from.location(&local)));
            continue;
        }
        let text = name.text();
        // The name is recorded before the pack is copied, so that the record has every pack that
        // this home has pushed and may delete later.
        record.add(&text)?;
        if there.contains(&text) {
            report.known += 1;
            continue;
        }
        match to.put_pack(&*pack, &text)? {
            Put::New => {
                report.pushed += 1;
                report.bytes += Bytes(pack.len());
            }
            Put::Known => report.known += 1,
            Put::Taken => {
                let what = "the remote archive has another pack of this name";
                return Err(Error::new(ErrorKind::Archive, what).at(&to.location(&text)));
            }
        }
    }
    let lines: Vec<String> = record.lines().map(str::to_owned).collect();
    for line in lines {
        let Some(name) = RemoteName::parse(AREA, &line) else { continue };
        let is_own = name.folder == machine && !here.contains(&name.number);
        if is_own && vault.is_replaced(machine, name.number) {
            report.deleted += u64::from(to.remove(&line)?);
            record.remove(&line);
        }
    }
    Ok(report)
}

/// Copies into `staged` the packs of other machines that are new since the last pull, all packs of
/// a machine from which the vault has none, and the packs of this machine that its vault has lost.
/// Proves each by its hash. `record` lists the packs that were in the remote archive at the last
/// pull.
///
/// # Errors
///
/// The errors of requests; `Archive` or `Refused` if a pack is damaged; `Disk` if it cannot be
/// copied.
pub fn pull_vault(
    vault: &Vault,
    from: &ObjectPackStore,
    record: PushRecord,
    mut staged: StagedVersions,
) -> Result<PulledPacks> {
    let (hashes, unread) = from.hashes(AREA)?;
    let mut names = BTreeSet::new();
    for (text, hash) in hashes {
        let Some(name) = RemoteName::parse(AREA, &text) else { continue };
        let here = vault.pack_numbers(&name.folder);
        let is_wanted = match name.folder == vault.machine() {
            true => !here.contains(&name.number) && !vault.is_replaced(&name.folder, name.number),
            // If the vault has no packs of that machine any more, all are pulled again.
            false => here.is_empty() || !record.has(&text),
        };
        if is_wanted {
            let mut pack = from.proved(&text, hash)?;
            staged.add(&name.folder, name.number, pack.len, &mut pack.bytes as &mut dyn Read)?;
        }
        names.insert(text);
    }
    Ok(PulledPacks { staged, unread, receipt: PullReceipt { record, names } })
}
