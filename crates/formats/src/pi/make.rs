//! Makes a session of pi from another agent's transcript.

use epitome_api::{Conversation, RequestBody, TextOrImage};
use epitome_model::{Source, Transcript, encode};

use super::tools;
use crate::port::{Message, NewSessionValues, PortedCall, PortedResult, messages};

/// Maximum length of a call id: the smallest limit of the APIs that pi uses.
const ID: usize = 40;

/// The `customType` of messages of the agent itself, which are written as messages of an extension
/// of pi.
const CUSTOM: &str = "ported";

/// The usage that every response must have: pi adds up the costs of all responses, and fails if one
/// is missing.
const USAGE: &str = concat!(
    r#"{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"#,
    r#""cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#,
);

/// A session with the content of the transcript's context.
pub fn make(
    transcript: &Transcript,
    source: &dyn Source,
    given: &NewSessionValues<'_>,
) -> RequestBody {
    let (all, said) = messages(transcript, source, ID);
    let mut entries = Entries { given, lines: Vec::new(), names: Vec::new() };
    let id = encode(given.id);
    let time = encode(given.time);
    let cwd = encode(given.cwd);
    let header =
        format!(r#"{{"type":"session","version":3,"id":{id},"timestamp":{time},"cwd":{cwd}}}"#);
    for said in &said {
        entries.say(&all, said);
    }
    let n = entries.lines.len();
    let body = [vec![header], entries.lines].concat().join("\n") + "\n";
    all.finish(body, n)
}

/// The entries of the new session, each the parent of the next.
struct Entries<'g> {
    given: &'g NewSessionValues<'g>,
    lines: Vec<String>,
    /// The ids of the calls so far, each with the name of its tool.
    names: Vec<(String, String)>,
}

impl Entries<'_> {
    fn say(&mut self, all: &Conversation<'_>, message: &Message<'_>) {
        let millis = self.given.millis;
        match message {
            Message::User(pieces) => {
                let content = blocks(pieces);
                self.message(&format!(r#""role":"user","content":{content},"timestamp":{millis}"#));
            }
            Message::Agent(pieces) => {
                let content = blocks(pieces);
                self.push(
                    "custom_message",
                    &format!(r#""customType":"{CUSTOM}","content":{content},"display":false"#),
                );
            }
            Message::Summary(text) => self.summary(&encode(text)),
            Message::Reply(texts, calls) => {
                let mut content: Vec<String> = texts.iter().map(|words| text(words)).collect();
                let stop = if calls.is_empty() { "stop" } else { "toolUse" };
                content.extend(calls.iter().map(|called| self.call(all, called)));
                self.message(&format!(
                    concat!(
                        r#""role":"assistant","content":[{}],"usage":{},"stopReason":"{}","#,
                        r#""timestamp":{}"#,
                    ),
                    content.join(","),
                    USAGE,
                    stop,
                    millis,
                ));
            }
            Message::Result(answer) => self.result(answer),
        }
    }

    /// Adds a summary. As the first message it becomes a compaction of pi, later a branch summary.
    fn summary(&mut self, text: &str) {
        let id = self.id(self.lines.len());
        if self.lines.is_empty() {
            self.push(
                "compaction",
                &format!(r#""summary":{text},"firstKeptEntryId":"{id}","tokensBefore":0"#),
            )
        } else {
            self.push("branch_summary", &format!(r#""fromId":"root","summary":{text}"#))
        }
    }

    fn call(&mut self, all: &Conversation<'_>, called: &PortedCall<'_>) -> String {
        let made = called.action.as_ref().and_then(tools::call);
        let (name, arguments) = match made {
            Some((name, arguments)) => (name.to_owned(), arguments),
            None => (epitome_api::name(called.name()), called.arguments(all).object()),
        };
        let id = encode(&called.id);
        let named = encode(&name);
        self.names.push((called.id.clone(), name));
        format!(r#"{{"type":"toolCall","id":{id},"name":{named},"arguments":{arguments}}}"#)
    }

    fn result(&mut self, answer: &PortedResult<'_>) {
        let name = self.names.iter().rev().find(|(id, _)| *id == answer.id);
        let name = encode(name.map_or("", |(_, name)| name));
        let PortedResult { id, failed, pieces } = answer;
        let id = encode(id);
        let millis = self.given.millis;
        let content = if pieces.is_empty() && *failed {
            format!("[{}]", text(crate::port::NOTHING))
        } else {
            blocks(pieces)
        };
        self.message(&format!(
            concat!(
                r#""role":"toolResult","toolCallId":{},"toolName":{},"content":{},"#,
                r#""isError":{},"timestamp":{}"#,
            ),
            id, name, content, failed, millis,
        ));
    }

    fn message(&mut self, message: &str) {
        self.push("message", &format!(r#""message":{{{message}}}"#));
    }

    fn push(&mut self, kind: &str, members: &str) {
        let n = self.lines.len();
        let parent = match n.checked_sub(1) {
            Some(before) => format!("\"{}\"", self.id(before)),
            None => "null".to_owned(),
        };
        let id = self.id(n);
        let time = encode(self.given.time);
        self.lines.push(format!(
            r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":{time},{members}}}"#
        ));
    }

    /// An id of eight digits, unique in the session.
    fn id(&self, n: usize) -> String {
        format!("{:08x}", n + 1)
    }
}

fn text(words: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, encode(words))
}

fn blocks(pieces: &[TextOrImage<'_>]) -> String {
    let blocks = pieces.iter().map(|piece| match piece {
        TextOrImage::Text(words) => text(words),
        TextOrImage::Picture { media, data } => {
            format!(r#"{{"type":"image","data":{},"mimeType":"{media}"}}"#, encode(data))
        }
        TextOrImage::Carried(raw) => raw.clone(),
    });
    format!("[{}]", blocks.collect::<Vec<_>>().join(","))
}
