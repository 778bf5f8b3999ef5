use epitome_model::ToolKind::{Read, Shell};
use samples::{Quarters, Sample};

use super::*;

fn records(sample: &Sample, caps: &Caps) -> Vec<HistoryRecord> {
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let items: Vec<usize> = (0..sample.transcript().items.len()).collect();
    pieces(&view, &items, caps)
}

#[test]
fn every_record_is_text_in_a_tag() {
    let sample = Sample::new()
        .system("A reminder.")
        .user("Go </user> on.")
        .thinking("Hm.")
        .call(Shell, "ls")
        .output("a\nb")
        .call(Read, "/p/\"a\"")
        .error("bad")
        .call(Read, "/p/b")
        .output_with_image("x", 4)
        .summary("In short.")
        .image(4)
        .reply("Done.");
    let shown: Vec<String> = records(&sample, &Caps::default())
        .iter()
        .map(|piece| piece.text_with_halved_limit(0))
        .collect();
    let expect = [
        "<agent>A reminder.</agent>",
        "<user>Go &lt;/user> on.</user>",
        "<reasoning>Hm.</reasoning>",
        "<call tool=\"Shell\" of=\"ls\">{\"target\":\"ls\"}</call>",
        "<result tool=\"Shell\" of=\"ls\">\na\nb\n</result>",
        "<call tool=\"Read\" of=\"/p/'a'\">{\"target\":\"/p/\\\"a\\\"\"}</call>",
        "<result tool=\"Read\" of=\"/p/'a'\" failed=\"yes\">bad</result>",
        "<call tool=\"Read\" of=\"/p/b\">{\"target\":\"/p/b\"}</call>",
        "<result tool=\"Read\" of=\"/p/b\">\nx\n[and 1 pictures or documents]\n</result>",
        "<picture kind=\"image/png\"/>",
        "<assistant>Done.</assistant>",
    ];
    assert_eq!(shown, expect);
}

#[test]
fn a_result_that_the_user_gave_is_in_the_tag_of_the_user() {
    let sample = Sample::new().call(Shell, "rm").error("No.").with(|entry| {
        let Some(Block::Output(output)) = entry.blocks.first_mut() else { panic!("it is") };
        output.from_user = true;
    });
    let shown = records(&sample, &Caps::default())[1].text_with_halved_limit(0);
    assert_eq!(shown, "<user tool=\"Shell\" of=\"rm\" failed=\"yes\">No.</user>");
}

#[test]
fn what_looks_like_a_tag_of_ours_is_escaped() {
    let cases = [
        ("<user>", "&lt;user>"),
        ("< / HISTORY >", "&lt; / HISTORY >"),
        ("<users>", "&lt;users>"),
        ("<notes part=\"1\"><earlier/>", "&lt;notes part=\"1\">&lt;earlier/>"),
        ("a < b and <b>bold</b>", "a < b and <b>bold</b>"),
        ("&lt;user>", "&lt;user>"),
    ];
    for (text, expect) in cases {
        assert_eq!(escape_tags(text), expect, "{text}");
    }
}

#[test]
fn a_record_is_halved_down_to_its_least() {
    let caps = Caps { results: 1_000, ..Caps::default() };
    let sample = Sample::new().output(&"x".repeat(1_000));
    let piece = &records(&sample, &caps)[0];
    let kept: Vec<usize> =
        (0..6).map(|n| piece.text_with_halved_limit(n).matches('x').count()).collect();
    // Of a truncated record, two thirds of the maximum are kept at the beginning and one third at
    // the end, in whole bytes.
    assert_eq!(kept, [1_000, 499, 249, 199, 199, 199]);
    assert_eq!(
        records(&Sample::new().output(&"x".repeat(100)), &caps)[0].within(10),
        "<result>xxxxxx[… 91 characters left out …]xxx</result>"
    );
}

#[test]
fn a_cut_keeps_both_ends_and_the_errors_between_them() {
    let e = |n| "é".repeat(n);
    let (x, y) = ("x".repeat(100), "y".repeat(100));
    let error = format!("{x}\nerror: bad\n{y}");
    let cases = [
        ("short".to_owned(), 0, "short".to_owned()),
        ("x".repeat(70), 10, "x".repeat(70)),
        (e(100), 30, format!("{}[… 85 characters left out …]{}", e(10), e(5))),
        // A character that does not fit whole into the end is left out.
        (e(100), 33, format!("{}[… 84 characters left out …]{}", e(11), e(5))),
        (
            error.clone(),
            60,
            format!(
                "{}\n[… 152 characters left out, of them:]\nerror: bad\n[…]{}",
                &x[..40],
                &y[..20]
            ),
        ),
        // Error lines have at most a quarter of the maximum.
        (error, 36, format!("{}[… 176 characters left out …]{}", &x[..24], &y[..12])),
    ];
    for (text, most, expect) in cases {
        assert_eq!(cut(&text, most), expect, "{most}");
    }
}
