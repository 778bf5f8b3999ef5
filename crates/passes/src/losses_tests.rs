use epitome_model::{FieldRole, ToolKind};
use samples::{Quarters, Sample};

use super::*;

/// The losses between two contexts; `from` is the first item of `session` after the compaction.
fn lost(before: &Sample, after: &Sample, session: &Sample, from: usize) -> Losses {
    let view = |it| {
        let it: &Sample = it;
        View::new(it.transcript(), it.source(), &Quarters)
    };
    let (before, after, session_view) = (view(before), view(after), view(session));
    let later: Vec<usize> = (from..session.transcript().items.len()).collect();
    losses(&before, &after, &session_view, &later)
}

/// Each piece as a line: `KIND NAME`, then, where they apply, `partly`, `resolved` or `open`, the
/// repeated call, and the number of used facts.
fn describe(losses: &Losses) -> Vec<String> {
    let line = |piece: &LostPiece| {
        let mut text = format!("{:?} {}", piece.kind, piece.name);
        if piece.partly {
            text.push_str(", partly");
        }
        if let Some(resolved) = piece.resolved {
            text.push_str(if resolved { ", resolved" } else { ", open" });
        }
        if let Some(again) = &piece.again {
            let RepeatedCall { line, call_tokens, result_tokens, because } = again;
            text.push_str(&format!(", {because:?} on {line}: {call_tokens} + {result_tokens}"));
        }
        if piece.used > 0 {
            text.push_str(&format!(", {} used", piece.used));
        }
        text
    };
    losses.pieces.iter().map(line).collect()
}

const MAIN: &str = "fn read_config() {\n    let file = open(\"settings.toml\");\n}";

/// A session up to its compaction.
fn session() -> Sample {
    Sample::new()
        .user("Never push to main.\nFix the reader.")
        .call(ToolKind::Read, "/p/CLAUDE.md")
        .output("Use tabs only.")
        .call(ToolKind::Read, "/p/src/main.rs")
        .output(MAIN)
        .call(ToolKind::Shell, "cargo test")
        .error("error: cannot find read_config\nlong output")
        .reply("The reader is in read_config.")
}

#[test]
fn what_is_in_the_context_no_more_has_left() {
    let after = Sample::new().summary("Fix the reader.");
    let losses = lost(&session(), &after, &Sample::new(), 0);
    let expect = [
        "User Never push to main. Fix the reader., partly",
        "Rule /p/CLAUDE.md",
        "Read /p/src/main.rs",
        "Error cargo test: error: cannot find read_config, open",
        "Reply The reader is in read_config.",
    ];
    assert_eq!(describe(&losses), expect);
    assert_eq!((losses.facts_before, losses.facts_gone), (7, 7));
    assert_eq!(losses.facts_used, []);
}

/// A text of the model with a decision is named by its first lost decision.
#[test]
fn a_decision_that_left_is_named() {
    let reply_text =
        "I looked.\nWe use zstd instead of gzip.\nAll good. The root cause is a lock. Now tests.";
    let session = Sample::new().user("Go.").reply(reply_text).reply("It is done.");
    for (after, expect) in [
        ("Go.", ["Decision We use zstd instead of gzip.", "Reply It is done."]),
        (
            "Go.\nWe use zstd instead of gzip.",
            ["Decision The root cause is a lock., partly", "Reply It is done."],
        ),
    ] {
        let losses = lost(&session, &Sample::new().summary(after), &Sample::new(), 0);
        assert_eq!(describe(&losses), expect);
    }
}

/// A text of the model is named by its first words and the number of its response.
#[test]
fn a_text_of_the_model_has_the_number_of_its_response() {
    let session = Sample::new().user("Los.").reply("Ich lese.").reply("Die Sperre klemmt.");
    let losses = lost(&session, &Sample::new().summary("Ich lese."), &session, 3);
    let found: Vec<_> = losses.pieces.iter().map(|it| (it.response, &*it.name)).collect();
    assert_eq!(found, [(None, "Los."), (Some(2), "Die Sperre klemmt.")]);
}

#[test]
fn a_text_whose_lines_are_there_has_not_left() {
    let numbered = "1\tfn read_config() {\n2\t    let file = open(\"settings.toml\");";
    let rest = "Use tabs only.\nNever push to main.\nFix the reader.\nlong output\n\
                The reader is in read_config.\nerror: cannot find read_config";
    let calls = "cargo test /p/src/main.rs /p/CLAUDE.md";
    let digest = format!("Digest\n{numbered}\n{rest}\n{calls}");
    let after = Sample::new().summary(&digest);
    let losses = lost(&session(), &after, &Sample::new(), 0);
    assert_eq!(describe(&losses), [""; 0]);
    assert_eq!(losses.facts_gone, 0);
}

#[test]
fn what_is_read_again_is_counted_with_its_cost() {
    let after = || Sample::new().summary("Fix it.");
    let read =
        |sample: Sample, text: &str| sample.call(ToolKind::Read, "/p/src/main.rs").output(text);
    let of_main = |later: Sample| {
        let losses = lost(&session(), &after(), &later, 1);
        describe(&losses).into_iter().find(|it| it.starts_with("Read")).expect("it left")
    };
    let again = |why: &str, line: u64, tokens: &str| {
        format!("Read /p/src/main.rs, {why} on {line}: {tokens}")
    };
    let same = read(after(), MAIN);
    assert_eq!(of_main(same), again("Same", 2, "8 + 15"));
    let other = read(after(), "fn f() {}");
    assert_eq!(of_main(other), again("Gone", 2, "8 + 3"));
    let edit = [(FieldRole::New, "fn f() {}")];
    let changed = after().call_with(ToolKind::Edit, "/p/src/main.rs", &edit).output("ok");
    assert_eq!(of_main(read(changed, "fn f() {}")), again("Changed", 4, "8 + 3"));
    // Only the first repetition is reported, because it brought the content back into the context.
    let twice = read(read(after(), MAIN), "fn f() {}");
    assert_eq!(of_main(twice), again("Same", 2, "8 + 15"));
}

#[test]
fn a_fact_is_used_if_nothing_brought_it_back() {
    let after = || Sample::new().summary("Fix it.");
    let used = |later: Sample| {
        let losses = lost(&session(), &after(), &later, 1);
        losses.facts_used.into_iter().map(|it| (it.fact, it.line, it.from)).collect::<Vec<_>>()
    };
    let says = after().reply("It is in read_config.").reply("read_config again");
    assert_eq!(used(says), [("read_config".to_owned(), 2, 8)]);
    assert_eq!(used(after().user("Rename read_config.").reply("read_config, then")), []);
    let shown = after().call(ToolKind::Search, "fn").output("fn read_config").reply("read_config");
    assert_eq!(used(shown), []);
}

#[test]
fn an_error_whose_call_succeeded_later_is_resolved() {
    let before = session().call(ToolKind::Shell, "cargo test").output("ok. 1 passed");
    let losses = lost(&before, &Sample::new().summary("Done."), &Sample::new(), 0);
    let error = describe(&losses).into_iter().find(|it| it.starts_with("Error"));
    assert_eq!(
        error.as_deref(),
        Some("Error cargo test: error: cannot find read_config, resolved")
    );
}

#[test]
fn a_plan_is_not_lost_if_there_is_a_newer_one_among_other_rules() {
    let planned = |plan: &str| {
        let rules = Sample::new().user("Go.").call(ToolKind::Read, "/p/CLAUDE.md");
        rules.output("Use tabs only.").call(ToolKind::Plan, plan).output("")
    };
    let (before, after) = (planned("First build the parser."), planned("Then write the docs."));
    assert_eq!(describe(&lost(&before, &after, &Sample::new(), 0)), [""; 0]);
}

/// Any change of a file may be the reason why a listing differs.
#[test]
fn a_changed_file_explains_a_different_listing() {
    let list = |sample: Sample, text: &str| sample.call(ToolKind::List, "/p/src").output(text);
    let before = list(Sample::new().user("Go."), "reader.rs\nwriter.rs");
    let after = || Sample::new().summary("Go.");
    let edit = [(FieldRole::New, "fn f() {}")];
    let changed = after().call_with(ToolKind::Edit, "/p/src/main.rs", &edit).output("ok");
    for (later, expect) in [
        (list(after(), "nothing"), "Result List /p/src, Gone on 2: 6 + 2"),
        (list(changed, "nothing"), "Result List /p/src, Changed on 4: 6 + 2"),
    ] {
        assert_eq!(describe(&lost(&before, &after(), &later, 1)), [expect]);
    }
}
