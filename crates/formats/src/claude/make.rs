//! Makes a session of Claude Code from another agent's transcript.

use epitome_api::{Conversation, RequestBody, TextOrImage};
use epitome_model::{Source, Transcript, encode};

use super::tools;
use crate::port::{Message, NOTHING, NewSessionValues, PortedCall, PortedResult, messages, uuid};

/// Maximum length of a call id in Anthropic's API.
const LONGEST_ID: usize = 64;

/// A session with the content of the transcript's context.
pub fn make(
    transcript: &Transcript,
    source: &dyn Source,
    given: &NewSessionValues<'_>,
) -> RequestBody {
    let (all, messages) = messages(transcript, source, LONGEST_ID);
    let mut records = SessionRecords { given, lines: Vec::new() };
    for message in &messages {
        records.add_message(&all, message);
    }
    let n = records.lines.len();
    all.finish(records.lines.join("\n") + "\n", n)
}

/// The records of the new session, each the parent of the next.
struct SessionRecords<'g> {
    given: &'g NewSessionValues<'g>,
    lines: Vec<String>,
}

impl SessionRecords<'_> {
    fn add_message(&mut self, all: &Conversation<'_>, message: &Message<'_>) {
        match message {
            Message::User(pieces) => self.add_user(&content(pieces), ""),
            Message::Agent(pieces) => self.add_user(&content(pieces), r#","isMeta":true"#),
            Message::Summary(text) => {
                if self.lines.is_empty() {
                    self.add_boundary();
                }
                let marks = r#","isVisibleInTranscriptOnly":true,"isCompactSummary":true"#;
                self.add_user(&encode(text), marks);
            }
            Message::Reply(texts, calls) => {
                // A response has one record per block. All these records have the id of the
                // response.
                let id = uuid(self.given.id, &format!("reply {}", self.lines.len()));
                let id = format!("msg_{}", id.replace('-', ""));
                let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
                let texts = texts.iter().map(|words| text_block(words));
                let blocks: Vec<String> =
                    texts.chain(calls.iter().map(|it| call(all, it))).collect();
                for block in blocks {
                    self.add_reply(&id, stop, &block);
                }
            }
            Message::Result(answer) => self.add_user(&format!("[{}]", result(answer)), ""),
        }
    }

    fn add_user(&mut self, content: &str, marks: &str) {
        let message = format!(r#""message":{{"role":"user","content":{content}}}"#);
        self.push("user", &format!("{message}{marks}"));
    }

    fn add_reply(&mut self, id: &str, stop: &str, block: &str) {
        self.push(
            "assistant",
            &format!(
                concat!(
                    r#""message":{{"id":"{}","type":"message","role":"assistant","#,
                    r#""content":[{}],"stop_reason":"{}","stop_sequence":null}}"#,
                ),
                id, block, stop,
            ),
        );
    }

    /// Adds the boundary of a compaction: a resume sends nothing that is before it.
    fn add_boundary(&mut self) {
        self.push(
            "system",
            concat!(
                r#""subtype":"compact_boundary","content":"Conversation compacted","#,
                r#""isMeta":false,"level":"info","#,
                r#""compactMetadata":{"trigger":"manual","preTokens":0}"#,
            ),
        );
    }

    fn push(&mut self, kind: &str, members: &str) {
        let NewSessionValues { id: session, cwd, time, .. } = self.given;
        let n = self.lines.len();
        let id = record_id(session, n);
        let parent = match n.checked_sub(1) {
            Some(parent) => encode(&record_id(session, parent)),
            None => "null".to_owned(),
        };
        self.lines.push(format!(
            concat!(
                r#"{{"parentUuid":{},"isSidechain":false,"userType":"external","cwd":{},"#,
                r#""sessionId":{},"type":"{}",{},"uuid":"{}","timestamp":{}}}"#,
            ),
            parent,
            encode(cwd),
            encode(session),
            kind,
            members,
            id,
            encode(time),
        ));
    }
}

fn record_id(session: &str, n: usize) -> String {
    uuid(session, &format!("record {n}"))
}

fn call(all: &Conversation<'_>, called: &PortedCall<'_>) -> String {
    let (name, input) = match called.action.as_ref().and_then(tools::call) {
        Some((name, input)) => (name.to_owned(), input),
        None => (epitome_api::name(called.name()), called.arguments(all).object()),
    };
    let id = encode(&called.id);
    let name = encode(&name);
    format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
}

fn result(answer: &PortedResult<'_>) -> String {
    let PortedResult { id, failed, pieces } = answer;
    let content = match &pieces[..] {
        // The API refuses a failed result without text.
        [] if *failed => encode(NOTHING),
        [] => encode(""),
        pieces => content(pieces),
    };
    let id = encode(id);
    format!(
        r#"{{"type":"tool_result","tool_use_id":{id},"content":{content},"is_error":{failed}}}"#
    )
}

/// The content of a message or of a result: a string if it is a single text, and otherwise blocks.
fn content(pieces: &[TextOrImage<'_>]) -> String {
    if let [TextOrImage::Text(words)] = pieces {
        return encode(words);
    }
    let blocks = pieces.iter().map(|piece| match piece {
        TextOrImage::Text(words) => text_block(words),
        TextOrImage::Picture { media, data } => {
            let data = encode(data);
            let source = format!(r#"{{"type":"base64","media_type":"{media}","data":{data}}}"#);
            format!(r#"{{"type":"image","source":{source}}}"#)
        }
        TextOrImage::Carried(raw) => raw.clone(),
    });
    format!("[{}]", blocks.collect::<Vec<_>>().join(","))
}

fn text_block(words: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, encode(words))
}
