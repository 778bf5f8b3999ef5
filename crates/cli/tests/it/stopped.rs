//! Ctrl-C while many sessions are written: sessions in progress are finished, and the result is
//! reported.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::world::World;
use crate::world::sessions::{self, CLAUDE};

const SESSIONS: usize = 150;

/// So many small sessions, which take the program a while.
fn many(world: &World) -> Vec<(PathBuf, String)> {
    let id = |n: usize| format!("{n:08x}-0000-4000-8000-000000000000");
    let sessions = (0..SESSIONS).map(|n| {
        let session = sessions::claude(CLAUDE).replace(CLAUDE, &id(n));
        (world.claude(&id(n), &session), session)
    });
    sessions.collect()
}

/// The number of files that have changed.
fn changed(files: &[(PathBuf, String)]) -> usize {
    let is_changed = |(path, was): &&(PathBuf, String)| read(path) != *was;
    files.iter().filter(is_changed).count()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a session")
}

/// Sends Ctrl-C's signal once `begun` returns true, and waits for the end.
fn interrupted(mut child: Child, begun: impl Fn() -> bool) -> Output {
    while child.try_wait().expect("it runs").is_none() && !begun() {
        std::hint::spin_loop();
    }
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("it runs");
    child.wait_with_output().expect("it ends")
}

fn start(world: &World, args: &[&str]) -> Child {
    let mut command = world.command(args);
    // One thread: most sessions have not begun when the first is done.
    command.env("RAYON_NUM_THREADS", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program runs")
}

#[test]
fn a_run_that_is_stopped_says_what_was_done_and_is_undone() {
    let world = World::new();
    let files = many(&world);
    let args = ["compact", "--all", "--keep-turns=1", "--count=estimate", "--recipe=transcript"];
    let out = interrupted(start(&world, &args), || changed(&files) > 0);
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(130), "{stderr}");
    let n = changed(&files);
    assert!((1..SESSIONS).contains(&n), "{n}");
    assert!(stderr.contains("stopping after the sessions in progress"), "{stderr}");
    let expected = format!(
        "{n} of {SESSIONS} sessions compacted, stopped\n  hint: `epitome undo` takes them back"
    );
    assert!(stderr.contains(&expected), "{expected}\n{stderr}");
    let printed = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(printed.contains("compacted: messages "), "{printed}");
    assert_eq!(world.status(&["undo", "--yes"]), 0);
    assert_eq!(changed(&files), 0);
}

#[test]
fn an_undo_that_is_stopped_says_what_was_done_and_goes_on() {
    let world = World::new();
    let files = many(&world);
    let args = ["compact", "--all", "--keep-turns=1", "--count=estimate", "--recipe=transcript"];
    assert_eq!(world.status(&args), 0);
    assert_eq!(changed(&files), SESSIONS);
    let child = start(&world, &["undo", "--yes"]);
    let out = interrupted(child, || changed(&files) < SESSIONS);
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(130), "{stderr}");
    let n = SESSIONS - changed(&files);
    let expected = format!("{n} of {SESSIONS} sessions undone, stopped\n  hint: the same command");
    assert!((1..SESSIONS).contains(&n) && stderr.contains(&expected), "{n} {stderr}");
    assert_eq!(world.status(&["undo", "--yes"]), 0);
    assert_eq!(changed(&files), 0);
}
