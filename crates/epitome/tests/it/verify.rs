//! The invariants notice any difference between a plan and its bytes.

use epitome_formats::{FORMATS, find_format};
use epitome_model::{At, Edit, Invariant, Verb, WriteMode};
use epitome_passes::{Plan, Side, verify};
use epitome_tokens::O200k;

/// A small session of Claude Code: a question, reasoning, a call, its result, an answer.
fn claude() -> String {
    let thinking = r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#;
    let input = r#"{"file_path":"a","content":"some words"}"#;
    let call = format!(r#"{{"type":"tool_use","id":"c1","name":"Write","input":{input}}}"#);
    let result = r#"{"type":"tool_result","tool_use_id":"c1","content":"a result of some words"}"#;
    let usage = r#""usage":{"output_tokens":15,"service_tier":"standard"}"#;
    let answer = r#"{"type":"text","text":"the answer"}"#;
    let messages = [
        ("user", r#""role":"user","content":"the user's words""#.to_owned()),
        ("assistant", format!(r#""id":"m","role":"assistant","content":[{thinking}]"#)),
        ("assistant", format!(r#""id":"m","role":"assistant","content":[{call}]"#)),
        ("user", format!(r#""role":"user","content":[{result}]"#)),
        ("assistant", format!(r#""id":"n","role":"assistant",{usage},"content":[{answer}]"#)),
    ];
    let mut session = String::new();
    let mut parent = "null".to_owned();
    for (n, (kind, message)) in (1..).zip(messages) {
        let place =
            format!(r#""uuid":"{n}","parentUuid":{parent},"timestamp":"t{n}","gitBranch":"main""#);
        session +=
            &format!(r#"{{"type":"{kind}",{place},"sessionId":"s","message":{{{message}}}}}"#);
        session.push('\n');
        parent = format!(r#""{n}""#);
    }
    session
}

/// The invariants that are violated when `from` is replaced by `to`, while the only edit claims to
/// change the record `item`.
fn broken(from: &str, to: &str, item: usize) -> Vec<Invariant> {
    let format = find_format("claude").expect("a known agent");
    let session = claude();
    assert!(session.contains(from), "{from}");
    let (before, after) =
        (session.clone().into_bytes(), session.replacen(from, to, 1).into_bytes());
    let old = (format.read)(&before, &mut ());
    let new = (format.read)(&after, &mut ());
    let at = At::Block { item, block: 0 };
    let edit = Edit { at, verb: Verb::Drop, pass: "test" };
    let plan = Plan::from_edit(Some(edit));
    let before = Side { transcript: &old, source: &before };
    let after = Side { transcript: &new, source: &after };
    let violations = verify(before, after, &plan, WriteMode::Splice, format.invariants, &O200k);
    let mut invariants: Vec<Invariant> =
        violations.into_iter().map(|violation| violation.invariant).collect();
    invariants.dedup();
    invariants
}

#[test]
fn an_allowed_change_violates_nothing() {
    let cases: &[(&str, &str, usize)] = &[
        (r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#, "", 1),
        (r#""content":"some words""#, r#""content":"some""#, 2),
        ("a result of some words", "a result", 3),
    ];
    for (from, to, item) in cases {
        assert_eq!(broken(from, to, *item), [], "{from} → {to}");
    }
}

#[test]
fn a_forbidden_change_violates_an_invariant() {
    let cases: &[(&str, &str, usize, &[Invariant])] = &[
        ("the user's words", "the user's", 0, &[Invariant::UserWords]),
        (r#""thinking":"hm""#, r#""thinking":"h""#, 1, &[Invariant::Reasoning]),
        ("c2ln", "c2l", 1, &[Invariant::Reasoning]),
        ("a result of some words", "a result of a great many more words", 3, &[Invariant::Growth]),
        (r#""tool_use_id":"c1""#, r#""tool_use_id":"c""#, 3, &[Invariant::Pairing]),
        (r#""id":"c1""#, r#""id":"c""#, 2, &[Invariant::Pairing]),
        (r#","content":"some words""#, "", 2, &[Invariant::Shape]),
        (r#""name":"Write""#, r#""name":"Wr""#, 2, &[Invariant::Pairing, Invariant::Shape]),
        ("the answer", "answer", 4, &[Invariant::Shape]),
        (r#""content":"some words""#, r#""content":"some w"#, 2, &[Invariant::Tree]),
        (r#""uuid":"3","#, "", 2, &[Invariant::Tree]),
        (
            r#""parentUuid":"2""#,
            r#""parentUuid":"1""#,
            2,
            &[Invariant::Tree, Invariant::Growth, Invariant::Accounting],
        ),
        (r#""timestamp":"t3""#, r#""timestamp":"""#, 2, &[Invariant::Tree, Invariant::Accounting]),
        (
            r#""output_tokens":15"#,
            r#""output_tokens":5"#,
            4,
            &[Invariant::Tree, Invariant::Accounting],
        ),
        (r#""service_tier":"standard""#, r#""service_tier":"""#, 4, &[Invariant::Accounting]),
        (r#","gitBranch":"main""#, "", 0, &[Invariant::Accounting]),
        // A record that no edit names.
        ("the answer", "an answer", 3, &[Invariant::Tree, Invariant::Growth]),
    ];
    for (from, to, item, invariants) in cases {
        assert_eq!(broken(from, to, *item), *invariants, "{from} → {to}");
    }
}

#[test]
fn every_format_has_invariants_of_its_own() {
    for format in FORMATS {
        let nothing: Vec<u8> = Vec::new();
        let transcript = (format.read)(&nothing, &mut ());
        assert_eq!(format.invariants.check(&transcript, &nothing), [], "{}", format.name);
    }
}
