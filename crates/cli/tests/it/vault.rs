//! `epitome keep`, `epitome history` and `epitome restore --at`: every version of a session.

use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;

use crate::world::sessions::{self, CLAUDE, PI};
use crate::world::{self, World};

/// Runs a command at a given time, which must succeed.
pub fn at(world: &World, time: &str, args: &[&str]) {
    let time = format!("2026-11-20T{time}:00Z");
    let done = world.command(args).env("EPITOME_NOW", time).output().expect("the program runs");
    assert!(done.status.success(), "{args:?}: {done:?}");
}

/// Where pi keeps the session.
pub fn place(world: &World) -> PathBuf {
    world.home.join(format!(".pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_{PI}.jsonl"))
}

/// The output without the lengths of the vault before and afterwards, of which the second is less.
/// The times of files are in the vault, so that they differ by some hundred bytes.
fn shrinks(terminal: &str) -> String {
    let line = |line: &str| match line.split_once("; the vault: ") {
        Some((before, lengths)) => {
            let (was, is) = lengths.split_once(" -> ").expect("two lengths");
            let bytes = |text: &str| {
                let (number, unit) = text.split_once(' ').expect("a number and a unit");
                let unit = if unit == "KB" { 1000.0 } else { 1.0 };
                number.parse::<f64>().expect("a number") * unit
            };
            assert!(bytes(is) < bytes(was), "{line}");
            format!("{before}; the vault: [shrinks]\n")
        }
        None => format!("{line}\n"),
    };
    terminal.lines().map(line).collect()
}

/// A session that was appended to, compacted, rewritten by its agent and deleted.
pub fn kept(world: &World) -> Vec<Vec<u8>> {
    let path = world.pi(PI, sessions::pi(PI));
    let read = |path: &Path| fs::read(path).expect("a session");
    let keep = ["keep", "--all", "--once"];
    let mut versions = vec![read(&path)];
    at(world, "10:00", &keep);
    let line = versions[0].split(|byte| *byte == b'\n').next().expect("a line").to_vec();
    let appended = [&versions[0][..], &line, b"\n"].concat();
    fs::write(&path, &appended).expect("a session");
    versions.push(appended);
    at(world, "10:10", &keep);
    let small = ["compact", PI, "--keep-turns=1", "--count=estimate", "--recipe", "transcript"];
    at(world, "10:20", &small);
    versions.push(read(&path));
    at(world, "10:30", &keep);
    fs::write(&path, &versions[0][..400]).expect("a session");
    versions.push(read(&path));
    at(world, "10:40", &keep);
    fs::remove_file(&path).expect("a session");
    at(world, "10:50", &keep);
    versions
}

#[test]
fn a_deleted_session_is_listed_with_its_versions_and_comes_back() {
    let world = World::new();
    let versions = kept(&world);
    assert_snapshot!(without_runs(&world.run(&["history", PI])), @r"
    $ epitome history 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62  (deleted)  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    version  age    size  what changed
          1   1d  7.7 KB  first seen, 7.7 KB
          2   1d  7.8 KB  +125 B
          3   1d  1.6 KB  compacted by epitome (run [id]), -6.2 KB
          4   1d   400 B  cut, -1.2 KB
          5   1d       -  deleted
    --- status 0
    ");
    assert_snapshot!(world.run(&["inspect", "01a1fb3a"]), @r"
    $ epitome inspect 01a1fb3a
    --- stderr
    error: no session is called `01a1fb3a`
      hint: `epitome list` shows the sessions of this machine; a path works too
      hint: `epitome keep` has versions of it: `epitome history 01a1fb3a` shows them, and `epitome restore 01a1fb3a --at N` brings one back
    --- status 3
    ");
    let path = place(&world);
    for (n, expect) in versions.iter().enumerate() {
        let number = (n + 1).to_string();
        let restored = ["restore", PI, "--at", &number, "--yes"];
        assert_eq!(world.status(&restored), 0);
        assert_eq!(&fs::read(&path).expect("a session"), expect, "version {number}");
    }
    assert_snapshot!(without_runs(&world.run(&["history", PI])), @r"
    $ epitome history 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    version  age    size  what changed
          1   1d  7.7 KB  first seen, 7.7 KB
          2   1d  7.8 KB  +125 B
          3   1d  1.6 KB  compacted by epitome (run [id]), -6.2 KB
          4   1d   400 B  cut, -1.2 KB
          5   1d       -  deleted
          6  now  7.7 KB  restored from version 1
          7  now  7.8 KB  restored from version 2
          8  now  1.6 KB  restored from version 3
          9  now   400 B  restored from version 4
    --- status 0
    ");
    let seen = world.run(&["restore", PI, "--at", "2026-11-20T10:15:00Z", "--yes"]);
    assert_snapshot!(seen, @r"
    $ epitome restore 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --at 2026-11-20T10:15:00Z --yes
    restored  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    version   2, 7.8 KB
    verified  blake3 df2f69122efdd62c…
    before    kept as version 9; --at 9 brings it back
    --- status 0
    ");
    assert_eq!(fs::read(&path).expect("a session"), versions[1]);
}

/// What changed in each version of the session of pi.
fn described(world: &World) -> Vec<String> {
    let terminal = without_runs(&world.run(&["history", PI]));
    let lines = terminal.lines().filter_map(|line| line.split_once(" KB  "));
    lines.map(|(_, what)| what.to_owned()).collect()
}

/// The name of Gemini CLI's file has the beginning of the id, and the archive has the whole id.
#[test]
fn a_compacted_version_is_known_by_the_file_name_that_has_the_beginning_of_the_id() {
    let world = World::new();
    let session = fixtures::get("gemini", "pricing").bytes();
    let first = session.split(|byte| *byte == b'\n').next().expect("a line");
    let head: serde_json::Value = serde_json::from_slice(first).expect("JSON");
    let id = head["sessionId"].as_str().expect("an id");
    let chats = concat!(".gemini/", "tmp", "/project/chats");
    let path =
        world.write(&format!("{chats}/session-2026-11-20T23-12-{}.jsonl", &id[..8]), session);
    let keep = ["keep", "--all", "--once"];
    at(&world, "10:00", &keep);
    at(&world, "10:10", &["compact", path.to_str().expect("text"), "--keep-turns=1"]);
    at(&world, "10:20", &keep);
    let history = world.json(&["history", &id[..8], "--json"]);
    assert_eq!(history[0]["versions"][1]["reason"]["compacted"]["generation"], 1, "{history:?}");
}

/// It was compacted before it was first kept, or at a time that says nothing.
#[test]
fn a_version_that_the_archive_explains_was_compacted_by_epitome() {
    let small = ["compact", PI, "--keep-turns=1", "--count=estimate", "--recipe", "transcript"];
    let keep = ["keep", "--all", "--once"];
    let append = |path: &Path, line: &str| {
        let before = fs::read_to_string(path).expect("a session");
        fs::write(path, format!("{before}{line}\n")).expect("a session");
    };
    let world = World::new();
    let path = world.pi(PI, sessions::pi(PI));
    at(&world, "09:00", &small);
    append(&path, "{}");
    at(&world, "10:00", &keep);
    assert_eq!(described(&world), ["compacted by epitome (run [id]), first seen, 1.5 KB"]);

    let world = World::new();
    let path = world.pi(PI, sessions::pi(PI));
    at(&world, "10:00", &keep);
    // The clock is set back.
    at(&world, "09:00", &small);
    let compacted = fs::read_to_string(&path).expect("a session");
    append(&path, "{}");
    at(&world, "10:30", &keep);
    // Then the agent writes another last line.
    fs::write(&path, format!("{compacted}[]\n")).expect("a session");
    at(&world, "10:40", &keep);
    assert_eq!(
        described(&world),
        ["first seen, 7.7 KB", "compacted by epitome (run [id]), -6.2 KB", "rewritten, +0 B"]
    );
}

/// The clock is set back, and so is the time of a file whose length stays.
#[test]
fn a_clock_that_is_set_back_loses_no_version() {
    let world = World::new();
    let path = world.pi(PI, sessions::pi(PI));
    let first = fs::read(&path).expect("a session");
    let keep = ["keep", "--all", "--once"];
    at(&world, "12:00", &keep);
    let second = String::from_utf8(first.clone()).expect("text").replacen("user", "USER", 1);
    let file = fs::OpenOptions::new().write(true).open(&path).expect("a session");
    fs::write(&path, &second).expect("a session");
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("a time");
    at(&world, "09:00", &keep);
    let third = format!("{second}{{}}\n");
    fs::write(&path, &third).expect("a session");
    at(&world, "12:30", &keep);
    let history = world.json(&["history", PI, "--json"]);
    let versions = history[0]["versions"].as_array().expect("versions").clone();
    let numbers: Vec<u64> = versions.iter().filter_map(|it| it["version"].as_u64()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    for (at, expect) in [
        ("1", &first[..]),
        ("2", second.as_bytes()),
        ("3", third.as_bytes()),
        ("2026-11-20T09:30:00Z", second.as_bytes()),
        // Of all that was seen by then, the newest.
        ("2026-11-20T12:10:00Z", second.as_bytes()),
        ("2026-11-20T12:40:00Z", third.as_bytes()),
    ] {
        let out = world.home.join(format!("{}.jsonl", at.replace(':', "")));
        let out_name = out.to_str().expect("text");
        assert_eq!(world.status(&["restore", PI, "--at", at, "--out", out_name]), 0, "{at}");
        assert_eq!(fs::read(&out).expect("a version"), expect, "{at}");
    }
    assert_ne!(world.status(&["restore", PI, "--at", "2026-11-20T08:00:00Z"]), 0);
}

/// The session is gone, but a compacted version of it comes back: then so must what was removed.
#[test]
fn gc_keeps_what_a_compacted_version_needs() {
    let world = World::new();
    let versions = kept(&world);
    // An empty folder is no proof that a session is gone: its disk may not be there.
    fs::write(place(&world).with_file_name("other.jsonl"), &versions[0][..1]).expect("a file");
    for _ in 0..2 {
        assert_eq!(world.status(&["archive", "gc", "--grace", "0s", "--yes"]), 0);
    }
    assert_eq!(world.status(&["restore", PI, "--at", "3", "--yes"]), 0);
    assert_eq!(world.status(&["restore", PI, "--yes"]), 0);
    let path = place(&world);
    assert_eq!(fs::read(&path).expect("a session"), versions[1]);
}

#[test]
fn versions_that_were_replaced_long_ago_are_removed() {
    let world = World::new();
    let versions = kept(&world);
    assert_snapshot!(world.run(&["keep", "--prune"]), @r"
    $ epitome keep --prune
    no rule is set, so nothing is ever removed
    --- stderr
    `keep.days`, `keep.size` and `keep.projects` are rules: `epitome config`
    --- status 0
    ");
    // The session was deleted at 10:50, and its last content had been seen at 10:40.
    let prune = |time: &str, options: &[&str]| {
        let command = [&["keep", "--prune", "--set", "keep.days=30"][..], options].concat();
        let done = world.command(&command).env("EPITOME_NOW", time).output();
        shrinks(&world.terminal(&command, &done.expect("the program runs")))
    };
    let days_30 = "2026-12-20T10:35:00Z";
    let before = world.tree();
    assert_snapshot!(prune(days_30, &["--dry-run"]), @r"
    $ epitome keep --prune --set keep.days=30 --dry-run
    pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62  2 versions of it, 3 kept
    2 versions of 1 session would be removed; the vault: [shrinks]
    --- status 0
    ");
    assert_eq!(world.tree(), before);
    assert_snapshot!(prune(days_30, &[]), @r"
    $ epitome keep --prune --set keep.days=30
    pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62  2 versions of it, 3 kept
    2 versions of 1 session removed; the vault: [shrinks]
    --- status 0
    ");
    assert_snapshot!(without_runs(&world.run(&["history", PI])), @r"
    $ epitome history 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62  (deleted)  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    version  age    size  what changed
          3   1d  1.6 KB  compacted by epitome (run [id]), +1.6 KB
          4   1d   400 B  cut, -1.2 KB
          5   1d       -  deleted
    --- status 0
    ");
    for number in ["1", "2"] {
        assert_eq!(world.status(&["restore", PI, "--at", number, "--yes"]), 2, "{number}");
    }
    assert_eq!(world.status(&["restore", PI, "--at", "4", "--yes"]), 0);
    assert_eq!(fs::read(place(&world)).expect("a session"), versions[3]);
    assert_eq!(world.status(&["archive", "verify"]), 0);
    let late = ["keep", "--prune", "--dry-run", "--json", "--set", "keep.days=1"];
    world::check("prune.schema.json", &world.json(&late));
}

/// A keeper asks nothing, so the last content of a deleted session stays. `--prune` asks first.
#[test]
fn the_last_content_of_a_deleted_session_is_not_removed_without_a_question() {
    let world = World::new();
    let versions = kept(&world);
    let late = |command: &[&str]| {
        let command = [command, &["--set", "keep.days=1"]].concat();
        let done = world.command(&command).env("EPITOME_NOW", "2027-11-20T10:00:00Z").output();
        world.terminal(&command, &done.expect("the program runs"))
    };
    late(&["keep", "--all", "--once"]);
    assert_snapshot!(late(&["keep", "--prune"]), @r"
    $ epitome keep --prune --set keep.days=1
    --- stderr
    pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62  1 version of it, 1 kept
    nothing of 1 session would be kept any more, not even the newest version
    error: standard input is not a terminal: cannot ask for confirmation
      hint: --yes goes on without asking; nothing was changed
    --- status 2
    ");
    let history = world.json(&["history", PI, "--json"]);
    let stay = history[0]["versions"].as_array().expect("versions").iter();
    assert_eq!(stay.filter_map(|it| it["version"].as_u64()).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(world.status(&["restore", PI, "--at", "4", "--yes"]), 0);
    assert_eq!(fs::read(place(&world)).expect("a session"), versions[3]);
}

/// The keeper's clock was ten days behind when it saw the second version.
#[test]
fn a_clock_that_is_set_back_makes_no_version_older() {
    let world = World::new();
    let path = world.pi(PI, sessions::pi(PI));
    let keep = |day: &str| {
        let keep = ["keep", "--all", "--once", "--set", "keep.days=5"];
        let time = format!("2026-11-{day}T10:00:00Z");
        let done = world.command(&keep).env("EPITOME_NOW", time).output();
        assert!(done.expect("the program runs").status.success());
    };
    keep("20");
    fs::write(&path, &sessions::pi(PI)[..400]).expect("a session");
    keep("10");
    keep("20");
    assert_eq!(world.status(&["restore", PI, "--at", "1", "--yes"]), 0);
    assert_eq!(fs::read_to_string(&path).expect("a session"), sessions::pi(PI));
}

#[test]
fn the_oldest_versions_go_until_the_vault_is_small_enough() {
    let world = World::new();
    kept(&world);
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.run(&["keep", "--all", "--once"]);
    let prune = ["keep", "--prune", "--set", "keep.size=1"];
    assert_snapshot!(shrinks(&world.run(&prune)), @r"
    $ epitome keep --prune --set keep.size=1
    pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62  2 versions of it, 3 kept
    2 versions of 1 session removed; the vault: [shrinks]
    --- status 0
    ");
    // The newest version of a session that exists stays.
    fs::remove_file(&path).expect("a session");
    assert_eq!(world.status(&["restore", CLAUDE, "--at", "1", "--yes"]), 0);
    assert_eq!(fs::read(&path).expect("a session"), sessions::claude(CLAUDE).as_bytes());
    assert_snapshot!(world.run(&["keep", "--all", "--once", "--set", "keep.size=1"]), @r"
    $ epitome keep --all --once --set keep.size=1
    0 versions kept, of 1 file
    --- status 0
    ");
}

#[test]
fn only_the_projects_in_the_settings_are_kept() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.run(&["keep", "--all", "--once"]);
    let not = |folder: &str, command: &[&str]| {
        let setting = format!("keep.not_projects={folder}");
        world.run(&[command, &["--set", &setting]].concat())
    };
    // Not a snapshot: times are compressed with a version, so that a few bytes differ each time.
    let nothing = not("/elsewhere", &["keep", "--prune"]);
    assert!(nothing.contains("\nnothing removed; the vault has 3."), "{nothing}");
    assert!(nothing.ends_with(" KB\n--- status 0\n"), "{nothing}");
    assert_snapshot!(not("/**", &["keep", "--all", "--once"]), @r"
    $ epitome keep --all --once --set keep.not_projects=/**
    0 versions kept, of 0 files
    --- status 0
    ");
    let before = world.tree();
    assert_snapshot!(not("/**", &["keep", "--prune"]), @r"
    $ epitome keep --prune --set keep.not_projects=/**
    --- stderr
    claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4  1 version of it, none kept
    pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62  1 version of it, none kept
    nothing of 2 sessions would be kept any more, not even the newest version
    error: standard input is not a terminal: cannot ask for confirmation
      hint: --yes goes on without asking; nothing was changed
    --- status 2
    ");
    assert_eq!(world.tree(), before);
    assert_snapshot!(shrinks(&not("/**", &["keep", "--prune", "--yes"])), @r"
    $ epitome keep --prune --yes --set keep.not_projects=/**
    claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4  1 version of it, none kept
    pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62  1 version of it, none kept
    2 versions of 2 sessions removed; the vault: [shrinks]
    --- status 0
    ");
    assert_snapshot!(not("/{", &["keep", "--prune"]), @r"
    $ epitome keep --prune --set keep.not_projects=/{
    --- stderr
    error: keep.not_projects is not valid
      cause: error parsing glob '/{': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
    --- status 2
    ");
    assert_snapshot!(world.run(&["history", PI]), @r"
    $ epitome history 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    --- stderr
    error: no version of a session called `01a1fb3a-c450-731a-9250-9fa9d78b0d62` was kept
      hint: `epitome keep --all --once` keeps what is there now
    --- status 3
    ");
}

#[test]
fn patterns_of_projects_mean_what_they_say() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    world.run(&["keep", "--all", "--once"]);
    let versions = |setting: &str| {
        let report = world.json(&["keep", "--prune", "--dry-run", "--json", "--set", setting]);
        report[0]["versions"].as_u64().expect("a number")
    };
    for all in ["/", "*", "**", "/**", "/p", "/p/**", "/p/../p", "/./p/"] {
        assert_eq!(versions(&format!("keep.projects={all}")), 0, "{all}");
        assert_eq!(versions(&format!("keep.not_projects={all}")), 1, "{all}");
    }
}

#[test]
fn a_project_without_a_name_is_an_error() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    world.run(&["keep", "--all", "--once"]);
    let before = world.tree();
    for key in ["projects", "not_projects"] {
        for wrong in ["[]", "[\"\"]", "[\"/p\", \" \"]", ""] {
            let setting = format!("keep.{key}={wrong}");
            assert_eq!(world.status(&["keep", "--prune", "--set", &setting]), 2, "{setting}");
        }
    }
    assert_snapshot!(world.run(&["keep", "--prune", "--set", "keep.projects=[]"]), @r"
    $ epitome keep --prune --set keep.projects=[]
    --- stderr
    error: --set: keep.projects: the list is empty
      hint: leave the setting out for all projects, or name at least one folder
    --- status 2
    ");
    assert_snapshot!(world.run(&["keep", "--prune", "--set", "keep.projects=[\"\"]"]), @r#"
    $ epitome keep --prune --set keep.projects=[""]
    --- stderr
    error: --set: keep.projects: a folder in the list is empty
      hint: leave the setting out for all projects, or name at least one folder
    --- status 2
    "#);
    assert_eq!(world.tree(), before);
}

#[test]
fn only_prune_removes_sessions_of_other_projects() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    world.run(&["keep", "--all", "--once"]);
    world.run(&["keep", "--all", "--once", "--set", "keep.projects=/elsewhere"]);
    assert_eq!(world.status(&["history", PI]), 0);
}

#[test]
fn a_blank_name_means_no_session() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    world.run(&["keep", "--all", "--once"]);
    let before = world.tree();
    for name in ["", " "] {
        for command in [
            &["forget", name, "--yes"][..],
            &["history", name],
            &["restore", name, "--yes"],
            &["restore", name, "--at", "1", "--yes"],
        ] {
            assert_eq!(world.status(command), 2, "{command:?}");
        }
    }
    assert_snapshot!(world.run(&["forget", "", "--yes"]), @r"
    $ epitome forget  --yes
    --- stderr
    error: the name of the session is empty
    --- status 2
    ");
    assert_eq!(world.tree(), before);
}

#[test]
fn the_last_content_of_a_deleted_session_stays_in_a_small_vault() {
    let world = World::new();
    let versions = kept(&world);
    world.run(&["keep", "--prune", "--set", "keep.size=1"]);
    assert_eq!(world.status(&["restore", PI, "--at", "1", "--yes"]), 2);
    assert_eq!(world.status(&["restore", PI, "--at", "4", "--yes"]), 0);
    assert_eq!(fs::read(place(&world)).expect("a session"), versions[3]);
}

/// The output without the id of a run, which depends on the time.
fn without_runs(terminal: &str) -> String {
    terminal.lines().fold(String::new(), |text, line| match line.split_once("(run ") {
        Some((before, rest)) => format!("{text}{before}(run [id]{}\n", &rest[8..]),
        None => format!("{text}{line}\n"),
    })
}

#[test]
fn keep_says_what_it_would_keep_and_writes_nothing() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    let agent = sessions::claude(CLAUDE).replace("\"isSidechain\":false", "\"isSidechain\":true");
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.write(&format!(".claude/projects/-p/{CLAUDE}/subagents/agent-abc.jsonl"), agent);
    let before = world.tree();
    assert_snapshot!(world.run(&["keep"]), @r"
    $ epitome keep
    --- stderr
    error: no sessions selected; keep needs a filter or --all
      hint: `epitome keep --all --once` keeps what all agents have written until now
    --- status 2
    ");
    assert_snapshot!(world.run(&["keep", "--all", "--once", "--dry-run"]), @r"
    $ epitome keep --all --once --dry-run
    claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4  version 1  first seen, 22.5 KB
    claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 / agent-abc  version 1  first seen, 22.5 KB
    pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62  version 1  first seen, 7.7 KB
    3 versions would be kept, of 3 files
    --- status 0
    ");
    assert_eq!(world.tree(), before);
    assert_snapshot!(world.run(&["keep", "--once", "--agent", "claude"]), @r"
    $ epitome keep --once --agent claude
    claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4  version 1  first seen, 22.5 KB
    claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 / agent-abc  version 1  first seen, 22.5 KB
    2 versions kept, of 2 files
    --- status 0
    ");
    assert_snapshot!(world.run(&["keep", "--all", "--once"]), @r"
    $ epitome keep --all --once
    pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62  version 1  first seen, 7.7 KB
    1 version kept, of 3 files
    --- status 0
    ");
    assert_snapshot!(world.run(&["keep", "--all", "--once"]), @r"
    $ epitome keep --all --once
    0 versions kept, of 3 files
    --- status 0
    ");
    assert_snapshot!(world.run(&["history", CLAUDE]), @r"
    $ epitome history 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    version  age     size  what changed
          1  now  22.5 KB  first seen, 22.5 KB

    agent-abc  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4/subagents/agent-abc.jsonl
    version  age     size  what changed
          1  now  22.5 KB  first seen, 22.5 KB
    --- status 0
    ");
}

#[test]
fn a_session_that_was_never_kept_is_named() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    assert_snapshot!(world.run(&["history", PI]), @r"
    $ epitome history 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    --- stderr
    error: no version of a session called `01a1fb3a-c450-731a-9250-9fa9d78b0d62` was kept
      hint: `epitome keep --all --once` keeps what is there now
    --- status 3
    ");
    assert_snapshot!(world.run(&["restore", PI, "--at", "1"]), @r"
    $ epitome restore 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --at 1
    --- stderr
    error: no version of a session called `01a1fb3a-c450-731a-9250-9fa9d78b0d62` was kept
      hint: `epitome keep --all --once` keeps what is there now
    --- status 3
    ");
    world.run(&["keep", "--all", "--once"]);
    assert_snapshot!(world.run(&["restore", PI, "--at", "2"]), @r"
    $ epitome restore 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --at 2
    --- stderr
    error: no version 2 of this session was kept
      hint: `epitome history SESSION` lists the versions
    --- status 2
    ");
    assert_snapshot!(world.run(&["restore", PI, "--at", "yesterday"]), @r"
    $ epitome restore 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --at yesterday
    --- stderr
    error: `yesterday` is neither a version nor a time
      hint: write it like 7, 2h, 2026-01-31, 2026-01-31T14:00
    --- status 2
    ");
    assert_snapshot!(world.run(&["restore", PI, "--at", "2026-01-01"]), @r"
    $ epitome restore 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --at 2026-01-01
    --- stderr
    error: no version was seen by 2026-01-01T23:59:59.999999999Z
      hint: `epitome history SESSION` lists the versions
    --- status 2
    ");
    // Not the session is at fault, but the place of the copy.
    let copy = world.run(&["restore", PI, "--at", "1", "--out", "/nonexistent/copy"]);
    assert!(copy.ends_with("--- status 5\n"), "{copy}");
}

/// A sub-agent that did not exist when the version was seen.
#[test]
fn a_restored_version_names_the_files_that_are_deleted() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let keep = ["keep", "--all", "--once"];
    at(&world, "10:00", &keep);
    let agent = format!(".claude/projects/-p/{CLAUDE}/subagents/agent-abc.jsonl");
    let path = world.write(&agent, sessions::claude(CLAUDE).replace("Thanks.", "Done."));
    world.claude(CLAUDE, format!("{}{{}}\n", sessions::claude(CLAUDE)));
    at(&world, "10:10", &keep);
    let restore = ["restore", CLAUDE, "--at", "1"];
    let planned = world.json(&[&restore[..], &["--dry-run", "--json"]].concat());
    world::check("restore-version.schema.json", &planned);
    assert!(path.exists());
    let done = world.run(&[&restore[..], &["--yes"]].concat());
    let deleted = "deleted   agent-abc  did not exist then, before kept as version 1";
    assert!(done.contains(deleted), "{done}");
    assert!(!path.exists());
}

#[test]
fn deleted_sessions_are_listed_and_all_json_is_what_the_schemas_say() {
    let world = World::new();
    kept(&world);
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    assert_snapshot!(world.run(&["list", "--deleted"]), @r"
    $ epitome list --deleted
    agent  session   deleted   size  version  path
    pi     01a1fb3a       1d  400 B        4  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    `epitome restore SESSION --at VERSION` makes one again
    --- status 0
    ");
    let kept = world.json(&["keep", "--all", "--once", "--json"]);
    assert_eq!(kept.len(), 1, "Claude's session is new: {kept:?}");
    world::check("keep.schema.json", &kept);
    world::check("deleted.schema.json", &world.json(&["list", "--deleted", "--json"]));
    world::check("history.schema.json", &world.json(&["history", PI, "--json"]));
    for options in [&["--dry-run"][..], &["--out", "one.jsonl"], &["--yes"]] {
        let restore = [&["restore", PI, "--at", "1", "--json"][..], options].concat();
        world::check("restore-version.schema.json", &world.json(&restore));
    }
    world::check("history.schema.json", &world.json(&["history", PI, "--json"]));
    assert_snapshot!(world.run(&["list", "--deleted"]), @r"
    $ epitome list --deleted
    no deleted sessions
    --- status 0
    ");
}

#[test]
fn a_damaged_pack_of_the_vault_is_named_and_the_other_versions_come_back() {
    let world = World::new();
    kept(&world);
    assert_snapshot!(without_sizes(&world.run(&["archive", "verify"])), @r"
    $ epitome archive verify
    1 piece in 1 generation of 1 session: 6.2 KB, (packs) on disk
    3 chunks in 5 versions of 1 file in the vault: 9.4 KB, [size] on disk
    all bytes match their hashes
    --- status 0
    ");
    assert_snapshot!(without_sizes(&world.run(&["archive", "ls"])), @r"
    $ epitome archive ls
    agent  session                                   age  recipe        disk      after          archive  file
    pi     01a1fb3a-c450-731a-9250-9fa9d78b0d62  #1   1d  transcript  7.8 KB  →  1.6 KB  -79.1%  (pack)  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl (gone)
    1 generation of 1 session, (packs) on disk
    vault: versions of 1 file in 5 packs, [size] on disk
    --- status 0
    ");
    let vault = world.home.join(".local/share/epitome/vault");
    let folders = fs::read_dir(&vault).expect("a vault").flatten();
    let machine = folders.map(|entry| entry.path()).find(|path| path.is_dir()).expect("a machine");
    let pack = machine.join("000003.pack");
    let mut bytes = fs::read(&pack).expect("a pack");
    bytes[100] ^= 1;
    fs::write(&pack, bytes).expect("a pack");
    let name = machine.file_name().expect("a name").to_string_lossy().into_owned();
    let without_hashes = |terminal: String| {
        let words = without_sizes(&terminal).replace(&name, "[machine]");
        words
            .split(' ')
            .map(|word| if word.len() == 64 { "[hash]" } else { word })
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_snapshot!(without_hashes(world.run(&["archive", "verify"])), @r"
    $ epitome archive verify
    1 piece in 1 generation of 1 session: 6.2 KB, (packs) on disk
    2 chunks in 5 versions of 1 file in the vault: 7.8 KB, [size] on disk
    damaged  the bytes [hash] are damaged: [home]/.local/share/epitome/vault/[machine]/000003.pack
    damaged  version 3 cannot be restored: [home]/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    damaged  version 4 cannot be restored: [home]/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    --- stderr
    error: the archive has 3 faults
      hint: everything else can be read; copy the damaged files back from a backup if there is one
    --- status 5
    ");
    assert_snapshot!(without_hashes(world.run(&["restore", PI, "--at", "3", "--yes"])), @r"
    $ epitome restore 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --at 3 --yes
    --- stderr
    error: the bytes [hash] are damaged: [home]/.local/share/epitome/vault/[machine]/000003.pack
      hint: `epitome archive verify` lists what is damaged
    --- status 5
    ");
    // If the list of versions in a pack is damaged, its versions may have been kept.
    let last = machine.join("000004.pack");
    let mut bytes = fs::read(&last).expect("a pack");
    let list = bytes.len() - 200;
    bytes[list] ^= 0xff;
    fs::write(&last, &bytes).expect("a pack");
    let lost = world.run(&["restore", PI, "--at", "9", "--yes"]);
    let what = "no version 9 of this session was kept, or it is in a part of the vault";
    assert!(lost.contains(what) && lost.ends_with("--- status 5\n"), "{lost}");
    bytes[list] ^= 0xff;
    fs::write(&last, &bytes).expect("a pack");
    // Version 4 is the beginning of version 3.
    for (number, expect) in [("1", 0), ("2", 0), ("4", 5)] {
        assert_eq!(world.status(&["restore", PI, "--at", number, "--yes"]), expect, "{number}");
    }
}

/// The output without the size of the vault, which depends on the length of paths.
fn without_sizes(terminal: &str) -> String {
    let lines = terminal.lines().map(|line| match line.rsplit_once(", ") {
        Some((before, rest)) if line.contains("vault") && rest.ends_with(" on disk") => {
            format!("{before}, [size] on disk\n")
        }
        Some(_) | None => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn rows_of_a_database_are_kept_as_lines() {
    let world = World::new();
    world.opencode();
    let kept = world.json(&["keep", "--all", "--once", "--json"]);
    let own = kept.iter().find(|it| it.get("part").is_none()).expect("a session");
    let id = own["session"].as_str().expect("an id");
    assert_eq!(world.json(&["keep", "--all", "--once", "--json"]), [] as [serde_json::Value; 0]);
    let out = ["restore", id, "--at", "1", "--out", "one.jsonl"];
    assert_eq!(world.status(&out), 0);
    let read = world.json(&["inspect", "one.jsonl", "--json", "--count=estimate"]);
    assert_eq!(read[0]["id"], own["session"]);
    assert_eq!(world.status(&["restore", id, "--at", "1", "--yes"]), 0, "it is the same");
}

/// A `systemctl` that notes its arguments, in a folder for `PATH`.
#[cfg(target_os = "linux")]
fn stand_in(world: &World) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = world.write("bin/systemctl", "#!/bin/sh\necho \"$@\" >> \"$HOME/called\"\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    world.home.join("bin")
}

#[test]
#[cfg(target_os = "linux")]
fn a_service_is_installed_started_and_removed_to_the_byte() {
    let world = World::new();
    let bin = stand_in(&world);
    let run = |args: &[&str]| {
        let out = world.command(args).env("PATH", &bin).output().expect("the program runs");
        let program = env!("CARGO_BIN_EXE_epitome");
        world.terminal(args, &out).replace(program, "[epitome]")
    };
    assert_snapshot!(run(&["install", "--keep", "--yes"]), @r#"
    $ epitome install --keep --yes
    installed: every version of every session is kept, by ~/.config/systemd/user/epitome-keep.service
    --- stderr
    ~/.config/systemd/user/epitome-keep.service will be created:
      + # Written by `epitome install --keep`; `epitome uninstall --keep` removes it.
      + [Unit]
      + Description=epitome keep: every version of the sessions of coding agents
      + 
      + [Service]
      + ExecStart="[epitome]" "keep" "--all"
      + StandardOutput=null
      + Restart=on-failure
      + RestartSec=60
      + Nice=10
      + 
      + [Install]
      + WantedBy=default.target
    then runs: systemctl --user enable --now epitome-keep.service
    --- status 0
    "#);
    assert_snapshot!(run(&["doctor"]), @r"
    $ epitome doctor
    no agent that epitome knows is on this machine
    epitome keep  does not run
      installed: service in ~/.config/systemd/user/epitome-keep.service
      the service does not run: no version is kept
        → systemctl --user enable --now epitome-keep.service

    1 thing to mend
    --- status 0
    ");
    world::check("doctor.schema.json", &world.json(&["doctor", "--json"]));
    assert_snapshot!(run(&["uninstall", "--yes"]), @r"
    $ epitome uninstall --yes
    uninstalled: the service that keeps versions; the versions stay
    --- stderr
    first runs: systemctl --user disable --now epitome-keep.service
    ~/.config/systemd/user/epitome-keep.service will be removed
    --- status 0
    ");
    let called = fs::read_to_string(world.home.join("called")).expect("it was called");
    let unit = "epitome-keep.service";
    let expect = format!("--user enable --now {unit}\n--user disable --now {unit}\n");
    assert_eq!(called, expect);
    for folder in [".config", ".local/share/epitome"] {
        assert!(!world.home.join(folder).exists(), "{folder} is left");
    }
    assert_snapshot!(run(&["uninstall", "--keep"]), @r"
    $ epitome uninstall --keep
    nothing is installed
    --- status 0
    ");
}

#[test]
#[cfg(target_os = "linux")]
fn without_systemctl_the_command_to_start_the_service_is_still_to_do() {
    let world = World::new();
    let installed = world.run(&["install", "--keep", "--yes"]);
    let expect = "still to do: systemctl --user enable --now epitome-keep.service";
    assert!(installed.contains(expect), "{installed}");
    assert!(world.run(&["uninstall", "--keep", "--yes"]).contains("it was not stopped"));
}

/// A version is restored only where the agent lists it: that has to be so for every agent.
#[test]
fn a_deleted_file_of_every_agent_comes_back() {
    let world = sessions::of_all_agents();
    at(&world, "10:00", &["keep", "--all", "--once"]);
    let mut agents = std::collections::BTreeSet::new();
    for session in world.json(&["list", "--json"]) {
        let path = PathBuf::from(session["session"].as_str().expect("an address"));
        if !path.is_file() {
            continue;
        }
        let bytes = fs::read(&path).expect("a session");
        fs::remove_file(&path).expect("deleted");
        let restored = world.run(&["restore", path.to_str().expect("text"), "--at", "1", "--yes"]);
        assert!(restored.ends_with("--- status 0\n"), "{restored}");
        assert_eq!(fs::read(&path).expect("a session"), bytes, "{}", path.display());
        agents.insert(session["agent"].as_str().expect("a name").to_owned());
    }
    let expect = ["amp", "claude", "codex", "copilot", "cursor", "gemini", "pi", "qwen"];
    assert_eq!(agents.into_iter().collect::<Vec<_>>(), expect);
}

#[test]
fn a_version_is_of_one_session() {
    let world = World::new();
    kept(&world);
    for which in [&["--all"][..], &["--since", "1h"], &["--run", "r1"]] {
        let restore = [&["restore", "--at", "1", "--yes"], which].concat();
        assert_eq!(world.status(&restore), 2, "{which:?}");
    }
}
