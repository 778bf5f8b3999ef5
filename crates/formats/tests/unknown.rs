//! Records of newer versions are read as far as they are known; each unknown kind is reported once.

use epitome_formats::find_format;
use epitome_model::Fault;

/// The faults of a session, as `line: what`.
fn check(format: &str, session: &str, expect: &[&str]) {
    let mut faults: Vec<Fault> = Vec::new();
    (find_format(format).expect("a format").read)(&session.as_bytes().to_vec(), &mut faults);
    let reported: Vec<String> =
        faults.iter().map(|it| format!("{}: {}", it.line, it.what)).collect();
    assert_eq!(reported, expect, "{session}");
}

#[test]
fn pi_tells_what_it_does_not_know() {
    let header = r#"{"type":"session","version":4,"id":"s","cwd":"/p"}"#;
    let entry = |id: u8, members: &str| format!(r#"{{"id":"{id}","parentId":null,{members}}}"#);
    let message_line = |id, role: &str, block: &str| {
        let content = format!(r#"[{{"type":"{block}","text":"x"}}]"#);
        let message = format!(r#""message":{{"role":"{role}","content":{content}}}"#);
        entry(id, &format!(r#""type":"message",{message}"#))
    };
    let lines = [
        header.to_owned(),
        message_line(1, "user", "text"),
        entry(2, r#""type":"dream""#),
        entry(3, r#""type":"dream""#),
        message_line(4, "wizard", "text"),
        message_line(5, "assistant", "hologram"),
        message_line(6, "wizard", "hologram"),
        entry(7, r#""type":"label""#),
    ];
    check(
        "pi",
        &lines.join("\n"),
        &[
            "1: a version that is not known: 4",
            "3: an entry of a kind that is not known: dream",
            "5: a role that is not known: wizard",
            "6: a block of a kind that is not known: hologram",
        ],
    );
    check("pi", r#"{"type":"session","id":"s","cwd":"/p"}"#, &[]);
}

#[test]
fn claude_tells_what_it_does_not_know() {
    let record = |id: u8, kind: &str, content: &str| {
        let place = format!(r#""uuid":"{id}","parentUuid":null,"sessionId":"s""#);
        format!(r#"{{"type":"{kind}",{place},"message":{{"role":"user","content":{content}}}}}"#)
    };
    let inner = r#"[{"type":"tool_result","tool_use_id":"c","content":[{"type":"taste"}]}]"#;
    let lines = [
        record(1, "user", r#""hi""#),
        record(2, "assistant", r#"[{"type":"hologram"},{"type":"hologram"}]"#),
        record(3, "user", inner),
        record(4, "dream", r#""hi""#),
        record(5, "dream", r#""hi""#),
        r#"{"type":"progress","data":{},"sessionId":"s"}"#.to_owned(),
    ];
    check(
        "claude",
        &lines.join("\n"),
        &[
            "2: a block of a kind that is not known: hologram",
            "3: a block of a kind that is not known: taste",
            "4: a record of a kind that is not known: dream",
        ],
    );
}

#[test]
fn gemini_tells_what_it_does_not_know() {
    let header = r#"{"sessionId":"s","projectHash":"h"}"#;
    let message = |id: u8, kind: &str| format!(r#"{{"id":"{id}","type":"{kind}","content":"x"}}"#);
    let lines = [
        header.to_owned(),
        message(1, "user"),
        message(2, "wizard"),
        message(3, "wizard"),
        r#"{"$set":{"lastUpdated":"t"}}"#.to_owned(),
        r#"{"$forget":{"id":"1"}}"#.to_owned(),
        r#"{"$forget":{"id":"2"}}"#.to_owned(),
        message(4, "info"),
        format!(r#"{{"$set":{{"messages":[{}]}}}}"#, message(5, "herald")),
    ];
    check(
        "gemini",
        &lines.join("\n"),
        &[
            "3: a message of a kind that is not known: wizard",
            "6: an operation that is not known: $forget",
            "9: a message of a kind that is not known: herald",
        ],
    );
    let messages = [message(1, "user"), message(2, "wizard")].join(",\n");
    let old =
        format!("{{\"sessionId\":\"s\",\n\"projectHash\":\"h\",\n\"messages\":[{messages}]}}");
    check("gemini", &old, &["4: a message of a kind that is not known: wizard"]);
}

#[test]
fn opencode_tells_what_it_does_not_know() {
    let row = |table: &str, id: &str, data: &str| {
        format!(r#"{{"table":"{table}","id":"{id}","message_id":"msg_1","data":{data}}}"#)
    };
    let lines = [
        row("message", "msg_1", r#"{"role":"user"}"#),
        row("part", "prt_1", r#"{"type":"text","text":"hi"}"#),
        row("part", "prt_2", r#"{"type":"hologram"}"#),
        row("part", "prt_3", r#"{"type":"hologram"}"#),
        row("part", "prt_4", r#"{"type":"snapshot"}"#),
        row("message", "msg_2", r#"{"role":"wizard"}"#),
        row("message", "msg_3", r#"{"role":"wizard"}"#),
    ];
    let kinds =
        ["a part of a kind that is not known: hologram", "a role that is not known: wizard"];
    check(
        "opencode",
        &lines.join("\n"),
        &[&format!("3: {}", kinds[0]), &format!("6: {}", kinds[1])],
    );
    let message = r#"{"info":{"id":"msg_1","role":"wizard"},"parts":[{"type":"hologram"}]}"#;
    let export = format!(r#"{{"info":{{"id":"ses_1"}},"messages":[{message},{message}]}}"#);
    check("opencode", &export, &[&format!("2: {}", kinds[1]), &format!("3: {}", kinds[0])]);
}

/// The name of an unknown kind may be anything: it is shortened and made safe for a terminal.
#[test]
fn names_of_kinds_do_no_harm() {
    let kind = format!("\\u001b[31m\\u202e`\\n{}", "x".repeat(100));
    let session = format!(
        "{}\n{{\"type\":\"{kind}\",\"id\":\"1\",\"parentId\":null}}",
        r#"{"type":"session","version":3,"id":"s","cwd":"/p"}"#,
    );
    let name = format!("?[31m???{}…", "x".repeat(31));
    check("pi", &session, &[&format!("2: an entry of a kind that is not known: {name}")]);
    let kinds: Vec<String> =
        (0..200).map(|n| format!(r#"{{"type":"k{n}","id":"{n}","parentId":null}}"#)).collect();
    let session = format!(
        "{}\n{}",
        r#"{"type":"session","version":3,"id":"s","cwd":"/p"}"#,
        kinds.join("\n")
    );
    let mut faults: Vec<Fault> = Vec::new();
    (find_format("pi").expect("a format").read)(&session.into_bytes(), &mut faults);
    assert_eq!(faults.len(), 64, "a session of nothing but new kinds does not drown what is said");
}
