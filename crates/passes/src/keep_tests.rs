use epitome_model::ToolKind::Shell;
use samples::{Quarters, Sample};

use super::*;
use crate::testing::lines;

/// Two turns: items 0 to 3, and items 4 to 8. The model has not answered the last result.
fn sample() -> Sample {
    Sample::new()
        .user("One.")
        .call(Shell, "a")
        .output(&lines(20))
        .reply("First.")
        .user("Two.")
        .call(Shell, "b")
        .output(&lines(20))
        .call(Shell, "c")
        .output(&lines(20))
}

fn applied(keep: Keep) -> (Vec<usize>, KeptParts) {
    let sample = sample();
    let mut view = View::new(sample.transcript(), sample.source(), &Quarters);
    let kept = apply(keep, &mut view);
    for item in 0..9 {
        assert_eq!(view.is_kept(item), kept.items.contains(&item));
    }
    (kept.items.iter().copied().collect(), kept)
}

fn check(keep: Keep, items: &[usize], rules: &[(KeepRule, u64)]) {
    let (found, kept) = applied(keep);
    assert_eq!((found.as_slice(), kept.rules.as_slice()), (items, rules), "{keep:?}");
}

#[test]
fn each_rule_keeps_what_it_says() {
    let none = Keep::default();
    check(none, &[], &[]);
    check(Keep { turns: Some(0), ..none }, &[], &[]);
    check(Keep { turns: Some(1), ..none }, &[4, 5, 6, 7, 8], &[(KeepRule::Turns, 5)]);
    check(Keep { results: Some(1), ..none }, &[7, 8], &[(KeepRule::Results, 2)]);
    check(Keep { results: Some(2), ..none }, &[5, 6, 7, 8], &[(KeepRule::Results, 4)]);
    check(Keep { messages: Some(2), ..none }, &[7, 8], &[(KeepRule::Messages, 2)]);
    check(Keep { unanswered: true, ..none }, &[8], &[(KeepRule::Unanswered, 1)]);
    check(Keep { tokens: Some(10), ..none }, &[], &[]);
    check(Keep { tokens: Some(200), ..none }, &[7, 8], &[(KeepRule::Tokens, 2)]);
}

#[test]
fn rules_keep_their_union() {
    let keep = Keep { results: Some(1), turns: Some(1), ..Keep::default() };
    let rules = [(KeepRule::Turns, 5), (KeepRule::Results, 2)];
    check(keep, &[4, 5, 6, 7, 8], &rules);
}

#[test]
fn a_share_limits_the_results_in_the_last_tokens() {
    let keep = |share| Keep { tokens: Some(300), share, ..Keep::default() };
    check(keep(None), &[3, 4, 5, 6, 7, 8], &[(KeepRule::Tokens, 6)]);
    // A third of three results is one.
    check(keep(Some(33)), &[7, 8], &[(KeepRule::Tokens, 2)]);
    check(keep(Some(0)), &[], &[]);
}

#[test]
fn rules_that_keep_everything_give_way_to_a_tail_of_tokens() {
    let (items, kept) = applied(Keep { turns: Some(2), tokens: Some(200), ..Keep::default() });
    assert_eq!(items, [7, 8]);
    assert_eq!(kept.instead, Some(Tokens(200)));
    assert_eq!(kept.covered_everything, [KeepRule::Turns, KeepRule::Tokens]);
    // The rule for tokens alone may keep everything, because the session is small then.
    let (items, kept) = applied(Keep { tokens: Some(10_000), ..Keep::default() });
    assert_eq!((items.len(), kept.instead), (9, None));
    // The turns that the user asked for may keep everything, too.
    let (items, kept) = applied(Keep { turns: Some(2), all: All::Kept, ..Keep::default() });
    assert_eq!((items.len(), kept.instead), (9, None));
    // The last messages may keep everything, too.
    let (items, kept) = applied(Keep { messages: Some(9), ..Keep::default() });
    assert_eq!((items.len(), kept.instead), (9, None));
}

#[test]
fn the_tokens_that_are_kept_are_counted() {
    let (_, kept) = applied(Keep { results: Some(1), ..Keep::default() });
    let sample = sample();
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    assert_eq!(kept.tokens, view.tokens(7, 0) + view.tokens(8, 0));
}

/// The items that are kept of a sample.
fn kept(sample: &Sample, keep: Keep) -> Vec<usize> {
    let mut view = View::new(sample.transcript(), sample.source(), &Quarters);
    apply(keep, &mut view).items.into_iter().collect()
}

#[test]
fn entries_of_one_side_are_one_message() {
    let sample = Sample::new().user("One.").thinking("Hm.").call(Shell, "a").output("x");
    let messages = |n| kept(&sample, Keep { messages: Some(n), ..Keep::default() });
    assert_eq!(messages(1), [3]);
    assert_eq!(messages(2), [1, 2, 3]);
}

#[test]
fn a_result_in_a_record_of_the_model_is_unanswered_while_it_is_the_last() {
    let sample = || {
        Sample::new().user("One.").call(Shell, "a").output("x").with(|entry| {
            (entry.role, entry.group) = (Role::Assistant, Some("with its call".into()));
        })
    };
    let unanswered = |sample: &Sample| kept(sample, Keep { unanswered: true, ..Keep::default() });
    assert_eq!(unanswered(&sample()), [2]);
    assert_eq!(unanswered(&sample().reply("Done.")), [0; 0]);
}
