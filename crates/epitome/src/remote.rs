//! Keeps copies of the archive in object storage, and keeps the key with which they are encrypted.
//!
//! Packs are always written to the local archive first, so a machine without a network works as
//! usual. [`RemoteArchive::push`] later copies the packs that the storage does not have, and
//! [`RemoteArchive::pull`] copies the packs that this machine does not have.
//!
//! The key is made when the storage is first used, and kept in the platform's keyring or, without
//! one, in the file `archive.key` in [`Config::home`]. Another machine needs the same key.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use epitome_remote::{ObjectPackStore, PushRecord};
use epitome_store::archive::{FolderStore, Hash};
use jiff::SignedDuration;

pub use epitome_remote::{Address, PullReport, PushReport, Retries, SealKey, VaultPushReport};

use crate::archive::{Archive, Generation, SessionKey};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::forget::ForgottenCopy;
use crate::keep::{ReceivedVersions, StagedVersions, Vault, receive_versions};
use crate::keyring;
use crate::regular;
use crate::settings::Settings;
use crate::store::disk::{self, NotPlaced, Temp};
use crate::store::lock_for_writing;

/// For this time after a failed [`RemoteArchive::push_new`], further calls of it do nothing.
const PAUSE: SignedDuration = SignedDuration::from_mins(10);
/// The name of the key in the keyring.
const ACCOUNT: &str = "archive";

/// The remote archive at the address in the setting `archive.url`.
#[derive(Clone, Debug)]
pub struct RemoteArchive<'c> {
    config: &'c Config,
    address: Address,
    retries: Retries,
}

/// Where the key of the remote archive is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealKeyPlace {
    /// In the platform's keyring.
    Keyring,
    /// In this file.
    File(PathBuf),
}

impl<'c> RemoteArchive<'c> {
    /// The archive at the address in the setting `archive.url`; `None` if that is not set.
    ///
    /// # Errors
    ///
    /// `Settings` if the setting is not a valid address.
    pub fn from_settings(
        config: &'c Config,
        settings: &Settings,
        retries: Retries,
    ) -> Result<Option<RemoteArchive<'c>>> {
        let Some(url) = &settings.values.archive.url else { return Ok(None) };
        Ok(Some(RemoteArchive { config, address: url.parse()?, retries }))
    }

    /// The address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Copies all packs that the storage does not have. Before that, deletes the copies that
    /// [`remember_forgotten`](RemoteArchive::remember_forgotten) recorded. Makes the key if neither
    /// this machine nor the storage has one.
    ///
    /// # Errors
    ///
    /// `Refused` if the storage is sealed with a key that this machine does not have; the errors of
    /// [`make_key`], of requests, and of reading packs.
    pub fn push(&self) -> Result<PushReport> {
        let store = self.connect()?;
        self.delete_forgotten(&store)?;
        let report = epitome_remote::push(&self.local(), &store, &mut self.record())?;
        std::fs::remove_file(self.pause()).ok();
        Ok(report)
    }

    /// Like [`push`](RemoteArchive::push), but copies only packs that this machine has not copied
    /// yet, without asking the storage what it has. If this fails, the next calls do nothing for
    /// ten minutes.
    ///
    /// # Errors
    ///
    /// The errors of [`push`](RemoteArchive::push).
    pub fn push_new(&self) -> Result<PushReport> {
        if self.is_paused() {
            return Ok(PushReport::default());
        }
        let connect = || self.connect();
        let deleted = match self.forgotten().lines().next() {
            Some(_) => self.connect().and_then(|store| self.delete_forgotten(&store).map(drop)),
            None => Ok(()),
        };
        let pushed = deleted
            .and_then(|()| epitome_remote::push_new(&self.local(), connect, &mut self.record()));
        if pushed.is_err() {
            let until = (self.config.now() + PAUSE).to_string();
            let written = self.folder().and_then(|_| Ok(std::fs::write(self.pause(), until)?));
            if let Err(err) = written {
                tracing::debug!("no pause of pushes: {err}");
            }
        }
        pushed
    }

    /// Copies the packs of a session and of the files that belong to it, or of all sessions, to
    /// this machine. Packs that were removed here on purpose are copied again only for a single
    /// session. `file` is the session's file, if it is not where its agent keeps sessions.
    ///
    /// # Errors
    ///
    /// `Refused` if the storage is sealed with a key that this machine does not have; `Archive` or
    /// `Refused` if a pack is damaged; the errors of [`make_key`], of requests, and of writing
    /// packs.
    pub fn pull(&self, session: Option<&SessionKey>, file: Option<&Path>) -> Result<PullReport> {
        let store = self.connect()?;
        let files = |generation: &Generation| {
            let mut files = crate::agents::files_of(&self.config.agents, generation);
            files.extend(file.map(Path::to_owned));
            files
        };
        epitome_remote::pull(&store, &self.local(), session, &files)
    }

    /// Copies the packs of the vault (the kept versions of sessions) that the storage does not
    /// have, and deletes copies of those that were merged or from which something was removed. Does
    /// nothing if this machine has no packs in the vault.
    ///
    /// # Errors
    ///
    /// The errors of [`push`](RemoteArchive::push); `Archive` if the vault cannot be listed.
    pub fn push_versions(&self) -> Result<VaultPushReport> {
        let vault = self.config.vault()?;
        if vault.pack_numbers(vault.machine()).is_empty() {
            return Ok(VaultPushReport::default());
        }
        let folder = Vault::folder_in(&self.config.home);
        let mut record = PushRecord::open(folder.join(self.name_of("pushed")));
        let local = FolderStore::new(folder);
        epitome_remote::push_vault(&vault, &local, &self.connect()?, &mut record)
    }

    /// Copies the versions that other machines have pushed, and those of this machine that it has
    /// lost. Returns what was added, and the errors of packs in the storage whose names cannot be
    /// read.
    ///
    /// # Errors
    ///
    /// The errors of [`pull`](RemoteArchive::pull) and of [`receive_versions`].
    pub fn pull_versions(&self) -> Result<(ReceivedVersions, Vec<Error>)> {
        let store = self.connect()?;
        let vault = self.config.vault()?;
        let folder = Vault::folder_in(&self.config.home);
        let record = PushRecord::open(folder.join(self.name_of("pulled")));
        let staged = StagedVersions::new(&self.config.home);
        let pulled = epitome_remote::pull_vault(&vault, &store, record, staged)?;
        if pulled.staged.is_empty() {
            return Ok((ReceivedVersions::default(), pulled.unread));
        }
        let received = receive_versions(self.config, pulled.staged)?;
        // The pull is recorded only if no pack was refused. Otherwise all are pulled again next
        // time: another machine may have replaced the refused packs by then.
        if received.is_complete() {
            pulled.receipt.note();
        }
        Ok((received, pulled.unread))
    }

    /// Records which copies in the storage are to be deleted. Must be called before the originals
    /// are deleted. No request is made, and the record does not reveal which sessions the copies
    /// are of. Returns false, and records nothing, if this machine has no key.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the record cannot be written; the errors of [`find_key`].
    pub fn remember_forgotten(&self, copies: &[ForgottenCopy]) -> Result<bool> {
        // Without the key, the names of the copies cannot be computed.
        let Some((key, _)) = find_key(self.config)? else { return Ok(false) };
        let mut forgotten = self.forgotten();
        for copy in copies {
            let hash = copy.blake3.map_or_else(|| "*".to_owned(), |hash| hash.to_string());
            forgotten
                .add(&format!("{} {hash}", epitome_remote::hidden_folder(&key, &copy.session)))?;
        }
        Ok(true)
    }

    /// Deletes the copies that [`remember_forgotten`](RemoteArchive::remember_forgotten) recorded,
    /// and pushes the packs that have replaced them. Returns the number of deleted packs of the
    /// archive, and of the vault.
    ///
    /// # Errors
    ///
    /// The errors of [`push`](RemoteArchive::push): then the next push continues.
    pub fn forget(&self) -> Result<(u64, u64)> {
        let deleted = self.delete_forgotten(&self.connect()?)?;
        self.push()?;
        Ok((deleted, self.push_versions()?.deleted))
    }

    fn delete_forgotten(&self, store: &ObjectPackStore) -> Result<u64> {
        let mut forgotten = self.forgotten();
        let mut folders: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in forgotten.lines() {
            let Some((folder, hash)) = line.rsplit_once(' ') else { continue };
            folders.entry(folder.to_owned()).or_default().push(hash.to_owned());
        }
        let mut deleted = 0;
        for (folder, hashes) in folders {
            let is_all = hashes.iter().any(|hash| hash == "*");
            let some: BTreeSet<String> = hashes.iter().cloned().collect();
            deleted += store.forget(&folder, (!is_all).then_some(&some))?;
            for hash in hashes {
                forgotten.remove(&format!("{folder} {hash}"));
            }
        }
        Ok(deleted)
    }

    /// The record of copies that are to be deleted. Each line has the name of a folder in the
    /// storage, and the hash of a pack or `*` for all packs in the folder.
    fn forgotten(&self) -> PushRecord {
        PushRecord::open(self.config.home.join(self.name_of("forgotten")))
    }

    /// The name of a file with records about this address: `what`, and a hash of the address.
    fn name_of(&self, what: &str) -> String {
        let name = Hash::compute(self.address.to_string().as_bytes()).to_string();
        format!("{what}-{}", &name[..16])
    }

    fn local(&self) -> FolderStore {
        FolderStore::new(Archive::folder_in(&self.config.home))
    }

    /// Opens the storage with the key of this machine. If neither this machine nor the storage has
    /// a key, makes one.
    fn connect(&self) -> Result<ObjectPackStore> {
        let options = self.config.cloud_variables();
        let key = match find_key(self.config)? {
            Some((key, _)) => key,
            None => match ObjectPackStore::recipient(&self.address, &options, self.retries)? {
                Some(recipient) => return Err(no_key(&self.address, &recipient)),
                None => make_key(self.config)?.0,
            },
        };
        let staging = self.folder()?;
        let store = ObjectPackStore::new(&self.address, &options, self.retries, key, staging)?;
        store.join()?;
        Ok(store)
    }

    /// The folder of temporary files and of the records of pushes. All of them can be made again.
    fn folder(&self) -> Result<PathBuf> {
        self.config.cache("remote")
    }

    fn record(&self) -> PushRecord {
        PushRecord::open(self.config.home.join("cache/remote").join(self.name_of("pushed")))
    }

    fn pause(&self) -> PathBuf {
        self.config.home.join("cache/remote").join(self.name_of("pause"))
    }

    fn is_paused(&self) -> bool {
        let until = regular::read_to_string(&self.pause()).unwrap_or_default();
        until.trim().parse::<jiff::Timestamp>().is_ok_and(|until| self.config.now() < until)
    }
}

fn no_key(address: &Address, recipient: &str) -> Error {
    let what = format!("{address} is sealed with {recipient}, and this machine has no key");
    Error::new(ErrorKind::Refused, what).with_hint(
        "on the machine that has it: `epitome archive key export --out FILE`; here: `epitome \
         archive key import FILE`",
    )
}

fn key_file(config: &Config) -> PathBuf {
    config.home.join("archive.key")
}

/// The key of the remote archive, and where it is kept. `None` if this machine has none.
///
/// # Errors
///
/// The errors of reading the key's file; `Refused` if the file or the keyring has something else
/// than a key. A keyring that cannot be read is treated like an empty one.
pub fn find_key(config: &Config) -> Result<Option<(SealKey, SealKeyPlace)>> {
    let path = key_file(config);
    let not_a_key = |err| {
        let what = "the key of the remote archive is damaged";
        Error::new(ErrorKind::Refused, what).at(&path).because(err)
    };
    match regular::read_to_string(&path) {
        Ok(text) => {
            let key = text.parse().map_err(not_a_key)?;
            return Ok(Some((key, SealKeyPlace::File(path))));
        }
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => {}
        Err(err) => return Err(Error::reading(err, "the key of the remote archive", &path)),
    }
    match keyring::secret(config, ACCOUNT) {
        Ok(Some(text)) => Ok(Some((text.parse().map_err(not_a_key)?, SealKeyPlace::Keyring))),
        Ok(None) => Ok(None),
        Err(err) => {
            tracing::debug!("the keyring was not asked: {err}");
            Ok(None)
        }
    }
}

/// The key of this machine. If it has none, a new one is made and kept.
///
/// # Errors
///
/// The errors of [`find_key`]; `Disk` or `NoPermission` if the new key cannot be kept; `Changed` if
/// another process makes a key and removes it at the same time.
pub fn make_key(config: &Config) -> Result<(SealKey, SealKeyPlace)> {
    match find_key(config)? {
        Some(found) => Ok(found),
        None => keep_key(config, &SealKey::generate()),
    }
}

/// Keeps the key of another machine as the key of this one.
///
/// # Errors
///
/// `Exists` if this machine has another key; otherwise the errors of [`make_key`].
pub fn import_key(config: &Config, key: &SealKey) -> Result<(SealKey, SealKeyPlace)> {
    let (here, place) = match find_key(config)? {
        Some(found) => found,
        None => keep_key(config, key)?,
    };
    if here == *key {
        return Ok((here, place));
    }
    let what = format!("this machine has another key: {}", here.recipient());
    Err(Error::new(ErrorKind::Exists, what)
        .with_hint("if nothing was pushed with it, remove it first: `epitome archive key remove`"))
}

/// Removes the key from this machine. Returns whether a key was removed.
///
/// # Errors
///
/// `Disk` or `NoPermission` if the key's file cannot be removed; `Refused` if there is no such file
/// and the keyring, where a key may be, cannot be used.
pub fn remove_key(config: &Config) -> Result<bool> {
    let path = key_file(config);
    let in_file = match std::fs::remove_file(&path) {
        Ok(()) => true,
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => false,
        Err(err) => return Err(Error::writing(err, "the key of the remote archive", &path)),
    };
    match keyring::remove_secret(config, ACCOUNT) {
        Ok(in_keyring) => Ok(in_file || in_keyring),
        // This error is ignored: the key was in a file because the keyring could not be used.
        Err(_) if in_file => Ok(true),
        Err(err) => {
            let what = "the keyring cannot be used, and no file has a key";
            Err(Error::new(ErrorKind::Refused, what).because(err))
        }
    }
}

/// Keeps a key in the keyring, or else in a file that only its owner can read. Returns the key that
/// is kept: if another process has kept a key at the same time, that key.
fn keep_key(config: &Config, key: &SealKey) -> Result<(SealKey, SealKeyPlace)> {
    disk::private_folder(&config.home)?;
    let _lock = lock_for_writing(&config.home.join("archive.key.lock"))?;
    if let Some(found) = find_key(config)? {
        return Ok(found);
    }
    if keyring::set_secret(config, ACCOUNT, &key.reveal()).is_ok() {
        return Ok((key.clone(), SealKeyPlace::Keyring));
    }
    let path = key_file(config);
    let failed = |err| Error::writing(err, "the key of the remote archive", &path);
    let temp = Temp::create(&config.home).map_err(failed)?;
    let text = format!("# public key: {}\n{}\n", key.recipient(), key.reveal());
    temp.file().write_all(text.as_bytes()).map_err(failed)?;
    temp.flush_to_disk().map_err(failed)?;
    match temp.place_new(&path) {
        Ok(()) => {}
        // Another process has made a key at the same time. That key is used.
        Err(NotPlaced::Taken(_)) => {
            let found = find_key(config)?;
            return found.ok_or_else(|| Error::new(ErrorKind::Changed, "the key is gone"));
        }
        Err(NotPlaced::Failed(err)) => return Err(failed(err)),
    }
    disk::flush_folder(&config.home).map_err(failed)?;
    Ok((key.clone(), SealKeyPlace::File(path)))
}
