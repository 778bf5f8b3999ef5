//! Agents' folders with entries that are no files, or cannot be read.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, CODEX};

/// Longer than any command takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success(), "{}", path.display());
}

/// Runs a command that must not hang: it is killed after a while.
fn ends(world: &World, args: &[&str]) -> Output {
    let mut command = world.command(args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let pid = child.id().to_string();
    let (to, from) = mpsc::channel();
    std::thread::spawn(move || to.send(child.wait_with_output()));
    match from.recv_timeout(LONG) {
        Ok(output) => output.expect("its output"),
        Err(_) => {
            Command::new("kill").args(["-9", &pid]).status().ok();
            panic!("epitome {} hangs", args.join(" "));
        }
    }
}

/// A FIFO in every place that is searched.
const FIFOS: [&str; 14] = [
    concat!(
        ".codex/sessions/2026/11/20/rollout-2026-11-20T23-12-03-",
        "01a1fb3b-31f2-7601-bb99-fffffffffff1.jsonl",
    ),
    concat!(
        ".codex/sessions/2026/11/20/rollout-2026-11-20T23-12-03-",
        "01a1fb3b-31f2-7601-bb99-fffffffffff2.jsonl.zst",
    ),
    ".codex/thread-writer-locks/01a1fb3b-31f2-7601-bb99-fffffffffff1.lock",
    ".local/share/opencode/opencode-x.db",
    ".claude/projects/-p/fifo.jsonl",
    ".claude/sessions/1.json",
    ".claude/settings.json",
    ".pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_fifo.jsonl",
    concat!(".gemini/", "tmp", "/project/chats/session-2026-11-20T23-12-00000000.jsonl"),
    ".config/Cursor/User/globalStorage/state.vscdb",
    ".cursor/chats/0f0f/one/store.db",
    ".cursor/projects/p/agent-transcripts/fifo.jsonl",
    ".copilot/session-state/one/events.jsonl",
    ".local/share/epitome/contexts/fifo.jsonl",
];

#[test]
fn a_fifo_in_a_folder_of_an_agent_hangs_no_command() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.codex(CODEX, sessions::codex(CODEX));
    for name in FIFOS {
        fifo(&world.home.join(name));
    }
    fifo(&world.home.join("pages/manifest.json"));
    for (args, status) in [
        (&["list"][..], 0),
        (&["list", "--json"], 0),
        (&["search", "pricing"], 0),
        (&["archive", "gc"], 0),
        (&["archive", "ls"], 0),
        (&["inspect", CLAUDE], 0),
        (&["inspect", "--agent", "codex", CODEX], 0),
        (&["compact", "--dry-run", CLAUDE], 0),
        (&["compact", "--all", "--dry-run", "--count", "estimate"], 0),
        (&["watch", "--all", "--once", "--dry-run"], 0),
        (&["restore", CODEX], 5),
        (&["install", "--agent", "claude", "--yes"], 3),
        (&["index", "--dir", "pages"], 3),
        (&["render", CLAUDE, "--format", "html", "--out", "pages"], 5),
    ] {
        let output = ends(&world, args);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {stderr}");
    }
    let stderr = String::from_utf8(ends(&world, &["list"]).stderr).expect("text");
    for name in [0, 1, 3, 4, 7, 8, 9, 10, 11, 12].map(|idx| FIFOS[idx]) {
        let path = world.home.join(name);
        assert!(
            stderr.contains(&format!("not read: not a regular file: {}", path.display())),
            "{name}: {stderr}"
        );
    }
}

#[test]
fn a_list_says_what_could_not_be_read() {
    let world = World::new();
    world.write(".local/share/opencode/opencode.db", "this is no database at all, and long enough");
    let nowhere = world.home.join(".claude/projects/-p/gone.jsonl");
    fs::create_dir_all(nowhere.parent().expect("a folder")).expect("a folder");
    std::os::unix::fs::symlink("/nowhere/x.jsonl", &nowhere).expect("a link");
    let terminal = world.run(&["list"]);
    insta::assert_snapshot!(terminal, @r"
    $ epitome list
    --- stderr
    not read: cannot read the file: [home]/.claude/projects/-p/gone.jsonl: No such file or directory (os error 2)
    not read: cannot read the database: [home]/.local/share/opencode/opencode.db: file is not a database: Error code 26: file is not a database
    error: no session could be read
      hint: the messages above say what could not be read
    --- status 3
    ");
    assert_eq!(world.status(&["list", "--json"]), 3);
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let output = world.output(&["list"]);
    assert_eq!(output.status.code(), Some(0), "what can be read is listed");
    let stderr_text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(stderr_text.lines().count(), 2, "{stderr_text}");
}

#[test]
fn a_home_that_is_relative_is_refused() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    for args in [&["compact", CLAUDE][..], &["list"], &["archive", "ls"]] {
        let output = world.command(args).env("EPITOME_HOME", "archive").output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("EPITOME_HOME is relative to a folder: archive"), "{stderr}");
        assert!(stderr.contains(&world.home.join("archive").display().to_string()), "{stderr}");
    }
    assert!(!world.home.join("archive").exists());
}

#[test]
fn a_path_that_is_no_text_can_be_named() {
    use std::os::unix::ffi::OsStrExt as _;

    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let original = fs::read(&path).expect("a session");
    let strange = path.with_file_name(std::ffi::OsStr::from_bytes(b"a\xffb.jsonl"));
    fs::rename(&path, &strange).expect("a move");
    let run = |args: &[&str]| {
        let output = world.command(args).arg(&strange).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).expect("text")
    };
    for args in [
        &["inspect"][..],
        &["inspect", "--json"],
        &["compact", "--dry-run", "--json"],
        &["export", "--format", "jsonl"],
        &["redact"],
        &["render", "--format", "markdown"],
        &["scan", "--json"],
        &["compact", "--count=estimate", "--recipe=transcript", "--json"],
        &["restore", "--json"],
    ] {
        if args.first() != Some(&"export") {
            run(args);
        }
    }
    assert_eq!(fs::read(&strange).expect("a session"), original);
}

#[test]
fn force_says_who_writes_to_the_session() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let agent = fs::File::options().append(true).open(&path).expect("a session");
    let held = |args: &[&str]| {
        // This process has the file open.
        let output = world.output(args);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let compact = ["compact", CLAUDE, "--count=estimate", "--recipe=transcript"];
    assert_eq!(held(&compact).0, Some(4));
    let (status, told) = held(&[&compact[..], &["--force"]].concat());
    assert_eq!(status, Some(0), "{told}");
    let warning = format!("(process {}) can write to the session", std::process::id());
    assert_eq!(told.matches(&warning).count(), 1, "{told}");
    drop(agent);
    let reader = fs::File::open(&path).expect("a session");
    let (status, told) = held(&["restore", CLAUDE, "--force"]);
    assert_eq!((status, told.contains("can write")), (Some(0), false), "{told}");
    drop(reader);
}
