//! The bodies of the fuzz targets, without a fuzzer: over their seeds, over recorded and generated
//! sessions, and over what damage leaves of them. The same cases every time.

use std::fs;
use std::path::{Path, PathBuf};

use fixtures::damage::{self, part_of};
use properties::{BODIES, Body};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Runs `body` over what damage leaves of `whole`, `n` times; `EPITOME_FUZZ=50` asks for fifty
/// times as many, which is what fuzzing is without a nightly compiler.
fn check(n: u32, body: Body, whole: impl Strategy<Value = Vec<u8>> + 'static) {
    let times = std::env::var("EPITOME_FUZZ").ok().and_then(|times| times.parse().ok());
    let config =
        Config { cases: n * times.unwrap_or(1), failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let damaged = damage::damaged(whole);
    let outcome = TestRunner::new_with_rng(config, rng).run(&damaged, |bytes| {
        body(&bytes);
        Ok(())
    });
    if let Err(err) = outcome {
        panic!("{err}");
    }
}

fn seeds(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
    let entries = fs::read_dir(&folder).expect("a target has a folder of seeds");
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Any seed of a target.
fn seed(name: &str) -> impl Strategy<Value = Vec<u8>> {
    let seeds: Vec<Vec<u8>> =
        seeds(name).iter().map(|path| fs::read(path).expect("a seed")).collect();
    prop::sample::select(seeds)
}

#[test]
fn every_seed_holds() {
    for (name, body) in BODIES {
        for path in seeds(name) {
            let bytes = fs::read(&path).unwrap();
            let held = std::panic::catch_unwind(|| body(&bytes));
            assert!(held.is_ok(), "{}", path.display());
        }
    }
}

#[test]
fn every_target_has_a_body_that_is_tried_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut targets: Vec<String> =
        entries.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    targets.sort();
    assert_eq!(targets, BODIES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

#[test]
fn every_recorded_session_holds_for_all_readers() {
    for fixture in fixtures::all() {
        properties::pi(&fixture.bytes());
        properties::claude(&fixture.bytes());
        properties::codex(&fixture.bytes());
        properties::gemini(&fixture.bytes());
        properties::opencode(&fixture.bytes());
    }
}

#[test]
fn damaged_sessions_of_pi_hold() {
    check(400, properties::pi, part_of("pi"));
    check(200, properties::pi, fixtures::generate::session("pi"));
}

#[test]
fn damaged_sessions_of_claude_code_hold() {
    check(400, properties::claude, part_of("claude"));
    check(200, properties::claude, fixtures::generate::session("claude"));
}

#[test]
fn damaged_sessions_of_codex_hold() {
    check(400, properties::codex, part_of("codex"));
    check(200, properties::codex, fixtures::generate::session("codex"));
}

#[test]
fn damaged_sessions_that_are_only_read_hold() {
    let bodies = [("mini-swe", properties::mini_swe as Body), ("swe-agent", properties::swe_agent)];
    for (name, body) in bodies {
        check(100, body, seed(name));
    }
    check(200, properties::copilot, seed("copilot"));
    check(400, properties::cursor, seed("cursor"));
}

#[test]
fn damaged_sessions_of_gemini_cli_hold() {
    check(400, properties::gemini, part_of("gemini"));
    check(200, properties::gemini, fixtures::generate::session("gemini"));
}

#[test]
fn damaged_sessions_of_opencode_hold() {
    check(200, properties::opencode, part_of("opencode"));
    check(400, properties::opencode, fixtures::generate::session("opencode"));
}

#[test]
fn damaged_logs_of_live_contexts_hold() {
    check(200, properties::epitome, seed("epitome"));
    check(400, properties::epitome, fixtures::generate::session("epitome"));
}

#[test]
fn damaged_requests_hold() {
    let bodies = [
        ("anthropic", properties::anthropic as Body),
        ("openai-chat", properties::openai_chat),
        ("openai-responses", properties::openai_responses),
        ("gemini-request", properties::gemini_request),
    ];
    for (wire, body) in bodies {
        check(60, body, seed(wire));
        check(100, body, fixtures::generate::body(wire));
    }
}

#[test]
fn a_session_of_the_other_agent_holds() {
    check(100, properties::codex, part_of("pi"));
    check(100, properties::pi, part_of("claude"));
    check(100, properties::claude, part_of("pi"));
}

#[test]
fn damaged_records_hold_as_json() {
    check(500, properties::json, part_of("pi"));
    check(2_000, properties::json, prop::collection::vec(any::<u8>(), 0..64));
}

#[test]
fn damaged_stubs_and_recipes_hold() {
    for (name, body) in [("stub", properties::stub as Body), ("recipe", properties::recipe)] {
        check(1_000, body, seed(name));
    }
}

#[test]
fn damaged_sessions_with_secrets_hold() {
    check(200, properties::redact, seed("redact"));
}

/// A talk, and what a model says of it.
fn talk() -> impl Strategy<Value = Vec<u8>> {
    let windows = prop::sample::select(vec![1, 900, 1_500, 1_800, 3_000, 9_000, 60_000]);
    let line = prop_oneof![
        2 => "u[ -~é]{0,80}",
        2 => "a[ -~]{0,80}",
        4 => "c[0-9]{1,40}[ -~]{0,40}",
        1 => "k[ -~]{0,20}",
        2 => "=## Goal\\|[ -~]{0,60}\\|## Next\\|[ -~]{0,60}",
        1 => "=[ -~|#]{0,60}",
        1 => "[ltrsfon][ -~]{0,20}",
    ];
    (windows, prop::collection::vec(line, 0..60))
        .prop_map(|(window, lines)| format!("{window}\n{}", lines.join("\n")).into_bytes())
}

#[test]
fn summaries_hold_whatever_a_model_says() {
    check(150, properties::summary, seed("summary"));
    check(150, properties::summary, talk());
}

#[test]
fn damaged_packs_hold() {
    check(200, properties::pack, seed("pack"));
}
