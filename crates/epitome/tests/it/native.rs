//! Sessions that cannot hold the agent's own compaction records: refused, and not as a bug.

use epitome::compaction::{Note, PreparedCompaction, Way};
use epitome::{ErrorKind, Loaded};
use epitome_model::{Role, Tokens, Transcript};
use epitome_passes::{Target, built_in};
use epitome_tokens::Estimate;

fn refused(bytes: Vec<u8>) -> String {
    let session = Loaded::read(bytes, None).expect("a session");
    let recipe = built_in("transcript").expect("a recipe");
    let planned = PreparedCompaction::in_way(Way::Native, &session, &recipe, &Estimate);
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

/// The record that Codex reads contains the whole context again, so it is not written for a small
/// saving.
#[test]
fn a_record_that_saves_less_than_a_twentieth_is_not_written() {
    let bytes = fixtures::get("codex", "pricing").bytes();
    let text = String::from_utf8(bytes).expect("text");
    let (first, rest) = text.split_once('\n').expect("lines");
    let planned_with = |words: usize| {
        let text = "word ".repeat(words);
        let content = format!(r#"[{{"type":"input_text","text":"{text}"}}]"#);
        let message = format!(r#"{{"type":"message","role":"user","content":{content}}}"#);
        let at = "2026-11-21T05:00:00.000Z";
        let line = format!(r#"{{"timestamp":"{at}","type":"response_item","payload":{message}}}"#);
        let session = format!("{first}\n{line}\n{rest}").into_bytes();
        let session = Loaded::read(session, None).expect("a session");
        let recipe = built_in("transcript").expect("a recipe");
        let planned = PreparedCompaction::in_way(Way::Native, &session, &recipe, &Estimate);
        let planned = planned.expect("it is planned");
        assert_eq!(planned.is_empty(), planned.plan.edits.is_empty());
        (planned.is_empty(), planned.plan.tokens_before == planned.tokens_after, {
            planned.notes.iter().any(|note| matches!(note, Note::DoesNotPay { .. }))
        })
    };
    assert_eq!(planned_with(1), (false, false, false), "without the long message it pays");
    assert_eq!(planned_with(400_000), (true, true, true));
}

/// Neither what the user keeps nor what follows it is in the digest.
#[test]
fn a_digest_stands_for_nothing_that_is_kept() {
    let session = fixtures::get("claude", "pricing").bytes();
    let session = Loaded::read(session, None).expect("a session");
    let of_user = |transcript: &Transcript| {
        transcript.context().filter(|(_, entry)| entry.role == Role::User).count()
    };
    let left_with = |turns: Option<u64>| {
        let mut recipe = built_in("digest").expect("a recipe");
        recipe.target.stored = Some(Target::from_tokens(Tokens(2_000)));
        recipe.keep.turns = turns;
        let planned =
            PreparedCompaction::in_default_way(&session, &recipe, &Estimate).expect("a plan");
        assert!(planned.stands_for.is_some(), "a digest is made");
        of_user(&planned.after)
    };
    let (none, two) = (left_with(None), left_with(Some(2)));
    assert!(none < 2 && two >= 2, "{none} and {two} messages of the user are left");
}
