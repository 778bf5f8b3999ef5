//! Tests of replacing a session: steps that fail, and bytes that an agent writes at the same time.

use std::fs;
use std::io;
use std::path::Path;

use super::*;
use crate::step::{DiskStep, fault};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

fn session(folder: &Path, bytes: &[u8]) -> LockedSession {
    let path = folder.join("s.jsonl");
    fs::write(&path, bytes).expect("a session");
    Store::new(&folder.join("home")).open_for_edit(&path).expect("a session")
}

#[test]
fn whatever_step_fails_the_session_is_what_it_was_or_what_it_was_to_become() {
    let mut outcomes = Vec::new();
    for n in 0.. {
        let dir = tempfile::tempdir().expect("a folder");
        let session = session(dir.path(), b"old");
        let done =
            fault::with(fault::full_at(n), || session.replace(|out| Ok(out.write_all(b"new")?)));
        let left = fs::read(session.path()).expect("a session");
        assert_eq!(names(dir.path()), ["home", "s.jsonl"], "step {n}");
        match &done {
            Ok(_) => assert_eq!(left, b"new", "step {n}"),
            Err(err) => {
                assert_eq!((left.as_slice(), err.kind()), (b"old".as_slice(), ErrorKind::Disk));
            }
        }
        outcomes.push(done.is_ok());
        if n == 10 {
            break;
        }
    }
    // Four steps can fail: the new file is created, written, flushed and named. That the folder
    // cannot be flushed is no failure.
    assert_eq!(outcomes, [[false; 4].as_slice(), &[true; 7]].concat());
}

#[test]
fn what_is_written_between_the_last_look_and_the_name_is_carried_over() {
    let dir = tempfile::tempdir().expect("a folder");
    let session = session(dir.path(), b"old\n");
    let path = session.path().to_owned();
    let append_late = move |step| {
        if step == DiskStep::Name {
            let mut file = File::options().append(true).open(&path)?;
            file.write_all(b"late\n")?;
        }
        Ok(())
    };
    let done = fault::with(append_late, || session.replace(|out| Ok(out.write_all(b"new\n")?)));
    assert_eq!(done.expect("replaced"), ReplaceReport { carried: Bytes(5) });
    assert_eq!(fs::read(session.path()).expect("a session"), b"new\nlate\n");
}

#[test]
fn what_was_written_first_stands_first() {
    let dir = tempfile::tempdir().expect("a folder");
    let session = session(dir.path(), b"old\n");
    let path = session.path().to_owned();
    let mut open = None;
    let mut looks = 0;
    let append_late = move |step| {
        if step == DiskStep::Name && open.is_none() {
            open = Some(File::options().append(true).open(&path)?);
        }
        if step == DiskStep::Look {
            looks += 1;
            let mut new = File::options().append(true).open(&path)?;
            match (looks, &mut open) {
                // The agent writes one record to the old file, and the next to the new one.
                (1, Some(old)) => {
                    old.write_all(b"one\n")?;
                    new.write_all(b"two\n")?;
                    *old = new;
                }
                // `old` is now the first new file, which was replaced, too.
                (2, Some(old)) => {
                    old.write_all(b"three\n")?;
                    new.write_all(b"four\n")?;
                }
                _ => {}
            }
        }
        Ok(())
    };
    let done = fault::with(append_late, || session.replace(|out| Ok(out.write_all(b"new\n")?)));
    let text = fs::read_to_string(session.path()).expect("a session");
    assert_eq!(text, "new\none\ntwo\nthree\nfour\n");
    assert_eq!(done.expect("replaced"), ReplaceReport { carried: Bytes(10) });
    assert_eq!(names(dir.path()), ["home", "s.jsonl"]);
}

#[test]
fn what_is_written_while_the_file_is_opened_is_a_change() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s.jsonl");
    fs::write(&path, b"old\n").expect("a session");
    let appended = path.clone();
    // The only folder that is made is that of locks, after the session's file was opened.
    let append_once = move |step| {
        if step == DiskStep::Folder && fs::read(&appended)? == b"old\n" {
            File::options().append(true).open(&appended)?.write_all(b"late\n")?;
        }
        Ok(())
    };
    let store = Store::new(&dir.path().join("home"));
    let session = fault::with(append_once, || store.open_for_edit(&path)).expect("a session");
    assert_eq!(session.source().read(0..100), b"old\n".as_slice());
    let err = session.replace(|out| Ok(out.write_all(b"new\n")?)).expect_err("it changed");
    assert_eq!(err.kind(), ErrorKind::Changed);
    assert_eq!(fs::read(&path).expect("a session"), b"old\nlate\n");
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_written_late_to_the_replaced_file_is_carried_over() {
    use std::process::{Command, Stdio};

    let dir = tempfile::tempdir().expect("a folder");
    let session = session(dir.path(), b"old\n");
    // A process that opens the session, waits for a line, writes, and ends.
    let script = "exec 3>>\"$0\"; echo open; read -r word; echo late >&3";
    let mut agent = Command::new("sh")
        .args(["-c", script])
        .arg(session.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut opened = [0; 5];
    let stdout = agent.stdout.as_mut().expect("a pipe");
    io::Read::read_exact(stdout, &mut opened).expect("it opens");
    let mut word = agent.stdin.take();
    // The agent writes when the first check for open files begins.
    let speak_at_last = move |step| {
        if step == DiskStep::Look {
            drop(word.take());
        }
        Ok(())
    };
    let done = fault::with(speak_at_last, || session.replace(|out| Ok(out.write_all(b"new\n")?)));
    assert_eq!(done.expect("replaced"), ReplaceReport { carried: Bytes(5) });
    assert_eq!(fs::read(session.path()).expect("a session"), b"new\nlate\n");
    assert!(agent.wait().expect("it ends").success());
}

#[test]
fn whatever_step_fails_a_new_file_is_whole_or_not_there() {
    let mut done_at = Vec::new();
    for n in 0..8 {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("copy.jsonl");
        let done =
            fault::with(fault::full_at(n), || write_new(&path, |out| Ok(out.write_all(b"new")?)));
        match done {
            Ok(()) => assert_eq!(fs::read(&path).expect("a file"), b"new"),
            Err(err) => assert_eq!((err.kind(), path.exists()), (ErrorKind::Disk, false)),
        }
        done_at.push(path.exists());
    }
    // Five steps can fail: the file is created, written, flushed and named, and its folder is
    // flushed.
    assert_eq!(done_at, [[false; 5].as_slice(), &[true; 3]].concat());
}

#[test]
fn a_new_file_takes_the_place_of_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("copy.jsonl");
    fs::write(&path, "mine").expect("a file");
    let err = write_new(&path, |out| Ok(out.write_all(b"new")?)).expect_err("it is taken");
    assert_eq!(err.kind(), ErrorKind::Exists);
    // An existing file is also kept if it appears at the last moment.
    fs::remove_file(&path).expect("a file");
    let late = path.clone();
    let appear = move |step| if step == DiskStep::Name { fs::write(&late, "mine") } else { Ok(()) };
    let done: Result<()> =
        fault::with(appear, || write_new(&path, |out| Ok(out.write_all(b"new")?)));
    assert_eq!(done.expect_err("it is taken").kind(), ErrorKind::Exists);
    assert_eq!(fs::read(&path).expect("a file"), b"mine");
    assert_eq!(names(dir.path()), ["copy.jsonl"]);
}

#[test]
fn an_error_of_the_caller_is_the_error() {
    let dir = tempfile::tempdir().expect("a folder");
    let session = session(dir.path(), b"old");
    let full = |_: &mut dyn Write| Err(Error::from(io::Error::from(io::ErrorKind::StorageFull)));
    let err = session.replace(full).expect_err("it is full");
    assert_eq!((err.kind(), err.path()), (ErrorKind::Disk, Some(session.path())));
    assert_eq!(names(dir.path()), ["home", "s.jsonl"]);
}

#[test]
fn a_lock_ends_although_a_starting_process_has_a_copy_of_its_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s.jsonl");
    fs::write(&path, "{}\n").expect("written");
    let store = Store::new(dir.path());
    let lock = store.lock_file(&path).expect("a lock");
    let _copy = lock.file.try_clone().expect("a copy");
    assert_eq!(store.lock_file(&path).expect_err("locked").kind(), ErrorKind::Locked);
    drop(lock);
    store.lock_file(&path).expect("free again");
}
