//! Format detection, and rare records.

use epitome_formats::FORMATS;

/// Files of no format, and request bodies whose API is only known by details.
#[test]
fn bodies_are_told_apart() {
    let known = |text: &str| {
        let found = FORMATS.iter().filter(|it| (it.sniff)(text.as_bytes()));
        found.map(|format| format.name).collect::<Vec<_>>().join(",")
    };
    let user = r#"{"role":"user","content":"hi"}"#;
    let wizard = r#"{"role":"wizard","content":""}"#;
    let cases = [
        (format!(r#"{{"model":"claude-x","max_tokens":9,"messages":[{user}]}}"#), "anthropic"),
        (format!(r#"{{"model":"gpt-5","max_tokens":9,"messages":[{user}]}}"#), "openai-chat"),
        (format!(r#"{{"model":"claude-x","messages":[{user}]}}"#), "openai-chat"),
        (format!(r#"{{"system":"x","messages":[{user}]}}"#), "anthropic"),
        (format!(r#"{{"input":[{user}]}}"#), "openai-responses"),
        (r#"{"input":"hi","instructions":"x"}"#.to_owned(), "openai-responses"),
        (r#"{"model":"text-embedding","input":"hi"}"#.to_owned(), ""),
        (r#"{"contents":[{"parts":[{"text":"hi"}]}]}"#.to_owned(), "gemini-request"),
        (format!(r#"{{"messages":[{user}]}} {{}}"#), ""),
        (format!("[{user}]"), ""),
        (r#"{"sessionId":"s","messages":[{"type":"user","content":"hi"}]}"#.to_owned(), ""),
        (r#"{"info":{"id":"s"},"messages":[{"info":{},"parts":[]}]}"#.to_owned(), ""),
        (format!(r#"{{"info":{{}},"messages":[{user}]}}"#), "mini-swe"),
        (format!(r#"{{"model":"gpt","messages":[{user},{wizard}]}}"#), "openai-chat"),
        (format!(r#"{{"model":"gpt","id":"x","messages":[{user},{wizard}]}}"#), ""),
        (format!(r#"{{"model":"gpt","messages":[{wizard}]}}"#), ""),
    ];
    for (text, expect) in cases {
        assert_eq!(known(&text), expect, "{text}");
    }
}

#[test]
fn what_an_answer_came_to_is_said_when_it_was_finished() {
    let record = |id: &str, stop: &str| {
        let usage = r#"{"input_tokens":7,"output_tokens":3}"#;
        let content = r#"[{"type":"text","text":"so"}]"#;
        let members = format!(r#""stop_reason":{stop},"usage":{usage},"content":{content}"#);
        let message = format!(r#"{{"id":"m{id}","role":"assistant",{members}}}"#);
        format!(r#"{{"type":"assistant","uuid":"{id}","parentUuid":null,"message":{message}}}"#)
    };
    let session = [record("a", "null"), record("b", "\"end_turn\"")].join("\n").into_bytes();
    let transcript = (epitome_formats::claude::FORMAT.read)(&session, &mut ());
    let usages: Vec<_> = transcript.entries().filter_map(|(_, entry)| entry.usage).collect();
    let usages: Vec<_> = usages.iter().map(|usage| (usage.input, usage.output)).collect();
    assert_eq!(usages, [(7, 0), (7, 3)]);
}
