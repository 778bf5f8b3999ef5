use super::*;
use serde::Deserialize;

/// A provider's response, and what is recognised in it: the provider, the limit and the size of the
/// request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    status: u16,
    expected: Option<(String, Option<u64>, Option<u64>)>,
    body: String,
}

#[test]
fn refusals_of_providers_are_told_apart_and_from_what_only_quotes_them() {
    for line in include_str!("refusals.jsonl").lines() {
        let Refused { status, expected: expect, body } = serde_json::from_str(line).expect("a row");
        let found_overflow = overflow(Some(status), &body);
        let found_overflow = found_overflow
            .map(|it| (it.provider.to_owned(), it.limit.map(|it| it.0), it.asked.map(|it| it.0)));
        assert_eq!(found_overflow, expect, "{status} {body}");
    }
}

#[test]
fn a_refusal_without_a_word_is_known_by_that_alone() {
    let known = |status, body| overflow(Some(status), body).map(|it| it.known);
    assert_eq!(known(400, "  "), Some(OverflowSign::Silence));
    assert_eq!(known(413, ""), Some(OverflowSign::Status));
    assert_eq!(known(400, "prompt is too long"), Some(OverflowSign::Words));
    assert_eq!(overflow(None, "prompt is too long").map(|it| it.known), Some(OverflowSign::Words));
}
