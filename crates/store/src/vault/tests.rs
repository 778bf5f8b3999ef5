//! Tests of the vault: versions are restored to the byte after changes of the file and the vault.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::archive::MemoryStore;
use crate::archive::pack_name;
use crate::step::fault;

use super::batch::GAP;

mod histories;
mod transfers;

const MACHINE: &str = "00000000000000aa";

/// Bytes that do not repeat and are not compressible.
pub(super) fn noise(seed: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(seed.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// A file, the vault that keeps it, and the content of each of its versions.
struct World {
    folder: tempfile::TempDir,
    store: MemoryStore,
    vault: Vault,
    /// The content of each version of `s.jsonl`, from the first; `None` if it was deleted.
    seen: Vec<Option<Vec<u8>>>,
    scans: i64,
}

impl World {
    fn new() -> World {
        let store = MemoryStore::default();
        let vault = in_memory(&store);
        let folder = tempfile::tempdir().expect("a folder");
        World { folder, store, vault, seen: Vec::new(), scans: 0 }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("s.jsonl")
    }

    fn key(&self) -> FileKey {
        FileKey {
            machine: MACHINE.into(),
            agent: "pi".into(),
            session: "s".into(),
            part: None,
            path: self.path(),
        }
    }

    /// Writes the file, or deletes it, and scans it. Returns what changed, or `None` if nothing
    /// did.
    fn scan(&mut self, content: Option<&[u8]>) -> Option<ContentChange> {
        let path = self.path();
        let key = self.key();
        match content {
            Some(bytes) => fs::write(&path, bytes).expect("a file"),
            None => fs::remove_file(&path).expect("a file"),
        }
        self.scans += 1;
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(self.scans);
        let mut batch = self.vault.begin(now);
        match content {
            Some(_) => drop(batch.put_file(&key, &path).expect("it is read")),
            None => drop(batch.put_deleted(&key)),
        }
        let Committed::Written(written) = batch.commit().expect("it is written") else {
            panic!("nothing else writes")
        };
        let version = written.into_iter().next().map(|(_, version)| version)?;
        assert_eq!(version.number, self.seen.len() as u64 + 1);
        assert_eq!(version.seen, now);
        self.seen.push(content.map(<[u8]>::to_vec));
        Some(version.change)
    }

    /// Checks that every version comes back, from this vault and from one that was just opened.
    fn check(&self) {
        for vault in [&self.vault, &in_memory(&self.store)] {
            assert_eq!(vault.damaged().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
            assert_eq!(vault.versions(&self.key()).count(), self.seen.len());
            for (n, expect) in self.seen.iter().enumerate() {
                let number = n as u64 + 1;
                assert_eq!(read(vault, &self.key(), number).ok(), *expect, "version {number}");
            }
        }
    }
}

fn in_memory(store: &MemoryStore) -> Vault {
    Vault::in_store(Arc::new(store.clone()), MACHINE.into(), None).expect("a vault")
}

fn read(vault: &Vault, file: &FileKey, number: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    vault.write_version(file, number, &mut bytes).map(|()| bytes)
}

#[test]
fn every_version_comes_back_and_says_what_changed() {
    let mut world = World::new();
    let long = noise("long", 400_000);
    let appended = [&long[..], b"one more line\n"].concat();
    let inside = [&long[..200_000], b"changed", &long[200_000..]].concat();
    let steps: [(Option<&[u8]>, Option<ContentChange>); 13] = [
        (Some(b""), Some(ContentChange::First)),
        (Some(&long), Some(ContentChange::Appended)),
        (Some(&long), None),
        (Some(&appended), Some(ContentChange::Appended)),
        (Some(&inside), Some(ContentChange::Rewritten)),
        (Some(&inside[..300_001]), Some(ContentChange::Cut)),
        (Some(&long), Some(ContentChange::Back(2))),
        (None, Some(ContentChange::Deleted)),
        (Some(&long), Some(ContentChange::Back(6))),
        (Some(&[&long[..], b"other"].concat()), Some(ContentChange::Appended)),
        (Some(b""), Some(ContentChange::Back(1))),
        (Some(b"short"), Some(ContentChange::Appended)),
        (Some(b"other"), Some(ContentChange::Rewritten)),
    ];
    for (content, expect) in steps {
        assert_eq!(world.scan(content), expect);
    }
    world.check();
    let (_, stored) = world.vault.size();
    assert!(stored < 900_000, "{stored} bytes: most was there already");
}

#[test]
fn what_two_files_share_is_stored_once() {
    let mut world = World::new();
    let long = noise("long", 3_000_000);
    world.scan(Some(&long));
    let (_, before) = world.vault.size();
    let copy = world.folder.path().join("copy.jsonl");
    fs::write(&copy, [&long[..], b"and more"].concat()).expect("a file");
    let mut batch = world.vault.begin(Timestamp::UNIX_EPOCH);
    let key = batch.key("claude", "copy", None, &copy);
    assert_eq!(batch.put_file(&key, &copy).expect("it is read"), Put::New(ContentChange::First));
    assert!(matches!(batch.commit().expect("it is written"), Committed::Written(_)));
    let (_, after) = world.vault.size();
    assert!(after - before < 600_000, "only the last chunk is new: {}", after - before);
    assert_eq!(read(&world.vault, &key, 1).expect("it comes back"), fs::read(&copy).expect("it"));
    world.check();
}

#[test]
fn merging_keeps_all_versions_in_fewer_bytes() {
    let mut world = World::new();
    let mut content = noise("0", 20_000);
    world.scan(Some(&content));
    for n in 0..MANY_SCANS {
        match n {
            20 => {
                content.truncate(30_000);
            }
            30 => {
                world.scan(None);
            }
            _ => content.extend_from_slice(&noise(&n.to_string(), 1500)),
        }
        world.scan(Some(&content));
    }
    let (packs, before) = world.vault.size();
    assert_eq!(packs, MANY_SCANS + 2);
    let merged = world.vault.merge().expect("it is merged");
    let (packs, after) = world.vault.size();
    assert!(merged.packs >= 32 && packs < MANY_SCANS + 2 - 31, "{merged:?}, {packs} packs");
    assert!(after < before, "{after} of {before}");
    assert!(after < 200_000, "{after}: chunks that are not needed are gone");
    world.check();
    assert_eq!(world.vault.merge().expect("nothing to do"), Merged::default());
    content.extend_from_slice(b"and on");
    assert_eq!(world.scan(Some(&content)), Some(ContentChange::Appended));
    world.check();
}

const MANY_SCANS: u64 = 60;

#[test]
fn a_damaged_chunk_is_named_and_the_rest_comes_back() {
    let home = tempfile::tempdir().expect("a folder");
    let mut vault = Vault::create(home.path(), "seed").expect("a vault");
    let path = home.path().join("s.jsonl");
    let first = noise("first", 100_000);
    let mut key = None;
    for content in [&first[..], b"another"] {
        fs::write(&path, content).expect("a file");
        let mut batch = vault.begin(Timestamp::UNIX_EPOCH);
        let file = batch.key("pi", "s", None, &path);
        batch.put_file(&file, &path).expect("it is read");
        batch.commit().expect("it is written");
        key = Some(file);
    }
    let key = key.expect("a file");
    let pack = vault.store.location(&pack_name(vault.machine(), 1));
    let mut bytes = fs::read(&pack).expect("a pack");
    bytes[200] ^= 1;
    fs::write(&pack, &bytes).expect("a pack");
    let vault = Vault::open(home.path()).expect("a vault");
    let err = read(&vault, &key, 1).expect_err("a damaged chunk");
    assert_eq!((err.kind(), err.path()), (ErrorKind::Archive, Some(&*pack)));
    assert!(err.to_string().contains(&err_chunk(&vault, &key)), "{err}");
    assert_eq!(read(&vault, &key, 2).expect("it comes back"), b"another");
}

/// If a pack that could not be read is put back from a backup, the vault has its versions again. It
/// still has the versions that were recorded in between.
#[test]
fn versions_that_could_not_be_read_meanwhile_come_back_with_their_numbers() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("s.jsonl");
    let keep = |content: &[u8]| {
        fs::write(&path, content).expect("a file");
        let mut vault = Vault::create(home.path(), "seed").expect("a vault");
        let mut batch = vault.begin(Timestamp::UNIX_EPOCH);
        let file = batch.key("pi", "s", None, &path);
        batch.put_file(&file, &path).expect("it is read");
        batch.commit().expect("it is written");
        file
    };
    keep(b"one");
    let file = keep(b"one two");
    let vault = Vault::open(home.path()).expect("a vault");
    let pack = vault.store.location(&pack_name(vault.machine(), 2));
    let bytes = fs::read(&pack).expect("a pack");
    fs::write(&pack, b"").expect("a pack");
    keep(b"one three");
    keep(b"one three four");
    fs::write(&pack, bytes).expect("a pack");
    keep(b"one three four five");
    let vault = Vault::open(home.path()).expect("a vault");
    let versions: Vec<(u64, Vec<u8>)> = vault
        .versions(&file)
        .map(|it| (it.number, read(&vault, &file, it.number).expect("it comes back")))
        .collect();
    let expect = [
        (1, b"one".to_vec()),
        (2, b"one two".to_vec()),
        (GAP + 2, b"one three".to_vec()),
        (GAP + 3, b"one three four".to_vec()),
        (GAP + 4, b"one three four five".to_vec()),
    ];
    assert_eq!(versions, expect);
}

/// The hash of the first chunk of the first version of a file, as text.
fn err_chunk(vault: &Vault, key: &FileKey) -> String {
    let version = vault.version(key, 1).expect("a version");
    version.content.chunks()[0].to_string()
}

#[test]
fn two_keepers_lose_nothing_and_record_nothing_twice() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("s.jsonl");
    let other = home.path().join("other.jsonl");
    let mut one = Vault::create(home.path(), "seed").expect("a vault");
    let mut two = Vault::create(home.path(), "another seed").expect("a vault");
    assert_eq!(one.machine(), two.machine());
    fs::write(&path, b"one").expect("a file");
    fs::write(&other, b"other").expect("a file");
    let mut of_one = one.begin(Timestamp::UNIX_EPOCH);
    let mut of_two = two.begin(Timestamp::UNIX_EPOCH);
    let key = of_one.key("pi", "s", None, &path);
    let other_key = of_one.key("pi", "other", None, &other);
    of_one.put_file(&key, &path).expect("it is read");
    of_two.put_file(&key, &path).expect("it is read");
    of_two.put_file(&other_key, &other).expect("it is read");
    assert!(matches!(of_one.commit().expect("written"), Committed::Written(_)));
    assert_eq!(of_two.commit().expect("not written"), Committed::Stale);
    let mut again = two.begin(Timestamp::UNIX_EPOCH);
    assert!(matches!(again.put_file(&key, &path).expect("it is read"), Put::Same(_)));
    again.put_file(&other_key, &other).expect("it is read");
    let Committed::Written(written) = again.commit().expect("written") else { panic!("stale") };
    assert_eq!(written.len(), 1);
    one.refresh().expect("a listing");
    assert_eq!(read(&one, &key, 1).expect("it comes back"), b"one");
    assert_eq!(read(&one, &other_key, 1).expect("it comes back"), b"other");
    assert_eq!(one.versions(&key).count(), 1);
}

/// `is_replaced` says which copies of packs, for example in a remote archive, can be deleted.
#[test]
fn a_merged_pack_says_which_packs_it_replaces() {
    let mut world = World::new();
    for n in 0..4 {
        world.scan(Some(format!("version {n}").as_bytes()));
    }
    world.vault.merge_packs(2).expect("merged");
    world.scan(Some(b"another"));
    world.vault.merge_packs(2).expect("merged");
    let vault = in_memory(&world.store);
    assert_eq!(vault.pack_numbers(MACHINE), [7]);
    let replaced: Vec<u64> = (0..9).filter(|number| vault.is_replaced(MACHINE, *number)).collect();
    assert_eq!(replaced, [1, 2, 3, 4, 5, 6]);
    world.check();
}

#[test]
fn whatever_step_fails_the_version_is_recorded_or_not() {
    let mut recorded = Vec::new();
    for n in 0..20 {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("s.jsonl");
        fs::write(&path, noise("a", 200_000)).expect("a file");
        let mut vault = Vault::create(home.path(), "seed").expect("a vault");
        let done = fault::with(fault::full_at(n), || scan_once(&mut vault, &path));
        let vault = Vault::open(home.path()).expect("a vault");
        assert_eq!(vault.damaged().count(), 0, "step {n}");
        let versions = vault.files().map(|file| vault.versions(file).count()).sum::<usize>();
        match &done {
            Ok(()) => assert_eq!(versions, 1, "step {n}"),
            Err(err) => assert_eq!((err.kind(), versions), (ErrorKind::Disk, 0), "step {n}"),
        }
        recorded.push(done.is_ok());
    }
    assert!(!recorded[0] && recorded[19], "{recorded:?}");
    assert!(recorded.is_sorted(), "{recorded:?}");
}

fn scan_once(vault: &mut Vault, path: &Path) -> Result<()> {
    let mut batch = vault.begin(Timestamp::UNIX_EPOCH);
    let key = batch.key("pi", "s", None, path);
    batch.put_file(&key, path)?;
    batch.commit().map(drop)
}

/// A version that extends a lost version cannot be restored. So new content does not extend a lost
/// version.
#[test]
fn a_version_that_was_lost_is_not_built_upon() {
    let first = noise("first", 300_000);
    let second = [&first[..], b"one more line\n"].concat();
    let third = [&second[..], b"and another\n"].concat();
    let fourth = [&third[..], b"and the last\n"].concat();
    let damages: [fn(&MemoryStore); 3] = [
        |store| store.delete(&pack_name(MACHINE, 1)).expect("the pack of the first version"),
        |store| store.delete(&pack_name(MACHINE, 2)).expect("the pack of the second version"),
        |store| store.flip(&pack_name(MACHINE, 1), 20_000),
    ];
    for (n, damage) in damages.iter().enumerate() {
        let mut world = World::new();
        for content in [&first, &second, &third] {
            world.scan(Some(content));
        }
        damage(&world.store);
        // The vault is opened again: the present value has read the last version back, and would
        // not do so again.
        world.vault = in_memory(&world.store);
        assert_eq!(world.scan(Some(&fourth)), Some(ContentChange::Rewritten), "damage {n}");
        let restored = read(&world.vault, &world.key(), 4);
        assert!(restored.is_ok_and(|bytes| bytes == fourth), "damage {n}");
    }
}
