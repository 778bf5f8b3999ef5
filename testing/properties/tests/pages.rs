//! Pages and texts of sessions that mean harm.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

/// What somebody might hope a reader carries out.
const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "[x](javascript:alert(1)) <javascript:alert(1)> [y]\n\n[y]: data:text/html,x",
    "[\\[x](JaVaScRiPt:alert(1)) [x]( javascript:alert(1))",
    "![x](http://example.com/x.png) ![y][z]\n\n[z]: //example.com/z.png",
    "</pre></details></section></main><h1>mine</h1>",
    "</details>\n\n</details>\n<iframe src=//example.com>",
    "<!-- --><![CDATA[ <?php",
    "```\n</details>\n",
    "~~~~\n<b>never ended",
    "</style><style>*{display:none}</style></title></textarea>",
    "<svg/onload=alert(1)><math><mi//xlink:href=\"data:x,<script>alert(1)</script>\">",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;b&#62; &amp;lt;",
    "\u{1b}[31mred\u{1b}]8;;http://example.com\u{7}link\u{1b}]8;;\u{7}\u{1b}[2J\u{9b}5n\u{8}\u{8}",
    "\u{202e}gnp.exe\u{2066}\u{2069}\u{200f}\u{61c}\u{200b}\u{feff}\u{e0041}",
    "> > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > x",
    "| a | b |\n|---|---|\n| <b> | `|` |\n\n- [ ] x\n  1. y\n",
    "--- \n<details open ontoggle=alert(1)>\n<summary>x",
    "../../../etc/passwd?x=<>\u{0}",
];

/// Puts hostile texts at the beginning of strings of a session.
fn armed(session: &str, places: &[(Index, usize)]) -> Vec<u8> {
    let starts: Vec<usize> = session.match_indices(":\"").map(|(at, _)| at + 2).collect();
    let mut chosen: Vec<(usize, &str)> = places
        .iter()
        .map(|(at, which)| (starts[at.index(starts.len())], HOSTILE[which % HOSTILE.len()]))
        .collect();
    chosen.sort_unstable();
    let mut armed = String::new();
    let mut from = 0;
    for (at, text) in chosen {
        armed.push_str(&session[from..at]);
        let literal = serde_json::to_string(text).expect("a text serialises");
        armed.push_str(&literal[1..literal.len() - 1]);
        from = at;
    }
    armed.push_str(&session[from..]);
    armed.into_bytes()
}

fn sessions() -> Vec<String> {
    let recorded = fixtures::all().into_iter().filter(|fixture| fixture.name == "pricing");
    let whole = recorded.map(|fixture| String::from_utf8_lossy(&fixture.bytes()).into_owned());
    // The beginning is enough: whole sessions take too long.
    whole
        .map(|session| {
            let mut size = 0;
            let begin = session.split_inclusive('\n').take_while(|line| {
                size += line.len();
                size < 60_000
            });
            begin.collect::<String>()
        })
        .filter(|session| !session.is_empty())
        .collect()
}

fn check(cases: u32, damaged: impl Strategy<Value = Vec<u8>>) {
    let times = std::env::var("EPITOME_FUZZ").ok().and_then(|times| times.parse().ok());
    let cases = cases * times.unwrap_or(1);
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let outcome = TestRunner::new_with_rng(config, rng).run(&damaged, |bytes| {
        properties::page(&bytes);
        Ok(())
    });
    if let Err(err) = outcome {
        panic!("{err}");
    }
}

#[test]
fn nothing_of_a_hostile_session_is_carried_out() {
    let places = prop::collection::vec((any::<Index>(), 0..HOSTILE.len()), 1..60);
    let session = prop::sample::select(sessions());
    check(12, (session, places).prop_map(|(session, places)| armed(&session, &places)));
}

#[test]
fn nothing_of_a_damaged_session_is_carried_out() {
    let places = prop::collection::vec((any::<Index>(), 0..HOSTILE.len()), 0..20);
    let flips = prop::collection::vec((any::<Index>(), any::<u8>()), 1..6);
    let session = prop::sample::select(sessions());
    let damaged = (session, places, flips).prop_map(|(session, places, flips)| {
        let mut bytes = armed(&session, &places);
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= byte;
        }
        bytes
    });
    check(12, damaged);
}

#[test]
fn every_hostile_text_is_shown_where_everybody_looks() {
    let mut lines = Vec::new();
    for (n, text) in HOSTILE.iter().enumerate() {
        let entry = |kind: &str, n: usize, message: Value| {
            let uuid = format!("{kind}{n}");
            json!({"type": kind, "uuid": uuid, "sessionId": "s", "cwd": text, "message": message})
        };
        let input = json!({*text: text, "file_path": text, "command": text});
        let call = json!({"type": "tool_use", "id": format!("c{n}"), "name": text, "input": input});
        let said = json!([
            {"type": "thinking", "thinking": text, "signature": "x"},
            {"type": "text", "text": text},
            call,
        ]);
        let result =
            json!([{"type": "tool_result", "tool_use_id": format!("c{n}"), "content": text}]);
        let answer = json!({"id": text, "model": text, "role": "assistant", "content": said});
        lines.push(entry("user", n, json!({"role": "user", "content": text})).to_string());
        lines.push(entry("assistant", n, answer).to_string());
        lines
            .push(entry("user", 1_000 + n, json!({"role": "user", "content": result})).to_string());
    }
    properties::page(lines.join("\n").as_bytes());
    let content = "<b>".repeat(400_000);
    let message = json!({"role": "user", "content": content});
    let long = json!({"type": "user", "uuid": "u", "sessionId": "s", "message": message});
    let long = long.to_string();
    properties::page(long.as_bytes());
}
