use proptest::prelude::*;

use super::*;

/// The number of tokens according to another implementation, `bpe-openai`.
fn other(text: &str) -> u64 {
    bpe_openai::o200k_base().count(text) as u64
}

#[track_caller]
fn check(text: &str) {
    let shown: String = text.chars().take(40).collect();
    assert_eq!(O200k::new().count(text).0, other(text), "{} bytes: {shown:?}", text.len());
}

#[test]
fn counts_stay_what_they_are() {
    // Counted by tiktoken 4.1.2 and by bpe-openai 0.3.2.
    let cases = [
        ("hello world", 2),
        ("<|endoftext|>", 7),
        ("tiktoken is great!", 6),
        ("你好，世界", 3),
        ("1234567", 3),
        ("\n", 1),
    ];
    for (text, expect) in cases {
        assert_eq!(O200k::new().count(text), Tokens(expect), "{text}");
        check(text);
    }
}

#[test]
fn a_large_text_has_the_count_of_its_parts_each_time() {
    let line = "a line of a file, number 1234567\n";
    let text = line.repeat(LARGE / line.len() + 1);
    let parts = windows(&text, WINDOW).map(|part| O200k::new().count(part)).sum::<Tokens>();
    for _ in 0..2 {
        assert_eq!(O200k::new().count(&text), parts);
    }
    let longer = format!("{text}{line}");
    assert_eq!(O200k::new().count(&longer), parts + O200k::new().count(line));
}

#[test]
fn two_implementations_agree() {
    let texts = [
        "a",
        "\0",
        "\u{fffd}",
        "it's I'LL we'Ve 'sword ''s don\u{2019}t",
        "fn main() {\n\tprintln!(\"{}\", 1_000.5e-3);\n}\n\n\n",
        "{\"a\":[1,2,{\"b\":null}],\"c\":\"\\n\\t\\u0041\"}",
        "2026-11-20T08:15:30.123Z ERROR [main] java.lang.Error: at Foo.bar(Foo.java:12)\r\n",
        "   1\u{2192}use std::fmt;\n   2\u{2192}\n",
        "┌──────┬─────┐\n│ a    │ ✓   │\n└──────┴─────┘",
        "naïve café, Übergröße, ŁÓDŹ, ΑΒΓ αβγ, Привет мир, שלום, مرحبا, नमस्ते, ไทย",
        "日本語のテキスト、カタカナ。한국어 텍스트，中文。",
        "👩‍👩‍👧 🇩🇪 ✊🏿 e\u{301}\u{301}",
        "\u{a0}\u{3000}\u{2003} x \u{85}\u{2028}y",
        "<|endoftext|><|endofprompt|><|im_start|>",
        "a/b//c\n//d\n/\n",
    ];
    for text in texts {
        check(text);
        check(&text.repeat(3_000));
    }
}

/// A pseudo-random byte that depends on `idx` only.
fn noise(idx: u64) -> u8 {
    (idx.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8
}

#[test]
fn long_runs_without_a_break_are_counted_in_bounded_time() {
    const SIZE: usize = 1_000_000;
    let base64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let texts: Vec<String> = vec![
        (0..SIZE as u64).map(|idx| char::from(base64[usize::from(noise(idx) & 63)])).collect(),
        (0..SIZE as u64)
            .map(|idx| char::from(b"0123456789abcdef"[usize::from(noise(idx) & 15)]))
            .collect(),
        "a".repeat(SIZE),
        "A".repeat(SIZE) + "a",
        "Ab".repeat(SIZE / 2),
        "é".repeat(SIZE / 2),
        " ".repeat(SIZE) + "x",
        "\n".repeat(SIZE),
        "\t ".repeat(SIZE / 2),
        " \n".repeat(SIZE / 2),
        "=".repeat(SIZE),
        "=-".repeat(SIZE / 2),
        "─".repeat(SIZE / 3),
        "\u{fffd}".repeat(SIZE / 3),
        "中文字".repeat(SIZE / 9),
        "0".repeat(SIZE),
        "a\u{301}".repeat(SIZE / 3),
        "👩‍👩‍👧".repeat(SIZE / 18),
        "<|endoftext|>".repeat(SIZE / 13),
    ];
    for text in texts {
        let (got, expect) = (O200k::new().count(&text).0, other(&text));
        let cuts = (text.len() / WINDOW + 1) as u64;
        let shown: String = text.chars().take(8).collect();
        assert!(got.abs_diff(expect) <= 2 * cuts, "{shown:?}: {got}, not {expect}");
    }
}

#[test]
fn real_text_is_cut_only_between_tokens() {
    let texts = [
        "The quick brown fox, it's said, jumped over 13 lazy dogs.\n",
        "{\"id\":4711,\"name\":\"value_a\",\"ok\":true},",
        "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。",
        "a1b2c3d4e5f60718293a4b5c6d7e8f90\n",
        "\t\t\treturn nil, fmt.Errorf(\"x: %w\", err)\n",
    ];
    for text in texts {
        let long = text.repeat(40_000 / text.len());
        for limit in [64, 100, 1_000, 30_000] {
            let sum: u64 = windows(&long, limit).map(other).sum();
            assert_eq!(sum, other(&long), "{text} in windows of {limit}");
        }
    }
}

#[test]
fn windows_are_the_text() {
    for limit in [0, 1, 2, 3, 7] {
        let text = "a é ─ 👩 \n x";
        assert_eq!(windows(text, limit).collect::<String>(), text);
        assert!(windows(text, limit).all(|window| window.len() <= limit.max(4)));
    }
}

#[test]
fn many_threads_may_count() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(O200k::new().count("hello world"), Tokens(2)));
        }
    });
}

/// Random texts, made of pieces of each kind that [`ends_token`] has a rule for, and of others.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z]{1,5}",
        "[0-9]{1,4}",
        "[ \t\r\n]{1,4}",
        "[!-/:-@\\[-`{-~]{1,3}",
        "'(s|t|re|ve|m|ll|d|S|LL)",
        "[、。，「一-三ぁ-うァ-ウ가-각]{1,3}",
        "\\PC{1,3}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_counts_as_elsewhere(text in pieces()) {
        prop_assert_eq!(O200k::new().count(&text).0, other(&text));
    }

    #[test]
    fn only_nothing_is_nothing(text in any::<String>()) {
        prop_assert_eq!(O200k::new().count(&text) == Tokens(0), text.is_empty());
    }

    #[test]
    fn a_cut_between_tokens_changes_no_count(text in pieces()) {
        let whole = other(&text);
        let is_cut = |at: &usize| text.is_char_boundary(*at) && ends_token(&text, *at);
        for at in (1..text.len()).filter(is_cut) {
            let (head, tail) = text.split_at(at);
            prop_assert_eq!(other(head) + other(tail), whole, "{:?} + {:?}", head, tail);
        }
    }
}
