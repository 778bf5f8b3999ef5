//! `epitome compact` on the command line.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use crate::world::sessions::{self, CLAUDE, CODEX, OTHER, PI};
use crate::world::{self, World};
use insta::assert_snapshot;

/// With a recipe whose stubs do not change with the years.
const PLAIN: [&str; 4] = ["--keep-turns=1", "--count=estimate", "--recipe", "transcript"];

fn compact<'a>(args: &[&'a str]) -> Vec<&'a str> {
    ["compact"].iter().chain(args).chain(&PLAIN).copied().collect()
}

/// Runs `work` while another process holds a file open. Returns that process's id as well.
fn holding<T>(path: &Path, work: impl FnOnce() -> T) -> (String, T) {
    // It waits for its input, and holds the file open.
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
    assert_snapshot!(world.run(&args));
    let after = fs::metadata(&path).and_then(|meta| meta.modified()).expect("a time");
    assert_eq!(before, after, "agents sort sessions by their time");
    assert_snapshot!("twice", world.run(&args));
}

#[test]
fn a_session_of_pi_is_found_by_its_id() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    assert_snapshot!(world.run(&compact(&["01a1fb3a"])));
}

#[test]
fn exact_counts_are_the_default() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    assert_snapshot!(world.run(&["compact", PI, "--keep-turns", "1", "--dry-run"]));
}

#[test]
fn a_dry_run_touches_nothing() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let before = world.tree();
    assert_snapshot!(world.run(&compact(&["0f3c", "--dry-run"])));
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
    let said = world.run(&compact(&["0f3c", "--diff"]));
    assert!(
        said.contains("line 3: Read src/a.rs") && said.contains("nothing was written"),
        "{said}"
    );
    assert!(said.ends_with("--- status 0\n"), "{said}");
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
    assert_snapshot!(world.run(&args));
}

#[test]
fn a_recipe_that_waits_says_for_what() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let args = ["compact", "0f3c", "--recipe", "clear-tool-uses", "--count", "estimate"];
    assert_snapshot!(world.run(&args));
}

#[test]
fn sub_agents_are_compacted_too() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    world.claude(CLAUDE, &original);
    let name = format!(".claude/projects/-p/{CLAUDE}/subagents/agent-abc.jsonl");
    let agent = original.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let agent_path = world.write(&name, &agent);
    assert_snapshot!(world.run(&compact(&["0f3c"])));
    assert!(fs::read(&agent_path).expect("a file").len() < agent.len());
    assert_snapshot!("restored_too", world.run(&["restore", "0f3c"]));
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
    assert_snapshot!(world.run(&compact(&["0f3c", "--out", "small.jsonl"])));
    assert_eq!(fs::read_to_string(&path).expect("a file"), original);
    // The copy is a session of its own, which can be restored.
    world.run(&["restore", "small.jsonl"]);
    assert_eq!(fs::read_to_string(world.home.join("small.jsonl")).expect("a file"), original);
    assert_snapshot!("taken", world.run(&compact(&["0f3c", "--out", "small.jsonl"])));
}

#[test]
fn standard_input_needs_an_output() {
    let world = World::new();
    let session = sessions::claude(CLAUDE);
    assert_snapshot!(world.run_with(&compact(&["-"]), session.as_bytes()));
    let args = compact(&["-", "--out", "small.jsonl"]);
    assert_snapshot!("with_output", world.run_with(&args, session.as_bytes()));
    assert!(fs::read(world.home.join("small.jsonl")).expect("a file").len() < session.len());
}

#[test]
fn a_backup_is_kept_where_no_agent_lists_it() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    world.claude(CLAUDE, &original);
    assert_snapshot!(world.run(&compact(&["0f3c", "--keep-backup"])));
    let folder = format!(".local/share/epitome/archive/claude/{CLAUDE}");
    let backup = world.home.join(folder).join(format!("{CLAUDE}.uncompressed.jsonl"));
    assert_eq!(fs::read_to_string(backup).expect("a backup"), original);
    world.run(&["restore", "0f3c"]);
    world.run(&compact(&[CLAUDE, "--keep-backup=beside"]));
    let beside = world.home.join(format!(".claude/projects/-p/{CLAUDE}.uncompressed.jsonl"));
    assert_eq!(fs::read_to_string(beside).expect("a backup"), original);
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
    assert_snapshot!(refused);
    assert_snapshot!("in_use_of_many", all);
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
    assert_snapshot!(world.run(&compact(&[CODEX])));
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&before));
    let appended = String::from_utf8(after[before.len()..].to_vec()).unwrap();
    assert_snapshot!("what_is_appended_to_a_rollout", appended);
    assert_eq!(world.json(&compact(&[CODEX, "--json"]))[0]["outcome"], "nothing");
    assert_eq!(world.status(&["restore", CODEX]), 0);
    assert_eq!(fs::read(&path).unwrap(), before);
    let rewritten = world.json(&compact(&[CODEX, "--rewrite", "--json"]));
    assert_eq!(rewritten[0]["way"], "rewrite");
    world::check("compact.schema.json", &rewritten);
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    assert_snapshot!("claude_has_no_such_record", world.run(&compact(&[CLAUDE, "--native"])));
}

#[test]
fn an_old_session_of_pi_has_no_own_way() {
    let world = World::new();
    let old = sessions::pi(PI).replacen("\"version\":3", "\"version\":2", 1);
    world.pi(PI, old);
    assert_snapshot!(world.run(&compact(&[PI, "--native"])));
    assert!(world.run(&compact(&[PI, "--rewrite"])).ends_with("--- status 0\n"));
}

#[test]
fn many_are_compacted_at_once() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.claude(OTHER, sessions::claude(OTHER));
    world.pi(PI, sessions::pi(PI));
    world.claude("00000000-empty", "");
    assert_snapshot!("all_dry", world.run(&compact(&["--all", "--dry-run"])));
    assert_snapshot!("all_old", world.run(&compact(&["--all", "--older-than", "7d"])));
    assert_snapshot!("all_elsewhere", world.run(&compact(&["--all", "--project", "/q"])));
    assert_snapshot!("all_of_pi", world.run(&compact(&["--all", "--agent", "pi"])));
    assert_snapshot!("all_large", world.run(&compact(&["--all", "--larger-than", "5KB"])));
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
    ];
    let terminals: Vec<String> = cases.iter().map(|args| world.run(args)).collect();
    assert_snapshot!(terminals.join("\n"));
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
    assert_snapshot!(dry("mine"));
    assert!(dry("other.toml").ends_with("--- status 0\n"));
    assert_snapshot!("broken_recipe", dry("broken.toml"));
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
    let told = String::from_utf8(refused.stderr).expect("text");
    assert!(told.contains("the summary is longer than what it stands for"), "{told}");
    assert!(told.contains("give a shorter summary") && !told.contains("line 0"), "{told}");
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
    let said = world.run(&compact(&[CODEX, "--native"]));
    assert!(said.contains("takes no records of codex's own way"), "{said}");
    assert!(said.contains("hint: --rewrite") && said.contains("--- status 4"), "{said}");
    assert_eq!(fs::read_to_string(path).expect("a session"), session);
}
