//! Summaries that a model writes, with a scripted one on this machine.

mod world;

use model_server::{Answer, Rough, Step};
use world::World;

const KEY: &str = "sk-test-0123456789abcdefghij";

const ANSWER: &str =
    "## What was accomplished\nAll.\n## Current state\nDone.\n## Key decisions\nNone.";

#[test]
fn the_engine_has_a_model_write_the_summary_that_is_due() {
    let world = World::new();
    let server = Rough::start([Answer::Says(Step::text(ANSWER))]).expect("a server");
    let long = "All that was said. ".repeat(2_000);
    let say = |role: &str, text: &str| {
        format!(r#"{{"op":"call","messages":[{{"role":"{role}","content":"{text}"}}]}}"#)
    };
    let lines = [
        say("user", &long),
        say("assistant", &long),
        say("user", "Go on."),
        say("assistant", "I go on."),
        say("user", "And on."),
        r#"{"op":"compact"}"#.to_owned(),
        r#"{"op":"usage"}"#.to_owned(),
    ];
    let run = |model: &[&str]| {
        let args = [&["engine", "--recipe", "s06", "--count", "estimate", "--no-log"], model];
        world.run_with(&args.concat(), lines.join("\n").as_bytes())
    };
    let url = server.url();
    let model = ["--model", "compatible/scripted", "--base-url", &url];
    let with = run(&model);
    assert!(with.contains(r#""event":"summarised""#), "{with}");
    assert!(with.contains(r#""calls":1"#), "{with}");
    assert_eq!(server.exchanges().len(), 1);
    assert!(!run(&[]).contains("summarised"), "nobody is asked whom nobody named");
    assert_eq!(server.exchanges().len(), 1);
}

#[test]
fn a_model_that_cannot_be_asked_is_said_at_once() {
    let world = World::new();
    for (model, expect) in [
        ("claude", "names no model"),
        ("openai/gpt-6-luna", "there is no key for openai"),
        ("compatible/x", "needs an address"),
    ] {
        let told = world.run_with(&["engine", "--model", model], b"{\"op\":\"hello\"}");
        assert!(told.contains(expect), "{model}: {told}");
        assert!(!told.contains(KEY), "{told}");
    }
}
