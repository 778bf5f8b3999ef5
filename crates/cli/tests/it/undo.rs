//! `epitome log`, `epitome undo` and `epitome restore` for several sessions.

use std::fs;
use std::path::{Path, PathBuf};

use crate::world::sessions::{self, CLAUDE, OTHER, PI};
use crate::world::{self, World};
use insta::assert_snapshot;

const SMALL: [&str; 4] = ["--keep-turns=1", "--count=estimate", "--recipe", "transcript"];

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a session")
}

/// Three sessions of two agents, one with a sub-agent.
fn three(world: &World) -> Vec<(PathBuf, String)> {
    let agent = sessions::claude(CLAUDE).replace("\"isSidechain\":false", "\"isSidechain\":true");
    let name = format!(".claude/projects/-p/{CLAUDE}/subagents/agent-abc.jsonl");
    vec![
        (world.claude(CLAUDE, sessions::claude(CLAUDE)), sessions::claude(CLAUDE)),
        (world.claude(OTHER, sessions::claude(OTHER)), sessions::claude(OTHER)),
        (world.pi(PI, sessions::pi(PI)), sessions::pi(PI)),
        (world.write(&name, &agent), agent),
    ]
}

/// For each file, whether it is as the agent wrote it.
fn whole(files: &[(PathBuf, String)]) -> Vec<bool> {
    files.iter().map(|(path, was)| read(path) == *was).collect()
}

/// Runs a command at a given time: the id of a run is derived from its time.
fn at(world: &World, time: &str, args: &[&str]) {
    let done = world.command(args).env("EPITOME_NOW", time).output().expect("the program runs");
    assert!(done.status.success(), "{args:?}: {done:?}");
}

/// The output without the ids of runs, which are different each time.
fn run_without_ids(world: &World, args: &[&str]) -> String {
    let log = world.json(&["log", "--json"]);
    let mut terminal = world.run(args);
    for (n, run) in log.iter().enumerate() {
        let id = run["run"].as_str().expect("an id");
        terminal = terminal.replace(id, &format!("[run-{n}]"));
    }
    terminal
}

#[test]
fn the_last_run_is_undone_as_one() {
    let world = World::new();
    let files = three(&world);
    assert_snapshot!(world.run(&["undo"]), @r"
    $ epitome undo
    nothing to undo
    --- status 0
    ");
    assert_snapshot!(world.run(&["log"]), @r"
    $ epitome log
    no runs
    --- status 0
    ");
    at(&world, "2026-11-21T10:00:00Z", &[&["compact", PI][..], &SMALL].concat());
    assert_eq!(world.status(&[&["compact", CLAUDE, OTHER][..], &SMALL].concat()), 0);
    assert_eq!(whole(&files), [false; 4]);
    assert_snapshot!(run_without_ids(&world, &["log"]), @r"
    $ epitome log
    run       age  by       recipe      sessions  messages     after             disk       after
    [run-0]  now  compact  transcript         2     11.0k  →    408  -96.3%  67.4 KB  →  18.9 KB
    [run-1]   2h  compact  transcript         1      2.4k  →     30  -98.8%   7.7 KB  →   1.5 KB
    --- status 0
    ");
    let log = world.json(&["log", "--json"]);
    world::check("log.schema.json", &log);
    assert_eq!(log.len(), 2);
    assert_eq!(log[0]["sessions"].as_array().map(Vec::len), Some(2));
    let small = world.tree();
    assert_snapshot!(run_without_ids(&world, &["undo", "--dry-run"]), @r"
    $ epitome undo --dry-run
    would be undone  ~/.claude/projects/-p/0f3c1111-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl  6.3 KB → 22.5 KB
    would be undone  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl  12.6 KB → 44.9 KB
    2 sessions would be undone, disk 18.9 KB → 67.4 KB; nothing was written
    --- stderr
    run [run-0]: compact, now, 2 sessions
    --- status 0
    ");
    assert_eq!(world.tree(), small);
    // Two sessions need a confirmation, which is impossible without a terminal.
    let output = world.run(&["undo"]);
    assert!(output.contains("--yes") && output.ends_with("--- status 2\n"), "{output}");
    assert_eq!(world.tree(), small);
    assert_snapshot!(run_without_ids(&world, &["undo", "--yes"]), @r"
    $ epitome undo --yes
    undone  ~/.claude/projects/-p/0f3c1111-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl  6.3 KB → 22.5 KB
    undone  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl  12.6 KB → 44.9 KB
    2 sessions undone, disk 18.9 KB → 67.4 KB
    --- stderr
    run [run-0]: compact, now, 2 sessions
    2 sessions would be undone: disk 18.9 KB → 67.4 KB
    --- status 0
    ");
    assert_eq!(whole(&files), [true, true, false, true]);
    // The run before it is now the last one that can be undone. For one session there is no
    // question.
    world::check("restore.schema.json", &world.json(&["undo", "--json"]));
    assert_eq!(whole(&files), [true; 4]);
    assert_snapshot!(run_without_ids(&world, &["log"]), @r"
    $ epitome log
    run       age  by       recipe      sessions  messages     after             disk       after
    [run-0]  now  compact  transcript         2     11.0k  →    408  -96.3%  67.4 KB  →  18.9 KB  undone
    [run-1]   2h  compact  transcript         1      2.4k  →     30  -98.8%   7.7 KB  →   1.5 KB  undone
    --- status 0
    ");
    assert_snapshot!(world.run(&["undo"]), @r"
    $ epitome undo
    nothing to undo
    --- status 0
    ");
}

#[test]
fn the_log_names_sessions_of_a_run_that_are_gone() {
    let world = World::new();
    let files = three(&world);
    assert_eq!(world.status(&[&["compact", OTHER, PI][..], &SMALL].concat()), 0);
    let state = || {
        let log = world.run(&["log"]);
        let line = log.lines().find(|line| line.contains("transcript")).expect("a run").to_owned();
        line.rsplit("KB").next().unwrap_or_default().trim().to_owned()
    };
    assert_eq!(state(), "");
    let compacted = read(&files[1].0);
    fs::remove_file(&files[1].0).expect("a session");
    assert_eq!(state(), "1 gone");
    assert_eq!(world.status(&["restore", PI]), 0);
    assert_eq!(state(), "undone, 1 gone");
    assert_eq!(world.json(&["log", "--json"])[0]["state"], "undone", "of those that can be read");
    fs::write(&files[1].0, compacted).expect("a session");
    assert_eq!(state(), "partly undone");
    files[1..3].iter().for_each(|(path, _)| fs::remove_file(path).expect("a session"));
    assert_eq!(state(), "sessions gone");
}

#[test]
fn what_cannot_be_undone_is_named_and_the_others_are() {
    let world = World::new();
    let third = OTHER.replace("1111", "2222");
    let mut files = three(&world);
    files.push((world.claude(&third, sessions::claude(&third)), sessions::claude(&third)));
    let small = ["--count=estimate", "--recipe", "transcript"];
    let sessions = ["compact", CLAUDE, OTHER, &third, "--keep-turns=2"];
    at(&world, "2026-11-21T10:00:00Z", &[&sessions[..], &small].concat());
    assert_eq!(whole(&files), [false, false, true, false, false]);
    let first = world.json(&["log", "--json"])[0]["run"].as_str().expect("an id").to_owned();
    // One session is compacted again, one is edited, and text that was appended to one is kept.
    assert_eq!(world.status(&[&["compact", OTHER, "--keep-turns=1"][..], &small].concat()), 0);
    let by_hand = &files[4].0;
    fs::write(by_hand, read(by_hand).replace("Thanks.", "Thank you.")).expect("a session");
    let more = "{\"type\":\"summary\",\"summary\":\"more\"}\n";
    fs::write(&files[0].0, read(&files[0].0) + more).expect("a session");
    let before = (read(&files[1].0), read(by_hand));
    assert_snapshot!(run_without_ids(&world, &["undo", &first, "--yes"]), @r"
    $ epitome undo [run-1] --yes
    undone  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl  17.9 KB → 45.0 KB
    1 session undone, disk 17.9 KB → 45.0 KB
    --- stderr
    run [run-1]: compact, 2h, 3 sessions
    skipped: the session was compacted again since that run: [home]/.claude/projects/-p/0f3c1111-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    skipped: the session was changed by another program since that run: [home]/.claude/projects/-p/0f3c2222-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    error: 2 sessions could not be undone
      hint: `epitome restore SESSION` restores what is still as epitome left it
    --- status 4
    ");
    assert_eq!((read(&files[1].0), read(by_hand)), before);
    assert_eq!(read(&files[0].0), files[0].1.clone() + more);
    assert_eq!(read(&files[3].0), files[3].1);
    assert_snapshot!(world.run(&["undo", "zzzz"]), @r"
    $ epitome undo zzzz
    --- stderr
    error: no run has the id `zzzz`
      hint: `epitome log` lists the runs
    --- status 2
    ");
}

#[test]
fn many_are_restored_by_what_is_said_of_them() {
    let world = World::new();
    let files = three(&world);
    assert_eq!(world.status(&[&["compact", "--all"][..], &SMALL].concat()), 0);
    assert_eq!(whole(&files), [false; 4]);
    let small = world.tree();
    for (args, status) in [
        (&["restore"][..], 2),
        (&["restore", "--yes"], 2),
        (&["restore", "--all"], 2),
        (&["restore", CLAUDE, "--all"], 2),
        (&["restore", "--all", "--out", "x"], 2),
        (&["restore", "--run", "zzzz"], 2),
        (&["restore", "--all", "--dry-run"], 0),
        (&["restore", "--all", "--yes", "--project", "/elsewhere"], 0),
        (&["restore", "--all", "--yes", "--agent", "codex"], 0),
    ] {
        assert_eq!(world.status(args), status, "{args:?}");
    }
    assert_eq!(world.tree(), small);
    assert_snapshot!(run_without_ids(&world, &["restore", "--all", "--dry-run"]), @r"
    $ epitome restore --all --dry-run
    would be restored  ~/.claude/projects/-p/0f3c1111-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl  6.3 KB → 22.5 KB
    would be restored  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl  12.6 KB → 44.9 KB
    would be restored  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl  1.5 KB → 7.7 KB
    3 sessions would be restored, disk 20.4 KB → 75.1 KB; nothing was written
    --- status 0
    ");
    assert_eq!(world.status(&["restore", "--all", "--agent", "pi"]), 0);
    assert_eq!(whole(&files), [false, false, true, false]);
    let run = world.json(&["log", "--json"])[0]["run"].as_str().expect("an id").to_owned();
    assert_eq!(world.json(&["log", "--json"])[0]["state"], "partly-undone");
    assert_snapshot!(run_without_ids(&world, &["restore", "--run", &run, "--yes"]), @r"
    $ epitome restore --run [run-0] --yes
    restored  ~/.claude/projects/-p/0f3c1111-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl  6.3 KB → 22.5 KB
    restored  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl  12.6 KB → 44.9 KB
    2 sessions restored, disk 18.9 KB → 67.4 KB
    --- stderr
    2 sessions would be restored: disk 18.9 KB → 67.4 KB
    --- status 0
    ");
    assert_eq!(whole(&files), [true; 4]);
    assert_eq!(world.status(&[&["compact", "--all"][..], &SMALL].concat()), 0);
    world::check(
        "restore.schema.json",
        &world.json(&["restore", "--since", "1h", "--yes", "--json"]),
    );
    assert_eq!(whole(&files), [true; 4]);
}

/// A reader that closes the output after the first line does not stop the restore of the others.
#[cfg(unix)]
#[test]
fn all_sessions_are_undone_whoever_reads_of_it() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let world = World::new();
    let files = three(&world);
    let small = [&["compact", "--all"][..], &SMALL].concat();
    for verb in [&["undo", "--yes"][..], &["restore", "--all", "--yes"]] {
        assert_eq!(world.status(&small), 0);
        assert_eq!(whole(&files), [false; 4]);
        let mut command = world.command(verb);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
        lines.read_line(&mut line).expect("a line");
        drop(lines);
        child.wait().expect("it ends");
        assert_eq!(whole(&files), [true; 4]);
    }
}
