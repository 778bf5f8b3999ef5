use std::sync::Arc;

use super::*;
use crate::testing::text;

/// The blocks of a request, each written as a letter: `u` and `m` are texts of the user and of the
/// model; `c` and `r` are calls and results, followed by their id.
fn view(blocks: &str) -> Vec<Arc<MeasuredBlock>> {
    let blocks = blocks.split_whitespace().map(|block| {
        let letter = &block[..1];
        let kind = match letter {
            "c" => BlockKind::Call,
            "r" => BlockKind::Result,
            _ => BlockKind::Text,
        };
        let by_model = matches!(letter, "m" | "c");
        let call = (kind != BlockKind::Text).then(|| block[1..].into());
        Arc::new(MeasuredBlock { kind, by_model, call, ..text(block) })
    });
    blocks.collect()
}

#[test]
fn a_request_breaks_the_rules_that_services_and_users_have() {
    use RequestRule::*;
    let check = |blocks: &str, expect: &[RequestRule]| {
        assert_eq!(broken_rules(&view(blocks), None), expect, "{blocks}");
    };
    check("u m u", &[]);
    check("u m c1 c2 r2 r1 u", &[]);
    check("", &[HasMessage]);
    check("m u", &[BeginsWithUser]);
    check("u m", &[EndsWithUser]);
    check("u c1", &[EndsWithUser, CallHasResult]);
    check("u c1 u", &[CallHasResult]);
    check("u c1 c2 r1 u", &[CallHasResult]);
    check("u m r1 u", &[ResultHasCall]);
    check("u r1 u", &[ResultHasCall, ResultsFirst]);
    check("u c1 u m r1", &[CallHasResult, ResultHasCall]);
    check("u c1 u r1", &[ResultsFirst]);
    check("u c1 r1 c1 r1", &[IdOnce]);
    check("u c1 r1 r1", &[IdOnce]);
}

#[test]
fn the_request_of_the_user_is_there_if_a_line_of_it_is() {
    let request = text("Fix the parser.\nAnd run all of its tests.");
    let check = |request: &MeasuredBlock, texts: &[&str], is_lost: bool| {
        let view: Vec<_> = texts.iter().map(|it| Arc::new(text(it))).collect();
        let lost: &[RequestRule] = if is_lost { &[RequestRule::KeepsRequest] } else { &[] };
        assert_eq!(broken_rules(&view, Some(request)), lost, "{texts:?}");
    };
    check(&request, &["Fix the parser.\nAnd run all of its tests."], false);
    check(&request, &["Summary:\nAnd run all of its tests."], false);
    check(&request, &["Something else entirely"], true);
    check(&text("Go."), &["He said: Go."], false);
    check(&text("Go."), &["He said no."], true);
}
