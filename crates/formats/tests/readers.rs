//! Sessions that were written by hand, as their readers tell them.

use std::fmt::Write as _;

use epitome_formats::{FORMATS, named};
use epitome_model::{Block, Entry, Part, Source, Span, Text, Transcript, short};
use insta::assert_snapshot;

/// One line an item: `>` if it is sent, who speaks, what the blocks say, and the copies.
fn told(transcript: &Transcript, source: &dyn Source) -> String {
    let mut text = String::new();
    for (idx, item) in transcript.items.iter().enumerate() {
        let sent = transcript.context.iter().position(|&it| it == idx);
        let mark = sent.map_or(String::new(), |place| format!(">{place}"));
        let copies: Vec<&str> = item.copies().iter().map(|copy| copy.name).collect();
        let said = item.entry().map_or("kept".to_owned(), |entry| entry_told(entry, source));
        let line = format!("{mark:3} {said} {}", copies.join(","));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn entry_told(entry: &Entry, source: &dyn Source) -> String {
    let blocks: Vec<String> = entry.blocks.iter().map(|block| block_told(block, source)).collect();
    format!("{:?}: {}", entry.role, blocks.join(" | "))
}

fn block_told(block: &Block, source: &dyn Source) -> String {
    let words = |text: &Text| short(&text.read(source), 40);
    let bytes = |span: Span| short(&String::from_utf8_lossy(&source.at(span)), 40);
    match block {
        Block::Text(text) => words(text),
        Block::Summary(text) => format!("summary {}", words(text)),
        Block::Thinking(thinking) => {
            let text = thinking.text.as_ref().map(words).unwrap_or_default();
            format!("thinking {text} ({} bytes)", thinking.whole.len())
        }
        Block::Call(call) => {
            let target = call.target.as_ref().map(words).unwrap_or_default();
            let fields: Vec<String> = call.fields.iter().map(|it| it.name.to_string()).collect();
            let fields = fields.join(",");
            format!("call {} {}={:?} {target} [{fields}]", call.id, call.name, call.kind)
        }
        Block::Output(output) => {
            let parts: Vec<String> = output
                .parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => words(text),
                    Part::Image(image) => format!("image {}", image.media),
                    Part::Opaque(span) => format!("opaque {}", bytes(*span)),
                })
                .collect();
            let failed = if output.error { " failed" } else { "" };
            format!("result{failed} {} {}", output.call, parts.join(" + "))
        }
        Block::Image(image) => format!("image {}", image.media),
        Block::Opaque(span) => format!("opaque {}", bytes(*span)),
        _ => "something new".to_owned(),
    }
}

fn check(format: &str, file: &str) -> String {
    let bytes = fixtures::made(format, file);
    let known: Vec<&str> =
        FORMATS.iter().filter(|it| (it.sniff)(&bytes)).map(|format| format.name).collect();
    assert_eq!(known, [format], "one format knows it, and it alone");
    let mut faults = Vec::new();
    let transcript = (named(format).expect("a format").read)(&bytes, &mut faults);
    assert_eq!(faults, [], "{file}");
    told(&transcript, &bytes)
}

#[test]
fn a_log_of_copilot_is_read() {
    assert_snapshot!(check("copilot", "sundays.jsonl"));
}

#[test]
fn conversations_of_cursor_are_read() {
    assert_snapshot!("cursor_composer", check("cursor", "composer.jsonl"));
    assert_snapshot!("cursor_composer_summary", check("cursor", "composer-summary.jsonl"));
    assert_snapshot!("cursor_composer_inline", check("cursor", "composer-inline.jsonl"));
    assert_snapshot!("cursor_chat", check("cursor", "chat.jsonl"));
    assert_snapshot!("cursor_transcript", check("cursor", "transcript.jsonl"));
    assert_snapshot!("cursor_text", check("cursor", "transcript.txt"));
}

#[test]
fn bodies_of_requests_are_read() {
    assert_snapshot!("anthropic", check("anthropic", "request.json"));
    assert_snapshot!("chat", check("openai-chat", "request.json"));
    assert_snapshot!("responses", check("openai-responses", "request.json"));
    assert_snapshot!("gemini", check("gemini-request", "request.json"));
}

#[test]
fn trajectories_are_read() {
    assert_snapshot!("miniswe", check("mini-swe", "run.traj.json"));
    assert_snapshot!("miniswe_old", check("mini-swe", "old.traj.json"));
    assert_snapshot!("miniswe_by_position", check("mini-swe", "by-position.traj.json"));
    assert_snapshot!("sweagent_classic", check("swe-agent", "classic.traj"));
    assert_snapshot!("sweagent", check("swe-agent", "run.traj"));
    assert_snapshot!("sweagent_task_as_observation", check("swe-agent", "observed-task.traj"));
    assert_snapshot!("sweagent_stripped", check("swe-agent", "stripped.traj"));
}

/// Files that are none of them, and bodies whose wire only details tell.
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
        let said = format!(r#""stop_reason":{stop},"usage":{usage},"content":{content}"#);
        let message = format!(r#"{{"id":"m{id}","role":"assistant",{said}}}"#);
        format!(r#"{{"type":"assistant","uuid":"{id}","parentUuid":null,"message":{message}}}"#)
    };
    let session = [record("a", "null"), record("b", "\"end_turn\"")].join("\n").into_bytes();
    let transcript = (epitome_formats::claude::FORMAT.read)(&session, &mut ());
    let usages: Vec<_> = transcript.entries().filter_map(|(_, entry)| entry.usage).collect();
    let usages: Vec<_> = usages.iter().map(|usage| (usage.input, usage.output)).collect();
    assert_eq!(usages, [(7, 0), (7, 3)]);
}
