use proptest::prelude::*;

use super::*;
use crate::O200k;

/// The estimate must be within `percent` of the exact count.
#[track_caller]
fn check(text: &str, percent: u64) {
    let (got, exact) = (Estimate::new().count(text).0, O200k::new().count(text).0);
    assert!(got.abs_diff(exact) * 100 <= exact * percent, "{got}, not {exact}: {text:.60}");
}

#[test]
fn an_estimate_is_close_on_every_kind_of_text() {
    let cases = [
        (
            "Compaction removes what a model no longer needs. It keeps the words of the user, the \
             current request and the lines that say what failed, so that nobody is surprised \
             when a session goes on after it, and it gives back every byte when it is asked to.",
            10,
        ),
        (
            "impl Iterator for Lines<'_> {\n    type Item = usize;\n\n    fn next(&mut self) -> \
             Option<usize> {\n        let line = self.rest.split_once('\\n')?;\n        \
             self.rest = line.1;\n        Some(line.0.len())\n    }\n}\n",
            15,
        ),
        (
            "{\"type\":\"message\",\"id\":\"msg_01\",\"role\":\"assistant\",\"content\":[{\"type\":\
             \"text\",\"text\":\"Done.\"}],\"usage\":{\"input_tokens\":1204,\"output_tokens\":88}}",
            20,
        ),
        (
            "2026-11-20T08:15:30.123Z INFO  server: request finished status=200 elapsed=12ms\n\
             2026-11-20T08:15:31.007Z WARN  server: slow request path=/v1/messages \
             elapsed=2310ms\n",
            15,
        ),
        ("压缩会话时，用户的话永远不会改变，每一个字节都可以恢复。工具的输出会变短。", 20),
    ];
    for (text, percent) in cases {
        check(text, percent);
    }
}

#[test]
fn hostile_runs_are_estimated_within_reason() {
    // For such texts, the estimate must at least have the right magnitude, so that a compaction
    // starts in time, and must not overflow.
    let cases = [
        ("a", 4),
        (" ", 2),
        ("\n", 2),
        ("=", 3),
        ("0", 1),
        ("中", 2),
        ("\u{fffd}", 9),
        ("─", 5),
        ("👩", 3),
        ("aB3", 2),
    ];
    for (unit, times) in cases {
        let text = unit.repeat(100_000);
        let (got, exact) = (Estimate::new().count(&text).0, O200k::new().count(&text).0);
        assert!(got <= exact * times && exact <= got * times, "{unit:?}: {got}, not {exact}");
    }
}

#[test]
fn the_same_text_is_the_same_number_everywhere() {
    let cases = [
        ("", 0),
        ("a", 1),
        ("\n", 1),
        ("hello world", 2),
        ("let x = foo_bar(1, 22, 333);\n", 14),
        ("日本語", 2),
        ("a\n\n\n\n        b\n\n\n\n\n\n\n\n    c", 9),
        ("a      1      2      3      4      5      6      7", 22),
        ("a\t\tb\t\t\tc \t=  =   =    =     =", 16),
        ("if   x  {   y   }   \n\n\t\t\t\t}      \n      ", 17),
    ];
    let counts = cases.map(|(text, _)| (text, Estimate::new().count(text).0));
    assert_eq!(counts, cases);
}

#[test]
fn rows_of_the_table_lie_side_by_side() {
    let mut seen = vec![0_u64; FEATURES];
    let ascii: String = (0..128_u8).map(char::from).collect();
    scan(
        (ascii + "é αжשفन ก ა “ ─ → あ 中 한 ！ 👩").as_bytes(),
        |feature, times| {
            seen[feature] += times as u64;
        },
    );
    assert!(seen[SCRIPT..].iter().step_by(SCRIPT_ROW).filter(|times| **times > 0).count() >= 15);
}

/// The maximum number of tokens by which the estimate of a text may differ from the sum of the
/// estimates of two parts of it.
const BORDER: u64 = 12;

fn text() -> impl Strategy<Value = String> {
    let piece =
        prop_oneof!["[a-zA-Z]{1,30}", "[0-9 \t\r\n]{1,30}", "[!-~]{1,9}", "\\PC{1,9}", ".{1,9}"];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    #[test]
    fn only_nothing_is_nothing(text in any::<String>()) {
        prop_assert_eq!(Estimate::new().count(&text) == Tokens(0), text.is_empty());
    }

    #[test]
    fn the_whole_is_its_parts(head in text(), tail in text()) {
        let count = |text: &str| Estimate::new().count(text).0;
        let (whole, parts) = (count(&format!("{head}{tail}")), count(&head) + count(&tail));
        prop_assert!(whole.abs_diff(parts) <= BORDER, "{} and {}", whole, parts);
    }

    #[test]
    fn long_runs_are_their_parts(
        head in "[ \n=a-]",
        unit in "[ \naA=─0中é]",
        times in 0_usize..20_000,
    ) {
        let count = |text: &str| Estimate::new().count(text).0;
        let run = unit.repeat(times);
        let (whole, parts) = (count(&format!("{head}{run}")), count(&head) + count(&run));
        prop_assert!(whole.abs_diff(parts) <= BORDER, "{} and {}", whole, parts);
    }
}
