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
    assert_snapshot!(world.run(&["cost"]), @r"
    $ epitome cost
    day         sessions  requests  input  cached  written  output   cost
    2026-11-21         3        73   1.0M       0        0   16.3k  $2.15
    total              3        73   1.0M       0        0   16.3k  $2.15
    cost: what a session records, or else list prices of 2026-11-21; input is without the cache
    17 requests of unknown cost are not in it
    --- status 0
    ");
    assert_snapshot!(world.run(&["cost", "--by", "agent"]), @r"
    $ epitome cost --by agent
    agent   sessions  requests   input  cached  written  output   cost
    claude         1        39  353.9k       0        0    6.6k  $1.16
    codex          1        17  174.5k       0        0    3.8k  $0.99
    pi             1        17  499.6k       0        0    5.9k      -
    total          3        73    1.0M       0        0   16.3k  $2.15
    cost: what a session records, or else list prices of 2026-11-21; input is without the cache
    17 requests of unknown cost are not in it
    --- status 0
    ");
    assert_snapshot!(world.run(&["cost", "--since", "1h"]), @r"
    $ epitome cost --since 1h
    no requests
    --- stderr
    sessions of some agents record no tokens; `epitome list` shows all
    --- status 0
    ");
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
    assert_snapshot!(world.run_with(&["statusline"], b"no JSON"), @r"
    $ epitome statusline
    --- stderr
    error: standard input is not the JSON of a status line
      hint: Claude Code runs this command: epitome install --statusline --agent claude
    --- status 2
    ");
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
    assert_snapshot!(look(&world, &["doctor"]), @r"
    $ epitome doctor
    claude  program not found
      1 session in ~/.claude/projects
      proxy: epitome wrap claude sets ANTHROPIC_BASE_URL, ENABLE_TOOL_SEARCH for that run
      it deletes sessions that were not used for 30 days
        → set cleanupPeriodDays to 3650 in its settings.json; epitome install --agent claude --all keeps a page of each

    codex  program not found
      1 session in ~/.codex
      proxy: epitome wrap codex sets -c openai_base_url for that run

    pi  program not found
      1 session in ~/.pi/agent/sessions
      proxy: epitome wrap pi sets EPITOME_PROXY, --extension for that run

    nothing is broken
    --- status 0
    ");
    world::check("doctor.schema.json", &world.json(&["doctor", "--json"]));
    world.write(".claude/settings.json", r#"{"env":{"ANTHROPIC_BASE_URL":"https://a.example"}}"#);
    let with = look(&world, &["doctor", "--agent", "claude"]);
    let is_proxy = |line: &&str| line.contains("takes precedence");
    assert_snapshot!(with.lines().find(is_proxy).unwrap_or_default().trim_start(), @r"
    proxy: epitome wrap claude sets ANTHROPIC_BASE_URL, ENABLE_TOOL_SEARCH, but env.ANTHROPIC_BASE_URL in ~/.claude/settings.json takes precedence
    ");
    world::check("doctor.schema.json", &world.json(&["doctor", "--json"]));
    assert_snapshot!(look(&World::new(), &["doctor"]), @r"
    $ epitome doctor
    no agent that epitome knows is on this machine
    nothing is broken
    --- status 0
    ");
}
