//! Session files as agents leave them: links, pipes, read-only files, files written to meanwhile.
#![cfg(unix)]

use std::fs::{self, File, FileTimes};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use epitome::storage::{LockedSession, ReplaceReport, Store, User, users_of};
use epitome::{Error, ErrorKind};
use epitome_model::Source;

struct Case {
    _dir: tempfile::TempDir,
    folder: PathBuf,
    store: Store,
}

impl Case {
    fn new() -> Case {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().canonicalize().expect("a folder").join("sessions");
        fs::create_dir(&folder).expect("a folder");
        let store = Store::new(&dir.path().join("home"));
        Case { _dir: dir, folder, store }
    }

    fn file(&self, bytes: &str) -> PathBuf {
        let path = self.folder.join("s.jsonl");
        fs::write(&path, bytes).expect("a session");
        path
    }

    fn names(&self) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let entries = fs::read_dir(&self.folder).expect("a folder");
        let mut names: Vec<_> = entries.map(|it| name(it).into_string().expect("text")).collect();
        names.sort();
        names
    }
}

fn put(session: &LockedSession, bytes: &str) -> Result<ReplaceReport, Error> {
    session.replace(|out| Ok(out.write_all(bytes.as_bytes())?))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a session")
}

#[test]
fn a_session_is_replaced_and_keeps_its_mode_and_times() {
    let case = Case::new();
    let path = case.file("old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("a mode");
    let second = |n| SystemTime::UNIX_EPOCH + Duration::new(n, 123_456_789);
    let times = FileTimes::new().set_accessed(second(1_000)).set_modified(second(2_000));
    File::options().write(true).open(&path).expect("open").set_times(times).expect("times");
    let before = fs::metadata(&path).expect("a session");
    let session = case.store.open_for_edit(&path).expect("a session");
    assert_eq!(put(&session, "the new one").expect("replaced"), ReplaceReport::default());
    let after = fs::metadata(&path).expect("a session");
    assert_eq!(read(&path), "the new one");
    assert_eq!(after.permissions().mode(), before.permissions().mode());
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert_eq!(after.modified().expect("a time"), second(2_000));
    assert_eq!(case.names(), ["s.jsonl"]);
    assert_ne!(after.ino(), before.ino());
}

#[test]
fn what_is_no_plain_file_is_refused() {
    let case = Case::new();
    let pipe = case.folder.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there");
    assert!(made.success());
    let read_only = case.folder.join("read-only");
    fs::write(&read_only, "x").expect("a file");
    fs::set_permissions(&read_only, fs::Permissions::from_mode(0o444)).expect("a mode");
    let (one, other) = (case.folder.join("one"), case.folder.join("other"));
    fs::write(&one, "x").expect("a file");
    fs::hard_link(&one, &other).expect("a link");
    let dangling = case.folder.join("dangling");
    symlink("nowhere", &dangling).expect("a link");
    let cases = [
        (case.folder.as_path(), ErrorKind::NotAFile),
        (&pipe, ErrorKind::NotAFile),
        (Path::new("/dev/null"), ErrorKind::NotAFile),
        (&case.folder.join("missing"), ErrorKind::NotFound),
        (&dangling, ErrorKind::NotFound),
        (&one.join("below"), ErrorKind::NotAFile),
        (&read_only, ErrorKind::NoPermission),
        (&other, ErrorKind::HardLinked),
    ];
    for (path, kind) in cases {
        let err = case.store.open_for_edit(path).expect_err("refused");
        assert_eq!(err.kind(), kind, "{}: {err}", path.display());
    }
}

#[test]
fn a_link_is_followed_and_stays() {
    let case = Case::new();
    let path = case.file("old");
    let link = case.folder.join("link.jsonl");
    symlink("s.jsonl", &link).expect("a link");
    let session = case.store.open_for_edit(&link).expect("a session");
    assert_eq!(session.path(), path);
    put(&session, "new").expect("replaced");
    assert_eq!((read(&path), read(&link)), ("new".into(), "new".into()));
    assert!(link.symlink_metadata().expect("a link").is_symlink());
}

#[test]
fn two_epitomes_exclude_each_other() {
    let case = Case::new();
    let path = case.file("old");
    let link = case.folder.join("link.jsonl");
    symlink(&path, &link).expect("a link");
    let session = case.store.open_for_edit(&path).expect("a session");
    let err = case.store.open_for_edit(&link).expect_err("it is locked");
    assert_eq!(err.kind(), ErrorKind::Locked);
    let what = format!("another epitome is working on this session: {}", path.display());
    assert_eq!(err.to_string(), what);
    put(&session, "new").expect("replaced");
    assert_eq!(case.store.open_for_edit(&path).expect_err("still").kind(), ErrorKind::Locked);
    drop(session);
    case.store.open_for_edit(&path).expect("free again");
}

#[test]
fn a_session_that_changed_meanwhile_is_left_alone() {
    type Change = fn(&Path);
    let changes: &[(&str, Change, ErrorKind)] = &[
        ("appended", |path| append(path, "more"), ErrorKind::Changed),
        ("touched", |path| touch(path), ErrorKind::Changed),
        ("cut", |path| fs::write(path, "o").expect("cut"), ErrorKind::Changed),
        ("replaced", |path| replace(path), ErrorKind::Changed),
        (
            "linked",
            |path| fs::hard_link(path, path.with_extension("x")).expect("a link"),
            ErrorKind::HardLinked,
        ),
        ("removed", |path| fs::remove_file(path).expect("removed"), ErrorKind::NotFound),
    ];
    for (name, change, kind) in changes {
        let case = Case::new();
        let path = case.file("old");
        let session = case.store.open_for_edit(&path).expect("a session");
        change(&path);
        let (left, names) = (fs::read(&path).ok(), case.names());
        let err = put(&session, "new").expect_err(name);
        assert_eq!(err.kind(), *kind, "{name}: {err}");
        assert_eq!((fs::read(&path).ok(), case.names()), (left, names), "{name}");
    }
}

#[test]
fn a_session_that_changes_while_it_is_written_is_left_alone() {
    let case = Case::new();
    let path = case.file("old");
    let session = case.store.open_for_edit(&path).expect("a session");
    let written = session.replace(|out| {
        append(&path, "more");
        Ok(out.write_all(b"new")?)
    });
    assert_eq!(written.expect_err("it changed").kind(), ErrorKind::Changed);
    assert_eq!((read(&path), case.names()), ("oldmore".into(), vec!["s.jsonl".into()]));
}

#[test]
fn a_session_that_is_cut_while_it_is_read_is_left_alone() {
    let case = Case::new();
    let path = case.file("old");
    let session = case.store.open_for_edit(&path).expect("a session");
    let before = fs::metadata(&path).expect("a session");
    fs::write(&path, "o").expect("cut");
    assert_eq!(&*session.source().read(0..3), b"o");
    let failure = session.source().failure().expect("it is remembered");
    assert_eq!(failure.kind(), ErrorKind::Changed);
    // The change is noticed even if the size and the time of the file are the same again.
    fs::write(&path, "new").expect("grown");
    let times = FileTimes::new().set_modified(before.modified().expect("a time"));
    File::options().write(true).open(&path).expect("open").set_times(times).expect("times");
    assert_eq!(put(&session, "x").expect_err("it failed").kind(), ErrorKind::Changed);
    assert_eq!(read(&path), "new");
}

#[test]
fn what_a_killed_epitome_left_is_swept() {
    let case = Case::new();
    let path = case.file("old");
    for name in [".epitome-abc.tmp", ".epitome-kept.jsonl", "epitome-kept.tmp"] {
        fs::write(case.folder.join(name), "torn").expect("a leftover");
    }
    symlink("s.jsonl", case.folder.join(".epitome-link.tmp")).expect("a link");
    // A file that another epitome is writing.
    let live = File::create(case.folder.join(".epitome-live.tmp")).expect("a file");
    live.lock().expect("a lock");
    let session = case.store.open_for_edit(&path).expect("a session");
    put(&session, "new").expect("replaced");
    let kept = [
        ".epitome-kept.jsonl",
        ".epitome-link.tmp",
        ".epitome-live.tmp",
        "epitome-kept.tmp",
        "s.jsonl",
    ];
    assert_eq!(case.names(), kept);
}

#[cfg(target_os = "linux")]
#[test]
fn who_has_a_session_open_is_named() {
    let case = Case::new();
    let path = case.file("old");
    let session = case.store.open_for_edit(&path).expect("a session");
    assert_eq!(session.users(), [], "we do not count ourselves");
    let mut agent = holding("sh".as_ref(), &path, ">>");
    let user = User { pid: agent.id(), name: "sh".into(), writes: true };
    assert_eq!(session.users(), std::slice::from_ref(&user));
    let link = case.folder.join("link.jsonl");
    symlink(&path, &link).expect("a link");
    assert_eq!(users_of(&link), [user]);
    drop(agent.stdin.take());
    agent.wait().expect("it ends");
    assert_eq!(session.users(), []);
}

/// A shell that keeps a file open with a redirection, until it is killed or its input ends.
fn holding(shell: &Path, path: &Path, redirection: &str) -> Child {
    let script = format!("exec 3{redirection}\"$0\"; echo ready; read line");
    let mut child = Command::new(shell)
        .args(["-c", &script])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut ready = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut ready).expect("it says so");
    assert_eq!(ready, "ready\n");
    child
}

#[cfg(target_os = "linux")]
#[test]
fn another_epitome_that_only_reads_does_not_use_a_session() {
    let case = Case::new();
    let path = case.file("old");
    for (program, redirection, expect) in [
        ("epitome", "<", None),
        ("epitome", ">>", Some(true)),
        ("agent", "<", Some(false)),
        ("agent", "<>", Some(true)),
    ] {
        let program = case.folder.with_file_name(program);
        fs::copy(fs::canonicalize("/bin/sh").expect("a shell"), &program).expect("a copy of it");
        let mut child = holding(&program, &path, redirection);
        let found: Vec<(u32, bool)> =
            users_of(&path).iter().map(|user| (user.pid, user.writes)).collect();
        let expect: Vec<(u32, bool)> =
            expect.map(|writes| (child.id(), writes)).into_iter().collect();
        assert_eq!(found, expect, "{} {redirection}", program.display());
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
    }
}

fn append(path: &Path, text: &str) {
    let mut file = File::options().append(true).open(path).expect("a session");
    file.write_all(text.as_bytes()).expect("appended");
}

fn touch(path: &Path) {
    let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
    File::options().write(true).open(path).expect("open").set_times(times).expect("times");
}

/// Replaces the file by another one with the same length and times.
fn replace(path: &Path) {
    let modified = fs::metadata(path).expect("a session").modified().expect("a time");
    let other = path.with_extension("other");
    fs::write(&other, "new").expect("a file");
    let times = FileTimes::new().set_modified(modified);
    File::options().write(true).open(&other).expect("open").set_times(times).expect("times");
    fs::rename(&other, path).expect("renamed");
}
