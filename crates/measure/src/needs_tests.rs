use epitome_model::{FieldRole, ToolKind};
use samples::Sample;

use crate::testing::history;

use super::*;

/// A session at whose end the user asks and the model replies once for each text in `used`, with
/// this text.
fn session(used: &[&str]) -> Sample {
    let sample = Sample::new()
        .user("Fix parseLine, please.")
        .call(ToolKind::Read, "src/parser.rs")
        .output("fn parseLine() { maxDepth(4711) }")
        .reply("It calls maxDepth.");
    used.iter().fold(sample, |sample, reply| sample.user("And then?").reply(reply))
}

#[test]
fn a_call_needs_what_its_response_names_and_what_stood_before() {
    let sample = session(&["maxDepth is too deep for otherName", "nothing"]);
    let needs = Needs::from_history(&history(&sample));
    // Of the five blocks before the response, two contain the fact: the first reply and the result.
    let fact = FactId::from_text("maxDepth");
    let need = Need { fact, weight: (1.0 + 5.0_f64 / 2.0).ln(), is_far: false };
    assert_eq!(needs.calls[2], [need]);
    assert_eq!(needs.calls[3], []);
}

#[test]
fn a_fact_that_last_stood_many_calls_ago_is_far() {
    let mut used = vec!["nothing"; FAR];
    used.push("src/parser.rs calls maxDepth");
    let near = Needs::from_history(&history(&session(&used[1..])));
    let far = Needs::from_history(&history(&session(&used)));
    let is_far = |needs: &Needs| {
        let fact = FactId::from_text("maxDepth");
        let last = needs.calls.last().expect("a call");
        last.iter().find(|need| need.fact == fact).expect("it is named").is_far
    };
    assert_eq!((is_far(&near), is_far(&far)), (false, true));
}

#[test]
fn what_is_used_after_a_cut_is_what_nothing_brought_back() {
    let mut sample = session(&["maxDepth again"]);
    sample = sample.user("See errorCode 4711.").reply("4711 and parseLine");
    let history = history(&sample);
    let needs = Needs::from_history(&history);
    let used = needs.used_after(&history, 2);
    let facts_used: Vec<_> =
        used.iter().map(|it| (&*it.text, it.origin, it.places.len())).collect();
    // The number is not among the used facts, because a message of the user had brought it back.
    let expect = [("maxDepth", Origin::Result, 2), ("parseLine", Origin::User, 2)];
    assert_eq!(facts_used, expect);
}

#[test]
fn an_edit_quotes_lines_that_stood_before() {
    let sample = Sample::new()
        .user("Fix it.")
        .call(ToolKind::Read, "a.rs")
        .output("    1\tlet first = 1;\n    2\tlet second = 2;")
        .call_with(ToolKind::Edit, "a.rs", &[(FieldRole::Old, "let second = 2;\nlet third = 3;")])
        .output("done");
    let history = history(&sample);
    let second = LineId::from_line("let second = 2;").expect("it is long enough");
    let edit = Edit { lines: vec![(second, 2)], from: 2 };
    assert_eq!(Needs::from_history(&history).edits, [(1, vec![edit])]);
}

#[test]
fn compactions_are_forced_where_there_is_enough_before_and_behind() {
    let replies = vec!["a reply of some length"; 30];
    let cuts = |n: usize| Needs::from_history(&history(&session(&replies[..n]))).cuts;
    assert_eq!(cuts(5), Vec::<usize>::new());
    assert_eq!(cuts(12), [5]);
    assert_eq!(cuts(30), [12, 14, 15, 17, 18, 20, 21, 23]);
}
