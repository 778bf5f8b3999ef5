use super::*;

struct Words;

impl Counter for Words {
    fn name(&self) -> &'static str {
        "words"
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(text.split_whitespace().count() as u64)
    }
}

fn lines(n: std::ops::Range<usize>) -> String {
    n.map(|n| format!("line number {n} of a file\n")).collect()
}

#[test]
fn lines_that_stand_above_are_left_out_and_named() {
    let mut seen = SeenLines::default();
    seen.add(&lines(0..40), "Read a.rs");
    let rule = IngestRule { repeats: true, ..IngestRule::default() };
    let text = format!("first of all\n{}last of all", lines(0..40));
    let shown = rule.shorten(&text, Ref::from_bytes(b"x"), &seen, &Words);
    let stub = Stub::new(Ref::from_bytes(b"x")).with_what(SHORTENED).with_lines(Lines(42));
    let body = "first of all\n[40 lines as above: Read a.rs]\nlast of all";
    assert_eq!(shown, Some(stub.with_body(body.into()).to_string()));
}

#[test]
fn an_error_is_said_again() {
    let mut seen = SeenLines::default();
    let text = format!("{}error: no such file\n{}", lines(0..30), lines(30..60));
    seen.add(&text, "Bash make");
    let rule = IngestRule { repeats: true, ..IngestRule::default() };
    let short =
        rule.shorten(&text, Ref::from_bytes(b"x"), &seen, &Words).expect("most stands above");
    let below = short.split_once('\n').map_or("", |(_, below)| below);
    assert_eq!(
        below,
        "[30 lines as above: Bash make]\nerror: no such file\n[30 lines as above: Bash make]\n"
    );
}

#[test]
fn a_giant_keeps_what_failed_and_its_ends() {
    let rule = IngestRule { cap: Some(60), ..IngestRule::default() };
    let text = format!("{}error: it broke\n{}", lines(0..200), lines(200..400));
    let shown = rule.shorten(&text, Ref::from_bytes(b"x"), &SeenLines::default(), &Words);
    let shown = shown.expect("it is a giant");
    assert!(shown.contains("…\nerror: it broke\n…"), "{shown}");
    assert!(shown.contains("line number 0 of") && Words.count(&shown) < Tokens(80));
}

/// A tokenizer with one token per this many bytes.
struct PerBytes(u64);

impl Counter for PerBytes {
    fn name(&self) -> &'static str {
        "bytes"
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(text.len() as u64 / self.0)
    }
}

#[test]
fn a_giant_of_one_line_keeps_its_ends() {
    let rule = IngestRule { cap: Some(1_000), ..IngestRule::default() };
    let text = format!("begin {} end", "é".repeat(20_000));
    let shown = rule.shorten(&text, Ref::from_bytes(b"x"), &SeenLines::default(), &PerBytes(2));
    let shown = shown.expect("it is a giant");
    let (stub, below) = shown.split_once('\n').expect("it has a body");
    assert!(stub.contains("shortened"), "{stub}");
    assert!(below.starts_with("begin é") && below.ends_with("é end"), "{below}");
    assert_eq!((below.matches('…').count(), below.lines().count()), (1, 1));
    assert!((1_400..=2_010).contains(&below.len()), "{}", below.len());
    // A text with more tokens per byte than usual is kept within its cap, too.
    let dense = IngestRule { cap: Some(600), ..IngestRule::default() };
    let shown = dense.shorten(&text, Ref::from_bytes(b"x"), &SeenLines::default(), &PerBytes(1));
    assert!(shown.is_some_and(|shown| shown.len() < 700 && shown.contains("begin é")));
}

#[test]
fn what_says_nothing_twice_stays() {
    let rule = IngestRule { repeats: true, cap: Some(10_000), ..IngestRule::default() };
    assert_eq!(
        rule.shorten(&lines(0..90), Ref::from_bytes(b"x"), &SeenLines::default(), &Words),
        None
    );
    assert_eq!(rule.shorten("short", Ref::from_bytes(b"x"), &SeenLines::default(), &Words), None);
}

#[test]
fn the_largest_of_a_batch_become_previews_until_the_rest_is_little_enough() {
    let rule = BatchRule { chars: 100, over: 30, preview: 5 };
    let of = |lens: &[usize]| {
        let texts: Vec<String> = lens.iter().map(|len| "é".repeat(*len)).collect();
        rule.too_much(&texts.iter().map(|text| (&**text, true)).collect::<Vec<_>>())
    };
    assert_eq!(of(&[50, 50]), [0; 0]);
    assert_eq!(of(&[40, 60, 50]), [1]);
    assert_eq!(of(&[70, 60, 20, 71]), [0, 3]);
    assert_eq!(of(&[30, 30, 30, 30]), [0; 0]);
    let sent = [("a".repeat(90), false), ("b".repeat(40), true)];
    let sent: Vec<(&str, bool)> = sent.iter().map(|(text, may)| (&**text, *may)).collect();
    assert_eq!(rule.too_much(&sent), [1]);
    let shown = rule.preview("ééééééé", Ref::from_bytes(b"x"));
    assert!(shown.ends_with("]\nééééé"), "{shown}");
}

#[test]
fn the_source_of_most_lines_is_named_and_of_equals_the_first() {
    let mut seen = SeenLines::default();
    seen.add(&lines(0..20), "Read a.rs");
    // Of the 20 lines of b.rs, ten are also in a.rs: only the other ten are seen first in b.rs.
    seen.add(&lines(10..30), "Read b.rs");
    let rule = IngestRule { repeats: true, ..IngestRule::default() };
    let below = |range| {
        let text = format!("{}{}", "first of all\n".repeat(40), lines(range));
        let short =
            rule.shorten(&text, Ref::from_bytes(b"x"), &seen, &Words).expect("lines repeat");
        short.lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(below(15..30), "[15 lines as above: Read b.rs]");
    assert_eq!(below(5..25), "[20 lines as above: Read a.rs]");
    assert_eq!(below(10..30), "[20 lines as above: Read a.rs]");
}

#[test]
fn a_short_run_and_lines_at_its_edge_stay() {
    let mut seen = SeenLines::default();
    seen.add(&lines(0..40), "Read a.rs");
    let rule = IngestRule { repeats: true, ..IngestRule::default() };
    let new = (0..40).map(|n| format!("a new line, number {n}\n")).collect::<String>();
    let short = |text: &str| rule.shorten(text, Ref::from_bytes(b"x"), &seen, &Words);
    // Three adjacent lines are too few to be left out, and four are enough.
    assert_eq!(short(&format!("{new}{}", lines(0..3))), None);
    let four = short(&format!("{new}{}}}\nend of it all", lines(0..4))).expect("four repeat");
    assert!(four.ends_with("\n[4 lines as above: Read a.rs]\n}\nend of it all"), "{four}");
    // Short lines between repeated lines are left out with them.
    let within = format!("{new}{}}}\n{}end of it all", lines(0..2), lines(2..4));
    let within = short(&within).expect("five repeat");
    assert!(within.ends_with("\n[5 lines as above: Read a.rs]\nend of it all"), "{within}");
}

#[test]
fn a_line_is_known_again_with_another_number_and_other_spaces() {
    let mut seen = SeenLines::default();
    seen.add("   12→let wanted = 1;\nshort", "Read a.rs");
    let cases = [
        ("let wanted = 1;", true),
        ("    let wanted = 1;  ", true),
        ("7→let wanted = 1;", true),
        ("7→  let wanted = 1;", true),
        ("a→let wanted = 1;", false),
        ("let wanted = 2;", false),
        ("short", false),
    ];
    for (line, expect) in cases {
        assert_eq!(seen.has(line), expect, "{line}");
    }
}

#[test]
fn a_giant_is_cut_to_its_cap_line_by_line() {
    let short = |text: &str, cap| {
        let lines: Vec<&str> = text.split('\n').collect();
        capped(&lines, Tokens(cap), &Words)
    };
    // Each line counts as its tokens plus one.
    assert_eq!(short("one\ntwo\nthree", 4), ("one\ntwo\n…".to_owned(), 2));
    assert_eq!(short("one\ntwo\nthree", 6), ("one\ntwo\nthree".to_owned(), 3));
    let long = "x".repeat(WIDTH + 1);
    assert_eq!(short(&long, 9), (format!("{}…", &long[1..]), 1));
    // Error lines are kept before the lines at the ends, and these before all others.
    let middle = format!("{}error: bad\n{}", "a b\n".repeat(30), "a b\n".repeat(30));
    assert_eq!(short(&middle, 3), ("…\nerror: bad\n…".to_owned(), 1));
    assert_eq!(short(&middle, 9), ("a b\na b\n…\nerror: bad\n…".to_owned(), 3));
}

#[test]
fn a_result_is_not_shortened_for_a_few_tokens_or_without_a_rule() {
    let text = "error ".repeat(150);
    let rule = IngestRule { cap: Some(1), ..IngestRule::default() };
    let short = |rule: IngestRule, text: &str| {
        rule.shorten(text, Ref::from_bytes(b"x"), &SeenLines::default(), &Words)
    };
    assert_eq!(short(rule, &text), None);
    assert_eq!(short(IngestRule::default(), &lines(0..90)), None);
    assert!(short(rule, &lines(0..90)).is_some());
    // Without one error, and with a mark for each gap, the text would have fewer bytes but more
    // tokens.
    let errors = "error: a\nbbbbbbbbbbbbbbbb\n".repeat(100);
    assert_eq!(short(IngestRule { cap: Some(299), ..rule }, &errors), None);
}

#[test]
fn files_that_are_read_may_have_a_cap_of_their_own() {
    let rule = |cap, reads| IngestRule { cap, reads, ..IngestRule::default() };
    for (rule, kind, expect) in [
        (rule(Some(4), Some(8)), Some(ToolKind::Read), Some(8)),
        (rule(Some(4), Some(8)), Some(ToolKind::Shell), Some(4)),
        (rule(Some(4), Some(8)), None, Some(4)),
        (rule(Some(4), None), Some(ToolKind::Read), Some(4)),
        (rule(None, Some(8)), Some(ToolKind::Read), Some(8)),
        (rule(None, Some(8)), Some(ToolKind::Shell), None),
    ] {
        assert_eq!(rule.rule_for(kind).cap, expect, "{rule:?} {kind:?}");
    }
}
