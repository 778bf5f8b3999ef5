//! The archive through its public interface, with real folders, threads and killed processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use epitome::ErrorKind;
use epitome::archive::{
    About, Archive, Draft, GcMode, Generation, Grace, Hash, ImportedPack, Need, Reason,
    ReferencedBytes, SessionKey, UndoData,
};
use epitome::storage::Spliced;
use epitome_model::{Bytes, Ref, Span, Splice, Tokens};
use jiff::{SignedDuration, Timestamp};

/// A compaction that replaces the content of `{<raw>}` by `-`.
fn draft(raw: &[u8]) -> Draft {
    let file = [b"{", raw, b"}\n"].concat();
    let span = Span { start: 1, end: 1 + raw.len() as u64 };
    let splice = Splice { span, with: b"-".as_slice().into() };
    let after = Spliced::new(&file, vec![splice]).expect("in the file");
    let UndoData { before, after, records, shared } =
        UndoData::between(&file, &after).expect("in memory");
    Draft {
        path: "/sessions/s.jsonl".into(),
        recipe: "epitome".into(),
        made: Timestamp::UNIX_EPOCH,
        run: None,
        part_of: None,
        parts: Vec::new(),
        before,
        after,
        records,
        tokens_before: Tokens(100),
        tokens_after: Tokens(20),
        edits: BTreeMap::from([("age".into(), 1)]),
        shared: Some(shared),
    }
}

fn about(what: &str) -> About {
    About { pass: "age".into(), what: what.into(), line: 1, ..About::default() }
}

fn add(archive: &Archive, key: &SessionKey, raw: &[u8]) -> Generation {
    let mut pack = archive.begin(key).expect("a pack");
    pack.put(raw, about("Read a.rs")).expect("put");
    pack.commit(draft(raw)).expect("a generation")
}

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// A grace period that is over: twenty days after everything in these tests was made.
const LATER: Grace = Grace {
    now: Timestamp::constant(20 * 24 * 60 * 60, 0),
    period: SignedDuration::from_hours(14 * 24),
};

/// Imports a pack for a session whose file is the result of `draft`.
fn import(archive: &Archive, tar: &[u8]) -> epitome::Result<epitome::archive::ImportReport> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), "{-}\n").expect("written");
    archive.import(&mut &tar[..], NOW, &|_| vec![file.path().to_owned()])
}

fn home() -> (tempfile::TempDir, Archive) {
    let home = tempfile::tempdir().expect("a folder");
    let archive = Archive::new(home.path());
    (home, archive)
}

/// All files below a folder, by relative path.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(root, &path, files);
            } else {
                let name = path.strip_prefix(root).expect("below it").to_owned();
                files.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    let mut files = BTreeMap::new();
    if folder.exists() {
        walk(folder, folder, &mut files);
    }
    files
}

#[test]
fn what_is_put_in_is_read_back() {
    let (home, archive) = home();
    let key = SessionKey::new("claude", "s");
    assert_eq!(archive.generations(&key).expect("a listing").whole, []);
    assert_eq!(archive.sessions().expect("a listing"), []);
    assert_eq!(files(home.path()).len(), 0, "asking touches nothing");

    let mut pack = archive.begin(&key).expect("a pack");
    let hash = pack.put(b"removed", about("first")).expect("put");
    assert_eq!(pack.put(b"removed", about("second")).expect("put"), hash);
    pack.put(b"", about("nothing")).expect("put");
    let made = pack.commit(draft(b"removed")).expect("a generation");

    let draft = draft(b"removed");
    let expect = Generation {
        number: 1,
        agent: "claude".into(),
        session: "s".into(),
        path: draft.path,
        recipe: draft.recipe,
        made: draft.made,
        run: None,
        part_of: None,
        parts: Vec::new(),
        epitome: env!("CARGO_PKG_VERSION").into(),
        before: draft.before,
        after: draft.after,
        records: draft.records,
        tokens_before: draft.tokens_before,
        tokens_after: draft.tokens_after,
        edits: draft.edits,
        shared: draft.shared,
        forgotten: Vec::new(),
        imported: None,
    };
    assert_eq!(made, expect);
    assert_eq!(archive.generations(&key).expect("a listing").whole, [expect]);
    assert_eq!(archive.read(&key, 1, &hash).expect("bytes"), b"removed");
    assert_eq!(archive.read(&key, 1, &Hash::compute(b"")).expect("bytes"), b"");
    assert_eq!(archive.sessions().expect("a listing"), std::slice::from_ref(&key));
    let raw_len = Bytes(7);
    let found = ReferencedBytes { key, generation: 1, hash, about: about("first"), raw_len };
    assert_eq!(archive.find(&Ref::from_bytes(b"removed")).expect("found"), [found]);
    assert_eq!(archive.find(&Ref::from_bytes(b"other")).expect("nothing"), []);
}

#[test]
fn what_is_missing_is_named() {
    let (_home, archive) = home();
    let key = SessionKey::new("claude", "s");
    let made = add(&archive, &key, b"removed");
    let missing = archive.read(&key, 2, &Hash::compute(b"removed")).expect_err("no such pack");
    assert_eq!(missing.kind(), ErrorKind::Archive);
    assert!(missing.to_string().starts_with("generation 2 of this session is not in the archive"));
    let other = Hash::compute(b"other");
    let missing = archive.read(&key, made.number, &other).expect_err("no such bytes");
    assert!(missing.to_string().starts_with(&format!("the archive misses the bytes {other}: ")));
}

#[cfg(unix)]
#[test]
fn the_archive_is_private() {
    use std::os::unix::fs::PermissionsExt;

    let (home, archive) = home();
    add(&archive, &SessionKey::new("claude", "s"), b"removed");
    let mode = |path: &str| {
        let meta = fs::metadata(home.path().join(path)).expect("it is there");
        meta.permissions().mode() & 0o777
    };
    let paths = ["archive", "archive/claude", "archive/claude/s", "archive/claude/s/000001.pack"];
    assert_eq!(paths.map(mode), [0o700, 0o700, 0o700, 0o600]);
}

#[test]
fn a_pack_that_is_not_committed_is_gone() {
    let (home, archive) = home();
    let mut pack = archive.begin(&SessionKey::new("claude", "s")).expect("a pack");
    pack.put(&[7; 100_000], about("x")).expect("put");
    assert_eq!(files(home.path()).len(), 1);
    drop(pack);
    assert_eq!(files(home.path()).len(), 0);
}

#[test]
fn two_writers_at_once_make_forty_packs() {
    let (_home, archive) = home();
    let key = SessionKey::new("claude", "s");
    let writer = |name: &'static str| {
        let (archive, key) = (archive.clone(), key.clone());
        move || -> Vec<u64> {
            let raw = |n: usize| format!("{name} {n}").into_bytes();
            (0..20).map(|n| add(&archive, &key, &raw(n)).number).collect()
        }
    };
    let (one, other) = std::thread::scope(|scope| {
        let (one, other) = (scope.spawn(writer("one")), scope.spawn(writer("other")));
        (one.join().expect("a writer"), other.join().expect("a writer"))
    });
    let numbers: BTreeSet<u64> = one.iter().chain(&other).copied().collect();
    assert_eq!(numbers, (1..=40).collect());
    for (name, numbers) in [("one", one), ("other", other)] {
        for (n, number) in numbers.into_iter().enumerate() {
            let raw = format!("{name} {n}").into_bytes();
            assert_eq!(archive.read(&key, number, &Hash::compute(&raw)).expect("bytes"), raw);
        }
    }
    assert_eq!(archive.verify().expect("a report").faults.len(), 0);
}

/// The process that the next test kills.
#[test]
fn write_until_killed() {
    let Some(home) = std::env::var_os("EPITOME_TEST_KILL_HOME") else { return };
    let (archive, key) = (Archive::new(Path::new(&home)), SessionKey::new("claude", "s"));
    for n in 0_u64.. {
        let made = add(&archive, &key, format!("removed {n}").as_bytes());
        println!("made {} {n}", made.number);
    }
}

#[test]
fn a_killed_writer_leaves_whole_packs_only() {
    let (home, archive) = home();
    let key = SessionKey::new("claude", "s");
    let mut promised: BTreeMap<u64, String> = BTreeMap::new();
    for round in 0..20 {
        let mut writer = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "archive::write_until_killed", "--nocapture"])
            .env("EPITOME_TEST_KILL_HOME", home.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test again");
        let out = BufReader::new(writer.stdout.take().expect("piped"));
        let mut left = round % 5 + 1;
        let mut lines = out.lines().map(|line| line.expect("text"));
        let mut note = |line: &str| {
            let made = line.split_once("made ").and_then(|(_, made)| made.split_once(' '));
            let Some((number, n)) = made else { return false };
            promised.insert(number.parse().expect("a number"), format!("removed {n}"));
            true
        };
        while left > 0 {
            left -= i32::from(note(&lines.next().expect("it goes on")));
        }
        writer.kill().expect("killed");
        writer.wait().expect("waited");
        // Each line that the process printed before it was killed names a pack that must exist. The
        // last line may be incomplete.
        let rest: Vec<String> = lines.collect();
        for line in rest.iter().take(rest.len().saturating_sub(1)) {
            note(line);
        }
    }
    let report = archive.verify().expect("a report");
    assert_eq!(report.faults.len(), 0, "{:?}", report.faults);
    assert!(report.packs >= promised.len() as u64 && promised.len() >= 60);
    for (number, raw) in &promised {
        let hash = Hash::compute(raw.as_bytes());
        assert_eq!(archive.read(&key, *number, &hash).expect("promised"), raw.as_bytes());
    }
    archive.gc(|_| vec![], LATER, GcMode::Remove).expect("collected");
    let others =
        files(home.path()).into_keys().filter(|it| it.extension().is_none_or(|e| e != "pack"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

#[test]
fn only_what_nobody_refers_to_is_collected() {
    let (home, archive) = home();
    let keep = SessionKey::new("claude", "keep");
    let drop = SessionKey::new("pi", "drop");
    add(&archive, &keep, b"kept");
    add(&archive, &drop, b"one");
    add(&archive, &drop, b"two");
    let left = home.path().join("archive/claude/keep/.epitome-x.tmp");
    fs::write(&left, "torn").expect("a leftover");
    let live = archive.begin(&keep).expect("a pack that is being written");
    let before = files(home.path());
    let judge = |generations: &[Generation]| {
        let need = |it: &Generation| {
            if it.session == "keep" { Need::Needed } else { Need::Unneeded(Reason::Gone) }
        };
        generations.iter().map(need).collect()
    };
    let young = Grace { now: NOW, ..LATER };
    let report = archive.gc(judge, young, GcMode::Show).expect("a report");
    assert_eq!((report.sessions.len(), report.young), (0, 2));

    let shown = archive.gc(judge, LATER, GcMode::Show).expect("a report");
    assert_eq!(files(home.path()), before, "showing removes nothing");
    let done = archive.gc(judge, LATER, GcMode::Remove).expect("a report");
    let size = |name: &&PathBuf| name.starts_with("archive/pi");
    let stored: usize = before.keys().filter(size).map(|name| before[name].len()).sum();
    for report in [shown, done] {
        let [collected] = &report.sessions[..] else { panic!("{report:?}") };
        assert_eq!((&collected.key, collected.packs), (&drop, 2));
        assert_eq!(collected.path, Path::new("/sessions/s.jsonl"));
        assert_eq!(collected.stored, Bytes(stored as u64));
        assert_eq!((report.leftovers, report.leftover_bytes, report.kept), (1, Bytes(4), 1));
        assert_eq!(report.unread.len(), 0);
    }
    live.commit(Draft { records: Vec::new(), ..draft(b"") }).expect("it was left alone");
    let names: Vec<_> = files(home.path()).into_keys().collect();
    let pack = |n| PathBuf::from(format!("archive/claude/keep/00000{n}.pack"));
    let trashed = |n| PathBuf::from(format!("archive/.trash/pi/drop/00000{n}.pack.1728000"));
    let mark = |n| PathBuf::from(format!("archive/pi/drop/00000{n}.removed"));
    assert_eq!(names, [trashed(1), trashed(2), pack(1), pack(2), mark(1), mark(2)]);
    assert_eq!(archive.sessions().expect("a listing"), [keep]);
    // Packs in the trash are deleted after another grace period.
    let report = archive.gc(judge, LATER, GcMode::Remove).expect("a report");
    assert_eq!((report.emptied, report.trash_bytes), (0, Bytes(stored as u64)));
    let much_later = Grace { now: LATER.now + LATER.period, ..LATER };
    let report = archive.gc(judge, much_later, GcMode::Remove).expect("a report");
    assert_eq!((report.emptied, report.emptied_bytes), (2, Bytes(stored as u64)));
    let left = files(home.path()).into_keys().collect::<Vec<_>>();
    assert_eq!(left, [pack(1), pack(2), mark(1), mark(2)]);
}

/// A pack that was restored from the trash is trashed again: it is put next to the earlier one and
/// does not replace it.
#[test]
fn the_trash_takes_the_place_of_nothing() {
    let (home, archive) = home();
    let key = SessionKey::new("pi", "twice");
    let folder = home.path().join("archive/pi/twice");
    let trash = home.path().join("archive/.trash/pi/twice");
    let now = "2026-01-31T12:00:00Z".parse().expect("a time");
    for (n, raw) in [(1, &b"the first"[..]), (2, b"the second")] {
        assert_eq!(add(&archive, &key, raw).number, n);
        archive.remove(&key, now).expect("it is there");
    }
    let name = |n| format!("00000{n}.pack.{}", now.as_second());
    let copy = fs::read(trash.join(name(1))).expect("a pack");
    fs::write(folder.join("000001.pack"), &copy).expect("moved back");
    archive.remove(&key, now).expect("it is there");
    for name in [name(1), format!("{}.2", name(1)), name(2)] {
        assert!(trash.join(&name).is_file(), "{name}");
    }
    let much_later = Grace { now, period: SignedDuration::ZERO };
    let report = archive.gc(|_| Vec::new(), much_later, GcMode::Remove).expect("a report");
    assert_eq!(report.emptied, 3);
}

#[test]
fn a_session_with_a_damaged_pack_is_never_collected() {
    let (home, archive) = home();
    add(&archive, &SessionKey::new("claude", "s"), b"one");
    add(&archive, &SessionKey::new("claude", "s"), b"two");
    fs::write(home.path().join("archive/claude/s/000001.pack"), "nonsense").expect("damage");
    let before = files(home.path());
    let judge = |all: &[Generation]| vec![Need::Unneeded(Reason::Gone); all.len()];
    let report = archive.gc(judge, LATER, GcMode::Remove).expect("a report");
    assert_eq!((report.sessions, report.kept, report.unread.len()), (vec![], 1, 1));
    assert_eq!(files(home.path()), before);
}

#[test]
fn what_is_exported_is_imported_to_the_byte() {
    let (home, archive) = home();
    let key = SessionKey::new("claude", "../strange Id");
    add(&archive, &key, b"one");
    add(&archive, &key, b"two");
    add(&archive, &SessionKey::new("claude", "other"), b"three");
    let (mut tar, mut again) = (Vec::new(), Vec::new());
    assert_eq!(archive.export(&key, &mut tar).expect("exported"), 2);
    archive.export(&key, &mut again).expect("exported");
    assert_eq!(tar, again);

    let (there, theirs) = self::home();
    let report = import(&theirs, &tar).expect("imported");
    let sizes: Vec<Bytes> = report.added.iter().map(|it| it.stored).collect();
    let added =
        |idx: usize| ImportedPack { key: key.clone(), number: idx as u64 + 1, stored: sizes[idx] };
    assert_eq!((report.added.clone(), report.known), (vec![added(0), added(1)], 0));
    // The imported generations are the same, but marked as imported.
    let there_before = files(there.path());
    let mut whole = theirs.generations(&key).expect("a listing").whole;
    for generation in &mut whole {
        assert_eq!(generation.imported.take(), Some(NOW));
    }
    assert_eq!(whole, archive.generations(&key).expect("a listing").whole);
    for (number, raw) in [(1, b"one"), (2, b"two")] {
        assert_eq!(theirs.read(&key, number, &Hash::compute(raw)).expect("bytes"), raw);
    }
    assert_eq!(theirs.verify().expect("a report").faults.len(), 0);
    let again = import(&theirs, &tar).expect("imported again");
    assert_eq!((again.added, again.known), (vec![], 2));
    assert_eq!(files(there.path()), there_before);
    drop(home);
}

#[test]
fn an_imported_pack_takes_the_place_of_none() {
    let (_home, archive) = home();
    let (_there, theirs) = home();
    let key = SessionKey::new("claude", "s");
    add(&archive, &key, b"from here");
    let mut pack = theirs.begin(&key).expect("a pack");
    pack.put(b"from there", about("Read a.rs")).expect("put");
    let after = epitome::archive::Digest::from_bytes(b"another past");
    pack.commit(Draft { after, ..draft(b"from there") }).expect("a generation");
    let mut tar = Vec::new();
    archive.export(&key, &mut tar).expect("exported");
    let report = import(&theirs, &tar).expect("imported");
    assert_eq!(report.added[0].number, 2);
    for (number, raw) in [(1, "from there"), (2, "from here")] {
        let hash = Hash::compute(raw.as_bytes());
        assert_eq!(theirs.read(&key, number, &hash).expect("bytes"), raw.as_bytes());
    }
}

#[test]
fn a_hostile_import_puts_nothing_in_place() {
    let (home, archive) = home();
    let key = SessionKey::new("claude", "s");
    add(&archive, &key, b"removed");
    let pack = files(home.path()).into_values().next().expect("a pack");
    let mut hurt = pack.clone();
    let middle = hurt.len() / 2;
    hurt[middle] ^= 1;
    let entry = |name: &str, kind: tar::EntryType, bytes: &[u8]| {
        let mut head = tar::Header::new_ustar();
        // The name is written as bytes, because the library refuses to write such names.
        head.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        head.set_entry_type(kind);
        head.set_size(bytes.len() as u64);
        head.set_cksum();
        (head, bytes.to_vec())
    };
    let file = tar::EntryType::Regular;
    let good = entry("claude/s/000001.pack", file, &pack);
    let bad: &[(&str, (tar::Header, Vec<u8>))] = &[
        ("damaged", entry("claude/s/000002.pack", file, &hurt)),
        ("cut off", entry("claude/s/000002.pack", file, &pack[..pack.len() - 60])),
        ("no pack", entry("claude/s/000002.pack", file, b"nonsense")),
        ("empty", entry("claude/s/000002.pack", file, b"")),
        ("another name", entry("../../.bashrc", file, &pack)),
        ("a link", entry("claude/s/000002.pack", tar::EntryType::Symlink, b"")),
        ("a folder", entry("claude/s/000002.pack", tar::EntryType::Directory, b"")),
    ];
    for (name, bad) in bad {
        let (there, theirs) = self::home();
        let mut tar = tar::Builder::new(Vec::new());
        for (head, bytes) in [&good, bad] {
            tar.append(head, &bytes[..]).expect("appended");
        }
        let tar = tar.into_inner().expect("a tar");
        let err = import(&theirs, &tar).expect_err(name);
        assert_eq!(err.kind(), ErrorKind::Refused, "{name}: {err:?}");
        assert_eq!(files(there.path()), BTreeMap::new(), "{name}");
    }
    // Of a hostile path only the number is used, and a number that would leave a gap is replaced.
    for name in ["../../../tmp/000003.pack", "claude/s/900000.pack"] {
        let (there, theirs) = self::home();
        let mut tar = tar::Builder::new(Vec::new());
        let (head, bytes) = entry(name, file, &pack);
        tar.append(&head, &bytes[..]).expect("appended");
        let tar = tar.into_inner().expect("a tar");
        import(&theirs, &tar).expect("imported");
        let names: Vec<_> = files(there.path()).into_keys().collect();
        assert_eq!(names, [PathBuf::from("archive/claude/s/000001.pack")]);
        assert_eq!(theirs.generations(&key).expect("a listing").damaged.len(), 0);
    }
    for nonsense in [b"".as_slice(), b"nonsense", &[0; 1024], &pack[..700.min(pack.len())]] {
        let (there, theirs) = self::home();
        assert!(import(&theirs, nonsense).is_err());
        assert_eq!(files(there.path()), BTreeMap::new());
    }
}

#[test]
fn an_export_that_is_cut_off_puts_nothing_in_place() {
    let (home, archive) = home();
    let key = SessionKey::new("claude", "s");
    add(&archive, &key, b"one");
    add(&archive, &key, b"two");
    let mut tar = Vec::new();
    archive.export(&key, &mut tar).expect("exported");
    // Every end of a block: between two packs as well, and before the end mark.
    for len in (0..=tar.len() - 1024).step_by(512) {
        let (there, theirs) = self::home();
        assert!(import(&theirs, &tar[..len]).is_err(), "{len} of {}", tar.len());
        assert_eq!(files(there.path()), BTreeMap::new(), "{len} of {}", tar.len());
    }
    let err = import(&self::home().1, &tar[..tar.len() - 1024]).expect_err("cut off");
    assert_eq!((err.kind(), err.to_string()), (ErrorKind::Refused, "the export is cut off".into()));
    // An export that fails has no end mark.
    let second = home.path().join("archive/claude/s/000002.pack");
    fs::remove_file(&second).expect("removed");
    fs::create_dir(&second).expect("a folder");
    let mut half = Vec::new();
    archive.export(&key, &mut half).expect_err("no pack");
    assert_eq!(half, tar[..half.len()]);
    assert!(import(&self::home().1, &half).is_err());
}

#[test]
fn what_joins_nothing_here_is_not_imported() {
    let (_home, archive) = home();
    let key = SessionKey::new("claude", "s");
    add(&archive, &key, b"from here");
    let mut tar = Vec::new();
    archive.export(&key, &mut tar).expect("exported");
    let (there, theirs) = home();
    let other = tempfile::NamedTempFile::new().expect("a file");
    fs::write(other.path(), "another session\n").expect("written");
    for files in [vec![], vec![other.path().to_owned()]] {
        let report = theirs.import(&mut &tar[..], NOW, &|_| files.clone()).expect("read");
        assert_eq!((report.added.len(), report.refused.len()), (0, 1));
    }
    assert_eq!(files(there.path()), BTreeMap::new());
}

/// A pack as an attacker would make it: restoring it would insert text that was never in the
/// session.
fn planted(archive: &Archive, key: &SessionKey, left: &[u8]) -> Vec<u8> {
    let file = [b"{\"EVIL\":1}\n", left].concat();
    let span = Span { start: 0, end: 11 };
    let gone = Splice { span, with: b"".as_slice().into() };
    let after = Spliced::new(&file, vec![gone]).expect("in the file");
    let UndoData { before, after, records, shared } =
        UndoData::between(&file, &after).expect("in memory");
    let mut pack = archive.begin(key).expect("a pack");
    pack.put(&file[..11], about("nothing")).expect("put");
    let shared = Some(shared);
    pack.commit(Draft { before, after, records, shared, ..draft(b"") }).expect("a generation");
    let mut tar = Vec::new();
    archive.export(key, &mut tar).expect("exported");
    tar
}

/// Adds the compaction of a session whose first line is `{-}`. Returns the session's file.
fn compacted(archive: &Archive, key: &SessionKey) -> tempfile::NamedTempFile {
    let file = b"{-}\n{AAAA}\n".to_vec();
    let splice = Splice { span: Span { start: 5, end: 9 }, with: b"-".as_slice().into() };
    let after = Spliced::new(&file, vec![splice]).expect("in the file");
    let UndoData { before, after, records, shared } =
        UndoData::between(&file, &after).expect("in memory");
    let mut pack = archive.begin(key).expect("a pack");
    pack.put(b"AAAA", about("a")).expect("put");
    let shared = Some(shared);
    pack.commit(Draft { before, after, records, shared, ..draft(b"") }).expect("a generation");
    let session = tempfile::NamedTempFile::new().expect("a file");
    fs::write(session.path(), "{-}\n{-}\n").expect("written");
    session
}

#[test]
fn records_cannot_be_planted_by_an_import() {
    let key = SessionKey::new("claude", "s");
    let (_home, archive) = home();
    let tar = planted(&archive, &key, b"");
    let (there, theirs) = home();
    assert_eq!(import(&theirs, &tar).expect_err("empty").kind(), ErrorKind::Refused);
    assert_eq!(files(there.path()), BTreeMap::new());
    // The planted bytes match the first line of a session that was compacted here.
    let (_home, archive) = home();
    let tar = planted(&archive, &key, b"{-}\n");
    let (there, theirs) = home();
    let session = compacted(&theirs, &key);
    let before = files(there.path());
    let done = theirs.import(&mut &tar[..], NOW, &|_| vec![session.path().to_owned()]);
    assert_eq!(done.expect_err("planted").kind(), ErrorKind::Refused);
    assert_eq!(files(there.path()), before);
}

/// One tar archive of the packs in two.
fn joined(first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut both = tar::Builder::new(Vec::new());
    for tar in [first, second] {
        for entry in tar::Archive::new(tar).entries().expect("a tar") {
            let mut entry = entry.expect("an entry");
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("bytes");
            both.append(&entry.header().clone(), &bytes[..]).expect("appended");
        }
    }
    both.into_inner().expect("a tar")
}

#[test]
fn an_import_that_is_refused_for_one_session_adds_nothing_of_another() {
    let (_home, archive) = home();
    let good = SessionKey::new("claude", "a");
    add(&archive, &good, b"removed");
    let mut tar = Vec::new();
    archive.export(&good, &mut tar).expect("exported");
    let key = SessionKey::new("claude", "s");
    let tar = joined(&tar, &planted(&archive, &key, b"{-}\n"));
    let (there, theirs) = home();
    let session = compacted(&theirs, &key);
    let before = files(there.path());
    let done = theirs.import(&mut &tar[..], NOW, &|_| vec![session.path().to_owned()]);
    assert_eq!(done.expect_err("planted").kind(), ErrorKind::Refused);
    assert_eq!(files(there.path()), before);
}

#[test]
fn a_pack_copied_over_another_is_noticed() {
    let (home, archive) = home();
    let key = SessionKey::new("claude", "s");
    add(&archive, &key, b"one");
    add(&archive, &key, b"two");
    let pack = |n| home.path().join(format!("archive/claude/s/00000{n}.pack"));
    fs::copy(pack(2), pack(1)).expect("copied");
    let found = archive.generations(&key).expect("a listing");
    assert_eq!((found.whole.len(), found.damaged.len()), (1, 1));
    let what = "generation 2 is in the place of generation 1";
    assert!(found.damaged[0].to_string().starts_with(what), "{}", found.damaged[0]);
    assert_eq!(archive.verify().expect("a report").faults.len(), 1);
}

/// Packs that earlier versions wrote can always be read.
#[test]
fn packs_of_every_format_are_read() {
    let (home, archive) = home();
    let key = SessionKey::new("claude", "s");
    let made = add(&archive, &key, b"removed bytes");
    let stored = include_bytes!("packs/format-1.pack");
    fs::write(home.path().join("archive/claude/s/000001.pack"), stored).expect("written");
    let expect = Generation { epitome: "0.1.0".into(), shared: None, ..made };
    assert_eq!(archive.generations(&key).expect("a listing").whole, [expect]);
    let hash = Hash::compute(b"removed bytes");
    assert_eq!(archive.read(&key, 1, &hash).expect("bytes"), b"removed bytes");
    let found = archive.find(&hash.reference()).expect("found");
    assert_eq!(found[0].about, about("Read a.rs"));
    assert_eq!(archive.verify().expect("a report").faults.len(), 0);
}

#[test]
fn one_piece_is_found_among_many_packs() {
    let (_home, archive) = home();
    let raw = |n: u32| format!("removed bytes {n}").into_bytes();
    for n in 0..100 {
        let mut pack = archive.begin(&SessionKey::new("pi", format!("s{n}"))).expect("a pack");
        for m in [0, 100, 200, 300] {
            pack.put(&raw(n + m), about("Read a.rs")).expect("put");
        }
        pack.commit(draft(&raw(n))).expect("a generation");
    }
    for n in [0, 123, 399] {
        let found = archive.find(&Ref::from_bytes(&raw(n))).expect("found");
        let places: Vec<_> = found.iter().map(|it| (it.key.id.clone(), it.hash)).collect();
        assert_eq!(places, [(format!("s{}", n % 100), Hash::compute(&raw(n)))]);
    }
}
