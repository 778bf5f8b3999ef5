//! Tests of sending versions to another machine, which proves them and keeps its own.

use super::*;
use crate::archive::pack_store::PackReader;

const OTHER: &str = "00000000000000bb";

fn other_machine(store: &MemoryStore) -> Vault {
    Vault::in_store(Arc::new(store.clone()), OTHER.into(), None).expect("a vault")
}

fn send(packs: &[VaultPack], to: &MemoryStore) -> Result<ReceivedVersions> {
    let mut staged = StagedVersions::in_store(Arc::new(to.clone()));
    for pack in packs {
        let reader = &mut PackReader::new(&*pack.bytes);
        staged.add(&pack.machine, pack.number, pack.bytes.len(), reader)?;
    }
    other_machine(to).receive(staged, &|_| true)
}

/// A machine with some versions of a file.
fn machine_with_versions() -> World {
    let mut world = World::new();
    let long = noise("long", 300_000);
    world.scan(Some(&long));
    world.scan(Some(&[&long[..], b"one more line\n"].concat()));
    world.scan(None);
    world
}

#[test]
fn versions_of_another_machine_come_back_and_are_stored_once() {
    let mut world = machine_with_versions();
    let other = MemoryStore::default();
    let received = send(&world.vault.open_packs().expect("packs"), &other).expect("received");
    assert_eq!(received.added, [(world.key(), 3)]);
    let again = send(&world.vault.open_packs().expect("packs"), &other).expect("received");
    assert_eq!((again.added, again.known), (vec![], 3));
    // Only the new version is added, and only the bytes that are new in it.
    let size = other_machine(&other).size().1;
    world.scan(Some(&[&noise("long", 300_000)[..], b"another"].concat()));
    let files = BTreeSet::from([world.key()]);
    let (packs, missing) = world.vault.packs_of_files(&files).expect("packs");
    assert_eq!(missing, 0);
    let newer = send(&packs, &other).expect("received");
    assert_eq!((newer.added, newer.known), (vec![(world.key(), 1)], 3));
    assert!(other_machine(&other).size().1 < size + 100_000, "the bytes are here already");
    let vault = other_machine(&other);
    for (n, expect) in world.seen.iter().enumerate() {
        assert_eq!(read(&vault, &world.key(), n as u64 + 1).ok(), *expect);
    }
    assert_eq!(vault.files().map(|file| file.machine.as_str()).collect::<Vec<_>>(), [MACHINE]);
}

#[test]
fn a_version_that_is_not_what_it_says_is_refused_and_the_others_are_added() {
    let mut world = machine_with_versions();
    world.scan(Some(b"a version of its own"));
    let files = BTreeSet::from([world.key()]);
    world.vault.index.change_digest(&world.key(), 2);
    let (packs, _) = world.vault.packs_of_files(&files).expect("packs");
    let other = MemoryStore::default();
    let received = send(&packs, &other).expect("received");
    assert_eq!(received.added, [(world.key(), 3)]);
    assert_eq!((received.damaged, received.refused), (vec![(world.key(), 1)], vec![]));
    assert!(other_machine(&other).version(&world.key(), 2).is_err());
    assert_eq!(other_machine(&other).verify().faults.len(), 0);
}

#[test]
fn other_versions_with_the_same_numbers_are_never_replaced() {
    let mut world = machine_with_versions();
    let other = MemoryStore::default();
    send(&world.vault.open_packs().expect("packs"), &other).expect("received");
    // Another vault with the same machine name has recorded another version 1.
    let mut copy = World { folder: world.folder, ..World::new() };
    copy.scan(Some(b"something else"));
    let received = send(&copy.vault.open_packs().expect("packs"), &other).expect("received");
    assert_eq!((received.added, received.refused), (vec![], vec![(copy.key(), 1)]));
    assert_eq!(received.damaged, []);
    let vault = other_machine(&other);
    assert_eq!(read(&vault, &copy.key(), 1).ok(), world.seen[0]);
}

#[test]
fn a_version_made_of_one_that_differs_here_gets_its_own_content() {
    let mut world = World::new();
    let text = "the text that is forgotten";
    let long = [&noise("long", 90_000)[..], text.as_bytes(), b"and more"].concat();
    world.scan(Some(&long));
    let other = MemoryStore::default();
    send(&world.vault.open_packs().expect("packs"), &other).expect("received");
    let forgotten = crate::forgotten::ForgottenText::new(text).expect("a text");
    world.vault.mask(&forgotten).expect("masked");
    let masked = read(&world.vault, &world.key(), 1).expect("version 1");
    world.scan(Some(&masked[..masked.len() - 3]));
    let received = send(&world.vault.open_packs().expect("packs"), &other).expect("received");
    assert_eq!((received.added, received.known), (vec![(world.key(), 1)], 1));
    let vault = other_machine(&other);
    assert_eq!(read(&vault, &world.key(), 1).ok(), world.seen[0], "what is here stays");
    assert_eq!(read(&vault, &world.key(), 2).ok(), world.seen[1]);
}

#[test]
fn a_chunk_that_is_damaged_here_is_whole_after_a_copy_is_received() {
    let mut world = machine_with_versions();
    let other = MemoryStore::default();
    send(&world.vault.open_packs().expect("packs"), &other).expect("received");
    other.flip(&pack_name(MACHINE, 4), 5_000);
    assert!(read(&other_machine(&other), &world.key(), 1).is_err());
    let received = send(&world.vault.open_packs().expect("packs"), &other).expect("received");
    assert_eq!((received.added, received.known), (vec![(world.key(), 2)], 1));
    let vault = other_machine(&other);
    assert_eq!(read(&vault, &world.key(), 1).ok(), world.seen[0]);
    assert_eq!(read(&vault, &world.key(), 2).ok(), world.seen[1]);
}

#[test]
fn what_is_not_a_pack_of_a_vault_is_refused() {
    let mut staged = StagedVersions::in_store(Arc::new(MemoryStore::default()));
    let mut add = |machine: &str, bytes: &[u8], len: usize| {
        staged.add(machine, 1, len as u64, &mut &*bytes).map_err(|err| err.kind())
    };
    assert_eq!(add(OTHER, b"no pack", 7), Err(ErrorKind::Refused));
    assert_eq!(add(OTHER, b"cut off", 70), Err(ErrorKind::Refused));
    assert_eq!(add("../..", b"no pack", 7), Err(ErrorKind::Refused));
    assert!(staged.is_empty());
}
