//! States and numbers of a session are the same in all commands.

use std::fs;

use crate::world::sessions::{self, CLAUDE, CODEX, PI};
use crate::world::{self, World};
use serde_json::{Value, json};

/// The state of a session in `list`: `compactions_in_effect`, `restored`, and the word.
fn state(world: &World, id: &str) -> (Value, Value, Option<&'static str>) {
    let listed = world.json(&["list", "--json"]);
    let row = listed.iter().find(|row| row["id"] == id).expect("it is listed");
    let shown = world.run(&["list"]);
    let line = shown.lines().find(|line| line.contains(&id[..8])).expect("it is listed");
    let word = ["compacted", "restored"].into_iter().find(|word| line.contains(word));
    (row["compactions_in_effect"].clone(), row["restored"].clone(), word)
}

const COMPACT: [&str; 4] = ["--keep-turns=1", "--recipe", "transcript", "--count=estimate"];

fn compact(world: &World, id: &str) {
    let args: Vec<&str> = ["compact", id].into_iter().chain(COMPACT).collect();
    assert_eq!(world.status(&args), 0);
}

fn restore(world: &World, id: &str) {
    assert_eq!(world.status(&["restore", id]), 0);
}

#[test]
fn a_session_is_compacted_until_it_is_restored() {
    let world = World::new();
    let paths = [
        (CLAUDE, world.claude(CLAUDE, sessions::claude(CLAUDE))),
        (PI, world.pi(PI, sessions::pi(PI))),
        // With an appended record, the file still begins with the original.
        (CODEX, world.codex(CODEX, sessions::codex(CODEX))),
    ];
    for (id, path) in paths {
        let compacted = (1.into(), false.into(), Some("compacted"));
        let plain = |restored: bool| (0.into(), restored.into(), None);
        assert_eq!(state(&world, id), plain(false), "{id}");
        compact(&world, id);
        assert_eq!(state(&world, id), compacted, "{id}");
        restore(&world, id);
        assert_eq!(state(&world, id), plain(true), "{id}");
        let grown = fs::read_to_string(&path).expect("a session") + "\n";
        fs::write(&path, grown).expect("a file");
        assert_eq!(state(&world, id), plain(true), "{id}: what came since is the agent's");
        compact(&world, id);
        assert_eq!(state(&world, id), compacted, "{id}");
        // Afterwards the size and the time of the file are those that it had in an earlier list.
        restore(&world, id);
        compact(&world, id);
        restore(&world, id);
        assert_eq!(state(&world, id), plain(true), "{id}");
    }
}

#[test]
fn a_restored_session_is_not_remembered_as_compacted() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    assert_eq!(state(&world, CLAUDE).2, None);
    compact(&world, CLAUDE);
    restore(&world, CLAUDE);
    // No list was made in between, and the file has its former size and time.
    assert_eq!(state(&world, CLAUDE).2, None);
    compact(&world, CLAUDE);
    let out = world.home.join("copy.jsonl").display().to_string();
    restore(&world, CLAUDE);
    let aside = ["compact", CLAUDE, "--out", &out];
    assert_eq!(world.status(&[&aside[..], &COMPACT].concat()), 0);
    assert_eq!(state(&world, CLAUDE).2, None, "only a copy of it is compacted");
}

#[test]
fn inspect_counts_the_compactions_that_are_in_the_session() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let compaction_line = || {
        let shown = world.run(&["inspect", CLAUDE, "--count=estimate"]);
        shown.lines().find_map(|line| Some(line.strip_prefix("state ")?.trim().to_owned()))
    };
    assert_eq!(compaction_line(), None);
    for _ in 0..3 {
        compact(&world, CLAUDE);
        assert_eq!(compaction_line().as_deref(), Some("compacted 1 time"));
        restore(&world, CLAUDE);
        assert_eq!(compaction_line(), None);
    }
    let twice = ["compact", CLAUDE, "--keep-turns=2", "--recipe", "transcript"];
    assert_eq!(world.status(&twice), 0);
    compact(&world, CLAUDE);
    assert_eq!(compaction_line().as_deref(), Some("compacted 2 times"));
    // Edited by another program: the session still holds what can be undone.
    let by_hand = fs::read_to_string(&path).expect("a session");
    fs::write(&path, by_hand.replacen("Thanks.", "Thank you.", 1).replacen("}\n", " }\n", 1))
        .expect("a file");
    assert!(
        compaction_line().is_some_and(|compaction_line| compaction_line.starts_with("compacted")),
        "{:?}",
        compaction_line()
    );
}

/// Copies a recorded session, with those of its sub-agents, to where its agent keeps sessions.
/// Returns false if the agent keeps none on this machine.
fn place(world: &World, fixture: &fixtures::Fixture) -> bool {
    let bytes = fixture.bytes();
    let id = "0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4";
    let path = match fixture.agent.as_str() {
        "claude" => world.claude(id, bytes),
        "codex" | "codex-scripts" => world.codex(id, bytes),
        "pi" | "pi-chat" => world.pi(id, bytes),
        "gemini" => {
            let chats = concat!(".gemini/", "tmp", "/project/chats");
            world.write(&format!("{chats}/session-2026-11-20T23-12-123ae7f3.jsonl"), bytes)
        }
        agent @ ("opencode" | "kilo") => {
            let path = world.write(&format!(".local/share/{agent}/{agent}.db"), "");
            fs::remove_file(&path).expect("it was there");
            fixtures::stores::opencode(&path, &bytes);
            path
        }
        _ => return false,
    };
    for agent in fixture.sub_agents() {
        let name = agent.file_name().expect("a name");
        let folder = path.with_extension("").join("subagents");
        fs::create_dir_all(&folder).expect("a folder");
        fs::copy(&agent, folder.join(name)).expect("a copy");
    }
    true
}

/// `list` always estimates tokens.
const ESTIMATE: &str = "--count=estimate";

/// The only session in a command's output.
fn one(world: &World, what: &str, args: &[&str]) -> Value {
    let mut found = world.json(args);
    assert_eq!(found.len(), 1, "{what}: {args:?}");
    found.swap_remove(0)
}

/// Checks that `list`, `inspect`, a plan and `render` agree on a session, and that a compaction and
/// a restore agree with them.
fn numbers_agree(world: &World, what: &str) {
    let listed = one(world, what, &["list", "--json"]);
    let session = listed["session"].as_str().expect("a path");
    let inspected = one(world, what, &["inspect", session, ESTIMATE, "--json"]);
    let planned = one(world, what, &["compact", session, ESTIMATE, "--dry-run", "--json"]);
    let rendered = one(world, what, &["render", session, "--format=html", "--out=pages", "--json"]);
    for name in ["turns", "disk_bytes", "context_tokens", "request_tokens", "calibration"] {
        let of_inspect = match &inspected[name] {
            Value::Object(fit) => {
                let fit = fit.iter().filter(|(name, _)| *name != "context_tokens");
                fit.map(|(name, value)| (name.clone(), value.clone())).collect()
            }
            other => other.clone(),
        };
        assert_eq!(listed[name], of_inspect, "{what}: {name} of list");
    }
    assert_eq!(rendered["turns"], inspected["turns"], "{what}: turns of render");
    for (name, path) in [
        ("context_tokens", "/context_tokens/before"),
        ("request_tokens", "/request_tokens/before"),
        ("disk_bytes", "/disk_bytes/before"),
        ("request_tokens", "/calibration/context_tokens"),
    ] {
        let of_plan = if path.starts_with("/calibration") {
            inspected.pointer(path)
        } else {
            planned.pointer(path)
        };
        let of_plan = of_plan.cloned().unwrap_or(Value::Null);
        assert_eq!(of_plan, inspected[name], "{what}: {path}");
    }
    let tokens = |when: &str| planned["context_tokens"][when].as_i64().expect("a number");
    let (saves, plans) = (listed["saving_tokens"].as_i64(), tokens("before") - tokens("after"));
    assert_eq!(saves, Some(plans), "{what}: what compacting saves");
    let family: u64 = planned["files"]
        .as_array()
        .expect("a list")
        .iter()
        .chain([&planned])
        .map(|file| file["disk_bytes"]["before"].as_u64().expect("a number"))
        .sum();
    assert_eq!(inspected["family"]["disk_bytes"], family, "{what}: its family");
    numbers_agree_once_written(world, what, [&listed, &inspected, &planned]);
}

/// Checks that a compaction writes what was planned, and that a restore reports what was listed.
fn numbers_agree_once_written(
    world: &World,
    what: &str,
    [listed, inspected, planned]: [&Value; 3],
) {
    let session = listed["session"].as_str().expect("a path");
    // A dry run measures what will be written.
    let written = one(world, what, &["compact", session, ESTIMATE, "--json"]);
    let lens = [planned, &written].map(|it| it["archive_bytes"].as_u64().expect("a number"));
    // A plan does not know the run and the sub-agents' packs, which the pack names.
    assert!(lens[0].abs_diff(lens[1]) <= 256, "{what}: {lens:?}");
    let after = one(world, what, &["inspect", session, ESTIMATE, "--json"]);
    for name in ["context_tokens", "disk_bytes"] {
        assert_eq!(after[name], written[name]["after"], "{what}: {name} afterwards");
    }
    let request = written.pointer("/request_tokens/after").cloned().unwrap_or(Value::Null);
    assert_eq!(after["request_tokens"], request, "{what}: the request afterwards");
    assert_eq!(after["turns"], inspected["turns"], "{what}: turns afterwards");
    let times = u64::from(written["outcome"] == "compacted");
    assert_eq!(after["compactions_in_effect"], times, "{what}: inspect");
    assert_eq!(
        one(world, what, &["list", "--json"])["compactions_in_effect"],
        times,
        "{what}: list"
    );
    if times > 0 {
        assert_eq!(world.status(&["restore", session]), 0, "{what}");
        let again = one(world, what, &["list", "--json"]);
        assert_eq!(again["compactions_in_effect"], 0, "{what}: restored");
        for name in ["turns", "disk_bytes", "context_tokens", "request_tokens"] {
            assert_eq!(again[name], listed[name], "{what}: {name} once it is restored");
        }
    }
}

#[test]
fn every_command_says_the_same_numbers_of_a_session() {
    let mut agents = std::collections::BTreeSet::new();
    for fixture in fixtures::all() {
        let world = World::new();
        if !place(&world, &fixture) {
            continue;
        }
        let what = format!("{} {}", fixture.agent, fixture.name);
        agents.insert(fixture.agent.clone());
        numbers_agree(&world, &what);
    }
    let all = ["claude", "codex", "codex-scripts", "gemini", "kilo", "opencode", "pi", "pi-chat"];
    assert_eq!(agents.iter().map(String::as_str).collect::<Vec<_>>(), all);
}

#[test]
fn a_compacted_session_with_a_damaged_archive_is_compacted() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let twice = ["compact", CLAUDE, "--keep-turns=2", "--recipe", "transcript"];
    assert_eq!(world.status(&twice), 0);
    compact(&world, CLAUDE);
    let folder = world.home.join(format!(".local/share/epitome/archive/claude/{CLAUDE}"));
    fs::write(folder.join("000001.pack"), "damaged").expect("a pack");
    assert_eq!(state(&world, CLAUDE), (1.into(), false.into(), Some("compacted")));
}

#[test]
fn a_compacted_session_without_its_archive_has_no_request() {
    let world = World::new();
    let path = world.claude(CLAUDE, fixtures::get("claude", "pricing").bytes());
    let request = || world.json(&["inspect", path.to_str().expect("text"), "--json"])[0].clone();
    let before = request()["request_tokens"].as_u64().expect("it records enough requests");
    assert!(before > request()["context_tokens"].as_u64().expect("a number") / 2);
    compact(&world, CLAUDE);
    let after = request()["request_tokens"].as_u64().expect("the archive has what it was");
    assert!(after < before, "{after} {before}");
    fs::remove_dir_all(world.home.join(".local/share/epitome/archive")).expect("an archive");
    assert_eq!(request()["request_tokens"], Value::Null);
}

/// The quoted price is stored, and shown next to the cost of the following request.
#[test]
fn the_price_of_a_compaction_is_held_against_the_request_after_it() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    // A minute after the last record.
    let now = "2026-11-18T10:01:00Z";
    let run = |args: &[&str]| {
        let output = world.command(args).env("EPITOME_NOW", now).output().expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let json = |args: &[&str]| -> Value { serde_json::from_str(&run(args)).expect("JSON") };
    let compact = ["compact", CLAUDE, "--recipe", "transcript", "--json"];
    let planned = json(&[&compact[..], &["--dry-run"]].concat());
    world::check("compact.schema.json", std::slice::from_ref(&planned));
    let quote = &planned["quote"];
    assert_eq!((&quote["cache"], &quote["model"]), (&"warm".into(), &"claude-sonnet-4-5".into()));
    let input = &quote["input_tokens"];
    assert!(input["after"].as_u64() < input["before"].as_u64(), "{quote:#}");
    assert_eq!(json(&compact)["quote"], *quote);

    let inspect = || {
        let report = json(&["inspect", CLAUDE, "--json"]);
        world::check("inspect.schema.json", std::slice::from_ref(&report));
        report["prices"].clone()
    };
    let expect = |recorded: Value| json!([{"generation": 1, "quote": quote, "recorded": recorded}]);
    assert_eq!(inspect(), expect(Value::Null));
    let printed = run(&["inspect", CLAUDE]);
    assert!(
        printed.contains("after compaction 1: quoted ") && printed.contains("; no request since"),
        "{printed}"
    );

    // Ten tokens at $3 a million, a thousand read at $0.30, and 500 written at $3.75.
    let small = fs::read_to_string(&path).expect("a session");
    let mut response: Value = small
        .lines()
        .rev()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .find(|record: &Value| record["type"] == "assistant")
        .expect("a response");
    response["parentUuid"] = response["uuid"].clone();
    response["uuid"] = json!("00000000-0000-4000-8000-00000000ffff");
    response["message"]["id"] = json!("msg_later");
    response["message"]["content"] = json!([{"type": "text", "text": "Done."}]);
    response["message"]["usage"] = json!({"input_tokens": 10, "output_tokens": 5,
        "cache_read_input_tokens": 1_000, "cache_creation_input_tokens": 500});
    fs::write(&path, format!("{small}{response}\n")).expect("a file");
    let line = small.lines().count() + 1;
    let recorded =
        json!({"line": line, "input_tokens": 1_510, "cached_tokens": 1_000, "cost": 2_205});
    assert_eq!(inspect(), expect(recorded));
    let printed = run(&["inspect", CLAUDE]);
    let is = format!("; recorded on line {line}: 1.5k, 1.0k of it cached, $0.0022");
    assert!(printed.contains(&is), "{printed}");
}
