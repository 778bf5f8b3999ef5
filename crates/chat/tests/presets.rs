//! `--recipe s06|s08|jcli|ion|pi|epitome` in the agent's loop: each behaves like its source.

mod driver;

use driver::Driver;
use epitome_chat::Input;
use epitome_chat::machine::Event;
use epitome_model::Tokens;
use epitome_passes::built_in;
use serde_json::json;

fn begun(recipe: &str, window: u64) -> Driver {
    let mut driver = Driver::new(built_in(recipe).expect("a recipe"), window);
    driver.user("Fix the parser, and never touch vendor/.");
    driver
}

/// A file with so many lines, all different.
fn file(n: usize, lines: usize) -> String {
    (0..lines).map(|k| format!("let value_{n}_{k} = compute({});\n", n * k)).collect()
}

fn reads(driver: &mut Driver, n: usize, text: &str) {
    let (id, arguments) = (format!("c{n}"), json!({"path": format!("src/f{n}.rs")}));
    driver.calls(&[(&id, "read", arguments, text)]);
}

/// The first line of each result, with the id of its call.
fn firsts(driver: &Driver) -> Vec<String> {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    driver.results().iter().map(|(id, text)| format!("{id}: {}", first(text))).collect()
}

/// A text of so many characters.
fn words(n: usize, chars: usize) -> String {
    let text: String = (0..).map(|k| format!("word{n}x{k} ")).take(chars / 8).collect();
    text[..text.floor_char_boundary(chars)].to_owned()
}

#[test]
fn s06_forgets_old_results_before_every_request_and_summarises_above_50_000_tokens() {
    let mut driver = begun("s06", 200_000);
    reads(&mut driver, 0, &file(0, 9));
    reads(&mut driver, 1, "short");
    (2..6).for_each(|n| reads(&mut driver, n, &file(n, 300)));
    let whole = |n: usize| format!("c{n}: let value_{n}_0 = compute(0);");
    let gone = |n: usize| format!("c{n}: [Previous: used read]");
    let expect = [gone(0), "c1: short".to_owned(), gone(2), whole(3), whole(4), whole(5)];
    assert_eq!(firsts(&driver), expect);
    assert!(driver.asked.is_empty() && driver.changes().is_empty(), "{:?}", driver.changes());
    // Without a model, the conversation continues unchanged.
    driver.writes = false;
    reads(&mut driver, 6, &file(6, 4_000));
    assert_eq!(driver.asked.len(), 1, "{:?}", driver.changes());
    assert_eq!(driver.results().len(), 7);
    driver.writes = true;
    driver.calls(&[("k", "compact", json!({"focus": "the parser"}), "")]);
    let asked = driver.asked.last().expect("a question");
    assert_eq!(asked.max_tokens, 2_000);
    assert!(asked.prompt.contains("the parser"), "{}", asked.prompt);
    let body = driver.body();
    let messages = body["messages"].as_array().expect("messages");
    assert!(messages[0].to_string().contains("Fix the parser"), "{body}");
    let (id, text) = driver.results().pop().expect("the result of the tool");
    assert!(id == "k" && text.contains("summary 1"), "{text}");
    driver.accepted();
    driver.says(&words(0, 40_000));
    driver.input(Input::Compact(None));
    driver.user("And now?");
    let messages = driver.body()["messages"].clone();
    let ack = json!([{"type": "text", "text": "Understood. I go on from the summary."}]);
    assert_eq!((&messages[1]["role"], &messages[1]["content"]), (&json!("assistant"), &ack));
    driver.accepted();
}

#[test]
fn s08_previews_large_results_cuts_the_middle_and_quotes_the_request() {
    let mut driver = begun("s08", 200_000);
    // More than 200,000 characters in one batch: the largest results become previews.
    let texts = [110_000, 60_000, 50_000].map(|chars| words(1, chars));
    let call = |n: usize| (["a", "b", "c"][n], "read", json!({"path": n.to_string()}), &*texts[n]);
    driver.calls(&[call(0), call(1), call(2)]);
    let lengths: Vec<usize> = driver.results().iter().map(|(_, text)| text.len()).collect();
    assert!(matches!(lengths[..], [2_000..2_100, 1_000..1_100, 1_000..1_100]), "{lengths:?}");
    driver.says("Seen.");
    // More than 50 messages: the middle is cut out.
    for n in 0..30 {
        driver.user(&format!("Step {n}."));
        driver.says("Yes.");
    }
    let body = driver.body();
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(50));
    let body = body.to_string();
    assert_eq!((body.matches("Yes.").count(), body.matches("Seen.").count()), (24, 0));
    assert!(driver.asked.is_empty());
    // More than 50,000 characters that no pass can shorten: a summary.
    for n in 0..20 {
        driver.user(&words(n, 3_000));
        driver.says("Yes.");
    }
    driver.user("What is the current request?");
    assert_eq!(
        driver.asked.last().map(|ask| ask.max_tokens),
        Some(2_000),
        "{:?}",
        driver.changes()
    );
    assert!(driver.body().to_string().contains("What is the current request?"));
    driver.accepted();
}

#[test]
fn jcli_keeps_ten_results_and_what_carries_instructions() {
    let mut driver = begun("jcli", 1_000_000);
    let long = file(0, 40);
    for (id, tool, arguments) in [
        ("s", "skill", json!({"name": "release"})),
        ("t", "todo", json!({"items": []})),
        ("q", "ask", json!({"question": "Which?"})),
    ] {
        driver.calls(&[(id, tool, arguments, &long)]);
    }
    (0..3).for_each(|n| reads(&mut driver, n, &long));
    reads(&mut driver, 3, &file(3, 9));
    (4..14).for_each(|n| reads(&mut driver, n, &file(n, 1_000)));
    let first = long.lines().next().expect("a line");
    let mut expect: Vec<String> = ["s", "t", "q"].map(|id| format!("{id}: {first}")).to_vec();
    expect.extend((0..3).map(|n| format!("c{n}: [Previous: used read]")));
    expect.extend((3..14).map(|n| format!("c{n}: let value_{n}_0 = compute(0);")));
    assert_eq!(firsts(&driver), expect);
    assert_eq!(driver.asked.len(), 0);
    (14..24).for_each(|n| reads(&mut driver, n, &file(n, 2_400)));
    let asked = driver.asked.first().expect("a question");
    assert_eq!(asked.max_tokens, 20_000);
    assert!(asked.prompt.contains("skill"), "{}", asked.prompt);
    driver.accepted();
}

#[test]
fn ion_warns_at_70_acts_at_80_and_stops_at_60_percent() {
    let mut driver = begun("ion", 60_000);
    driver.calls(&[("k", "compact", json!({}), "")]);
    let (_, text) = driver.results().pop().expect("a result");
    assert!(text.starts_with("No compaction needed"), "{text}");
    let mut n = 0;
    while driver.changes().len() < 2 {
        reads(&mut driver, n, &file(n, 300));
        n += 1;
    }
    let changes = driver.changes();
    assert!(changes[0].starts_with("the context is 7"), "{changes:?}");
    assert!(changes[1].starts_with("context compacted ("), "{changes:?}");
    // 80 and 60 per cent of the window without the reserve.
    let after = driver.machine.context().usage().tokens;
    assert!(driver.largest < Tokens(35_200) && after < Tokens(26_400), "{after}");
    let (_, text) = &driver.results()[1];
    let lines: Vec<&str> = text.lines().collect();
    let ends = ["let value_0_24 = compute(0);", "... [251 lines truncated] ..."];
    assert_eq!((lines.len(), lines[24], lines[26]), (52, ends[0], ends[1]));
    // The user's messages cannot be shortened: a summary, as part of the prompt.
    driver.says("Seen.");
    for n in 0..40 {
        driver.user(&words(n, 4_000));
        driver.says("Yes.");
    }
    assert_eq!(driver.asked.first().map(|ask| ask.max_tokens), Some(8_000));
    let prompt = &driver.asked[0].prompt;
    let headings: Vec<&str> = prompt.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(headings.len(), 7, "{headings:?}");
    let system = driver.body()["system"].to_string();
    assert!(system.contains("Summary of what came before"), "{system}");
    driver.accepted();
}

#[test]
fn pi_only_summarises_and_updates_its_summary() {
    let mut driver = begun("pi", 60_000);
    let mut n = 0;
    while driver.asked.is_empty() {
        reads(&mut driver, n, &file(n, 300));
        n += 1;
    }
    // Until then everything is sent; afterwards at most 20,000 tokens are left.
    let room = Tokens(60_000 - 16_384);
    assert!(driver.largest <= room && driver.largest > room - Tokens(4_000), "{}", driver.largest);
    let kept: Vec<String> =
        (n - 5..n).map(|n| format!("c{n}: let value_{n}_0 = compute(0);")).collect();
    assert_eq!(firsts(&driver), kept);
    assert_eq!(driver.asked[0].max_tokens, 13_107);
    while driver.asked.len() < 2 {
        reads(&mut driver, n, &file(n, 300));
        n += 1;
    }
    let prompt = &driver.asked[1].prompt;
    assert!(prompt.starts_with("<earlier>\n## Goal\nThe work goes on."), "{prompt}");
    assert!(!prompt.contains("src/f0.rs") && prompt.contains("src/f9.rs"), "{prompt}");
    driver.accepted();
}

#[test]
fn epitome_digests_what_is_old_and_recall_returns_it() {
    let mut driver = begun("epitome", 60_000);
    let mut n = 0;
    while driver.changes().iter().all(|change| !change.contains("digest")) {
        reads(&mut driver, n, &file(n, 300));
        n += 1;
    }
    assert!(driver.asked.is_empty());
    let usage = driver.machine.context().usage();
    assert!(usage.percent <= Some(45), "{usage:?}");
    assert!(driver.body().to_string().contains("Fix the parser, and never touch vendor/."));
    let (search, line) = ("value_2_299 ", "300: let value_2_299 = compute(598);");
    driver.calls(&[("r", "recall", json!({"ref": "#3", "search": search}), "")]);
    assert_eq!(driver.results().pop(), Some(("r".to_owned(), line.to_owned())));
    driver.accepted();
}

#[test]
fn jcli_summarises_in_a_window_below_its_threshold() {
    let mut driver = begun("jcli", 60_000);
    let mut n = 0;
    // jcli keeps the last ten results whole, and ten of these results exceed the window.
    while driver.asked.is_empty() && n < 40 {
        reads(&mut driver, n, &file(n, 500));
        n += 1;
    }
    assert_eq!(driver.asked.len(), 1, "{:?}", driver.changes());
    assert!(driver.largest <= Tokens(44_000), "{}", driver.largest);
    driver.accepted();
}

#[test]
fn one_compact_is_one_undo_whatever_it_took() {
    // s06 keeps only three results, and pi only 20,000 tokens: the results must be longer than
    // that.
    for (recipe, lines) in [("s06", 400), ("jcli", 120), ("ion", 120), ("pi", 400), ("s08", 120)] {
        let mut driver = begun(recipe, 200_000);
        (0..14).for_each(|n| reads(&mut driver, n, &file(n, lines)));
        driver.says("All are read.");
        let before = driver.machine.context().usage().tokens;
        driver.input(Input::Compact(None));
        let after = driver.machine.context().usage().tokens;
        assert!(after.0 * 2 < before.0, "{recipe}: {before} {after} {:?}", driver.changes());
        driver.input(Input::Undo);
        assert_eq!(driver.machine.context().usage().tokens, before, "{recipe}");
    }
}

#[test]
fn a_compaction_by_hand_says_what_it_aims_at_and_what_it_came_to() {
    let mut driver = begun("epitome", 60_000);
    (0..8).for_each(|n| reads(&mut driver, n, &file(n, 300)));
    driver.says("All are read.");
    driver.input(Input::Compact(None));
    let changes = driver.changes();
    let says = changes.iter().any(|it| {
        it.starts_with("compacting ") && it.ends_with(" of 44.0k tokens to 9.9k at most")
    });
    assert!(says, "{changes:?}");
    let outcome = driver.shown.iter().rev().find_map(|event| match event {
        Event::Notice { text } => Some(&**text),
        _ => None,
    });
    let outcome = outcome.expect("it is reported");
    assert!(
        outcome.starts_with("Compacted: ") && outcome.contains(" of 44.0k tokens."),
        "{outcome}"
    );
    let usage = driver.machine.context().usage();
    assert!(usage.tokens <= Tokens(9_900), "{usage:?}");
    // A second compaction has nothing to do, and says why.
    driver.input(Input::Compact(None));
    let Some(Event::Notice { text }) =
        driver.shown.iter().rev().find(|it| matches!(it, Event::Notice { .. }))
    else {
        panic!("it is reported")
    };
    assert!(text.starts_with("No compaction needed: "), "{text}");
}

#[test]
fn the_tool_of_ion_shortens_results_below_the_target_of_the_recipe() {
    let mut driver = begun("ion", 60_000);
    reads(&mut driver, 0, &file(0, 600));
    for n in 0..8 {
        driver.says(&words(n, 5_500));
        driver.user("Go on.");
    }
    reads(&mut driver, 1, &file(1, 100));
    let before = driver.machine.context().usage().tokens;
    assert!(before < Tokens(26_400), "it is below 60 per cent: {before}");
    driver.calls(&[("k", "compact", json!({}), "")]);
    let (_, text) = driver.results().pop().expect("a result");
    assert!(text.starts_with("Compacted: "), "{text}");
}

#[test]
fn what_is_said_after_an_undo_does_not_contradict_itself() {
    let mut driver = begun("epitome", 60_000);
    (0..8).for_each(|n| reads(&mut driver, n, &file(n, 300)));
    driver.says("All are read.");
    driver.input(Input::Compact(None));
    driver.shown.clear();
    driver.input(Input::Undo);
    let held = "no compaction for now: the last compaction was taken back";
    assert_eq!(driver.changes(), [held]);
    driver.shown.clear();
    driver.input(Input::Compact(None));
    assert!(!driver.changes().iter().any(|it| it == held), "{:?}", driver.changes());
}
