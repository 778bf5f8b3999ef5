//! Sessions for which an agent has no records of its own way: refused, and not as a bug.

use epitome::compaction::{CompactionPlan, Way};
use epitome::{ErrorKind, Loaded};
use epitome_passes::built_in;
use epitome_tokens::Estimate;

fn refused(bytes: Vec<u8>) -> String {
    let session = Loaded::read(bytes, None).expect("a session");
    let recipe = built_in("transcript").expect("a recipe");
    let planned = CompactionPlan::by(Way::Native, &session, &recipe, &Estimate);
    let err = planned.err().expect("the agent could not read such records");
    assert_eq!(err.kind(), ErrorKind::Refused, "{err}");
    assert_eq!(err.hint(), Some("--rewrite shortens it in the records it has"));
    err.to_string()
}

#[test]
fn a_session_of_pi_in_which_an_id_repeats() {
    let bytes = fixtures::get("pi", "pricing").bytes();
    let text = String::from_utf8(bytes).expect("text");
    let last = text.lines().next_back().expect("a line");
    let why = refused(format!("{text}{last}\n").into_bytes());
    assert!(why.ends_with("its id repeats"), "{why}");
}

#[test]
fn a_session_of_gemini_that_is_one_object() {
    let bytes = fixtures::get("gemini", "pricing").bytes();
    let text = String::from_utf8(bytes).expect("text");
    let mut head: serde_json::Value =
        serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    let messages: Vec<serde_json::Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|it: &serde_json::Value| it["type"] == "user" || it["type"] == "gemini")
        .collect();
    head["messages"] = messages.into();
    refused(serde_json::to_vec_pretty(&head).expect("JSON"));
}
