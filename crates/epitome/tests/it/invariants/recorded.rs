//! The invariants over recorded sessions, including those that once broke one.

use std::path::{Path, PathBuf};

use epitome_passes::{BUILT_IN, Keep, Recipe, built_in};
use epitome_tokens::O200k;

use super::*;

#[test]
fn invariants_hold_for_recorded_sessions() {
    // Sessions that once broke an invariant.
    let mut all: Vec<PathBuf> = fixtures::cases().into_iter().map(|case| case.session).collect();
    for fixture in fixtures::all() {
        all.extend(fixture.sub_agents());
        all.push(fixture.path);
    }
    assert!(!all.is_empty());
    for path in &all {
        check_file(path);
    }
}

/// In the first session, an unreadable result is between another call and the result of that call,
/// so a digest must not end there. In the second, a share of the results is kept, and after a
/// digest there are fewer results of which to keep a share.
#[test]
fn a_digest_divides_no_call_from_its_result_and_is_made_once() {
    let cases = [
        ("codex", "a-result-between-a-call-and-its-result", 65),
        ("epitome", "a-share-of-three-results", 0),
    ];
    for (agent, name, target) in cases {
        let mut recipe = built_in("digest").expect("a built-in recipe");
        recipe.trigger = Default::default();
        recipe.keep = Keep { turns: Some(1), share: Some(34), ..Keep::default() };
        recipe.target.stored = Some(passes::Target::from_tokens(Tokens(target)));
        check(agent, &fixtures::case(agent, name).bytes(), &recipe, &Estimate, b"");
    }
}

/// More sessions than the repository holds: a folder named by the environment.
#[test]
fn invariants_hold_for_a_folder_of_sessions() {
    let Some(folder) = std::env::var_os("EPITOME_SESSIONS") else {
        let what = "invariants_hold_for_a_folder_of_sessions";
        fixtures::skipped(what, "EPITOME_SESSIONS names no folder of more sessions");
        return;
    };
    let mut open = vec![PathBuf::from(folder)];
    let mut n = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ext| ext == "jsonl") {
                n += u64::from(check_file(&path));
            }
        }
    }
    eprintln!("{n} sessions");
}

/// Whether the file has a known format.
fn check_file(path: &Path) -> bool {
    let bytes = std::fs::read(path).expect("a file");
    let Some(format) = epitome_formats::sniff(&bytes[..bytes.len().min(1 << 16)]) else {
        return false;
    };
    if epitome::storage::writer(format).is_err() {
        return false;
    }
    for (name, _) in BUILT_IN {
        let mut recipe = built_in(name).expect("a built-in recipe");
        recipe.trigger = Default::default();
        let more = b"{\"type\":\"custom\"}\n";
        let after = check(format.name, &bytes, &recipe, &O200k, more);
        if format.native.is_some() {
            check_native(format.name, (&bytes, Is::Sound), &recipe, &O200k, more);
        }
        if format.summarise.is_some() {
            // The recorded sessions are shorter than what most recipes keep.
            let keep = Keep { turns: Some(1), unanswered: true, ..Keep::default() };
            check_summary(format.name, &bytes, &Recipe { keep, ..recipe.clone() }, more);
        }
        if name == "epitome" {
            check_errors(format.name, &bytes, &after);
        }
    }
    true
}
