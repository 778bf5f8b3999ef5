//! Files that are no regular files, or that the user may not write: refused with a reason, or
//! handled.

#![cfg(unix)]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE};
use crate::world::trouble::{compacted, same, small};

/// A user id without privileges. Linux and macOS have such a user, if not with this id.
const NOBODY: u32 = 65_534;

/// A world for a user without root's privileges. None if this machine has no such user.
struct Plain {
    world: World,
    is_root: bool,
}

impl Plain {
    fn new() -> Option<Plain> {
        let world = World::new();
        let is_root = fs::metadata(&world.home).expect("a folder").uid() == 0;
        let plain = Plain { world, is_root };
        plain.give(&plain.world.home);
        let works = plain.command(&["--version"]).output().is_ok_and(|out| out.status.success());
        if !works {
            let why = "the administrator may do all, and `nobody` cannot run epitome here";
            fixtures::skipped("tests of permissions in crates/cli/tests/it/robust_files.rs", why);
        }
        works.then_some(plain)
    }

    fn give(&self, path: &Path) {
        if self.is_root {
            chown(path, Some(NOBODY), Some(NOBODY)).expect("the administrator may");
        }
    }

    fn session(&self, name: &str) -> std::path::PathBuf {
        let path = self.world.write(name, sessions::claude(CLAUDE));
        self.give(&path);
        self.give(path.parent().expect("a folder"));
        path
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.command(args);
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Runs the program, and checks the status and the output.
    #[track_caller]
    fn says(&self, args: &[&str], status: i32, what: &[&str]) {
        let out = self.command(args).output().expect("the program runs");
        let error = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(status), "{args:?}: {error}");
        for what in what {
            assert!(error.contains(what), "{args:?}: no `{what}` in: {error}");
        }
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

#[test]
fn a_folder_that_may_not_be_written_is_said_to_be_one() {
    let Some(plain) = Plain::new() else { return };
    let path = plain.session("folder/session.jsonl");
    let folder = path.parent().expect("a folder").to_owned();
    let original = fs::read(&path).expect("a session");
    mode(&folder, 0o500);
    plain.says(&small("folder/session.jsonl", &["--dry-run"]), 0, &[]);
    plain.says(
        &small("folder/session.jsonl", &[]),
        5,
        &["cannot write", "hint: a temporary file is written next to it first"],
    );
    same(&fs::read(&path).expect("a session"), &original, "refused");
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
    // A copy elsewhere works, and everything works once the folder is writable.
    plain.says(&small("folder/session.jsonl", &["--out", "small.jsonl"]), 0, &[]);
    mode(&folder, 0o700);
    plain.says(&small("folder/session.jsonl", &[]), 0, &[]);
    mode(&folder, 0o500);
    let small_bytes = fs::read(&path).expect("a session");
    plain.says(
        &["restore", "folder/session.jsonl"],
        5,
        &["cannot write", "hint: a temporary file is written next to it first"],
    );
    same(&fs::read(&path).expect("a session"), &small_bytes, "refused");
    mode(&folder, 0o700);
    plain.says(&["restore", "folder/session.jsonl"], 0, &[]);
    same(&fs::read(&path).expect("a session"), &original, "restored");
}

#[test]
fn a_session_that_may_not_be_read_or_written_is_refused() {
    let Some(plain) = Plain::new() else { return };
    let path = plain.session("session.jsonl");
    let original = fs::read(&path).expect("a session");
    for (bits, says) in [(0o000, "cannot read"), (0o400, "marked read-only")] {
        mode(&path, bits);
        plain.says(&small("session.jsonl", &[]), 3, &["error:", says, "session.jsonl"]);
        mode(&path, 0o600);
        same(&fs::read(&path).expect("a session"), &original, says);
    }
    mode(&path, 0o640);
    plain.says(&small("session.jsonl", &[]), 0, &[]);
    assert_eq!(fs::metadata(&path).expect("a file").mode() & 0o777, 0o640);
    mode(&path, 0o400);
    plain.says(&["restore", "session.jsonl"], 3, &["marked read-only"]);
    plain.says(&["restore", "session.jsonl", "--dry-run"], 3, &["marked read-only"]);
    let copy = ["restore", "session.jsonl", "--out", "whole.jsonl"];
    plain.says(&[&copy[..], &["--dry-run"]].concat(), 0, &[]);
    plain.says(&copy, 0, &[]);
    same(&fs::read(plain.world.home.join("whole.jsonl")).expect("a copy"), &original, "a copy");
}

#[test]
fn an_archive_that_may_not_be_written_or_read_is_said_to_be_one() {
    let Some(plain) = Plain::new() else { return };
    let path = plain.session("session.jsonl");
    let original = fs::read(&path).expect("a session");
    let home = plain.world.home.join("epitome");
    fs::create_dir(&home).expect("a folder");
    plain.give(&home);
    let run = |args: &[&str], status: i32| {
        let out = plain.command(args).env("EPITOME_HOME", &home).output().expect("it runs");
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(status), "{args:?}: {error}");
        error
    };
    mode(&home, 0o500);
    let error = run(&small("session.jsonl", &[]), 5);
    assert!(error.contains(home.to_str().expect("text")), "{error}");
    same(&fs::read(&path).expect("a session"), &original, "refused");
    mode(&home, 0o700);
    run(&small("session.jsonl", &[]), 0);
    let small_bytes = fs::read(&path).expect("a session");
    assert_eq!(fs::metadata(home.join("archive")).expect("a folder").mode() & 0o777, 0o700);
    let pack = home.join(format!("archive/claude/{CLAUDE}/000001.pack"));
    assert_eq!(fs::metadata(&pack).expect("a pack").mode() & 0o777, 0o600);
    mode(&pack, 0o000);
    let error = run(&["restore", "session.jsonl"], 5);
    assert!(error.contains("000001.pack"), "{error}");
    run(&["archive", "verify"], 5);
    mode(&pack, 0o600);
    mode(&home.join("archive"), 0o000);
    run(&["restore", "session.jsonl"], 5);
    run(&["archive", "verify"], 5);
    run(&["archive", "gc", "--yes"], 5);
    same(&fs::read(&path).expect("a session"), &small_bytes, "refused");
    mode(&home.join("archive"), 0o700);
    run(&["restore", "session.jsonl"], 0);
    same(&fs::read(&path).expect("a session"), &original, "restored");
}

#[test]
fn a_link_stays_and_its_target_is_replaced() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let target = world.write("elsewhere/session.jsonl", &original);
    let link = world.home.join("link.jsonl");
    symlink("elsewhere/session.jsonl", &link).expect("a link");
    let over = world.home.join("over.jsonl");
    symlink("link.jsonl", &over).expect("a link");
    let small_bytes = compacted(&world, &over);
    for link in [&link, &over] {
        assert!(link.symlink_metadata().expect("a link").is_symlink());
        same(&fs::read(link).expect("a session"), &small_bytes, "through the link");
    }
    assert!(target.symlink_metadata().expect("a file").is_file());
    assert!(small_bytes.len() < original.len());
    assert_eq!(world.status(&["restore", "link.jsonl"]), 0);
    assert!(link.symlink_metadata().expect("a link").is_symlink());
    same(&fs::read(&target).expect("a session"), original.as_bytes(), "restored");
    // By either name it is the same session.
    assert_eq!(world.status(&small("elsewhere/session.jsonl", &[])), 0);
    assert_eq!(world.status(&["restore", "over.jsonl"]), 0);
    same(&fs::read(&target).expect("a session"), original.as_bytes(), "restored");
}

#[test]
fn links_that_lead_nowhere_are_no_sessions() {
    let world = World::new();
    symlink("nothing.jsonl", world.home.join("dangling.jsonl")).expect("a link");
    symlink("loop.jsonl", world.home.join("loop.jsonl")).expect("a link");
    let before = fs::read_dir(&world.home).expect("a folder").count();
    for name in ["dangling.jsonl", "loop.jsonl"] {
        for args in [&small(name, &[])[..], &["restore", name], &["inspect", name]] {
            let terminal = world.run(args);
            assert!(terminal.ends_with("--- status 3\n"), "{terminal}");
            assert!(terminal.contains(name), "{terminal}");
        }
    }
    assert_eq!(fs::read_dir(&world.home).expect("a folder").count(), before);
}

#[test]
fn a_session_with_two_names_is_refused_both_ways() {
    let world = World::new();
    let path = world.write("one.jsonl", sessions::claude(CLAUDE));
    let original = fs::read(&path).expect("a session");
    let other = world.home.join("two.jsonl");
    fs::hard_link(&path, &other).expect("a second name");
    let terminal = world.run(&small("two.jsonl", &[]));
    assert!(terminal.ends_with("--- status 4\n"), "{terminal}");
    fs::remove_file(&other).expect("a name");
    let small_bytes = compacted(&world, &path);
    fs::hard_link(&path, &other).expect("a second name");
    let terminal = world.run(&["restore", "one.jsonl"]);
    assert!(terminal.ends_with("--- status 4\n"), "{terminal}");
    same(&fs::read(&other).expect("a session"), &small_bytes, "refused");
    fs::remove_file(&other).expect("a name");
    assert_eq!(world.status(&["restore", "one.jsonl"]), 0);
    same(&fs::read(&path).expect("a session"), &original, "restored");
}

/// Reading a pipe would block, and a device has no end.
#[test]
fn what_is_no_file_is_refused_at_once() {
    let world = World::new();
    let pipe = world.home.join("pipe.jsonl");
    let made = Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success());
    let socket = world.home.join("socket.jsonl");
    let _socket = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    fs::create_dir(world.home.join("folder.jsonl")).expect("a folder");
    let pipe = if made { "pipe.jsonl" } else { "folder.jsonl" };
    let names =
        [pipe, "socket.jsonl", "folder.jsonl", "folder.jsonl/", "/dev/null", "/dev/zero", "/"];
    for name in names {
        for args in [&small(name, &[])[..], &["restore", name], &["inspect", name]] {
            let terminal = world.run(args);
            assert!(terminal.ends_with("--- status 3\n"), "{terminal}");
            assert!(terminal.contains("error: "), "{terminal}");
        }
    }
    for name in ["folder.jsonl", "/dev/full", "/dev/null"] {
        world.write("session.jsonl", sessions::claude(CLAUDE));
        let status = world.status(&small("session.jsonl", &["--out", name]));
        assert_eq!(status, 4, "{name} is taken");
        let status = world.status(&["archive", "import", name]);
        assert_ne!(status, 0, "{name} is no export");
    }
}

#[test]
fn times_and_modes_stay() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    mode(&path, 0o604);
    let modified = || File::open(&path).and_then(|it| it.metadata()?.modified()).expect("a time");
    let before = modified();
    compacted(&world, &path);
    assert_eq!((modified(), fs::metadata(&path).expect("a file").mode() & 0o777), (before, 0o604));
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    assert_eq!((modified(), fs::metadata(&path).expect("a file").mode() & 0o777), (before, 0o604));
}
