//! Tests with random histories of files. An agent appends to files, cuts, rewrites, deletes,
//! renames and replaces them. A keeper, the process that scans files for the vault, is killed
//! between any two writes. Every version that a finished scan recorded must be restored to the
//! byte. In between, versions are removed and a text is forgotten: all other versions must still be
//! restored, and no piece of the vault may contain the text.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;
use crate::archive::pack::Pack;
use crate::archive::pack_store::{FolderName, NewPack, PackBytes, PackFacts, PackReader};
use crate::forgotten::ForgottenText;
use crate::store::disk::GcMode;
use epitome_model::Bytes;

/// The names of the files, in one folder.
const NAMES: [&str; 3] = ["a.jsonl", "b.jsonl", "c.jsonl"];

/// The text that the step `Forget` forgets.
const SECRET: &str = "the text that is forgotten";

/// A step of a history. An `Option` in a step is the number of a write: the keeper is killed before
/// that write, if it gets that far.
#[derive(Clone, Debug)]
enum Step {
    /// The agent appends this many bytes to a file, which is made if it does not exist.
    Append(usize, usize),
    /// The agent cuts a file to this share of its length, in thousandths.
    Cut(usize, usize),
    /// The agent writes other bytes, from this share of the length on.
    Rewrite(usize, usize),
    Delete(usize),
    /// The agent renames a file over another one.
    Rename(usize, usize),
    /// The agent writes a temporary file with changed content, and renames it over a file.
    Replace(usize, usize),
    /// A keeper scans.
    Scan(Option<usize>),
    /// A keeper merges packs wherever this many are of about one size.
    Merge(usize, Option<usize>),
    /// The agent appends this many of the first bytes of the secret to a file. If the file ends
    /// with a beginning of the secret, it appends the rest of the secret instead.
    Secret(usize, usize),
    /// The keeper removes those versions of a file whose bit is set, but not the last one. The flag
    /// says whether the removal is repeated.
    Remove(usize, u64, Option<usize>, bool),
    /// The keeper removes all versions of a file, and repeats the removal.
    RemoveFile(usize, Option<usize>),
    /// The keeper forgets the secret, and repeats this.
    Forget(Option<usize>),
    /// The keeper is started again.
    Restart,
    /// Another machine receives packs twice: all packs of the vault if the flag is set, or else
    /// packs that are made for all files.
    Send(bool, Option<usize>),
    /// Another keeper scans, between the reads and the writes of the first keeper.
    TwoScan,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let file = 0..NAMES.len();
    let killed = || proptest::option::of(0..6_usize);
    let step = prop_oneof![
        6 => (file.clone(), 1..40_000_usize).prop_map(|(file, len)| Step::Append(file, len)),
        1 => (file.clone(), 0..1000_usize).prop_map(|(file, share)| Step::Cut(file, share)),
        1 => (file.clone(), 0..1000_usize).prop_map(|(file, share)| Step::Rewrite(file, share)),
        1 => file.clone().prop_map(Step::Delete),
        1 => (file.clone(), file.clone()).prop_map(|(one, other)| Step::Rename(one, other)),
        1 => (file.clone(), 0..1000_usize).prop_map(|(file, share)| Step::Replace(file, share)),
        3 => (file.clone(), 1..=SECRET.len()).prop_map(|(file, len)| Step::Secret(file, len)),
        2 => (file.clone(), any::<u64>(), killed(), any::<bool>())
            .prop_map(|(file, which, killed, again)| Step::Remove(file, which, killed, again)),
        1 => (file, killed()).prop_map(|(file, killed)| Step::RemoveFile(file, killed)),
        2 => killed().prop_map(Step::Forget),
        6 => killed().prop_map(Step::Scan),
        2 => (2..4_usize, killed()).prop_map(|(many, killed)| Step::Merge(many, killed)),
        1 => Just(Step::Restart),
        1 => Just(Step::TwoScan),
        2 => (any::<bool>(), killed()).prop_map(|(all, killed)| Step::Send(all, killed)),
    ];
    proptest::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    /// Every version that a scan recorded comes back, whatever happens to the file, and whenever
    /// the keeper is killed.
    #[test]
    fn every_version_of_a_random_history_comes_back(steps in steps()) {
        let mut fake = Fake::new();
        for (n, step) in steps.iter().enumerate() {
            fake.carry_out(n, step);
        }
        fake.check();
    }
}

/// An agent's folder, the vault of a keeper, and the versions that the vault must have.
struct Fake {
    folder: tempfile::TempDir,
    store: Killable,
    vault: Vault,
    /// The contents that were recorded, by the name of the file.
    seen: BTreeMap<&'static str, Vec<Seen>>,
    /// Another machine, and the contents that it must have, by file and number of the version.
    other: Killable,
    sent: BTreeMap<(usize, u64), Option<Vec<u8>>>,
}

/// A version that was recorded.
#[derive(Clone, Debug)]
struct Seen {
    /// `None` for a deletion.
    content: Option<Vec<u8>>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Kept,
    /// The removal of the version was begun: the vault may still have it.
    Going,
    Gone,
}

impl Fake {
    fn new() -> Fake {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Killable::default();
        let vault = store.vault();
        let (seen, sent) = (BTreeMap::new(), BTreeMap::new());
        Fake { folder, store, vault, seen, other: Killable::default(), sent }
    }

    fn path(&self, file: usize) -> PathBuf {
        self.folder.path().join(NAMES[file])
    }

    fn key(&self, file: usize) -> FileKey {
        FileKey {
            machine: MACHINE.into(),
            agent: "pi".into(),
            session: NAMES[file].into(),
            part: None,
            path: self.path(file),
        }
    }

    /// Does a step of the agent. Any other step changes no file.
    fn change_file(&self, n: usize, step: &Step) {
        let bytes = |file: usize| fs::read(self.path(file)).ok();
        let seed = format!("{n} {step:?}");
        match *step {
            Step::Append(file, len) => {
                let content = bytes(file).unwrap_or_default();
                let content = [content, noise(&seed, len)].concat();
                fs::write(self.path(file), content).expect("a file");
            }
            Step::Cut(file, share) => {
                if let Some(mut content) = bytes(file) {
                    content.truncate(content.len() * share / 1000);
                    fs::write(self.path(file), content).expect("a file");
                }
            }
            Step::Rewrite(file, share) => {
                if let Some(mut content) = bytes(file) {
                    let from = content.len() * share / 1000;
                    let len = content.len() - from;
                    content[from..].copy_from_slice(&noise(&seed, len));
                    fs::write(self.path(file), content).expect("a file");
                }
            }
            Step::Delete(file) => drop(fs::remove_file(self.path(file))),
            Step::Rename(one, other) => drop(fs::rename(self.path(one), self.path(other))),
            Step::Replace(file, share) => {
                if let Some(mut content) = bytes(file) {
                    let at = content.len() * share / 1000;
                    content.splice(at..at, *b"replaced");
                    let temporary = self.folder.path().join("temporary");
                    fs::write(&temporary, content).expect("a file");
                    fs::rename(temporary, self.path(file)).expect("a file");
                }
            }
            Step::Secret(file, len) => {
                let content = bytes(file).unwrap_or_default();
                let begun = (1..SECRET.len()).rev();
                let begun = begun.into_iter().find(|n| content.ends_with(&SECRET.as_bytes()[..*n]));
                let rest = match begun {
                    Some(begun) => &SECRET[begun..],
                    None => &SECRET[..len],
                };
                fs::write(self.path(file), [&content[..], rest.as_bytes()].concat()).expect("it");
            }
            Step::Scan(_)
            | Step::Merge(..)
            | Step::Remove(..)
            | Step::RemoveFile(..)
            | Step::Forget(_)
            | Step::Restart
            | Step::Send(..)
            | Step::TwoScan => {}
        }
    }

    fn carry_out(&mut self, n: usize, step: &Step) {
        self.change_file(n, step);
        match *step {
            Step::Append(..)
            | Step::Cut(..)
            | Step::Rewrite(..)
            | Step::Delete(_)
            | Step::Rename(..)
            | Step::Replace(..)
            | Step::Secret(..) => {}
            Step::Remove(file, which, killed, again) => self.remove(file, which, killed, again),
            Step::RemoveFile(file, killed) => {
                let all = self.seen.remove(NAMES[file]).unwrap_or_default();
                let numbers = (1..=all.len() as u64).collect();
                let versions = VersionNumbers::from([(self.key(file), numbers)]);
                for killed in [killed, None] {
                    self.store.kill_before(killed);
                    let removed = self.vault.remove(&versions);
                    assert!(removed.is_ok() || self.store.is_killed(), "{removed:?}");
                    self.start_again_if_killed();
                }
                assert_eq!(self.vault.versions(&self.key(file)).count(), 0);
            }
            Step::Forget(killed) => self.forget(killed),
            Step::Scan(killed) => self.scan(killed),
            Step::Merge(many, killed) => {
                self.store.kill_before(killed);
                let merged = self.vault.merge_packs(many);
                assert!(merged.is_ok() || self.store.is_killed(), "{merged:?}");
                self.start_again_if_killed();
            }
            Step::Restart => self.vault = self.store.vault(),
            Step::Send(all, killed) => self.send(all, killed),
            Step::TwoScan => {
                let mut other = self.store.vault();
                let stale = {
                    let mut batch = self.vault.begin(Timestamp::UNIX_EPOCH);
                    put_all(
                        &mut batch,
                        &self.folder,
                        &NAMES.map(|name| key_in(&self.folder, name)),
                    );
                    scan_all(&mut other, &self.folder);
                    let is_empty = batch.versions().next().is_none();
                    let committed = batch.commit().expect("no write fails");
                    assert_eq!(committed == Committed::Stale, !is_empty);
                    committed == Committed::Stale
                };
                if stale {
                    self.note();
                }
                self.vault = other;
            }
        }
    }

    fn remove(&mut self, file: usize, which: u64, killed: Option<usize>, again: bool) {
        let key = self.key(file);
        let Some(seen) = self.seen.get_mut(NAMES[file]) else { return };
        let but_last = seen.len().saturating_sub(1);
        let meant = (0..but_last).filter(|n| which >> (n % 64) & 1 == 1);
        let meant: Vec<usize> = meant.filter(|n| seen[*n].state != State::Gone).collect();
        let numbers = meant.iter().map(|n| *n as u64 + 1).collect();
        let versions = VersionNumbers::from([(key, numbers)]);
        let attempts = if again { vec![killed, None] } else { vec![killed] };
        for killed in attempts {
            self.store.kill_before(killed);
            let removed = self.vault.remove(&versions);
            let state = if removed.is_ok() { State::Gone } else { State::Going };
            assert!(removed.is_ok() || self.store.is_killed(), "{removed:?}");
            meant.iter().for_each(|n| seen[*n].state = state);
            self.store.kill_before(None);
            self.vault = self.store.vault();
        }
    }

    /// Forgets the secret, and checks that the vault does not contain it any more.
    fn forget(&mut self, killed: Option<usize>) {
        let secret = ForgottenText::new(SECRET).expect("a text");
        for killed in [killed, None] {
            self.store.kill_before(killed);
            let masked = self.vault.mask(&secret);
            assert!(masked.is_ok() || self.store.is_killed(), "{masked:?}");
            self.start_again_if_killed();
        }
        for seen in self.seen.values_mut().flatten() {
            if let Some(content) = &mut seen.content {
                secret.mask(content);
            }
        }
        assert_eq!(self.vault.versions_with(&secret).expect("it is read"), VersionNumbers::new());
        for listed in self.store.list(MACHINE).expect("a listing") {
            let name = format!("{MACHINE}/{}", listed.name());
            let bytes = self.store.open(&name).expect("a pack");
            let pack = Pack::open(bytes, name.clone().into()).expect("a pack");
            for entry in pack.entries() {
                let raw = pack.raw(entry).expect("a piece");
                assert!(!secret.is_in(&raw), "{name} has the text");
            }
        }
        self.check();
    }

    /// Scans all files, and adds the new versions to `seen`.
    fn scan(&mut self, killed: Option<usize>) {
        self.store.kill_before(killed);
        let mut batch = self.vault.begin(Timestamp::UNIX_EPOCH);
        let keys = NAMES.map(|name| key_in(&self.folder, name));
        let done = try_put_all(&mut batch, &self.folder, &keys).and_then(|()| batch.commit());
        assert!(done.is_ok() || self.store.is_killed(), "{done:?}");
        self.start_again_if_killed();
        let last = |name: &&str| {
            let versions = self.vault.versions(&key_in(&self.folder, name)).next_back();
            versions.map_or(0, |version| version.number)
        };
        let recorded: u64 = NAMES.iter().map(last).sum();
        let noted: usize = self.seen.values().map(Vec::len).sum();
        if recorded > noted as u64 {
            self.note();
        }
    }

    /// Adds the present content of each file to `seen`, unless it is the last one there already.
    fn note(&mut self) {
        for (file, name) in NAMES.iter().enumerate() {
            let content = fs::read(self.path(file)).ok();
            let seen = self.seen.entry(name).or_default();
            let last = seen.last().and_then(|last| last.content.clone());
            if last != content {
                seen.push(Seen { content, state: State::Kept });
            }
        }
    }

    /// Sends what the vault has to another machine. Versions that the other machine has stay as
    /// they are.
    fn send(&mut self, all: bool, killed: Option<usize>) {
        let keys: Vec<FileKey> = (0..NAMES.len()).map(|file| self.key(file)).collect();
        for killed in [killed, None] {
            let packs = match all {
                true => self.vault.open_packs().expect("packs"),
                false => {
                    let files = keys.iter().cloned().collect();
                    let (packs, missing) = self.vault.packs_of_files(&files).expect("packs");
                    assert_eq!(missing, 0);
                    packs
                }
            };
            self.other.kill_before(killed);
            let received = self.receive(&packs);
            assert!(received.is_ok() || self.other.is_killed(), "{received:?}");
            self.other.kill_before(None);
            self.check_sent();
        }
        for (file, key) in keys.iter().enumerate() {
            for version in self.vault.versions(key) {
                let content = read(&self.vault, key, version.number).ok();
                self.sent.entry((file, version.number)).or_insert(content);
            }
        }
        self.check_sent();
        let packs = self.vault.open_packs().expect("packs");
        let again = self.receive(&packs).expect("received");
        assert_eq!(again.added, [], "nothing is added twice");
    }

    fn receive(&self, packs: &[VaultPack]) -> Result<ReceivedVersions> {
        let mut vault = self.other_vault();
        let mut staged = StagedVersions::in_store(Arc::new(self.other.clone()));
        for pack in packs {
            let reader = &mut PackReader::new(&*pack.bytes);
            staged.add(&pack.machine, pack.number, pack.bytes.len(), reader)?;
        }
        vault.receive(staged, &|_| true)
    }

    fn other_vault(&self) -> Vault {
        let store = Arc::new(self.other.clone());
        Vault::in_store(store, "00000000000000bb".into(), None).expect("a vault")
    }

    fn check_sent(&self) {
        let vault = self.other_vault();
        assert_eq!(vault.damaged().count(), 0);
        for ((file, number), expect) in &self.sent {
            let found = read(&vault, &self.key(*file), *number).ok();
            assert!(vault.version(&self.key(*file), *number).is_ok());
            assert!(found == *expect, "version {number} of {} is another one", NAMES[*file]);
        }
    }

    fn start_again_if_killed(&mut self) {
        self.store.kill_before(None);
        self.vault = self.store.vault();
    }

    fn check(&self) {
        for vault in [&self.vault, &self.store.vault()] {
            assert_eq!(vault.damaged().count(), 0);
            for (file, name) in NAMES.iter().enumerate() {
                let key = self.key(file);
                let seen = self.seen.get(name).map(Vec::as_slice).unwrap_or_default();
                for (n, seen) in seen.iter().enumerate() {
                    let number = n as u64 + 1;
                    let found = read(vault, &key, number).ok();
                    let is_here = vault.version(&key, number).is_ok();
                    let expect = match seen.state {
                        State::Kept => is_here && found == seen.content,
                        // The version may be gone already.
                        State::Going => found.is_none() || found == seen.content,
                        State::Gone => !is_here,
                    };
                    assert!(expect, "version {number} of {name} is another one");
                }
                let last = vault.versions(&key).next_back().map_or(0, |last| last.number);
                assert_eq!(last, seen.len() as u64, "{name}");
            }
        }
    }
}

fn key_in(folder: &tempfile::TempDir, name: &str) -> FileKey {
    FileKey {
        machine: MACHINE.into(),
        agent: "pi".into(),
        session: name.into(),
        part: None,
        path: folder.path().join(name),
    }
}

fn try_put_all(batch: &mut Batch<'_>, _: &tempfile::TempDir, keys: &[FileKey]) -> Result<()> {
    for key in keys {
        match batch.put_file(key, &key.path) {
            Ok(_) => {}
            Err(err) if err.kind() == ErrorKind::NotFound => {
                batch.put_deleted(key);
            }
            Err(err) => return Err(err),
        }
    }
    Ok(())
}

fn put_all(batch: &mut Batch<'_>, folder: &tempfile::TempDir, keys: &[FileKey]) {
    try_put_all(batch, folder, keys).expect("no write fails");
}

fn scan_all(vault: &mut Vault, folder: &tempfile::TempDir) {
    let mut batch = vault.begin(Timestamp::UNIX_EPOCH);
    put_all(&mut batch, folder, &NAMES.map(|name| key_in(folder, name)));
    batch.commit().expect("no write fails");
}

/// Packs in memory, and a process that is killed before one of its writes: that write and all
/// later ones fail.
#[derive(Clone, Debug)]
struct Killable {
    packs: MemoryStore,
    /// How many writes are left before the process is killed.
    left: Arc<AtomicUsize>,
    lock: Arc<Mutex<()>>,
}

impl Default for Killable {
    fn default() -> Killable {
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        Killable { packs: MemoryStore::default(), left, lock: Arc::default() }
    }
}

impl Killable {
    fn vault(&self) -> Vault {
        Vault::in_store(Arc::new(self.clone()), MACHINE.into(), None).expect("a vault")
    }

    fn kill_before(&self, write: Option<usize>) {
        self.left.store(write.unwrap_or(usize::MAX), Ordering::SeqCst);
    }

    fn is_killed(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    /// Counts a write. Returns an error if the process was killed before this write.
    fn write(&self) -> io::Result<()> {
        let _one_at_a_time = self.lock.lock();
        match self.left.load(Ordering::SeqCst) {
            usize::MAX => Ok(()),
            0 => Err(io::ErrorKind::StorageFull.into()),
            left => {
                self.left.store(left - 1, Ordering::SeqCst);
                Ok(())
            }
        }
    }

    fn counted(&self) -> Result<()> {
        self.write().map_err(|err| Error::writing(err, "the vault", "memory".as_ref()))
    }
}

impl PackStore for Killable {
    fn list(&self, folder: &str) -> Result<Vec<FolderName>> {
        self.packs.list(folder)
    }

    fn begin(&self, folder: &str) -> Result<Box<dyn NewPack>> {
        self.counted()?;
        Ok(Box::new(Counted { new: self.packs.begin(folder)?, store: self.clone() }))
    }

    fn open(&self, name: &str) -> Result<Box<dyn PackBytes>> {
        self.packs.open(name)
    }

    fn facts(&self, name: &str) -> Result<PackFacts> {
        self.packs.facts(name)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.counted()?;
        self.packs.delete(name)
    }

    fn rename(&self, name: &str, to: &str) -> Result<bool> {
        self.counted()?;
        self.packs.rename(name, to)
    }

    fn write_note(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.counted()?;
        self.packs.write_note(name, bytes)
    }

    fn make_folder(&self, folder: &str) -> Result<()> {
        self.packs.make_folder(folder)
    }

    fn flush_folder(&self, folder: &str) -> Result<()> {
        self.packs.flush_folder(folder)
    }

    fn remove_if_empty(&self, folder: &str) {
        self.packs.remove_if_empty(folder);
    }

    fn sweep(&self, folder: &str, mode: GcMode) -> Vec<Bytes> {
        self.packs.sweep(folder, mode)
    }

    fn location(&self, name: &str) -> PathBuf {
        self.packs.location(name)
    }
}

struct Counted {
    new: Box<dyn NewPack>,
    store: Killable,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.store.write()?;
        self.new.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.new.flush()
    }
}

impl NewPack for Counted {
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.new.truncate(len)
    }

    fn open(&self) -> Result<Box<dyn PackBytes>> {
        self.new.open()
    }

    fn location(&self) -> PathBuf {
        self.new.location()
    }

    fn put(self: Box<Self>, name: &str) -> Result<Option<Box<dyn NewPack>>> {
        self.store.counted()?;
        let Counted { new, store } = *self;
        let taken = new.put(name)?;
        Ok(taken.map(|new| Box::new(Counted { new, store }) as Box<dyn NewPack>))
    }
}
