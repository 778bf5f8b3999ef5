//! A session of pi, made of what another says.

use epitome_model::{Source, Transcript, encode};

use super::tools;
use crate::api::{Conversation, Made, Piece};
use crate::port::{Answer, Called, Given, Said, said};

/// Characters of an id of a call: what the narrowest of pi's wires takes.
const ID: usize = 40;

/// What pi calls the words of an extension; these are of no extension that it knows.
const CUSTOM: &str = "ported";

/// What every reply has to say it cost. pi counts by it, and finds it missing otherwise.
const USAGE: &str = concat!(
    r#"{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"#,
    r#""cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#,
);

/// A session that says what the transcript's context says.
pub fn make(transcript: &Transcript, source: &dyn Source, given: &Given<'_>) -> Made {
    let (all, said) = said(transcript, source, ID);
    let mut entries = Entries { given, lines: Vec::new(), names: Vec::new() };
    let (id, time, cwd) = (encode(given.id), encode(given.time), encode(given.cwd));
    let header =
        format!(r#"{{"type":"session","version":3,"id":{id},"timestamp":{time},"cwd":{cwd}}}"#);
    for said in &said {
        entries.say(&all, said);
    }
    let n = entries.lines.len();
    let body = [vec![header], entries.lines].concat().join("\n") + "\n";
    all.finish(body, n)
}

/// Entries, each the parent of the next.
struct Entries<'g> {
    given: &'g Given<'g>,
    lines: Vec<String>,
    /// The ids of calls that wait for their results, with the names of their tools.
    names: Vec<(String, String)>,
}

impl Entries<'_> {
    fn say(&mut self, all: &Conversation<'_>, said: &Said<'_>) {
        let millis = self.given.millis;
        match said {
            Said::User(pieces) => {
                let content = blocks(pieces);
                self.message(&format!(r#""role":"user","content":{content},"timestamp":{millis}"#));
            }
            Said::Agent(pieces) => {
                let content = blocks(pieces);
                self.push(
                    "custom_message",
                    &format!(r#""customType":"{CUSTOM}","content":{content},"display":false"#),
                );
            }
            Said::Summary(text) => self.summary(&encode(text)),
            Said::Reply(texts, calls) => {
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
            Said::Result(answer) => self.result(answer),
        }
    }

    /// The first thing said is what pi compacted; later ones stand where a branch was left.
    fn summary(&mut self, text: &str) {
        let id = self.id(self.lines.len());
        match self.lines.is_empty() {
            true => self.push(
                "compaction",
                &format!(r#""summary":{text},"firstKeptEntryId":"{id}","tokensBefore":0"#),
            ),
            false => self.push("branch_summary", &format!(r#""fromId":"root","summary":{text}"#)),
        }
    }

    fn call(&mut self, all: &Conversation<'_>, called: &Called<'_>) -> String {
        let made = called.deed.as_ref().and_then(tools::call);
        let (name, arguments) = match made {
            Some((name, arguments)) => (name.to_owned(), arguments),
            None => (crate::api::name(called.name()), called.arguments(all).object()),
        };
        let (id, named) = (encode(&called.id), encode(&name));
        self.names.push((called.id.clone(), name));
        format!(r#"{{"type":"toolCall","id":{id},"name":{named},"arguments":{arguments}}}"#)
    }

    fn result(&mut self, answer: &Answer<'_>) {
        let name = self.names.iter().rev().find(|(id, _)| *id == answer.id);
        let name = encode(name.map_or("", |(_, name)| name));
        let Answer { id, failed, pieces } = answer;
        let (id, millis) = (encode(id), self.given.millis);
        let content = match pieces.is_empty() && *failed {
            true => format!("[{}]", text(crate::port::NOTHING)),
            false => blocks(pieces),
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
        let (id, time) = (self.id(n), encode(self.given.time));
        self.lines.push(format!(
            r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":{time},{members}}}"#
        ));
    }

    /// Eight digits, unique in the session.
    fn id(&self, n: usize) -> String {
        format!("{:08x}", n + 1)
    }
}

fn text(words: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, encode(words))
}

fn blocks(pieces: &[Piece<'_>]) -> String {
    let blocks = pieces.iter().map(|piece| match piece {
        Piece::Text(words) => text(words),
        Piece::Picture { media, data } => {
            format!(r#"{{"type":"image","data":{},"mimeType":"{media}"}}"#, encode(data))
        }
        Piece::Carried(raw) => raw.clone(),
    });
    format!("[{}]", blocks.collect::<Vec<_>>().join(","))
}
