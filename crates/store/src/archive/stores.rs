//! Tests of the archive that hold for every store of packs.

use jiff::{SignedDuration, Timestamp};

use super::memory_store::MemoryStore;
use super::tests::{add, draft};
use super::*;

/// An archive, and the temporary folder that it is in, if there is one.
type Kept = (Archive, Option<tempfile::TempDir>);

fn in_folder() -> Kept {
    let home = tempfile::tempdir().expect("a folder");
    (Archive::new(home.path()), Some(home))
}

fn in_memory() -> Kept {
    (Archive::in_store(MemoryStore::default()), None)
}

/// A kind of store: its name, and how one is made.
type Kind = (&'static str, fn() -> Kept);

const STORES: [Kind; 2] = [("a folder", in_folder), ("memory", in_memory)];

fn check(case: fn(&Archive, &SessionKey)) {
    for (name, kept) in STORES {
        let (archive, _home) = kept();
        println!("in {name}");
        case(&archive, &SessionKey::new("claude", "s"));
    }
}

/// The numbers of the generations of a session, and of those that were removed.
fn numbers_of(archive: &Archive, key: &SessionKey) -> (Vec<u64>, Vec<u64>) {
    let found = archive.generations(key).expect("a listing");
    assert!(found.damaged.is_empty(), "{:?}", found.damaged);
    (found.whole.iter().map(|it| it.number).collect(), found.removed)
}

#[test]
fn what_is_archived_is_listed_found_and_read() {
    check(|archive, key| {
        assert_eq!(archive.sessions().expect("a listing"), []);
        let made = add(archive, key, b"removed").expect("a generation");
        let other = SessionKey::new("pi", "../Other");
        add(archive, &other, b"of another").expect("a generation");
        assert_eq!(archive.sessions().expect("a listing"), [key.clone(), other.clone()]);
        assert_eq!(archive.generations(key).expect("a listing").whole, [made]);
        let hash = Hash::compute(b"removed");
        assert_eq!(archive.read(key, 1, &hash).expect("bytes"), b"removed");
        assert_eq!(archive.blobs(key).blob(1, &hash).expect("bytes"), b"removed");
        let found = archive.find(&hash.reference()).expect("found");
        assert_eq!(found.iter().map(|it| (&it.key, it.generation)).collect::<Vec<_>>(), [(key, 1)]);
        let report = archive.verify().expect("a report");
        assert_eq!((report.sessions, report.packs, report.blobs), (2, 2, 2));
        assert!(report.faults.is_empty(), "{:?}", report.faults);
        let [(1, len)] = archive.sizes(key).expect("a listing")[..] else { panic!("one pack") };
        assert_eq!(archive.pack_len(key, 1).expect("a length"), len);
        assert!(len > Bytes(0));
    });
}

#[test]
fn what_is_not_there_is_an_error_that_says_so() {
    check(|archive, key| {
        let kind = |err: Error| err.kind();
        let hash = Hash::compute(b"removed");
        assert_eq!(archive.read(key, 1, &hash).map_err(kind), Err(ErrorKind::Archive));
        assert_eq!(archive.pack_len(key, 1).map_err(kind), Err(ErrorKind::NotFound));
        let removed = archive.remove(key, Timestamp::UNIX_EPOCH).map_err(kind);
        assert_eq!(removed, Err(ErrorKind::NotFound));
        add(archive, key, b"one").expect("a generation");
        assert_eq!(archive.read(key, 1, &hash).map_err(kind), Err(ErrorKind::Archive));
        assert_eq!(archive.read(key, 2, &hash).map_err(kind), Err(ErrorKind::Archive));
    });
}

#[test]
fn a_withdrawn_generation_is_gone_and_its_number_is_used_again() {
    check(|archive, key| {
        let first = add(archive, key, b"one").expect("a generation");
        let second = add(archive, key, b"two").expect("a generation");
        // `withdraw` removes only the last pack of a session, so the first one stays.
        archive.withdraw(&first);
        archive.withdraw(&second);
        assert_eq!(numbers_of(archive, key), (vec![1], vec![]));
        assert_eq!(add(archive, key, b"three").expect("a generation").number, 2);
    });
}

#[test]
fn what_is_not_needed_goes_to_the_trash_and_then_for_good() {
    check(|archive, key| {
        let first = add(archive, key, b"one").expect("a generation");
        add(archive, key, b"two").expect("a generation");
        let old = |generation: &Generation| match generation.number {
            1 => Need::Unneeded(Reason::Restored),
            _ => Need::Needed,
        };
        let judge = |all: &[Generation]| all.iter().map(old).collect();
        let gc = |days: i64, mode| {
            let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * days);
            archive.gc(judge, Grace { now, period: GRACE }, mode).expect("a collection")
        };
        assert_eq!(gc(20, GcMode::Show).sessions.len(), 1);
        assert_eq!(numbers_of(archive, key), (vec![1, 2], vec![]));

        let moved = gc(20, GcMode::Remove);
        assert_eq!((moved.sessions.len(), moved.kept, moved.emptied), (1, 1, 0));
        assert_eq!(numbers_of(archive, key), (vec![2], vec![1]));
        let left = archive.generations(key).expect("a listing").removed_left;
        assert_eq!(left, [(1, first.after)]);
        // The number of the removed generation is not used again.
        assert_eq!(add(archive, key, b"three").expect("a generation").number, 3);

        let emptied = gc(40, GcMode::Remove);
        assert_eq!((emptied.emptied, emptied.emptied_bytes), (1, moved.sessions[0].stored));
        assert_eq!(gc(60, GcMode::Remove).emptied, 0);
        assert_eq!(archive.verify().expect("a report").faults.len(), 0);
    });
}

#[test]
fn packs_are_carried_from_one_store_to_another() {
    let when = Timestamp::UNIX_EPOCH;
    let mut exports = Vec::new();
    for (_, from) in STORES {
        let (archive, _home) = from();
        let key = SessionKey::new("claude", "s");
        add(&archive, &key, b"one").expect("a generation");
        let mut tar = Vec::new();
        assert_eq!(archive.export(&key, &mut tar).expect("an export"), 1);
        for (_, to) in STORES {
            let (other, _home) = to();
            // A pack is imported only if it matches, here by a generation of the same file.
            let generation = archive.generations(&key).expect("a listing").whole.remove(0);
            let mut pack = other.begin(&key).expect("a pack");
            pack.put(b"one", About::default()).expect("put");
            let here = Draft { recipe: "other".into(), ..draft(b"one") };
            pack.commit(here).expect("a generation");
            let report = other.import(&mut &*tar, when, &|_| Vec::new()).expect("an import");
            assert_eq!(report.added.len(), 1, "{report:?}");
            let all = other.generations(&key).expect("a listing").whole;
            let imported = Generation { number: 2, imported: Some(when), ..generation };
            assert_eq!(all[1], imported);
            assert_eq!(other.read(&key, 2, &Hash::compute(b"one")).expect("bytes"), b"one");
        }
        exports.push(tar);
    }
    assert_eq!(exports[0], exports[1], "the same packs give the same bytes");
}

#[test]
fn an_archive_in_memory_has_names_and_no_files() {
    let store = MemoryStore::default();
    let archive = Archive::in_store(store.clone());
    add(&archive, &SessionKey::new("claude", "s"), b"one").expect("a generation");
    let names: Vec<String> = store.into_packs().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["claude/s/000001.pack"]);
}
