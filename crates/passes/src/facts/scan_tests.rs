use FactKind::{Hash, Hyphenated, Identifier, Line, Number, Path, Url};

use super::*;

fn facts(text: &str) -> Vec<(FactKind, &str)> {
    let mut found = Vec::new();
    each_fact(text, |kind, fact| found.push((kind, fact)));
    found
}

#[test]
fn each_kind_of_fact_is_found_and_plain_words_are_none() {
    for (text, expect) in [
        ("the old readme says so", vec![]),
        ("(https://example.org/a/b/).", vec![(Url, "https://example.org/a/b")]),
        // A URL of at most ten bytes is not a fact.
        ("http://a.b http://a.bc", vec![(Url, "http://a.bc")]),
        ("git show 1f3a9c2", vec![(Hash, "1f3a9c2")]),
        ("deadbee 1234567", vec![(Number, "1234567")]),
        (
            "0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4",
            vec![(Hash, "0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4")],
        ),
        ("12 000 404 1.2.3 v1.2", vec![(Number, "404"), (Number, "1.2.3")]),
        ("Cargo.toml", vec![(Path, "Cargo.toml")]),
        ("a/b", vec![]),
        ("a/b.c", vec![(Path, "b.c"), (Path, "a/b.c")]),
        ("./src/max_len/", vec![(Path, "max_len"), (Path, "src/max_len"), (Identifier, "max_len")]),
        (
            "/home/ada/p/x.rs:7:1",
            vec![
                (Line, "x.rs:7"),
                (Path, "x.rs"),
                (Path, "p/x.rs"),
                (Path, "ada/p/x.rs"),
                (Path, "home/ada/p/x.rs"),
            ],
        ),
        (
            "readFile MAX_LEN utf8x ab1 Foo",
            vec![(Identifier, "readFile"), (Identifier, "MAX_LEN"), (Identifier, "utf8x")],
        ),
        (
            "--no-color content-type x-y well--",
            vec![(Hyphenated, "no-color"), (Hyphenated, "content-type")],
        ),
        (
            "错误在src/max_len.rs中。",
            vec![(Path, "max_len.rs"), (Path, "src/max_len.rs"), (Identifier, "max_len")],
        ),
        ("max_lenを「maxLen」に", vec![(Identifier, "max_len"), (Identifier, "maxLen")]),
        ("config.toml에서", vec![(Path, "config.toml")]),
        ("größer/straße.rs", vec![(Path, "straße.rs"), (Path, "größer/straße.rs")]),
    ] {
        assert_eq!(facts(text), expect, "{text}");
    }
}

/// A text of ASCII is scanned byte by byte, any other text character by character. Both scans find
/// the same facts.
#[test]
fn both_ways_to_read_a_text_find_the_same() {
    for byte in 0..128_u8 {
        let between = char::from(byte);
        let text = format!("src/a.rs{between}maxLen{between}{between}word.{between}x");
        let other = format!("{text} ü");
        assert_eq!(facts(&text), facts(&other), "{text:?}");
    }
}

#[test]
fn a_piece_of_text_that_is_too_long_is_skipped() {
    let text = format!("{} next_one", "a_b/".repeat(101));
    assert_eq!(facts(&text), [(Identifier, "next_one")]);
}
