use epitome_model::FieldRole::{Content, New, Old, Patch, Prompt};
use epitome_model::ToolKind::{Edit, Read, Shell, Write};
use epitome_model::{Block, Text};
use samples::Sample;
use serde_json::json;

use super::*;

#[test]
fn only_lines_that_differ_are_counted() {
    let counted = |old: &str, new: &str| {
        let FileChange::Lines(lines) = difference(old.to_owned(), new.to_owned()) else {
            panic!("short texts are compared");
        };
        let added = lines.iter().filter(|line| matches!(line, Line::Added(_))).count();
        let removed = lines.iter().filter(|line| matches!(line, Line::Removed(_))).count();
        (added, removed)
    };
    for (old, new, expect) in [
        ("a\nb\nc\n", "a\nx\nc\n", (1, 1)),
        ("", "a\nb", (2, 0)),
        ("a\nb", "", (0, 2)),
        // A line feed at the end of a text is not a line of its own.
        ("a", "a\nb", (1, 0)),
        ("a\n", "a", (0, 0)),
    ] {
        assert_eq!(counted(old, new), expect, "{old:?} {new:?}");
    }
}

#[test]
fn the_signs_of_a_patch_are_counted_and_its_heads_are_not() {
    let patch = "--- a/x\n+++ b/x\n@@\n-old\n+new\n+more\n same\n";
    assert_eq!(patched(patch), (2, 1));
}

/// The call of the last entry.
fn call(sample: &Sample) -> &Call {
    let (_, entry) = sample.transcript().entries().last().expect("an entry");
    let Some(Block::Call(call)) = entry.blocks.first() else { panic!("it is a call") };
    call
}

/// A call whose arguments are the JSON of this text, as a string.
fn with_arguments(text: &str) -> Sample {
    Sample::new().call(Shell, text).with(|entry| {
        let Some(Block::Call(call)) = entry.blocks.first_mut() else { panic!("it is a call") };
        call.arguments = call.target.take().and_then(|it| it.span()).expect("it is in the source");
    })
}

#[test]
fn a_target_below_the_folder_of_the_session_is_relative() {
    let cases = [
        ("/p/src/a.rs", Some("/p"), "src/a.rs"),
        ("/pa/a.rs", Some("/p"), "/pa/a.rs"),
        ("C:\\p\\a.rs", Some("C:\\p"), "a.rs"),
        ("/p/a.rs", None, "/p/a.rs"),
        ("two\nlines\u{202e}", Some("/p"), "two lines\\u{202e}"),
    ];
    for (path, cwd, expect) in cases {
        let sample = Sample::new().call(Read, path);
        let found = target(call(&sample), cwd, sample.source());
        assert_eq!(found.as_deref(), Some(expect), "{path}");
    }
}

#[test]
fn arguments_are_an_object_a_list_or_a_text_that_holds_an_object() {
    let of = |text: &str| {
        let sample = with_arguments(text);
        arguments(call(&sample), sample.source())
    };
    assert_eq!(of(r#"{"a":1}"#), Some(json!({ "a": 1 })));
    assert_eq!(of("[1]"), None);
    assert_eq!(of("plain text"), None);
    let object = Sample::new().call(Read, "/p/a");
    let found = arguments(call(&object), object.source());
    assert_eq!(found, Some(json!({ "target": "/p/a" })));
    let long = Sample::new().call(Read, &"x".repeat(64 << 10));
    assert_eq!(arguments(call(&long), long.source()), None);
}

#[test]
fn arguments_without_a_field_are_shown_by_name() {
    let sample = Sample::new().call_with(Write, "/p/a", &[(Content, "x")]);
    let arguments = json!({
        "cont": "z", "content": "x", "contents": "y", "limit": 3, "note": "text", "target": "/p/a",
    });
    let found = rest(call(&sample), Some(&arguments), sample.source());
    let expect = [("cont", "z"), ("contents", "y"), ("limit", "3"), ("note", "text")];
    assert_eq!(found, expect.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(rest(call(&sample), None, sample.source()), []);
}

#[test]
fn arguments_that_are_no_json_are_shown_as_they_are() {
    let sample = with_arguments("*** Begin\n\"it\"");
    let found = unknown(call(&sample), None, sample.source());
    assert_eq!(found.as_deref(), Some("*** Begin\n\"it\""));
    assert_eq!(unknown(call(&sample), Some(&json!({})), sample.source()), None);
    let known = Sample::new().call_with(Write, "/p/a", &[(Content, "x")]);
    assert_eq!(unknown(call(&known), None, known.source()), None);
}

/// Changes as lines: the kind, then its text.
fn describe(changes: &[FileChange]) -> Vec<String> {
    let line = |line: &Line| match line {
        Line::Same(text) => format!("={text}"),
        Line::Added(text) => format!("+{text}"),
        Line::Removed(text) => format!("-{text}"),
        Line::Gap => "⋯".to_owned(),
    };
    let one = |change: &FileChange| match change {
        FileChange::Lines(lines) => lines.iter().map(line).collect::<Vec<_>>().join(" "),
        FileChange::Patch(text) => format!("patch {text}"),
        FileChange::Becomes(old, new) => format!("{old} → {new}"),
        FileChange::Content(text) => format!("content {text}"),
        FileChange::Named(name, text) => format!("{name}: {text}"),
    };
    changes.iter().map(one).collect()
}

/// The changes of a call with these fields: name, role, text.
fn changed(fields: &[(&'static str, FieldRole, &str)]) -> Vec<String> {
    let field = |(name, role, text): &(&'static str, FieldRole, &str)| Field {
        name: (*name).into(),
        role: *role,
        text: Text::Owned((*text).into()),
    };
    let fields: Vec<Field> = fields.iter().map(field).collect();
    describe(&changes(&fields, &Vec::new()))
}

#[test]
fn the_old_and_the_new_text_of_one_object_are_one_change() {
    assert_eq!(changed(&[("old", Old, "a\nb"), ("new", New, "a\nc")]), ["=a -b +c"]);
    assert_eq!(changed(&[("new", New, "a"), ("old", Old, "b")]), ["-b +a"]);
    assert_eq!(changed(&[("old", Old, "a")]), ["-a"]);
    assert_eq!(changed(&[("new", New, "a")]), ["+a"]);
    let two = [
        ("edits[0].old", Old, "a"),
        ("edits[1].new", New, "d"),
        ("edits[0].new", New, "b"),
        ("edits[1].old", Old, "c"),
    ];
    assert_eq!(changed(&two), ["-a +b", "-c +d"]);
    let others = [("patch", Patch, "+x"), ("content", Content, "y"), ("why", Prompt, "z")];
    assert_eq!(changed(&others), ["patch +x", "content y", "why: z"]);
}

#[test]
fn equal_lines_far_from_a_change_are_left_out() {
    let text = |first: &str, last: &str| {
        let middle: Vec<String> = (1..=9).map(|n| n.to_string()).collect();
        format!("{first}\n{}\n{last}", middle.join("\n"))
    };
    let (old, new) = (text("a", "b"), text("x", "y"));
    let expect = "-a +x =1 =2 =3 ⋯ =7 =8 =9 -b +y";
    assert_eq!(changed(&[("old", Old, &old), ("new", New, &new)]), [expect]);
}

#[test]
fn texts_that_a_recipe_left_and_giants_are_not_compared() {
    let stub = "[old: 20 lines]";
    assert_eq!(changed(&[("old", Old, stub), ("new", New, "a")]), ["[old: 20 lines] → a"]);
    let (long, end) = ("x".repeat(COMPARED), "y");
    let giant = changed(&[("old", Old, &long), ("new", New, end)]);
    assert_eq!(giant, [format!("{long} → y")]);
}

#[test]
fn what_a_call_adds_and_removes_depends_on_its_tool() {
    let count = |kind, fields: &[(FieldRole, &str)]| {
        let sample = Sample::new().call_with(kind, "/p/a", fields);
        counts(call(&sample), sample.source())
    };
    assert_eq!(count(Edit, &[(Old, "a\nb\n"), (New, "a\nc\nd\n")]), (2, 1));
    assert_eq!(count(Write, &[(Content, "a\nb\n")]), (2, 0));
    assert_eq!(count(Write, &[(Content, "[content: 20 lines]")]), (0, 0));
    assert_eq!(count(Edit, &[(Old, "[old: 20 lines]"), (New, "a\nb")]), (2, 0));
    assert_eq!(count(ToolKind::Patch, &[(Patch, "+++ b/x\n+a\n-b\n-c")]), (1, 2));
    // A patch counts only if the tool is a patch tool, and a content only if the tool changes
    // files.
    assert_eq!(count(Edit, &[(Patch, "+a")]), (0, 0));
    assert_eq!(count(Shell, &[(Content, "a\n")]), (0, 0));
}

#[test]
fn the_outcome_of_a_call_is_a_word_or_a_number_of_lines() {
    let of = |sample: Sample| {
        let (_, entry) = sample.transcript().entries().last().expect("an entry");
        let Some(Block::Output(output)) = entry.blocks.first() else { panic!("it is a result") };
        match outcome(output, sample.source()) {
            Outcome::Left(text) => text,
            Outcome::Failed => "failed".to_owned(),
            Outcome::Pictures(n) => format!("pictures: {n}"),
            Outcome::Lines(lines) => lines.to_string(),
        }
    };
    assert_eq!(of(Sample::new().output("a\nb\n")), "2 lines");
    assert_eq!(of(Sample::new().output("")), "0 lines");
    assert_eq!(of(Sample::new().error("a")), "failed");
    assert_eq!(of(Sample::new().output_with_image("", 4)), "pictures: 1");
    assert_eq!(of(Sample::new().output_with_image("a", 4)), "1 line");
    assert_eq!(of(Sample::new().error("[error: 20 lines]")), "[error: 20 lines]");
    let long = format!("[epitome k1234567: 9 lines]\n{}", "x".repeat(80));
    assert_eq!(of(Sample::new().output(&long)), "2 lines");
}

#[test]
fn a_reminder_is_no_line_of_a_result() {
    let text = "a\nb\n\n<system-reminder>\nMind it.\n</system-reminder>\n";
    let sample = Sample::new().output(text);
    let (_, entry) = sample.transcript().entries().last().expect("an entry");
    let Some(Block::Output(output)) = entry.blocks.first() else { panic!("it is a result") };
    let Outcome::Lines(lines) = outcome(output, sample.source()) else { panic!("it has lines") };
    assert_eq!(lines, Lines(2));
}

#[test]
fn numbers_before_lines_are_taken_away() {
    let cases = [
        ("  7→one\n  8→two", "one\ntwo\n"),
        ("1\tone\n", "one\n"),
        ("one\n12→two", "one\ntwo\n"),
        ("→ no number\n5 no mark", "→ no number\n5 no mark\n"),
        ("", ""),
    ];
    for (text, expect) in cases {
        assert_eq!(without_numbers(text), expect, "{text:?}");
    }
}

#[test]
fn the_lines_that_were_read_are_those_of_the_result() {
    let check = |kind, text: &str, expect: Option<Range<u64>>| {
        let sample = Sample::new().call(kind, "/p/a").output(text).with(|entry| {
            let Some(Block::Output(output)) = entry.blocks.first_mut() else { panic!("it is") };
            output.numbered = true;
        });
        let blocks = sample.transcript().entries().map(|(_, entry)| entry.blocks.first());
        let blocks: Vec<_> = blocks.collect();
        let [Some(Block::Call(call)), Some(Block::Output(output))] = blocks[..] else {
            panic!("a call and its result")
        };
        assert_eq!(line_numbers(call, output, sample.source()), expect, "{text:?}");
    };
    check(Read, "  7→one\n  8→two\n", Some(7..9));
    check(Read, "one\n12→two", Some(12..13));
    check(Read, "9→two\n8→one", None);
    check(Read, &format!("{}→x", u64::MAX), None);
    check(Read, "none", None);
    check(Shell, "7→one", None);
}

#[test]
fn arguments_that_say_nothing_are_left_out() {
    let check = |kind, lines: Option<Range<u64>>, expect: &[(&str, &str)]| {
        let arguments =
            json!({ "flag": false, "offset": 1_810, "limit": 150, "on": true, "word": "false" });
        let sample = Sample::new().call(kind, "/p/a");
        let arguments_shown =
            telling(call(&sample), Some(&arguments), lines.as_ref(), sample.source());
        let arguments_shown: Vec<(&str, &str)> =
            arguments_shown.iter().map(|(key, it)| (&**key, &**it)).collect();
        assert_eq!(arguments_shown, expect, "{kind:?} {lines:?}");
    };
    check(Read, Some(1_810..1_960), &[("on", "true"), ("word", "false")]);
    // Here `offset` counts from 0, and is left out, too. The file has fewer lines than `limit`, so
    // `limit` is kept.
    let rest = [("limit", "150"), ("on", "true"), ("word", "false")];
    check(Read, Some(1_811..1_900), &rest);
    let rest = [("limit", "150"), ("offset", "1810"), ("on", "true"), ("word", "false")];
    check(Edit, None, &rest);
    let all = [&[("flag", "false")], &rest[..]].concat();
    check(ToolKind::Search, None, &all);
}
