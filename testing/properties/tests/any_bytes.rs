//! The bodies of the fuzz targets, without a fuzzer: over their seeds, over recorded and generated
//! sessions, and over what damage leaves of them. The same cases every time.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

type Body = fn(&[u8]);

const BODIES: &[(&str, Body)] = &[
    ("anthropic", properties::anthropic),
    ("claude", properties::claude),
    ("codex", properties::codex),
    ("copilot", properties::copilot),
    ("cursor", properties::cursor),
    ("epitome", properties::epitome),
    ("gemini", properties::gemini),
    ("gemini-request", properties::gemini_request),
    ("json", properties::json),
    ("mini-swe", properties::mini_swe),
    ("openai-chat", properties::openai_chat),
    ("openai-responses", properties::openai_responses),
    ("opencode", properties::opencode),
    ("pack", properties::pack),
    ("pi", properties::pi),
    ("recipe", properties::recipe),
    ("redact", properties::redact),
    ("stub", properties::stub),
    ("summary", properties::summary),
    ("swe-agent", properties::swe_agent),
];

/// What may happen to bytes.
#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    RepeatLine(Index, Index),
    SwapLines(Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    // What means something in JSON, and what means something to an agent.
    let words = prop::sample::select(vec![
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\\",
        "\n",
        "\r\n",
        "\u{feff}",
        "null",
        "\\ud800",
        "1e9",
        "\"type\":\"user\",",
        "\"parentUuid\":null,",
        "\"parentId\":null,",
        "\"content\":\"\",",
        "\"replacement_history\":[],",
        "\\\"",
        "'",
        "\"$rewindTo\":\"1\",",
        "\"$set\":{\"messages\":[]},",
        "\"thought\":true,",
        "\"data\":",
        "\"state\":{},",
        "\"type\":2,",
        "\"conversation\":[{}],",
        "\"result\":\"{\\\"output\\\":\\\"x\\\"}\",",
        "\nA:\n",
        "\n[Tool call] Read\n",
    ]);
    prop_oneof![
        1 => at().prop_map(Damage::Cut),
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        4 => (at(), words).prop_map(|(at, word)| Damage::Insert(at, word.into())),
        1 => (at(), any::<[u8; 3]>()).prop_map(|(at, bytes)| Damage::Insert(at, bytes.into())),
        2 => (at(), 1_usize..40).prop_map(|(at, n)| Damage::Remove(at, n)),
        2 => (at(), at()).prop_map(|(from, to)| Damage::RepeatLine(from, to)),
        2 => (at(), at()).prop_map(|(one, other)| Damage::SwapLines(one, other)),
    ]
}

impl Damage {
    fn of(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if bytes.is_empty() {
            return bytes;
        }
        let len = bytes.len();
        match self {
            Damage::Cut(at) => bytes.truncate(at.index(len)),
            Damage::Flip(at, byte) => bytes[at.index(len)] ^= byte,
            Damage::Insert(at, more) => {
                let at = at.index(len);
                bytes.splice(at..at, more.iter().copied());
            }
            Damage::Remove(at, n) => {
                let at = at.index(len);
                bytes.drain(at..len.min(at + n));
            }
            Damage::RepeatLine(from, to) => {
                let mut lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
                let line = lines[from.index(lines.len())];
                lines.insert(to.index(lines.len()), line);
                return lines.concat();
            }
            Damage::SwapLines(one, other) => {
                let mut lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
                let (one, other) = (one.index(lines.len()), other.index(lines.len()));
                lines.swap(one, other);
                return lines.concat();
            }
        }
        bytes
    }
}

/// Runs `body` over what damage leaves of `whole`, `n` times; `EPITOME_FUZZ=50` asks for fifty
/// times as many, which is what fuzzing is without a nightly compiler.
fn check(n: u32, body: Body, whole: impl Strategy<Value = Vec<u8>>) {
    let times = std::env::var("EPITOME_FUZZ").ok().and_then(|times| times.parse().ok());
    let config =
        Config { cases: n * times.unwrap_or(1), failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let damaged = (whole, prop::collection::vec(damage(), 0..4))
        .prop_map(|(whole, damage)| damage.iter().fold(whole, |bytes, damage| damage.of(bytes)));
    let outcome = TestRunner::new_with_rng(config, rng).run(&damaged, |bytes| {
        body(&bytes);
        Ok(())
    });
    if let Err(err) = outcome {
        panic!("{err}");
    }
}

/// Some records of a recorded session, one after the other: whole sessions take too long.
fn part_of(agent: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let sessions: Vec<Vec<u8>> = (fixtures::all().iter())
        .filter(|fixture| fixture.agent.starts_with(agent))
        .map(fixtures::Fixture::bytes)
        .collect();
    (prop::sample::select(sessions), any::<Index>(), 1_usize..24).prop_map(|(session, from, n)| {
        let lines: Vec<&[u8]> = session.split_inclusive(|&byte| byte == b'\n').collect();
        let from = from.index(lines.len());
        // Records of many kilobytes are few, and take most of the time.
        let short = lines[from..].iter().filter(|line| line.len() < 6_000);
        [&lines[..1], &short.take(n).copied().collect::<Vec<_>>()].concat().concat()
    })
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
