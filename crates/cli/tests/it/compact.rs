//! `epitome compact` on the command line.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use crate::world::sessions::{self, CLAUDE, CODEX, OTHER, PI};
use crate::world::{self, World};
use insta::assert_snapshot;

/// Options with a recipe whose stubs do not change between versions of epitome.
const PLAIN: [&str; 4] = ["--keep-turns=1", "--count=estimate", "--recipe", "transcript"];

fn compact<'a>(args: &[&'a str]) -> Vec<&'a str> {
    ["compact"].iter().chain(args).chain(&PLAIN).copied().collect()
}

/// Runs `work` while another process holds a file open. Returns that process's id as well.
fn holding<T>(path: &Path, work: impl FnOnce() -> T) -> (String, T) {
    // `cat` waits for its input, and holds the file open.
    let mut child = std::process::Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(File::open(path).expect("a file"))
        .spawn()
        .expect("cat runs");
    let done = work();
    drop(child.stdin.take());
    child.wait().expect("cat ends");
    (child.id().to_string(), done)
}

#[test]
fn a_session_becomes_small_and_says_how() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let before = fs::metadata(&path).and_then(|meta| meta.modified()).expect("a time");
    let args = ["compact", "0f3c9a52", "--keep-turns", "1", "--count", "estimate"];
    assert_snapshot!(world.run(&args), @r"
    $ epitome compact 0f3c9a52 --keep-turns 1 --count estimate
    compacted  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    claude · recipe epitome · generation 1

               before       after
    messages     3.7k  →      180  -95.1%  tokens (estimate)
    disk      22.5 KB  →   6.4 KB  -71.4%
    net       22.5 KB  →  (with the archive)

    edits     2 tool outputs shortened, 1 outdated file read dropped, 2 long arguments shortened, 4 duplicates removed
    saves     1.4k of Read, 1.1k of Bash, 963 of Edit
              2.4k of src/a.rs
    price     next request: 12.2k tokens instead of 16.5k, none from the cache, which has expired
              −$0.02 once, −$0.0013 for each later request: pays at once (claude-sonnet-4-5, tokens assumed)
    kept      15 tokens untouched: the last turns (2 entries)
    verified  restoring reproduces every byte (blake3 6306aee1158a8efe…)
    undo      epitome undo
    --- status 0
    ");
    let after = fs::metadata(&path).and_then(|meta| meta.modified()).expect("a time");
    assert_eq!(before, after, "agents sort sessions by their time");
    assert_snapshot!(world.run(&args), @r"
    $ epitome compact 0f3c9a52 --keep-turns 1 --count estimate
    nothing to do  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    claude · recipe epitome

              before      after
    messages     180  →     180  0%  tokens (estimate)
    disk      6.4 KB  →  6.4 KB  0%

    edits    none
    kept     15 tokens untouched: the last turns (2 entries)
    --- status 0
    ");
}

#[test]
fn a_session_of_pi_is_found_by_its_id() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    assert_snapshot!(world.run(&compact(&["01a1fb3a"])), @r"
    $ epitome compact 01a1fb3a --keep-turns=1 --count=estimate --recipe transcript
    compacted  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    pi · recipe transcript · generation 1

              before      after
    messages    2.4k  →      30  -98.8%  tokens (estimate)
    disk      7.7 KB  →  1.5 KB  -80.4%
    net       7.7 KB  →  (with the archive)

    edits     1 tool output shortened
    saves     2.4k of read
              2.4k of src/a.rs
    price     next request: 12.0k tokens instead of 15.0k, none from the cache, which has expired
              −$0.01 once, −$0.0009 for each later request: pays at once (claude-sonnet-4-5, tokens assumed)
    kept      2 tokens untouched: the last turns (1 entry)
    verified  restoring reproduces every byte (blake3 f14674f0fc345c1b…)
    undo      epitome undo
    --- status 0
    ");
}

#[test]
fn exact_counts_are_the_default() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    assert_snapshot!(world.run(&["compact", PI, "--keep-turns", "1", "--dry-run"]), @r"
    $ epitome compact 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --keep-turns 1 --dry-run
    would compact  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    pi · recipe epitome · nothing was written

              before      after
    messages    2.4k  →      60  -97.5%  tokens (o200k)
    disk      7.7 KB  →  1.6 KB  -79.4%
    net       7.7 KB  →  (with the archive)

    edits    1 tool output shortened
    saves    2.4k of read
             2.4k of src/a.rs
    loses    no rule, plan, decision, unresolved error, or message of yours
             --losses lists all that would leave the context
    price    next request: 12.1k tokens instead of 15.0k, none from the cache, which has expired
             −$0.01 once, −$0.0009 for each later request: pays at once (claude-sonnet-4-5, tokens assumed)
    kept     2 tokens untouched: the last turns (1 entry)
    --- status 0
    ");
}

#[test]
fn a_dry_run_touches_nothing() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let before = world.tree();
    assert_snapshot!(world.run(&compact(&["0f3c", "--dry-run"])), @r"
    $ epitome compact 0f3c --dry-run --keep-turns=1 --count=estimate --recipe transcript
    would compact  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    claude · recipe transcript · nothing was written

               before       after
    messages     3.7k  →      136  -96.3%  tokens (estimate)
    disk      22.5 KB  →   6.3 KB  -72.0%
    net       22.5 KB  →  (with the archive)

    edits    3 tool outputs shortened, 2 long arguments shortened, 4 duplicates removed
    saves    1.4k of Read, 1.1k of Bash, 960 of Edit
             2.4k of src/a.rs
    loses    1 unresolved error, 1 file read and changed
             --losses lists all that would leave the context
    price    next request: 12.2k tokens instead of 16.5k, none from the cache, which has expired
             −$0.02 once, −$0.0013 for each later request: pays at once (claude-sonnet-4-5, tokens assumed)
    kept     15 tokens untouched: the last turns (2 entries)
    --- status 0
    ");
    assert_snapshot!("diff", world.run(&compact(&["0f3c", "--dry-run", "--diff"])));
    world.run(&compact(&["0f3c", "--dry-run", "--keep-backup", "--json"]));
    world.run(&compact(&["0f3c", "--dry-run", "--out", "small.jsonl"]));
    world.run(&["compact", "--all", "--dry-run", "--count", "estimate"]);
    assert_eq!(world.tree(), before);
}

#[test]
fn a_difference_is_a_preview() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.pi(PI, sessions::pi(PI));
    let before = world.tree();
    let output = world.run(&compact(&["0f3c", "--diff"]));
    assert!(
        output.contains("line 3: Read src/a.rs") && output.contains("nothing was written"),
        "{output}"
    );
    assert!(output.ends_with("--- status 0\n"), "{output}");
    for args in [&["0f3c", PI, "--diff"][..], &["--all", "--diff"], &["0f3c", "--diff", "--force"]]
    {
        assert_eq!(world.status(&compact(args)), 0, "{args:?}");
    }
    for with in [&["--vacuum"][..], &["--out", "small.jsonl"]] {
        let args = [&["0f3c", "--diff"], with].concat();
        assert_eq!(world.status(&compact(&args)), 2, "{with:?}");
    }
    assert_eq!(world.tree(), before);
}

#[test]
#[cfg(unix)]
fn a_reader_that_is_gone_stops_the_write() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.pi(PI, sessions::pi(PI));
    let unread = |args: &[&str]| {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let done = world.command(args).stdout(writer).output().expect("the program runs");
        assert_eq!(done.status.code(), Some(0), "{args:?}: {done:?}");
    };
    let sessions = || -> Vec<_> {
        let all = world.tree().into_iter();
        all.filter(|(path, ..)| path.extension().is_some_and(|it| it == "jsonl")).collect()
    };
    let before = sessions();
    unread(&compact(&["0f3c"]));
    unread(&compact(&["0f3c", PI]));
    unread(&compact(&["--all"]));
    assert_eq!(sessions(), before);
    assert_eq!(world.status(&compact(&["0f3c"])), 0);
    let small = sessions();
    assert_ne!(small, before);
    unread(&["restore", "0f3c"]);
    assert_eq!(sessions(), small);
}

#[test]
fn rules_that_keep_everything_are_named() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let args = ["compact", "0f3c", "--keep-turns", "9", "--count", "estimate", "--dry-run"];
    assert_snapshot!(world.run(&args), @r"
    $ epitome compact 0f3c --keep-turns 9 --count estimate --dry-run
    would compact  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    claude · recipe epitome · nothing was written

               before       after
    messages     3.7k  →     3.7k      0%  tokens (estimate)
    disk      22.5 KB  →  15.4 KB  -31.5%
    net       22.5 KB  →  (with the archive)

    edits    4 duplicates removed
    loses    no rule, plan, decision, unresolved error, or message of yours
             --losses lists all that would leave the context
    kept     3.7k tokens untouched: the last turns (14 entries)
             the last turns: that is everything; only duplicates and copies go
    --- status 0
    ");
}

#[test]
fn a_recipe_that_waits_says_for_what() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let args = ["compact", "0f3c", "--recipe", "clear-tool-uses", "--count", "estimate"];
    assert_snapshot!(world.run(&args), @r"
    $ epitome compact 0f3c --recipe clear-tool-uses --count estimate
    nothing to do  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    claude · recipe clear-tool-uses

               before       after
    messages     3.7k  →     3.7k  0%  tokens (estimate)
    disk      22.5 KB  →  22.5 KB  0%

    edits    none
    kept     everything: the recipe starts at 100.0k tokens of context
    --- status 0
    ");
}

#[test]
fn sub_agents_are_compacted_too() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    world.claude(CLAUDE, &original);
    let name = format!(".claude/projects/-p/{CLAUDE}/subagents/agent-abc.jsonl");
    let agent = original.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let agent_path = world.write(&name, &agent);
    assert_snapshot!(world.run(&compact(&["0f3c"])), @r"
    $ epitome compact 0f3c --keep-turns=1 --count=estimate --recipe transcript
    compacted  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    claude · recipe transcript · generation 1

               before       after
    messages     3.7k  →      136  -96.3%  tokens (estimate)
    disk      22.5 KB  →   6.3 KB  -72.0%
    net       22.5 KB  →  (with the archive)
    messages     7.3k  →      272  -96.3%  tokens, with 1 sub-agent
    disk      44.9 KB  →  12.6 KB  -72.0%  with 1 sub-agent
    net       44.9 KB  →  (with the archive)

    edits     3 tool outputs shortened, 2 long arguments shortened, 4 duplicates removed
    saves     1.4k of Read, 1.1k of Bash, 960 of Edit
              2.4k of src/a.rs
    price     next request: 12.2k tokens instead of 16.5k, none from the cache, which has expired
              −$0.02 once, −$0.0013 for each later request: pays at once (claude-sonnet-4-5, tokens assumed)
    kept      15 tokens untouched: the last turns (2 entries)
    with      agent-abc  22.5 KB → 6.3 KB  generation 1
    verified  restoring reproduces every byte (blake3 6306aee1158a8efe…)
    undo      epitome undo
    --- status 0
    ");
    assert!(fs::read(&agent_path).expect("a file").len() < agent.len());
    assert_snapshot!(world.run(&["restore", "0f3c"]), @r"
    $ epitome restore 0f3c
    restored  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    disk     6.3 KB → 22.5 KB
    how      exact, to the byte: 1 compaction undone, 5 records restored
             verified: blake3 6306aee1158a8efe…
    with     agent-abc  6.3 KB → 22.5 KB
             exact, to the byte: 1 compaction undone, 5 records restored
             verified: blake3 bddf5d27c1471512…
    --- status 0
    ");
    assert_eq!(fs::read_to_string(&agent_path).expect("a file"), agent);
}

#[test]
fn a_sub_agent_that_is_in_use_stops_it_all() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let path = world.claude(CLAUDE, &original);
    let agent = world.write(
        &format!(".claude/projects/-p/{CLAUDE}/subagents/agent-abc.jsonl"),
        original.replace("\"isSidechain\":false", "\"isSidechain\":true"),
    );
    let empty = format!(".claude/projects/-p/{CLAUDE}/subagents/agent-0.jsonl");
    world.write(&empty, "");
    let held = holding(&agent, || world.status(&compact(&["0f3c"])));
    assert_eq!(held.1, 4);
    assert_eq!(fs::read_to_string(&path).expect("a file"), original);
    assert_eq!(world.status(&compact(&["0f3c"])), 0, "an empty file is none of it");
}

#[test]
fn a_copy_is_made_aside_and_the_session_stays() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let path = world.claude(CLAUDE, &original);
    assert_snapshot!(world.run(&compact(&["0f3c", "--out", "small.jsonl"])), @r"
    $ epitome compact 0f3c --out small.jsonl --keep-turns=1 --count=estimate --recipe transcript
    compacted  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    claude · recipe transcript · generation 1

               before       after
    messages     3.7k  →      136  -96.3%  tokens (estimate)
    disk      22.5 KB  →   6.3 KB  -72.0%
    net       22.5 KB  →  (with the archive)

    edits     3 tool outputs shortened, 2 long arguments shortened, 4 duplicates removed
    saves     1.4k of Read, 1.1k of Bash, 960 of Edit
              2.4k of src/a.rs
    price     next request: 12.2k tokens instead of 16.5k, none from the cache, which has expired
              −$0.02 once, −$0.0013 for each later request: pays at once (claude-sonnet-4-5, tokens assumed)
    kept      15 tokens untouched: the last turns (2 entries)
    written   small.jsonl
    verified  restoring reproduces every byte (blake3 6306aee1158a8efe…)
    --- status 0
    ");
    assert_eq!(fs::read_to_string(&path).expect("a file"), original);
    // The copy is a session of its own, which can be restored.
    world.run(&["restore", "small.jsonl"]);
    assert_eq!(fs::read_to_string(world.home.join("small.jsonl")).expect("a file"), original);
    assert_snapshot!(world.run(&compact(&["0f3c", "--out", "small.jsonl"])), @r"
    $ epitome compact 0f3c --out small.jsonl --keep-turns=1 --count=estimate --recipe transcript
    --- stderr
    error: there is something of that name already: small.jsonl
      hint: choose another name, or remove what is there
    --- status 4
    ");
}

#[test]
fn standard_input_needs_an_output() {
    let world = World::new();
    let session = sessions::claude(CLAUDE);
    assert_snapshot!(world.run_with(&compact(&["-"]), session.as_bytes()), @r"
    $ epitome compact - --keep-turns=1 --count=estimate --recipe transcript
    --- stderr
    error: a session from standard input needs --out
    --- status 2
    ");
    let args = compact(&["-", "--out", "small.jsonl"]);
    assert_snapshot!(world.run_with(&args, session.as_bytes()), @r"
    $ epitome compact - --out small.jsonl --keep-turns=1 --count=estimate --recipe transcript
    compacted  -
    claude · recipe transcript · generation 1

               before       after
    messages     3.7k  →      136  -96.3%  tokens (estimate)
    disk      22.5 KB  →   6.3 KB  -72.0%
    net       22.5 KB  →  (with the archive)

    edits     3 tool outputs shortened, 2 long arguments shortened, 4 duplicates removed
    saves     1.4k of Read, 1.1k of Bash, 960 of Edit
              2.4k of src/a.rs
    price     next request: 12.2k tokens instead of 16.5k, none from the cache, which has expired
              −$0.02 once, −$0.0013 for each later request: pays at once (claude-sonnet-4-5, tokens assumed)
    kept      15 tokens untouched: the last turns (2 entries)
    written   small.jsonl
    verified  restoring reproduces every byte (blake3 6306aee1158a8efe…)
    --- status 0
    ");
    assert!(fs::read(world.home.join("small.jsonl")).expect("a file").len() < session.len());
}

#[test]
fn a_backup_is_kept_where_no_agent_lists_it() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    world.claude(CLAUDE, &original);
    assert_snapshot!(world.run(&compact(&["0f3c", "--keep-backup"])), @r"
    $ epitome compact 0f3c --keep-backup --keep-turns=1 --count=estimate --recipe transcript
    compacted  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    claude · recipe transcript · generation 1

               before       after
    messages     3.7k  →      136  -96.3%  tokens (estimate)
    disk      22.5 KB  →   6.3 KB  -72.0%
    net       22.5 KB  →  (with the archive)

    edits     3 tool outputs shortened, 2 long arguments shortened, 4 duplicates removed
    saves     1.4k of Read, 1.1k of Bash, 960 of Edit
              2.4k of src/a.rs
    price     next request: 12.2k tokens instead of 16.5k, none from the cache, which has expired
              −$0.02 once, −$0.0013 for each later request: pays at once (claude-sonnet-4-5, tokens assumed)
    kept      15 tokens untouched: the last turns (2 entries)
    backup    ~/.local/share/epitome/archive/claude/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.uncompressed.jsonl
    verified  restoring reproduces every byte (blake3 6306aee1158a8efe…)
    undo      epitome undo
    --- status 0
    ");
    let folder = format!(".local/share/epitome/archive/claude/{CLAUDE}");
    let backup = world.home.join(folder).join(format!("{CLAUDE}.uncompressed.jsonl"));
    assert_eq!(fs::read_to_string(backup).expect("a backup"), original);
    world.run(&["restore", "0f3c"]);
    world.run(&compact(&[CLAUDE, "--keep-backup=beside"]));
    let backup_path = world.home.join(format!(".claude/projects/-p/{CLAUDE}.uncompressed.jsonl"));
    assert_eq!(fs::read_to_string(backup_path).expect("a backup"), original);
}

#[test]
fn a_session_in_use_is_refused_and_force_goes_on() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let path = world.claude(CLAUDE, &original);
    let (pid, (refused, unchanged, all, forced)) = holding(&path, || {
        let refused = world.run(&compact(&["0f3c"]));
        let unchanged = fs::read_to_string(&path).expect("a file") == original;
        let all = world.run(&["compact", "--all", "--count", "estimate"]);
        (refused, unchanged, all, world.status(&compact(&["0f3c", "--force"])))
    });
    let (refused, all) = (refused.replace(&pid, "[pid]"), all.replace(&pid, "[pid]"));
    assert_snapshot!(refused, @r"
    $ epitome compact 0f3c --keep-turns=1 --count=estimate --recipe transcript
    --- stderr
    error: the session is in use by cat (process [pid]): [home]/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
      hint: close the agent that has the session open, then try again
      hint: --force replaces it nevertheless; a running agent may then write to the old file
    --- status 4
    ");
    assert_snapshot!(all, @r"
    $ epitome compact --all --count estimate
    no sessions
    1 session is left as before
    --- stderr
    skipped: the session is in use by cat (process [pid]): [home]/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    --- status 0
    ");
    assert!(unchanged);
    assert_eq!(forced, 0);
}

#[test]
fn a_session_that_claude_has_open_is_refused() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    // This process exists; no process has the id 4,000,000,000.
    let pid = std::process::id();
    let guard = |pid: u64| format!(r#"{{"pid":{pid},"sessionId":"{CLAUDE}","status":"idle"}}"#);
    world.write(".claude/sessions/4000000000.json", guard(4_000_000_000));
    assert_eq!(world.status(&compact(&["0f3c", "--dry-run"])), 0);
    world.write(&format!(".claude/sessions/{pid}.json"), guard(u64::from(pid)));
    assert_eq!(world.status(&compact(&["0f3c"])), 4);
    assert_eq!(world.status(&compact(&["0f3c", "--force"])), 0);
}

#[test]
fn a_rollout_that_codex_has_open_is_refused_whatever_is_said() {
    let world = World::new();
    let path = world.codex(CODEX, sessions::codex(CODEX));
    let before = fs::read(&path).unwrap();
    let lock = world.write(&format!(".codex/thread-writer-locks/{CODEX}.lock"), "");
    let held = File::open(&lock).unwrap();
    held.lock().unwrap();
    assert_eq!(world.status(&compact(&[CODEX])), 4);
    assert_eq!(world.status(&compact(&[CODEX, "--force"])), 4);
    assert_eq!(fs::read(&path).unwrap(), before);
    drop(held);
    // A lock file that a killed Codex left is no lock.
    assert_eq!(world.status(&compact(&[CODEX, "--rewrite"])), 0);
    assert!(fs::read(&path).unwrap().len() < before.len());
    assert!(!lock.exists());
    world.write(&format!(".codex/thread-writer-locks/{CODEX}.lock"), "");
    let held = File::open(&lock).unwrap();
    held.lock().unwrap();
    assert_eq!(world.status(&["restore", CODEX]), 4);
    drop(held);
    assert_eq!(world.status(&["restore", CODEX]), 0);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!lock.exists());
}

#[test]
fn a_rollout_gets_a_record_of_codex_s_own() {
    let world = World::new();
    let path = world.codex(CODEX, sessions::codex(CODEX));
    let before = fs::read(&path).unwrap();
    assert_snapshot!(world.run(&compact(&[CODEX])), @r"
    $ epitome compact 01a1fb3b-31f2-7601-bb99-e47e04b7ff1d --keep-turns=1 --count=estimate --recipe transcript
    compacted  ~/.codex/sessions/2026/11/20/rollout-2026-11-20T23-12-03-01a1fb3b-31f2-7601-bb99-e47e04b7ff1d.jsonl
    codex · recipe transcript · in a record of codex's own · generation 1

               before       after
    messages     2.4k  →       31  -98.7%  tokens (estimate)
    disk      13.7 KB  →  14.4 KB   +5.1%
    net       13.7 KB  →  (with the archive)

    edits     1 tool output shortened
    saves     2.4k of exec_command
    price     next request: 12.0k tokens instead of 14.4k, none from the cache, which has expired
              −$0.01 once, −$0.0012 for each later request: pays at once (gpt-5.5, tokens assumed)
    kept      2 tokens untouched: the last turns (1 entry)
    note      the file grows: codex gets a record; --rewrite shrinks both
    verified  restoring reproduces every byte (blake3 cf0a3412dc5b95b5…)
    undo      epitome undo
    --- status 0
    ");
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&before));
    let appended = String::from_utf8(after[before.len()..].to_vec()).unwrap();
    assert_snapshot!(appended, @r#"
    {"timestamp":"2026-11-20T23:12:03.096Z","ordinal":8,"type":"compacted","payload":{"message":"","replacement_history":[{"content":[{"text":"How many functions are there?","type":"input_text"}],"role":"user","type":"message"},{"arguments":"{\"cmd\":\"cat src/a.rs\"}","call_id":"c1","name":"exec_command","type":"function_call"},{"call_id":"c1","output":"[output: 200 lines]","type":"function_call_output"},{"content":[{"text":"There are 200.","type":"output_text"}],"role":"assistant","type":"message"},{"content":[{"text":"Good.","type":"input_text"}],"role":"user","type":"message"}]}}
    {"timestamp":"2026-11-20T23:12:03.096Z","ordinal":9,"type":"turn_context","payload":{"cwd":"/p","model":"gpt-5.5"}}
    "#);
    assert_eq!(world.json(&compact(&[CODEX, "--json"]))[0]["outcome"], "nothing");
    assert_eq!(world.status(&["restore", CODEX]), 0);
    assert_eq!(fs::read(&path).unwrap(), before);
    let rewritten = world.json(&compact(&[CODEX, "--rewrite", "--json"]));
    assert_eq!(rewritten[0]["way"], "rewrite");
    world::check("compact.schema.json", &rewritten);
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    assert_snapshot!(world.run(&compact(&[CLAUDE, "--native"])), @r"
    $ epitome compact 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 --native --keep-turns=1 --count=estimate --recipe transcript
    --- stderr
    error: claude has no way of its own to shorten a session: [home]/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
      hint: its sessions are rewritten
    --- status 2
    ");
}

#[test]
fn an_old_session_of_pi_has_no_own_way() {
    let world = World::new();
    let old = sessions::pi(PI).replacen("\"version\":3", "\"version\":2", 1);
    world.pi(PI, old);
    assert_snapshot!(world.run(&compact(&[PI, "--native"])), @r"
    $ epitome compact 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --native --keep-turns=1 --count=estimate --recipe transcript
    --- stderr
    error: this session takes no records of pi's own way: only sessions of version 3 have them: [home]/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
      hint: --rewrite shortens it in the records it has
    --- status 4
    ");
    assert!(world.run(&compact(&[PI, "--rewrite"])).ends_with("--- status 0\n"));
}

#[test]
fn many_are_compacted_at_once() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.claude(OTHER, sessions::claude(OTHER));
    world.pi(PI, sessions::pi(PI));
    world.claude("00000000-empty", "");
    assert_snapshot!(world.run(&compact(&["--all", "--dry-run"])), @r"
    $ epitome compact --all --dry-run --keep-turns=1 --count=estimate --recipe transcript
    session          messages     after             disk       after
    claude 0f3c1111      3.7k  →    136  -96.3%  22.5 KB  →   6.3 KB  -72.0%
    claude 0f3c9a52      3.7k  →    136  -96.3%  22.5 KB  →   6.3 KB  -72.0%
    pi 01a1fb3a          2.4k  →     30  -98.8%   7.7 KB  →   1.5 KB  -80.4%
    3 sessions           9.7k  →    302  -96.9%  52.6 KB  →  14.1 KB  -73.2%
    with (a pack) in the archive
    nothing was written
    1 session is left as before
    --- stderr
    skipped: the file is empty: [home]/.claude/projects/-p/00000000-empty.jsonl
    --- status 0
    ");
    assert_snapshot!(world.run(&compact(&["--all", "--older-than", "7d"])), @r"
    $ epitome compact --all --older-than 7d --keep-turns=1 --count=estimate --recipe transcript
    no sessions
    --- status 0
    ");
    assert_snapshot!(world.run(&compact(&["--all", "--project", "/q"])), @r"
    $ epitome compact --all --project /q --keep-turns=1 --count=estimate --recipe transcript
    no sessions
    1 session is left as before
    --- stderr
    skipped: the file is empty: [home]/.claude/projects/-p/00000000-empty.jsonl
    --- status 0
    ");
    assert_snapshot!(world.run(&compact(&["--all", "--agent", "pi"])), @r"
    $ epitome compact --all --agent pi --keep-turns=1 --count=estimate --recipe transcript
    session      messages     after            disk      after
    pi 01a1fb3a      2.4k  →     30  -98.8%  7.7 KB  →  1.5 KB  -80.4%
    with (a pack) in the archive
    --- status 0
    ");
    assert_snapshot!(world.run(&compact(&["--all", "--larger-than", "5KB"])), @r"
    $ epitome compact --all --larger-than 5KB --keep-turns=1 --count=estimate --recipe transcript
    session          messages     after             disk       after
    claude 0f3c1111      3.7k  →    136  -96.3%  22.5 KB  →   6.3 KB  -72.0%
    claude 0f3c9a52      3.7k  →    136  -96.3%  22.5 KB  →   6.3 KB  -72.0%
    2 sessions           7.3k  →    272  -96.3%  44.9 KB  →  12.6 KB  -72.0%
    with (a pack) in the archive
    --- status 0
    ");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.claude(OTHER, sessions::claude(OTHER));
    let cases: &[&[&str]] = &[
        &["compact"],
        &["compact", "0f3c"],
        &["compact", "nothing"],
        &["compact", CLAUDE, "--recipe", "nothing"],
        &["compact", CLAUDE, "--agent", "nobody"],
        &["compact", CLAUDE, "--older-than", "7d"],
        &["compact", "--all", "--older-than", "soon"],
        &["compact", CLAUDE, OTHER, "--out", "x.jsonl"],
        &["compact", CLAUDE, "--target", "many"],
        &["compact", CLAUDE, "--target", "150%"],
    ];
    let terminals: Vec<String> = cases.iter().map(|args| world.run(args)).collect();
    assert_snapshot!(terminals.join("\n"));
}

/// Nothing tells before the first write that an output cannot be written.
#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_printed_says_what_was_done_and_how_to_undo_it() {
    let world = World::new();
    let session = sessions::claude(CLAUDE);
    let path = world.claude(CLAUDE, &session);
    let other = world.claude(OTHER, sessions::claude(OTHER));
    // The id of a run is derived from its time.
    let print_to_full = |hour: usize, args: &[&str]| {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let mut command = world.command(args);
        command.env("EPITOME_NOW", format!("2026-11-21T0{hour}:00:00Z")).stdout(full);
        let output = command.output().expect("the program runs");
        assert_eq!(output.status.code(), Some(5), "{args:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let cases: [(&[&str], &str); 4] = [
        (&[CLAUDE], "1 session was compacted before"),
        (&[CLAUDE, "--json"], "1 session was compacted before"),
        (&[CLAUDE, OTHER], "2 sessions were compacted before"),
        (&["--all", "--json"], "2 sessions were compacted before"),
    ];
    for (hour, (args, what)) in cases.into_iter().enumerate() {
        let stderr = print_to_full(hour, &compact(args));
        let run = world.json(&["log", "--json"])[0]["run"].as_str().expect("an id").to_owned();
        let hint = format!("hint: {what}; `epitome undo {run}` undoes that\n");
        assert!(stderr.contains("cannot write the output") && stderr.ends_with(&hint), "{stderr}");
        assert_ne!(fs::read_to_string(&path).expect("a session"), session);
        assert_eq!(world.status(&["undo", &run, "--yes"]), 0);
        assert_eq!(fs::read_to_string(&path).expect("a session"), session);
        assert_eq!(fs::read_to_string(&other).expect("a session"), sessions::claude(OTHER));
    }
    let stderr = print_to_full(4, &compact(&[CLAUDE, "--out", "copy.jsonl"]));
    assert!(stderr.ends_with("hint: the copy was written before: copy.jsonl\n"), "{stderr}");
    let stderr = print_to_full(5, &compact(&[CLAUDE, "--dry-run"]));
    assert!(!stderr.contains("hint:"), "nothing was written: {stderr}");
}

/// The words of a text, on one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_target_that_is_missed_is_named_whatever_its_unit() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let dry = |more: &[&'static str]| {
        let how = ["compact", "0f3c", "--dry-run", "--keep-turns=1", "--count=estimate"];
        [&how, more].concat()
    };
    let in_chars = ["--target", "100chars"];
    let reports = world.json(&dry(&[&in_chars[..], &["--json"]].concat()));
    world::check("compact.schema.json", &reports);
    let missed = &reports[0]["target_chars_missed"];
    let left = missed["left"].as_u64().expect("a number");
    assert!(missed["target"] == 100 && left > 100, "{missed}");
    let line = format!(
        "the target of 100 characters is not reached: {left} are kept or cannot be removed"
    );
    let text = world.run(&dry(&in_chars));
    assert!(one_line(&text).contains(&line), "{line}: {text}");
    let reports = world.json(&dry(&["--target", "90000chars", "--json"]));
    assert!(reports[0]["target_chars_missed"].is_null(), "it is not missed");

    // Of a small window, half is the reserve.
    let in_percent = ["--target", "1%", "--set", "live.window=4000"];
    let reports = world.json(&dry(&[&in_percent[..], &["--json"]].concat()));
    world::check("compact.schema.json", &reports);
    let target = serde_json::json!({ "percent": 1, "tokens": 20 });
    let window = serde_json::json!({ "tokens": 4_000, "usable": 2_000, "target": target });
    assert_eq!((&reports[0]["target_missed"], &reports[0]["window"]), (&20.into(), &window));
    let text = world.run(&dry(&in_percent));
    for line in [
        "the target of 20 is not reached",
        "window 4.0k tokens, 2.0k without the reserve; the target is 1% of it, 20 tokens",
    ] {
        assert!(one_line(&text).contains(line), "{line}: {text}");
    }
}

#[test]
fn recipes_of_the_user_are_found_by_name_and_by_path() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let recipe = world.output(&["recipes", "transcript"]).stdout;
    let recipe = String::from_utf8(recipe).expect("text").replace("\"transcript\"", "\"mine\"");
    world.write(".config/epitome/recipes/mine.toml", &recipe);
    world.write("other.toml", &recipe);
    world.write("broken.toml", "name = 'broken'\nabout = ''\npasses = []\nkeeep = 3\n");
    let dry = |recipe| {
        let how = ["--dry-run", "--keep-turns", "1", "--count", "estimate"];
        let args = [&["compact", "0f3c", "--recipe", recipe], how.as_slice()].concat();
        world.run(&args)
    };
    assert_snapshot!(dry("mine"), @r"
    $ epitome compact 0f3c --recipe mine --dry-run --keep-turns 1 --count estimate
    would compact  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    claude · recipe mine · nothing was written

               before       after
    messages     3.7k  →      136  -96.3%  tokens (estimate)
    disk      22.5 KB  →   6.3 KB  -72.0%
    net       22.5 KB  →  (with the archive)

    edits    3 tool outputs shortened, 2 long arguments shortened, 4 duplicates removed
    saves    1.4k of Read, 1.1k of Bash, 960 of Edit
             2.4k of src/a.rs
    loses    1 unresolved error, 1 file read and changed
             --losses lists all that would leave the context
    price    next request: 12.2k tokens instead of 16.5k, none from the cache, which has expired
             −$0.02 once, −$0.0013 for each later request: pays at once (claude-sonnet-4-5, tokens assumed)
    kept     15 tokens untouched: the last turns (2 entries)
    --- status 0
    ");
    assert!(dry("other.toml").ends_with("--- status 0\n"));
    assert_snapshot!(dry("broken.toml"), @r"
    $ epitome compact 0f3c --recipe broken.toml --dry-run --keep-turns 1 --count estimate
    --- stderr
    error: not a recipe: broken.toml
      cause: TOML parse error at line 4, column 1
               |
             4 | keeep = 3
               | ^^^^^
             unknown key `keeep`
      hint: did you mean `keep`?
    --- status 2
    ");
}

#[test]
fn json_is_what_the_schema_says() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.claude("00000000-empty", "");
    world.pi(PI, sessions::pi(PI));
    let dry = world.json(&compact(&["--all", "--json", "--dry-run"]));
    world::check("compact.schema.json", &dry);
    let mut done = world.json(&compact(&["0f3c", "--json"]));
    world::check("compact.schema.json", &done);
    // The pack contains the path of the folder, which is different in every run.
    let pack = world.home.join(format!(".local/share/epitome/archive/claude/{CLAUDE}/000001.pack"));
    assert_eq!(done[0]["archive_bytes"], fs::metadata(pack).expect("a pack").len());
    done[0]["archive_bytes"] = "its length".into();
    let pretty = serde_json::to_string_pretty(&done).expect("JSON");
    let run = done[0]["run"].as_str().expect("an id");
    let pretty = pretty.replace(run, "[run]");
    assert_snapshot!(pretty.replace(world.home.to_str().expect("text"), "[home]"));
}

#[test]
fn a_summary_stands_for_what_is_not_kept() {
    let world = World::new();
    let session = sessions::claude(CLAUDE);
    let path = world.claude(CLAUDE, &session);
    let agent = world.write(
        &format!(".claude/projects/-p/{CLAUDE}/subagents/agent-abc.jsonl"),
        session.replace("\"isSidechain\":false", "\"isSidechain\":true"),
    );
    let agent_before = fs::read(&agent).expect("a file");
    let summary = world.write("summary.txt", "The user asked for little, and got it.\n");
    let summary = summary.to_str().expect("text");
    let args = ["compact", CLAUDE, "--summary", summary, "--keep-turns=1", "--json"];
    let report = &world.json(&args)[0];
    assert_eq!((&report["way"], &report["outcome"]), (&"summary".into(), &"compacted".into()));
    assert_eq!(fs::read(&agent).expect("a file"), agent_before, "it says nothing of sub-agents");
    let compacted = fs::read_to_string(&path).expect("a session");
    let added = compacted.strip_prefix(&session).expect("it is appended");
    assert_eq!(added.lines().count(), 2);
    assert!(added.contains("The user asked for little, and got it."));
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    assert_eq!(fs::read_to_string(&path).expect("a session"), session);
    // Codex keeps the user's messages in addition to a summary; a second compaction has nothing to
    // do.
    let session = fixtures::get("codex", "pricing").bytes();
    let path = world.codex(CODEX, &session);
    let args = ["compact", CODEX, "--summary", summary, "--keep-turns=1", "--json"];
    assert_eq!(world.json(&args)[0]["outcome"], "compacted");
    assert!(fs::read(&path).expect("a session").starts_with(&session));
    for turns in ["1", "0"] {
        let args = ["compact", CODEX, "--summary", summary, "--keep-turns", turns, "--json"];
        assert_eq!(world.json(&args)[0]["outcome"], "nothing", "{turns} turns are kept");
    }
    assert_eq!(world.status(&["restore", CODEX]), 0);
    assert_eq!(fs::read(&path).expect("a session"), session);
    // The summary is longer than the text it replaces.
    let long = world.write("long.txt", "far more than was said ".repeat(20_000));
    let args = ["compact", CODEX, "--summary", long.to_str().expect("text"), "--keep-turns=0"];
    let refused = world.output(&args);
    assert_eq!(refused.status.code(), Some(4));
    let stderr = String::from_utf8(refused.stderr).expect("text");
    assert!(stderr.contains("the summary is longer than what it replaces"), "{stderr}");
    assert!(stderr.contains("give a shorter summary") && !stderr.contains("line 0"), "{stderr}");
    // An empty summary: nothing is done.
    let empty = world.write("empty.txt", "\n");
    let args = ["compact", CLAUDE, "--summary", empty.to_str().expect("text")];
    assert_eq!(world.status(&args), 2);
}

#[test]
fn a_session_that_the_agents_own_records_do_not_fit_is_refused() {
    let world = World::new();
    // The agent's own record needs a time, and no record of the session has one.
    let session = sessions::codex(CODEX).replace("\"timestamp\"", "\"moment\"");
    let path = world.codex(CODEX, &session);
    let output = world.run(&compact(&[CODEX, "--native"]));
    assert!(output.contains("takes no records of codex's own way"), "{output}");
    assert!(output.contains("hint: --rewrite") && output.contains("--- status 4"), "{output}");
    assert_eq!(fs::read_to_string(path).expect("a session"), session);
}
