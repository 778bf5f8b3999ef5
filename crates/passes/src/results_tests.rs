use epitome_model::ToolKind::{Read, Shell, Todo};
use samples::Sample;

use super::*;
use crate::testing::{check, describe, lines};

/// A command with a result, and a reply that answers it.
fn ran(text: &str) -> Sample {
    Sample::new().call(Shell, "run").output(text).reply("Done.")
}

fn styled(style: Style) -> Results {
    Results { style, head: 1, tail: 1, width: 12, few: 3, ..Results::default() }
}

#[test]
fn each_style_leaves_what_it_says() {
    let ends = "line 001 of … / … / line 020 of …";
    let cases = [
        (Style::Evidence, format!("[epitome k#: 20 lines] / {ends}")),
        (Style::Ends, format!("[epitome k#: 20 lines] / {ends}")),
        (Style::Beginning, "[epitome k#: 20 lines] / line 001 of ".to_owned()),
        (Style::Cleared, "[epitome k#: 20 lines]".to_owned()),
        (Style::Named, "[epitome k#]".to_owned()),
        (Style::Counted, "[output: 20 lines]".to_owned()),
        (Style::Previous, "[Previous: used Shell]".to_owned()),
        (Style::Placeholder, CLEARED.to_owned()),
    ];
    for (style, expect) in cases {
        check(&styled(style), &ran(&lines(20)), &[], &[&format!("1 = {expect}")]);
    }
}

#[test]
fn evidence_of_a_failure_is_the_lines_that_say_what_failed() {
    let text = format!("{}\nerror: cannot find `x`\n{}", lines(9), lines(9));
    let left = "1 = [epitome k#: 19 lines] / … / error: cannot find `x`";
    let pass = Results { head: 2, ..Results::default() };
    check(&pass, &ran(&text), &[], &[left]);
    // Error words in a file are not errors of the call.
    let read = Sample::new().call(Read, "/p/a").output(&text);
    check(&pass, &read, &[], &["1 = [epitome k#: 19 lines]"]);
}

#[test]
fn an_error_line_is_kept_where_it_was_said_last() {
    let text = format!("{}\nerror: cannot find `something` here\n{}", lines(9), lines(9));
    let other = format!("error: a different one, long enough\n{text}");
    let sample = Sample::new()
        .call(Shell, "run")
        .output(&other)
        .call(Shell, "run")
        .output(&text)
        .reply("Hm.");
    let expect = [
        "1 = [epitome k#: 20 lines] / error: a different one, long enough",
        "3 = [epitome k#: 19 lines] / … / error: cannot find `something` here",
    ];
    check(&Results::default(), &sample, &[], &expect);
}

#[test]
fn the_newest_results_stay() {
    let text = lines(20);
    let sample = Sample::new()
        .call(Shell, "a")
        .output(&text)
        .call(Shell, "b")
        .output(&text)
        .reply("Ok.")
        .call(Shell, "c")
        .output(&text);
    let pass = |newest, newest_answered| Results {
        newest,
        newest_answered,
        style: Style::Counted,
        ..Results::default()
    };
    let (first, second) = ("1 = [output: 20 lines]", "3 = [output: 20 lines]");
    check(&pass(1, 0), &sample, &[], &[first, second]);
    check(&pass(2, 0), &sample, &[], &[first]);
    // The model has not answered the last result: this result stays, and is not counted among the
    // newest.
    check(&pass(0, 1), &sample, &[], &[first]);
    check(&pass(0, 2), &sample, &[], &[]);
    let everywhere = Results { everywhere: true, ..pass(1, 0) };
    check(&everywhere, &sample, &[0, 1], &[first, second]);
    check(&pass(1, 0), &sample, &[0, 1], &[second]);
}

#[test]
fn the_largest_go_first_where_not_all_have_to() {
    let sample = Sample::new().call(Shell, "a").output(&lines(20));
    let sample = sample.call(Shell, "b").output(&lines(40)).reply("Ok.");
    let pass = Results { first: First::Largest, ..styled(Style::Counted) };
    check(&pass, &sample, &[], &["3 = [output: 40 lines]", "1 = [output: 20 lines]"]);
}

#[test]
fn whatever_a_limit_or_an_exemption_names_stays() {
    let text = lines(20);
    let base = styled(Style::Counted);
    let stay = [
        Results { min_bytes: 10_000, ..base.clone() },
        Results { min_chars: 10_000, ..base.clone() },
        Results { min_tokens: 10_000, ..base.clone() },
        Results { exempt: vec![Shell], ..base.clone() },
        Results { exempt_tools: vec!["shell".into()], ..base.clone() },
    ];
    for pass in stay {
        check(&pass, &ran(&text), &[], &[]);
    }
    let goes = [
        Results { min_bytes: 100, min_chars: 100, min_tokens: 100, ..base.clone() },
        Results { exempt: vec![Todo], exempt_tools: vec!["Read".into()], ..base },
    ];
    for pass in goes {
        check(&pass, &ran(&text), &[], &["1 = [output: 20 lines]"]);
    }
}

#[test]
fn errors_of_at_most_so_many_bytes_stay_whole() {
    let sample = Sample::new().call(Shell, "run").error(&lines(20)).reply("Hm.");
    let pass = |whole_errors| Results { whole_errors, ..styled(Style::Counted) };
    check(&pass(lines(20).len() as u64), &sample, &[], &[]);
    check(&pass(lines(20).len() as u64 - 1), &sample, &[], &["1 = [error: 20 lines]"]);
}

#[test]
fn a_result_that_has_a_stub_or_words_of_the_user_stays() {
    let stub = format!("[epitome k1234567: 20 lines]\n{}", lines(20));
    check(&styled(Style::Counted), &ran(&stub), &[], &[]);
    let sample = Sample::new().call(Shell, "run").output(&lines(20)).with(|entry| {
        let Some(Block::Output(output)) = entry.blocks.first_mut() else { panic!("it is") };
        output.from_user = true;
    });
    check(&styled(Style::Counted), &sample, &[], &[]);
}

#[test]
fn a_result_whose_call_is_missing_says_so_itself() {
    let sample = Sample::new().user("Go.").output(&lines(20));
    check(&styled(Style::Cleared), &sample, &[], &["1 = [epitome k#: result, 20 lines]"]);
}

#[test]
fn a_later_pass_goes_on_only_if_it_may() {
    let sample = ran(&lines(20));
    let mut view = View::new(sample.transcript(), sample.source(), &samples::Quarters);
    let edits = styled(Style::Truncated).plan(&view);
    view.mark_edited(&edits);
    assert_eq!(describe(&styled(Style::Counted).plan(&view)), [""; 0]);
    let again = Results { again: true, ..styled(Style::Counted) };
    assert_eq!(describe(&again.plan(&view)), ["1 = [output: 20 lines]"]);
}

#[test]
fn a_truncated_result_keeps_lines_at_both_ends_with_what_went_between() {
    let pass = Results { head: 2, tail: 1, few: 5, ..styled(Style::Truncated) };
    let left = "1 = line 001 of a long text / line 002 of a long text /  / \
                ... [17 lines truncated] ... /  / line 020 of a long text";
    check(&pass, &ran(&lines(20)), &[], &[left]);
    // Results with at most `few` lines, and texts that were truncated before, stay.
    let few = Results { few: 20, ..pass.clone() };
    check(&few, &ran(&lines(20)), &[], &[]);
    let before = format!("{}\n\n{}\n\nend", lines(9), truncation_mark(Lines(9)));
    check(&pass, &ran(&before), &[], &[]);
    // At either end at most half of the lines are kept.
    let many = Results { head: 99, tail: 99, few: 1, ..pass };
    check(&many, &ran(&lines(4)), &[], &[]);
}

#[test]
fn a_removed_result_leaves_its_first_line_and_its_length() {
    let expect = format!("1 = {}", removed_output_stub(Lines(20), "line 001 of a long text"));
    check(&styled(Style::Removed), &ran(&lines(20)), &[], &[&expect]);
}

#[test]
fn a_stub_above_a_text_does_not_make_it_long() {
    assert_eq!(own_words("[epitome k1234567: 20 lines]\nbelow\nit"), "below\nit");
    assert_eq!(own_words("[epitome k1234567: 20 lines]"), "");
    assert_eq!(own_words("plain\ntext"), "plain\ntext");
    assert_eq!(first_chars("aé漢", 2), "aé");
    assert_eq!(first_chars("aé漢", 9), "aé漢");
    let stubs = "words\n[epitome k1234567: image]\n[epitome k7654321: image]";
    assert_eq!(without_stubs(stubs), "words");
    assert_eq!(without_stubs("words\nmore"), "words\nmore");
}

#[test]
fn pictures_go_with_the_text_of_their_result() {
    let sample = Sample::new().call(Shell, "run").output_with_image("a few words", 40).reply("Ok.");
    // The stub is longer than the text, and shorter than the text with its image.
    let stub = "1 = [epitome k#: 11 B]";
    check(&styled(Style::Cleared), &sample, &[], &[stub]);
    check(&styled(Style::Cleared), &ran("a few words"), &[], &[]);
}
