//! `epitome archive` on the command line.

use std::fs;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, PI};
use insta::assert_snapshot;

fn compacted() -> World {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.pi(PI, sessions::pi(PI));
    for id in [CLAUDE, PI] {
        world.run(&["compact", id, "--keep-turns=1", "--count=estimate", "--recipe=transcript"]);
    }
    world
}

#[test]
fn it_lists_what_was_compacted() {
    assert_snapshot!(World::new().run(&["archive", "ls"]), @r"
    $ epitome archive ls
    the archive is empty
    --- status 0
    ");
    let world = compacted();
    assert_snapshot!(world.run(&["archive", "ls"]), @r"
    $ epitome archive ls
    agent   session                                   age  recipe         disk      after          archive  file
    claude  0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4  #1  now  transcript  22.5 KB  →  6.3 KB  -72.0%  (pack)  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    pi      01a1fb3a-c450-731a-9250-9fa9d78b0d62  #1  now  transcript   7.7 KB  →  1.5 KB  -80.4%  (pack)  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    2 generations of 2 sessions, (packs) on disk
    --- status 0
    ");
    let objects = world.json(&["archive", "ls", "--json"]);
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0]["generation"], 1);
    let stored = |name: &str| objects.iter().map(|it| it[name].as_u64().unwrap_or(0)).sum::<u64>();
    assert!(stored("stored_bytes") > 0);
    assert_eq!(stored("stored_bytes"), stored("session_stored_bytes"));
    assert_eq!(objects[0]["archive_stored_bytes"], stored("stored_bytes"));
}

#[test]
fn it_says_whether_every_byte_is_there() {
    let world = compacted();
    assert!(world.run(&["archive", "verify"]).ends_with("hashes\n--- status 0\n"));
    let pack = world.home.join(format!(".local/share/epitome/archive/claude/{CLAUDE}/000001.pack"));
    fs::write(&pack, "damaged").expect("a pack");
    assert_snapshot!(world.run(&["archive", "verify"]), @r"
    $ epitome archive verify
    1 piece in 2 generations of 2 sessions: 6.2 KB, (packs) on disk
    damaged  nothing of this part of the archive can be read: [home]/.local/share/epitome/archive/claude/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4/000001.pack
    --- stderr
    error: the archive has 1 fault
      hint: everything else can be read; copy the damaged files back from a backup if there is one
    --- status 5
    ");
}

#[test]
fn it_removes_only_what_no_session_refers_to_and_says_so_first() {
    let world = compacted();
    assert_snapshot!(world.run(&["archive", "gc", "--grace=0d"]), @r"
    $ epitome archive gc --grace=0d
    nothing to remove
    2 sessions kept
    --- status 0
    ");
    // In JSON, a line is a session.
    assert_snapshot!(world.run(&["archive", "gc", "--json"]), @r"
    $ epitome archive gc --json
    --- stderr
    nothing to remove
    2 sessions kept
    --- status 0
    ");
    let session = world.home.join(format!(".claude/projects/-p/{CLAUDE}.jsonl"));
    world.write(".claude/projects/-p/other.jsonl", "{}\n");
    // A session whose file was moved still exists.
    let moved = world.home.join(".claude/projects/-q");
    fs::create_dir_all(&moved).expect("a folder");
    fs::rename(&session, moved.join(format!("{CLAUDE}.jsonl"))).expect("a move");
    assert!(world.run(&["archive", "gc", "--grace=0d"]).contains("nothing to remove"));
    fs::remove_dir_all(&moved).expect("a folder");
    assert_snapshot!(world.run(&["archive", "gc", "--yes"]), @r"
    $ epitome archive gc --yes
    nothing to remove
    2 sessions kept, 1 generation unneeded but younger than the grace period of 14d (`--grace 0s` removes them too)
    --- status 0
    ");
    let output = world.run(&["archive", "gc", "--grace=0d"]);
    assert!(output.contains("would move to the trash 1 generation of 1 session,"), "{output}");
    assert!(output.contains("to do this: `epitome archive gc --grace 0s --yes`"), "{output}");
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 2);
    let done = world.run(&["archive", "gc", "--grace=0d", "--yes"]);
    assert!(done.contains("moved to the trash 1 generation of 1 session,"), "{done}");
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 1);
    let trash = world.home.join(".local/share/epitome/archive/.trash");
    assert_eq!(fs::read_dir(&trash).expect("a folder").count(), 1);
    let emptied = world.run(&["archive", "gc", "--grace=0d", "--yes"]);
    assert!(emptied.contains("deleted 1 generation from the trash,"), "{emptied}");
    assert_eq!(fs::read_dir(&trash).expect("a folder").count(), 0);
}

/// Sessions in places that cannot be read may need what would be removed.
#[test]
fn it_keeps_what_it_cannot_prove_to_be_unneeded() {
    let world = compacted();
    let gc = ["archive", "gc", "--grace=0d", "--yes"];
    let claude = world.home.join(".claude/projects/-p").join(format!("{CLAUDE}.jsonl"));
    let away = world.home.join("away.jsonl");
    fs::rename(&claude, &away).expect("a move");
    world.claude("other", "{}\n");
    // A database that cannot be read.
    let database = world.write(".local/share/opencode/opencode.db", b"SQLite format 3\0 torn");
    assert_snapshot!(world.run(&gc), @r"
    $ epitome archive gc --grace=0d --yes
    nothing to remove
    2 sessions kept
    not proved  cannot read the database: [home]/.local/share/opencode/opencode.db: file is not a database: Error code 26: file is not a database
    --- status 0
    ");
    fs::remove_file(&database).expect("a file");
    // A missing home of an agent may be on a disk that is not mounted.
    fs::remove_dir_all(world.home.join(".claude")).expect("a folder");
    assert_snapshot!(world.run(&gc), @r"
    $ epitome archive gc --grace=0d --yes
    nothing to remove
    2 sessions kept
    not proved  cannot read the folder: [home]/.claude/projects/-p: No such file or directory (os error 2)
    --- status 0
    ");
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 2);
    let back = world.claude(CLAUDE, fs::read(&away).expect("a session"));
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    assert_eq!(fs::read_to_string(back).expect("a session"), sessions::claude(CLAUDE));
}

#[test]
fn what_sub_agents_did_is_kept_as_long_as_their_session() {
    let world = World::new();
    let recorded = fixtures::get("claude", "pricing");
    let old = world.home.join(".claude/projects/-old");
    let id = "01194376-708b-4dbc-a469-b0821ec784c3";
    world.write(&format!(".claude/projects/-old/{id}.jsonl"), recorded.bytes());
    for agent in recorded.sub_agents() {
        let name = agent.file_name().and_then(|it| it.to_str()).expect("a name");
        let name = format!(".claude/projects/-old/{id}/subagents/{name}");
        world.write(&name, fs::read(&agent).expect("recorded"));
    }
    let compact = ["compact", id, "--keep-turns=0", "--count=estimate", "--recipe=transcript"];
    assert_eq!(world.status(&compact), 0);
    let packs = world.json(&["archive", "ls", "--json"]).len();
    assert!(packs > 1, "a sub-agent is compacted, too");
    fs::rename(&old, world.home.join(".claude/projects/-new")).expect("a move");
    let output = world.run(&["archive", "gc", "--grace=0d", "--yes"]);
    assert!(output.contains("nothing to remove"), "{output}");
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), packs);
    // The session is found at its new path, and once it is restored, its generations can be
    // removed.
    assert_eq!(world.status(&["restore", id]), 0);
    assert_eq!(world.status(&["archive", "gc", "--grace=0d", "--yes"]), 0);
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 0);
}

#[test]
fn what_is_restored_leaves_the_archive() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    for _ in 0..3 {
        for args in
            [&["compact", CLAUDE, "--keep-turns=1", "--count=estimate"][..], &["restore", CLAUDE]]
        {
            assert_eq!(world.status(args), 0);
        }
    }
    assert_eq!(fs::read_to_string(&path).expect("a session"), sessions::claude(CLAUDE));
    // The same bytes are stored once, however often the session is compacted.
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 1);
    let output = world.run(&["archive", "gc", "--grace=0d", "--yes"]);
    assert!(output.contains("moved to the trash 1 generation of 1 session"), "{output}");
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 0);
    assert_eq!(world.run(&["archive", "verify"]).matches("--- status 0").count(), 1);
    // A session that is compacted again needs the newer generation.
    for args in [&["compact", CLAUDE][..], &["restore", CLAUDE], &["compact", CLAUDE]] {
        assert_eq!(world.status(args), 0);
    }
    assert_eq!(world.status(&["archive", "gc", "--grace=0d", "--yes"]), 0);
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 1);
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    assert_eq!(fs::read_to_string(&path).expect("a session"), sessions::claude(CLAUDE));
}

/// A copy outside of the agents' homes is only found by the path in its generation.
#[test]
fn a_copy_that_was_written_with_out_is_restored_after_the_session_was() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let compact = ["compact", CLAUDE, "--keep-turns=1", "--count=estimate"];
    assert_eq!(world.status(&[&compact[..], &["--out", "x.jsonl"]].concat()), 0);
    assert_eq!(world.status(&compact), 0);
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    assert_eq!(fs::read_to_string(&path).expect("a session"), sessions::claude(CLAUDE));
    for _ in 0..3 {
        assert_eq!(world.status(&["archive", "gc", "--grace=0s", "--yes"]), 0);
    }
    let copy = world.home.join("x.jsonl");
    assert_ne!(fs::read_to_string(&copy).expect("a copy"), sessions::claude(CLAUDE));
    let restored = world.run(&["restore", "x.jsonl"]);
    assert_eq!(fs::read_to_string(&copy).expect("a copy"), sessions::claude(CLAUDE), "{restored}");
}

#[test]
fn a_sessions_part_is_removed_only_after_a_question() {
    let world = compacted();
    assert_snapshot!(world.run(&["archive", "rm", "0f3c"]), @r"
    $ epitome archive rm 0f3c
    --- stderr
    error: standard input is not a terminal: cannot ask for confirmation
      hint: --yes goes on without asking; nothing was changed
    --- status 2
    ");
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 2);
    let removed = world.run(&["archive", "rm", "0f3c", "--yes"]);
    assert!(removed.contains("moved to the trash 1 generation of 0f3c9a52"), "{removed}");
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 1);
    assert_eq!(world.status(&["restore", CLAUDE]), 5);
}

#[test]
fn a_session_is_carried_to_another_machine() {
    let world = compacted();
    let original = sessions::claude(CLAUDE);
    let exported = world.run(&["archive", "export", "0f3c", "--out", "part.tar"]);
    assert!(exported.contains("exported 1 generation to part.tar"), "{exported}");
    let other = World::new();
    let small = fs::read(world.home.join(format!(".claude/projects/-p/{CLAUDE}.jsonl")));
    let path = other.claude(CLAUDE, small.expect("a session"));
    let tar = fs::read(world.home.join("part.tar")).expect("a file");
    let imported = other.run_with(&["archive", "import", "-"], &tar);
    assert!(imported.contains("imported 1 generation, 0 were here already"), "{imported}");
    assert!(other.run_with(&["archive", "import", "-"], &tar).contains("0 generations, 1 were"));
    let small = fs::read(&path).expect("a session");
    assert_snapshot!(other.run(&["restore", CLAUDE]), @r"
    $ epitome restore 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    --- stderr
    error: standard input is not a terminal: cannot ask for confirmation
      hint: --yes goes on without asking; nothing was changed
    --- status 2
    ");
    assert_eq!(fs::read(&path).expect("a session"), small);
    let dry = other.run(&["restore", CLAUDE, "--dry-run"]);
    assert!(dry.contains("generation 1 would be used"), "{dry}");
    let done = other.run(&["restore", CLAUDE, "--yes"]);
    assert!(done.ends_with("--- status 0\n") && done.contains("1 was used"), "{done}");
    assert_eq!(fs::read_to_string(path).expect("a session"), original);
    // Neither the session nor any of its files exists.
    let third = World::new();
    let there = world.home.join(format!(".claude/projects/-p/{CLAUDE}.jsonl"));
    fs::remove_file(there).expect("a session");
    assert_snapshot!(third.run_with(&["archive", "import", "-"], &tar), @r"
    $ epitome archive import -
    --- stderr
    refused  claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 #1 joins neither the archive nor the session's file: not imported
    error: nothing in it joins the archive or a session of this machine; nothing was imported
      hint: copy the session to this machine first, or name its file with --session FILE
    --- status 4
    ");
    other.write("no.tar", "this is no tar file");
    assert_snapshot!(other.run(&["archive", "import", "no.tar"]), @r"
    $ epitome archive import no.tar
    --- stderr
    error: not an archive export
      cause: failed to read entire block
    --- status 5
    ");
    assert_snapshot!(other.run(&["archive", "export", "nobody"]), @r"
    $ epitome archive export nobody
    --- stderr
    error: no session is called `nobody`
      hint: `epitome list` shows the sessions of this machine; a path works too
    --- status 3
    ");
}

/// An empty folder in an agent's home may be the mount point of a missing disk.
#[test]
fn what_was_in_a_folder_that_is_empty_is_kept() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.write(".claude/projects/-q/other.jsonl", sessions::claude(PI).replace(CLAUDE, PI));
    assert_eq!(world.status(&["compact", CLAUDE, "--keep-turns=1", "--count=estimate"]), 0);
    let folder = world.home.join(".claude/projects/-p");
    let path = folder.join(format!("{CLAUDE}.jsonl"));
    let away = world.home.join("away.jsonl");
    fs::rename(&path, &away).expect("a move");
    let gc = ["archive", "gc", "--grace=0d", "--yes"];
    for _ in 0..2 {
        let output = world.run(&gc);
        assert!(output.contains("nothing to remove"), "{output}");
        assert!(output.contains("[home]/.claude/projects/-p: the folder is empty"), "{output}");
    }
    fs::rename(&away, &path).expect("a move");
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    assert_eq!(fs::read_to_string(&path).expect("a session"), sessions::claude(CLAUDE));
    // A removed folder is noticed in its parent.
    assert_eq!(world.status(&["compact", CLAUDE, "--keep-turns=1", "--count=estimate"]), 0);
    fs::remove_dir_all(&folder).expect("a folder");
    let output = world.run(&gc);
    assert!(output.contains("moved to the trash"), "{output}");
}

/// A result that is no original is never called one, whatever happened to the packs.
#[test]
fn what_is_no_original_is_not_called_exact() {
    for recipe in ["transcript", "epitome"] {
        for is_elsewhere in [false, true] {
            // Without the archive, nothing tells which text a count of lines replaces.
            if is_elsewhere && recipe == "transcript" {
                continue;
            }
            let world = World::new();
            let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
            let compact = |keep: &str, home: &str| {
                let args = [
                    "compact",
                    CLAUDE,
                    keep,
                    "--keep-results=0",
                    "--count=estimate",
                    "--recipe",
                    recipe,
                ];
                let mut command = world.command(&args);
                command.env("EPITOME_HOME", world.home.join(home));
                let output = world.terminal(&args, &command.output().expect("it runs"));
                assert!(output.contains("compacted  "), "{output}");
            };
            let second = if is_elsewhere { "two" } else { "one" };
            let run = |args: &[&str]| {
                let mut command = world.command(args);
                command.env("EPITOME_HOME", world.home.join(second));
                world.terminal(args, &command.output().expect("it runs"))
            };
            compact("--keep-turns=2", "one");
            if !is_elsewhere {
                assert!(run(&["archive", "rm", CLAUDE, "--yes"]).contains("moved to the trash"));
            }
            compact("--keep-turns=1", second);
            let number = if is_elsewhere { 1 } else { 2 };
            let pack =
                world.home.join(format!("{second}/archive/claude/{CLAUDE}/{number:06}.pack"));
            assert!(pack.is_file(), "{recipe} {is_elsewhere}: {}", run(&["archive", "ls"]));
            let compacted = fs::read(&path).expect("a session");
            for args in [&["restore", CLAUDE][..], &["restore", CLAUDE, "--dry-run"]] {
                let output = run(args);
                assert!(output.ends_with("--- status 5\n"), "{recipe} {is_elsewhere} {output}");
                assert!(output.contains("--partial` restores what can be"), "{output}");
                assert_eq!(fs::read(&path).expect("a session"), compacted);
            }
            let output = run(&["restore", CLAUDE, "--partial"]);
            assert!(
                output.contains("not to the original") && !output.contains("exact"),
                "{output}"
            );
            let output = run(&["restore", CLAUDE]);
            assert!(output.ends_with("--- status 5\n"), "{recipe} {is_elsewhere} {output}");
        }
    }
}

#[test]
fn the_parts_of_a_session_are_removed_with_it() {
    let world = World::new();
    let recorded = fixtures::get("claude", "pricing");
    let id = "01194376-708b-4dbc-a469-b0821ec784c3";
    world.claude(id, recorded.bytes());
    for agent in recorded.sub_agents() {
        let name = agent.file_name().and_then(|it| it.to_str()).expect("a name");
        let name = format!(".claude/projects/-p/{id}/subagents/{name}");
        world.write(&name, fs::read(&agent).expect("recorded"));
    }
    let compact = ["compact", id, "--keep-turns=0", "--count=estimate", "--recipe=transcript"];
    assert_eq!(world.status(&compact), 0);
    assert!(world.json(&["archive", "ls", "--json"]).len() > 1, "a sub-agent is compacted, too");
    let output = world.run(&["archive", "rm", "01194376-708b-4dbc-a469-b0821ec784c3", "--yes"]);
    assert!(output.contains("of it, ") && output.ends_with("--- status 0\n"), "{output}");
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 0);
}
