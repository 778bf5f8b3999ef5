//! `epitome cost`, `epitome statusline` and `epitome doctor` on the command line.

use insta::assert_snapshot;
use serde_json::json;

use crate::world::{self, World};

fn world() -> World {
    let world = World::new();
    for (name, agent) in [("pricing", "claude"), ("pricing", "pi"), ("pricing", "codex")] {
        let bytes = fixtures::get(agent, name).bytes();
        match agent {
            "claude" => world.claude("0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4", bytes),
            "pi" => world.pi("01a1fb3a-c450-731a-9250-9fa9d78b0d62", bytes),
            _ => world.codex("01a1fb3b-31f2-7601-bb99-e47e04b7ff1d", bytes),
        };
    }
    world
}

#[test]
fn costs_are_a_table_by_day_or_another_name() {
    let world = world();
    assert_snapshot!("by_day", world.run(&["cost"]));
    assert_snapshot!("by_agent", world.run(&["cost", "--by", "agent"]));
    assert_snapshot!("none", world.run(&["cost", "--since", "1h"]));
    assert_eq!(world.status(&["cost", "--by", "colour"]), 2);
    for by in ["day", "week", "project", "model", "agent"] {
        world::check("cost.schema.json", &world.json(&["cost", "--json", "--by", by]));
    }
}

#[test]
fn the_status_line_is_one_line() {
    let world = world();
    let session = world.home.join(".claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl");
    let input = json!({
        "session_id": "0f3c9a52", "transcript_path": session,
        "model": { "id": "claude-sonnet-4-6" },
        "context_window": {
            "context_window_size": 200_000,
            "current_usage": { "input_tokens": 4_000, "cache_read_input_tokens": 90_000 },
        },
    });
    let line = world.run_with(&["statusline"], input.to_string().as_bytes());
    let expect = "$ epitome statusline\ncontext 47% 94.0k of 200.0k · today $0.00\n--- status 0\n";
    assert_eq!(line, expect);
    assert_snapshot!(world.run_with(&["statusline"], b"no JSON"));
}

#[cfg(unix)]
#[test]
fn input_that_cannot_be_read_is_not_reported_as_output() {
    let world = World::new();
    let folder = std::fs::File::open(&world.home).expect("a folder");
    let out = world.command(&["statusline"]).stdin(folder).output().expect("the program runs");
    let error = String::from_utf8(out.stderr).expect("text");
    let first = error.lines().next().unwrap_or_default();
    assert_eq!((first, out.status.code()), ("error: cannot read standard input", Some(3)));
}

#[test]
fn a_checkup_says_what_to_mend() {
    let world = world();
    let look = |world: &World, args: &[&str]| {
        // No agent is installed for the tests.
        let out = world.command(args).env("PATH", "/nowhere").output();
        world.terminal(args, &out.expect("the program runs"))
    };
    assert_snapshot!(look(&world, &["doctor"]));
    world::check("doctor.schema.json", &world.json(&["doctor", "--json"]));
    world.write(".claude/settings.json", r#"{"env":{"ANTHROPIC_BASE_URL":"https://a.example"}}"#);
    let with = look(&world, &["doctor", "--agent", "claude"]);
    let is_proxy = |line: &&str| line.contains("takes precedence");
    assert_snapshot!("precedence", with.lines().find(is_proxy).unwrap_or_default());
    world::check("doctor.schema.json", &world.json(&["doctor", "--json"]));
    assert_snapshot!("nothing", look(&World::new(), &["doctor"]));
}
