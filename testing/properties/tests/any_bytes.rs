//! Runs the fuzz targets without a fuzzer: over their seeds, over recorded and generated sessions,
//! and over damaged versions of these. The cases are the same in every run.

use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use epitome_formats::{FORMATS, Format, find_format};
use fixtures::damage::{self, part_of};
use fixtures::generate::{self, AGENTS, WIRES};
use properties::BODIES;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Runs `body` over `n` damaged versions of `whole`. `EPITOME_FUZZ=50` makes it fifty times as
/// many, as fuzzing without a nightly compiler.
fn check(n: u32, body: impl Fn(&[u8]), whole: impl Strategy<Value = Vec<u8>> + 'static) {
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

/// The files in `fuzz/seeds/<name>`, if there are any.
fn seeds(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
    let entries = fs::read_dir(&folder).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Any seed of a target.
fn seed(name: &str) -> BoxedStrategy<Vec<u8>> {
    let seeds: Vec<Vec<u8>> =
        seeds(name).iter().map(|path| fs::read(path).expect("a seed")).collect();
    prop::sample::select(seeds).boxed()
}

fn holds(path: &Path, body: impl Fn(&[u8])) {
    let bytes = fs::read(path).expect("a seed that is listed");
    let held = std::panic::catch_unwind(AssertUnwindSafe(|| body(&bytes)));
    assert!(held.is_ok(), "{}", path.display());
}

#[test]
fn every_seed_holds() {
    for (name, body) in BODIES {
        for path in seeds(name) {
            holds(&path, body);
        }
    }
    for format in FORMATS {
        for path in seeds(format.name) {
            holds(&path, |bytes| properties::session(format, bytes));
        }
    }
}

#[test]
fn every_folder_of_seeds_is_of_a_target_or_a_format() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().expect("text");
        let is_target = BODIES.iter().any(|(target, _)| *target == name);
        assert!(is_target || find_format(&name).is_some(), "fuzz/seeds/{name}");
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
fn every_recorded_session_and_every_case_holds_for_all_readers() {
    for format in FORMATS {
        for fixture in fixtures::all() {
            holds(&fixture.path, |bytes| properties::session(format, bytes));
        }
        for case in fixtures::cases() {
            holds(&case.session, |bytes| properties::session(format, bytes));
        }
    }
}

/// Damaged sessions, cases, seeds and generated sessions of every format; and fewer of another
/// format.
#[test]
fn damaged_sessions_of_every_format_hold() {
    let of_format = |format: &'static Format| {
        check(150, |bytes| properties::session(format, bytes), part_of(format.name));
        if !seeds(format.name).is_empty() {
            check(150, |bytes| properties::session(format, bytes), seed(format.name));
        }
        if let Some(agent) = AGENTS.iter().find(|agent| **agent == format.name) {
            check(200, |bytes| properties::session(format, bytes), generate::session(agent));
        }
        if let Some(wire) = WIRES.iter().find(|wire| **wire == format.name) {
            check(100, |bytes| properties::session(format, bytes), generate::body(wire));
        }
        let other = generate::any_format().prop_map(|(_, bytes)| bytes);
        check(40, |bytes| properties::session(format, bytes), other);
    };
    std::thread::scope(|scope| {
        for format in FORMATS {
            scope.spawn(move || of_format(format));
        }
    });
}

#[test]
fn damaged_records_hold_as_json() {
    check(500, properties::json, part_of("pi"));
    check(2_000, properties::json, prop::collection::vec(any::<u8>(), 0..64));
}

#[test]
fn damaged_stubs_and_recipes_hold() {
    check(1_000, properties::stub, seed("stub"));
    check(1_000, properties::recipe, seed("recipe"));
}

#[test]
fn damaged_responses_hold() {
    check(300, properties::response, seed("response"));
}

#[test]
fn damaged_sessions_with_secrets_hold() {
    check(200, properties::redact, seed("redact"));
}

/// A conversation with answers of a model, as lines for `summary`.
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
