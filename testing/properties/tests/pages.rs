//! Pages and texts of malicious sessions.

mod hostile;

use hostile::{HOSTILE, everywhere};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

/// Inserts hostile texts at the beginning of strings in a session.
fn armed(session: &str, places: &[(Index, usize)]) -> Vec<u8> {
    let starts: Vec<usize> = session.match_indices(":\"").map(|(at, _)| at + 2).collect();
    let mut chosen: Vec<(usize, &str)> = places
        .iter()
        .map(|(at, which)| (starts[at.index(starts.len())], HOSTILE[which % HOSTILE.len()]))
        .collect();
    chosen.sort_unstable();
    let mut armed = String::new();
    let mut from = 0;
    for (at, text) in chosen {
        armed.push_str(&session[from..at]);
        let literal = serde_json::to_string(text).expect("a text serialises");
        armed.push_str(&literal[1..literal.len() - 1]);
        from = at;
    }
    armed.push_str(&session[from..]);
    armed.into_bytes()
}

fn sessions() -> Vec<String> {
    let recorded = fixtures::all().into_iter().filter(|fixture| fixture.name == "pricing");
    let whole = recorded.map(|fixture| String::from_utf8_lossy(&fixture.bytes()).into_owned());
    // Use only the beginning: whole sessions take too long.
    whole
        .map(|session| {
            let mut size = 0;
            let begin = session.split_inclusive('\n').take_while(|line| {
                size += line.len();
                size < 60_000
            });
            begin.collect::<String>()
        })
        .filter(|session| !session.is_empty())
        .collect()
}

fn check(cases: u32, damaged: impl Strategy<Value = Vec<u8>>) {
    let times = std::env::var("EPITOME_FUZZ").ok().and_then(|times| times.parse().ok());
    let cases = cases * times.unwrap_or(1);
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let outcome = TestRunner::new_with_rng(config, rng).run(&damaged, |bytes| {
        properties::page(&bytes);
        Ok(())
    });
    if let Err(err) = outcome {
        panic!("{err}");
    }
}

#[test]
fn nothing_of_a_hostile_session_is_carried_out() {
    let places = prop::collection::vec((any::<Index>(), 0..HOSTILE.len()), 1..60);
    let session = prop::sample::select(sessions());
    check(12, (session, places).prop_map(|(session, places)| armed(&session, &places)));
}

#[test]
fn nothing_of_a_damaged_session_is_carried_out() {
    let places = prop::collection::vec((any::<Index>(), 0..HOSTILE.len()), 0..20);
    let flips = prop::collection::vec((any::<Index>(), any::<u8>()), 1..6);
    let session = prop::sample::select(sessions());
    let damaged = (session, places, flips).prop_map(|(session, places, flips)| {
        let mut bytes = armed(&session, &places);
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= byte;
        }
        bytes
    });
    check(12, damaged);
}

#[test]
fn every_hostile_text_is_shown_where_everybody_looks() {
    properties::page(everywhere(HOSTILE).as_bytes());
    let content = "<b>".repeat(400_000);
    let message = json!({"role": "user", "content": content});
    let long = json!({"type": "user", "uuid": "u", "sessionId": "s", "message": message});
    let long = long.to_string();
    properties::page(long.as_bytes());
}
