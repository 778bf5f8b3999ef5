//! Tests of packs in folders: steps of writing that fail, damaged bytes, and drafts that cannot be
//! undone.

use std::fs;
use std::path::Path;
use std::slice;

use epitome_model::Tokens;
use jiff::Timestamp;

use super::*;
use crate::forgotten::ForgottenText;
use crate::source::Spliced;
use crate::step::{DiskStep, fault};

/// A draft with one edited record, from whose middle `raw` was removed.
pub(super) fn draft(raw: &[u8]) -> Draft {
    let file = [b"{", raw, b"}\n"].concat();
    let span = epitome_model::Span { start: 1, end: 1 + raw.len() as u64 };
    let splice = epitome_model::Splice { span, with: b"-".as_slice().into() };
    let after = Spliced::new(&file, vec![splice]).expect("in the file");
    let UndoData { before, after, records, shared } =
        UndoData::between(&file, &after).expect("in memory");
    Draft {
        path: "/s.jsonl".into(),
        recipe: "epitome".into(),
        made: Timestamp::UNIX_EPOCH,
        run: None,
        part_of: None,
        parts: Vec::new(),
        before,
        after,
        records,
        tokens_before: Tokens(10),
        tokens_after: Tokens(2),
        edits: BTreeMap::from([("age".into(), 1)]),
        shared: Some(shared),
    }
}

pub(super) fn add(archive: &Archive, key: &SessionKey, raw: &[u8]) -> Result<Generation> {
    let mut pack = archive.begin(key)?;
    pack.put(raw, About { what: "Read a.rs".into(), line: 1, ..About::default() })?;
    pack.commit(draft(raw))
}

fn path_of(archive: &Archive, key: &SessionKey, number: u64) -> PathBuf {
    archive.store.location(&pack_name(&key.folder(), number))
}

/// All files below a folder, with their bytes.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push((path.clone(), fs::read(&path).expect("a file")));
        }
    }
    files
}

#[test]
fn whatever_step_fails_no_pack_or_a_whole_one_is_left() {
    let key = SessionKey::new("claude", "s");
    // These bytes are longer than the writer's buffer, and cannot be compressed.
    let mut raw = vec![0; 30_000];
    blake3::Hasher::new().finalize_xof().fill(&mut raw);
    let mut outcomes = Vec::new();
    for n in 0..20 {
        let home = tempfile::tempdir().expect("a folder");
        let archive = Archive::new(&home.path().join("new/home"));
        let done = fault::with(fault::full_at(n), || add(&archive, &key, &raw));
        let kept = archive.generations(&key).expect("a listing");
        assert_eq!(kept.damaged.len(), 0, "step {n}");
        match &done {
            Ok(made) => assert_eq!(kept.whole, slice::from_ref(made), "step {n}"),
            Err(err) => {
                assert_eq!((err.kind(), kept.whole.len()), (ErrorKind::Disk, 0), "step {n}");
                assert_eq!(files(home.path()), [], "step {n}");
            }
        }
        outcomes.push(done.is_ok());
    }
    // The 17 steps: each of five folders is made and flushed; the file is created, written in three
    // steps, flushed and named; and its folder is flushed.
    assert_eq!(outcomes, [[false; 17].as_slice(), &[true; 3]].concat());
}

#[test]
fn a_number_that_another_took_is_passed_over() {
    let home = tempfile::tempdir().expect("a folder");
    let (archive, key) = (Archive::new(home.path()), SessionKey::new("claude", "s"));
    let (other, its_key) = (archive.clone(), key.clone());
    let mut once = Some(());
    let interfere = move |step| {
        if step == DiskStep::Name && once.take().is_some() {
            add(&other, &its_key, b"theirs")?;
        }
        Ok(())
    };
    let ours = fault::with(interfere, || add(&archive, &key, b"ours")).expect("a generation");
    assert_eq!(ours.number, 2);
    let kept = archive.generations(&key).expect("a listing").whole;
    assert_eq!(archive.read(&key, 1, &Hash::compute(b"theirs")).expect("bytes"), b"theirs");
    assert_eq!(kept.iter().map(|it| it.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(kept[1], ours);
}

/// Damages each single byte of a pack whose description has a text: the text is found, or the
/// search ends with an error.
#[test]
fn a_text_in_a_damaged_description_is_not_overlooked() {
    let home = tempfile::tempdir().expect("a folder");
    let (archive, key) = (Archive::new(home.path()), SessionKey::new("claude", "s"));
    let mut pack = archive.begin(&key).expect("a pack");
    let what = "login hunter2-hunter2".into();
    pack.put(b"bytes", About { what, ..About::default() }).expect("put");
    let made = pack.commit(draft(b"bytes")).expect("a generation");
    let path = path_of(&archive, &key, made.number);
    let whole = fs::read(&path).expect("a pack");
    let text = ForgottenText::new("hunter2-hunter2").expect("a text");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x01;
        fs::write(&path, &bytes).expect("written");
        match archive.packs_with(&text) {
            Ok(found) => assert_eq!(found.len(), 1, "byte {at}"),
            Err(err) => assert_eq!(err.kind(), ErrorKind::Archive, "byte {at}"),
        }
    }
}

#[cfg(unix)]
#[test]
fn only_the_user_can_read_a_note() {
    use std::os::unix::fs::PermissionsExt;

    let home = tempfile::tempdir().expect("a folder");
    let store = FolderStore::new(home.path().to_owned());
    store.make_folder("s").expect("a folder");
    store.write_note("s/1.removed", b"first").expect("a note");
    store.write_note("s/1.removed", b"second").expect("a note");
    let path = store.location("s/1.removed");
    let mode = fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!((mode & 0o777, fs::read(&path).expect("a file")), (0o600, b"second".to_vec()));
}

/// Damages each single byte of a pack: nothing panics, no wrong bytes are returned, and only the
/// piece that contains the byte can be lost.
#[test]
fn a_damaged_byte_never_gives_wrong_bytes() {
    let home = tempfile::tempdir().expect("a folder");
    let (archive, key) = (Archive::new(home.path()), SessionKey::new("claude", "s"));
    let (one, other) = (b"first removed bytes".as_slice(), b"{\"second\": 2}".as_slice());
    let mut pack = archive.begin(&key).expect("a pack");
    pack.put(other, About { what: "other".into(), ..About::default() }).expect("put");
    pack.put(one, About { what: "one".into(), ..About::default() }).expect("put");
    let made = pack.commit(draft(one)).expect("a generation");
    let path = path_of(&archive, &key, made.number);
    let whole = fs::read(&path).expect("a pack");
    let opened = archive.open_pack(&key, made.number).expect("a pack");
    let piece_at = |at: u64| {
        let inside = |entry: &&pack::Entry| entry.payload_contains(at);
        opened.entries().iter().find(inside).map(|entry| (entry.kind, entry.hash))
    };
    for at in 0..whole.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            fs::write(&path, &bytes).expect("written");
            let hurt = piece_at(at as u64);
            for raw in [one, other] {
                let hash = Hash::compute(raw);
                match archive.read(&key, made.number, &hash) {
                    Ok(read) => assert_eq!(read, raw, "byte {at}"),
                    Err(err) => {
                        assert_eq!(err.kind(), ErrorKind::Archive, "byte {at}");
                        assert_eq!(hurt, Some((pack::Kind::Blob, hash)), "byte {at}");
                    }
                }
                // The bytes are listed in any case, even if they are damaged.
                let found = archive.find(&hash.reference()).expect("found");
                assert_eq!(found.len(), 1, "byte {at}");
                assert_eq!((found[0].hash, &found[0].key), (hash, &key), "byte {at}");
            }
            let kept = archive.generations(&key).expect("a listing");
            match hurt {
                Some((pack::Kind::Manifest, _)) if kept.whole.is_empty() => {
                    assert_eq!(kept.damaged.len(), 1, "byte {at}");
                }
                Some(_) | None => assert_eq!(kept.whole, slice::from_ref(&made), "byte {at}"),
            }
            let report = archive.verify().expect("a report");
            // Only damage within a payload may go unnoticed: a few bits of a zstd frame are unused.
            assert!(!report.faults.is_empty() || hurt.is_some(), "byte {at} went unseen");
        }
    }
}

#[test]
fn a_pack_cut_off_anywhere_gives_an_error_or_the_truth() {
    let home = tempfile::tempdir().expect("a folder");
    let (archive, key) = (Archive::new(home.path()), SessionKey::new("claude", "s"));
    let made = add(&archive, &key, b"removed bytes").expect("a generation");
    let path = path_of(&archive, &key, made.number);
    let whole = fs::read(&path).expect("a pack");
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).expect("written");
        let kept = archive.generations(&key).expect("a listing");
        assert_eq!(kept.whole.len() + kept.damaged.len(), 1, "{len} bytes");
        for generation in kept.whole {
            assert_eq!(generation, made, "{len} bytes");
        }
        if let Ok(read) = archive.read(&key, 1, &Hash::compute(b"removed bytes")) {
            assert_eq!(read, b"removed bytes");
        }
        assert_ne!(archive.verify().expect("a report").faults.len(), 0, "{len} bytes");
    }
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let home = tempfile::tempdir().expect("a folder");
    let (archive, key) = (Archive::new(home.path()), SessionKey::new("claude", "s"));
    let made = add(&archive, &key, b"removed").expect("a generation");
    let path = path_of(&archive, &key, made.number);
    let mut bytes = fs::read(&path).expect("a pack");
    bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
    let check = Hash::compute(&bytes[..12]);
    bytes[12..16].copy_from_slice(&check.bytes()[..4]);
    fs::write(&path, &bytes).expect("written");
    let kept = archive.generations(&key).expect("a listing");
    let err = &kept.damaged[0];
    assert_eq!(err.kind(), ErrorKind::NewerFormat);
    assert_eq!(err.hint(), Some("update epitome"));
    assert!(err.to_string().starts_with("this part of the archive was written by a newer epitome"));
}

/// Bytes that look like a piece do not mislead the scan for pieces.
#[test]
fn a_piece_within_a_piece_is_no_piece() {
    let home = tempfile::tempdir().expect("a folder");
    let (archive, key) = (Archive::new(home.path()), SessionKey::new("claude", "s"));
    let made = add(&archive, &key, b"inner").expect("a generation");
    let pack = fs::read(path_of(&archive, &key, made.number)).expect("a pack");
    // The other pack is put into random bytes, so that zstd stores it uncompressed.
    let mut inner = vec![0; 30_000];
    blake3::Hasher::new().finalize_xof().fill(&mut inner);
    inner[9_000..9_000 + pack.len()].copy_from_slice(&pack);
    let outer = add(&archive, &key, &inner).expect("a generation");
    let path = path_of(&archive, &key, outer.number);
    let mut bytes = fs::read(&path).expect("a pack");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).expect("written");
    assert_eq!(archive.read(&key, 2, &Hash::compute(&inner)).expect("bytes"), inner);
    let err = archive.read(&key, 2, &Hash::compute(b"inner")).expect_err("not in it");
    assert_eq!(err.kind(), ErrorKind::Archive);
}

#[test]
fn a_draft_that_is_no_way_back_is_not_archived() {
    let home = tempfile::tempdir().expect("a folder");
    let (archive, key) = (Archive::new(home.path()), SessionKey::new("claude", "s"));
    let changes: &[fn(&mut Draft)] = &[
        |draft| draft.records[0].splices[0].blob = Hash::compute(b"never put"),
        |draft| draft.records[0].splices[0].at = 99,
        |draft| draft.records[0].splices[0].len = u64::MAX,
        |draft| draft.records[0].len = 99,
        |draft| draft.records.extend(draft.records.clone()),
        |draft| {
            let splices = &mut draft.records[0].splices;
            splices.extend(splices.clone());
        },
    ];
    for change in changes {
        let mut pack = archive.begin(&key).expect("a pack");
        pack.put(b"removed", About::default()).expect("put");
        let mut draft = draft(b"removed");
        change(&mut draft);
        assert_eq!(pack.commit(draft).expect_err("no way back").kind(), ErrorKind::Broken);
    }
    assert_eq!(files(home.path()), []);
}

#[test]
fn a_pack_that_cannot_be_read_is_an_error_and_not_a_session_less() {
    let home = tempfile::tempdir().expect("a folder");
    let (archive, key) = (Archive::new(home.path()), SessionKey::new("claude", "s"));
    add(&archive, &key, b"removed").expect("a generation");
    for n in 0..10 {
        let found = fault::with(fault::unreadable_at(n), || archive.sessions_found());
        let Sessions { keys, unread } = found.expect("a listing");
        assert_eq!(keys.len() + unread.len(), 1, "read {n}: {keys:?}, {unread:?}");
        match fault::with(fault::unreadable_at(n), || archive.sessions()) {
            Ok(keys) => assert_eq!(keys, slice::from_ref(&key), "read {n}"),
            Err(err) => assert_eq!(err.kind(), ErrorKind::Unreadable, "read {n}"),
        }
    }
}

#[test]
fn a_note_of_a_removed_pack_that_cannot_be_read_is_no_empty_one() {
    let home = tempfile::tempdir().expect("a folder");
    let (archive, key) = (Archive::new(home.path()), SessionKey::new("claude", "s"));
    add(&archive, &key, b"removed").expect("a generation");
    let unreadable = fault::unreadable_at(1);
    let removed = fault::with(unreadable, || archive.remove(&key, Timestamp::UNIX_EPOCH));
    assert_eq!(removed.map_err(|err| err.kind()), Err(ErrorKind::Unreadable));
    archive.remove(&key, Timestamp::UNIX_EPOCH).expect("it is removed");
    let left = |found: Generations| (found.removed_left.len(), found.damaged.len());
    assert_eq!(archive.generations(&key).map(left).expect("a listing"), (1, 0));
    for n in [0, 1] {
        let found = fault::with(fault::unreadable_at(n), || archive.generations(&key));
        assert_eq!(found.map(left).expect("a listing"), (0, 1), "read {n}");
    }
}
