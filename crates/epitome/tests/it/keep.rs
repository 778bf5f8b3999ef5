//! The keep rules, tested by the number of unchanged results.

use epitome::Loaded;
use epitome::compaction::PreparedCompaction;
use epitome_formats::find_format;
use epitome_passes::{Keep, Recipe};
use epitome_tokens::Estimate;

/// A session of `results` calls, each with a result of about a hundred tokens.
fn session(results: usize) -> Loaded<Vec<u8>> {
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/p\"}\n\
         {\"type\":\"message\",\"id\":\"u\",\"parentId\":null,\
         \"message\":{\"role\":\"user\",\"content\":\"go\"}}\n",
    );
    let mut parent = String::from("u");
    for n in 0..results {
        let output = format!("{n}: nothing was found here. ").repeat(14);
        let call = serde_json::json!({
            "role": "assistant",
            "stopReason": "toolUse",
            "content": [{"type": "toolCall", "id": format!("c{n}"), "name": "bash",
                         "arguments": {"command": format!("ls {n}")}}],
        });
        let result = serde_json::json!({
            "role": "toolResult",
            "toolCallId": format!("c{n}"),
            "toolName": "bash",
            "content": [{"type": "text", "text": output}],
            "isError": false,
        });
        for (id, message) in [(format!("a{n}"), call), (format!("r{n}"), result)] {
            let record = serde_json::json!({
                "type": "message", "id": id, "parentId": parent, "message": message,
            });
            text.push_str(&record.to_string());
            text.push('\n');
            parent = id;
        }
    }
    let format = find_format("pi").expect("a known agent");
    let source = text.into_bytes();
    let transcript = (format.read)(&source, &mut ());
    Loaded { format, source, transcript, faults: Vec::new() }
}

fn check(results: usize, keep: Keep, stay: usize) {
    let session = session(results);
    let text =
        "name = \"r\"\nabout = \"Results.\"\n[[passes]]\npass = \"results\"\nstyle = \"cleared\"\n";
    let recipe = Recipe { keep, ..Recipe::parse(text).expect("a recipe") };
    let planned =
        PreparedCompaction::new(&session, &recipe, &Estimate).expect("the edits can be written");
    assert_eq!(planned.violations, []);
    assert_eq!(results - planned.plan.edits.len(), stay, "{results} results, {keep:?}");
}

#[test]
fn the_last_tokens_are_no_more_than_their_share_of_the_results() {
    let keep = |tokens, share| Keep { tokens: Some(tokens), share, ..Keep::default() };
    // A unit of a call and its result is about 110 tokens.
    check(40, keep(1_000, None), 8);
    check(40, keep(1_000, Some(25)), 8);
    check(40, keep(1_000, Some(5)), 2);
    check(40, keep(100_000, Some(25)), 10);
    check(40, keep(100_000, Some(0)), 0);
    check(40, keep(100_000, Some(100)), 40);
    // A share is rounded up: a quarter of three results is one.
    check(3, keep(100_000, Some(25)), 1);
    check(0, keep(100_000, Some(25)), 0);
}

#[test]
fn a_share_takes_nothing_from_other_rules() {
    let keep = Keep { results: Some(5), tokens: Some(1_000), share: Some(5), ..Keep::default() };
    check(40, keep, 5);
}
