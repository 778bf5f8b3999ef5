//! The archive works in object storage as it does in a folder; large packs are stored in parts.

use epitome_remote::{Address, ObjectPackStore, SealKey};
use epitome_store::Archive;
use epitome_store::archive::pack_store::{FolderName, PackStore};
use epitome_store::archive::{GRACE, GcMode, Generation, Grace, Need, Reason, SessionKey};
use jiff::{SignedDuration, Timestamp};

use crate::machine::{AT_ONCE, Machine};
use crate::server::Server;

fn in_folder(machine: &Machine) -> ObjectPackStore {
    let url = format!("file://{}", machine.home.path().join("storage").display());
    let address: Address = url.parse().expect("an address");
    let staging = machine.home.path().join("staging");
    ObjectPackStore::new(&address, &[], AT_ONCE, machine.key.clone(), staging).expect("a store")
}

fn check(case: fn(&ObjectPackStore)) {
    let server = Server::start();
    let machine = Machine::new(&SealKey::generate());
    case(&in_folder(&machine));
    case(&machine.remote(&server, server.address));
}

/// The numbers of the generations of a session, and of those that were removed.
fn numbers_of(archive: &Archive, key: &SessionKey) -> (Vec<u64>, Vec<u64>) {
    let found = archive.generations(key).expect("a listing");
    assert!(found.damaged.is_empty(), "{:?}", found.damaged);
    (found.whole.iter().map(|it| it.number).collect(), found.removed)
}

#[test]
fn generations_are_added_found_withdrawn_and_collected() {
    check(|store| {
        let archive = Archive::in_store(store.clone());
        let (key, other) = (SessionKey::new("claude", "s"), SessionKey::new("pi", "../Other"));
        Machine::add(&archive, &key, b"one");
        Machine::add(&archive, &key, b"two");
        Machine::add(&archive, &other, b"of another");
        assert_eq!(archive.sessions().expect("a listing"), [key.clone(), other]);
        let last = archive.generations(&key).expect("a listing").whole.pop().expect("two");
        archive.withdraw(&last);
        assert_eq!(numbers_of(&archive, &key), (vec![1], vec![]));
        Machine::add(&archive, &key, b"three");
        assert_eq!(numbers_of(&archive, &key), (vec![1, 2], vec![]));

        let first_is_old = |all: &[Generation]| {
            let need = |generation: &Generation| match generation.number {
                1 => Need::Unneeded(Reason::Restored),
                _ => Need::Needed,
            };
            all.iter().filter(|it| it.agent == "claude").map(need).collect()
        };
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 20);
        let grace = Grace { now, period: GRACE };
        let only = SessionKey::new("pi", "../Other");
        archive.remove(&only, now).expect("moved to the trash");
        archive.gc(first_is_old, grace, GcMode::Remove).expect("a collection");
        assert_eq!(numbers_of(&archive, &key), (vec![2], vec![1]));
        assert!(archive.verify().expect("a report").faults.is_empty());
    });
}

/// Bytes that do not repeat.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn a_pack_longer_than_a_part_is_whole_and_read_in_ranges() {
    check(|store| {
        let bytes = noise((8 << 20) + (1 << 20) + 77);
        let mut pack = store.begin("claude/s").expect("a pack");
        pack.write_all(&bytes).expect("written");
        pack.write_all(b"too much").expect("written");
        pack.truncate(bytes.len() as u64).expect("truncated");
        assert!(pack.put("claude/s/000001.pack").expect("put").is_none());
        let listed = store.list("claude").expect("a listing");
        assert_eq!(listed, [FolderName::Folder("s".into())]);
        let open = store.open("claude/s/000001.pack").expect("open");
        assert_eq!(open.len(), bytes.len() as u64);
        let end = bytes.len();
        for range in
            [0..1, 65_535..65_537, 1_048_570..1_048_590, 8_388_600..8_390_000, end - 52..end]
        {
            let read = open.read(range.start as u64..range.end as u64);
            assert!(*read == bytes[range.clone()], "{range:?}");
        }
        assert!(*open.read(0..u64::MAX) == bytes[..]);
        assert!(open.failure().is_none());

        // The name is taken: the pack is given back, and the first one stays.
        let mut other = store.begin("claude/s").expect("a pack");
        other.write_all(b"other").expect("written");
        let back = other.put("claude/s/000001.pack").expect("put").expect("given back");
        assert!(back.put("claude/s/000002.pack").expect("put").is_none());
        assert!(!store.rename("claude/s/000002.pack", "claude/s/000001.pack").expect("answered"));
        assert!(store.rename("claude/s/000002.pack", ".trash/x/000002.pack").expect("renamed"));
        let first = store.open("claude/s/000001.pack").expect("open");
        assert!(*first.read(0..100) == bytes[..100]);
        let renamed = store.open(".trash/x/000002.pack").expect("open");
        assert_eq!(*renamed.read(0..9), *b"other");
    });
}
