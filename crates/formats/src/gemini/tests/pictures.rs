//! Pictures next to the text of a result, as Gemini CLI writes them for some models.

use epitome_model::{At, Block, Edit, Part, Source, Splice, Transcript, Verb};
use serde_json::{Value, json};

use super::{FORMAT, called, message, read_log, sent};
use crate::Writing;

fn picture(data: &str) -> Value {
    json!({"inlineData": {"mimeType": "image/png", "data": data}})
}

fn message_with(text: &str, parts: Value) -> Value {
    json!({"functionResponse":
        {"id": "a", "name": "glob", "response": {"output": text}, "parts": parts}})
}

/// The kind of each part of the first result.
fn kinds(transcript: &Transcript) -> Vec<&'static str> {
    let blocks = transcript.context().flat_map(|(_, entry)| &entry.blocks);
    let outputs = blocks.filter_map(|block| match block {
        Block::Output(output) => Some(output),
        _ => None,
    });
    let kind = |part: &Part| match part {
        Part::Text(_) => "text",
        Part::Image(_) => "picture",
        Part::Opaque(_) => "opaque",
    };
    outputs.flat_map(|output| output.parts.iter().map(kind)).collect()
}

#[test]
fn pictures_beside_a_result_are_known() {
    let pdf = json!({"inlineData": {"mimeType": "application/pdf", "data": "QUJD"}});
    let file = json!({"fileData": {"fileUri": "gs://x"}});
    let more = json!({"inlineData": {"mimeType": "image/png", "data": "QUJD"}, "x": 1});
    let empty = json!({"functionResponse":
        {"id": "a", "name": "glob", "response": {}, "parts": [picture("QUJD")]}});
    for (result, expect) in [
        (message_with("x", json!([picture("QUJD")])), vec!["text", "picture"]),
        (message_with("x", json!([picture("QUJD"), pdf])), vec!["text", "picture", "opaque"]),
        (message_with("x", json!([file, more, "x"])), vec!["text", "opaque", "opaque", "opaque"]),
        (message_with("x", json!("no list")), vec!["text", "opaque"]),
        // A result without a text has no place for a picture's stub: its pictures are opaque.
        (empty, vec!["opaque", "opaque"]),
    ] {
        let (transcript, _) = read_log(&[message("3", "user", json!([result]))]);
        assert_eq!(kinds(&transcript), expect, "{result}");
    }
}

#[test]
fn results_nested_in_pictures_are_never_followed() {
    let mut deep = json!(1);
    for _ in 0..40 {
        deep = json!([{"functionResponse": {"parts": deep}}]);
    }
    let (transcript, _) = read_log(&[message("3", "user", json!([message_with("x", deep)]))]);
    assert_eq!(kinds(&transcript), ["text", "opaque"]);
}

#[test]
fn results_with_other_pictures_are_not_said_again() {
    let one = message_with("x", json!([picture("QUJD")]));
    let other = message_with("x", json!([picture("QUJE")]));
    for (again, expect) in [(&one, "Tool: again a"), (&other, "Tool: a x")] {
        let records =
            [called("2", json!("I look."), json!([one])), message("3", "user", json!([again]))];
        let (transcript, bytes) = read_log(&records);
        assert_eq!(sent(&transcript, &bytes)[2], expect);
    }
}

/// The message of the user after an edit of its only result.
fn edited(at: At, words: &str) -> Value {
    let result = message_with("Two \"pictures\"", json!([picture("QUJD"), picture("QUJE")]));
    let (transcript, bytes) = read_log(&[message("3", "user", json!([result]))]);
    let edit = Edit { at, verb: Verb::Replace(words.into()), pass: "images" };
    let Writing::Splices(write) = FORMAT.writing else { panic!("it is written") };
    let splices = write(&transcript, &bytes, &[edit]).unwrap();
    let mut after = bytes.clone();
    for (Splice { span, with }, _) in splices.into_iter().rev() {
        after.splice(span.start as usize..span.end as usize, with);
    }
    assert!(after.len() < Source::len(&bytes) as usize + words.len());
    let line = after.split(|&byte| byte == b'\n').nth(1).unwrap();
    serde_json::from_slice(line).unwrap()
}

#[test]
fn what_is_left_of_a_picture_stands_behind_the_words() {
    let after = edited(At::Part { item: 1, block: 0, part: 1 }, "[stub]");
    let result = message_with("Two \"pictures\"\n[stub]", json!([picture("QUJE")]));
    assert_eq!(after, message("3", "user", json!([result])));
}

#[test]
fn a_shortened_result_takes_its_pictures_along() {
    let after = edited(At::Block { item: 1, block: 0 }, "[stub]");
    assert_eq!(after, message("3", "user", json!([message_with("[stub]", json!([]))])));
}
