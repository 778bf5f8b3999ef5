//! Makes a rollout of Codex from another agent's transcript.
//!
//! Codex lists and shows a thread by its events, so each turn gets events with the messages of the
//! user and the model.

use epitome_api::{Arguments, Conversation, LeftBehind, RequestBody, TextOrImage};
use epitome_model::{Source, Transcript, encode};

use super::tools;
use crate::port::{Message, NewSessionValues, PortedCall, PortedResult, messages, uuid};

/// Maximum length of a call id in OpenAI's Responses API.
const ID: usize = 64;

/// The version of Codex whose format is written.
const VERSION: &str = "0.169.0";

/// A rollout with the content of the transcript's context.
pub fn make(
    transcript: &Transcript,
    source: &dyn Source,
    given: &NewSessionValues<'_>,
) -> RequestBody {
    let (mut all, said) = messages(transcript, source, ID);
    let mut rollout =
        Rollout { given, lines: Vec::new(), custom: Vec::new(), items: 0, turns: 0, turn: None };
    rollout.meta();
    for said in &said {
        rollout.say(&mut all, said);
    }
    rollout.end_turn();
    all.finish(rollout.lines.join("\n") + "\n", rollout.items)
}

/// The lines of the new rollout so far, and what the next line depends on.
struct Rollout<'g> {
    given: &'g NewSessionValues<'g>,
    lines: Vec<String>,
    /// The ids of calls whose input is a text.
    custom: Vec<String>,
    /// The number of records that a model sees.
    items: usize,
    turns: usize,
    /// The id of the current turn.
    turn: Option<String>,
}

impl Rollout<'_> {
    fn meta(&mut self) {
        let NewSessionValues { id, cwd, time, .. } = self.given;
        let id = encode(id);
        let cwd = encode(cwd);
        let time = encode(time);
        self.push(
            "session_meta",
            &format!(
                concat!(
                    r#"{{"session_id":{},"id":{},"timestamp":{},"cwd":{},"#,
                    r#""originator":"codex_cli_rs","cli_version":"{}","source":"cli","#,
                    r#""thread_source":"user","history_mode":"paginated"}}"#,
                ),
                id, id, time, cwd, VERSION,
            ),
        );
    }

    fn say(&mut self, all: &mut Conversation<'_>, message: &Message<'_>) {
        match message {
            Message::User(pieces) => {
                self.begin_turn();
                self.message("user", &parts(pieces), Some("user.text"));
                let texts = pieces.iter().filter_map(|piece| match piece {
                    TextOrImage::Text(words) => Some(&**words),
                    TextOrImage::Picture { .. } | TextOrImage::Carried(_) => None,
                });
                let words = encode(&texts.collect::<Vec<_>>().join("\n"));
                let shown = format!(r#"{{"type":"text","text":{words},"text_elements":[]}}"#);
                self.show("UserMessage", &shown);
            }
            Message::Agent(pieces) => self.message("user", &parts(pieces), Some("unknown")),
            Message::Summary(text) => {
                let words = parts(&[TextOrImage::Text(text.as_ref().into())]);
                self.message("user", &words, Some("compaction.summary"));
            }
            Message::Reply(texts, calls) => {
                if self.turn.is_none() {
                    self.begin_turn();
                }
                for words in texts {
                    let words = encode(words);
                    let part = format!(r#"[{{"type":"output_text","text":{words}}}]"#);
                    self.message("assistant", &part, None);
                    self.show("AgentMessage", &format!(r#"{{"type":"Text","text":{words}}}"#));
                }
                for called in calls {
                    self.call(all, called);
                }
            }
            Message::Result(answer) => {
                if answer.failed {
                    all.leave(LeftBehind::Failures);
                }
                self.result(answer);
            }
        }
    }

    fn begin_turn(&mut self) {
        self.end_turn();
        self.turns += 1;
        let turn = uuid(self.given.id, &format!("turn {}", self.turns));
        self.event(&format!(
            concat!(
                r#"{{"type":"task_started","turn_id":"{}","model_context_window":null,"#,
                r#""collaboration_mode_kind":"default"}}"#,
            ),
            turn
        ));
        self.turn = Some(turn);
    }

    fn end_turn(&mut self) {
        if let Some(turn) = self.turn.take() {
            let complete = r#""type":"task_complete","last_agent_message":null"#;
            self.event(&format!(r#"{{{complete},"turn_id":"{turn}"}}"#));
        }
    }

    /// Writes an event with content that Codex shows to the user and does not send to the model.
    fn show(&mut self, kind: &str, content: &str) {
        let Some(turn) = &self.turn else { return };
        let thread = self.given.id;
        let id = format!("shown {}", self.lines.len());
        let id = uuid(thread, &id);
        self.event(&format!(
            concat!(
                r#"{{"type":"item_completed","thread_id":{},"turn_id":"{}","#,
                r#""item":{{"type":"{}","id":"{}","content":[{}]}}}}"#,
            ),
            encode(thread),
            turn,
            kind,
            id,
            content,
        ));
    }

    fn message(&mut self, role: &str, content: &str, kind: Option<&str>) {
        // Codex distinguishes the user's texts from its own by the kind of each part.
        let kinds = kind.map_or(String::new(), |kind| {
            let n = content.matches(r#"{"type":"input_"#).count().max(1);
            let kinds = vec![format!("\"{kind}\""); n].join(",");
            let member = "internal_chat_message_metadata_passthrough";
            format!(r#","{member}":{{"content_item_kinds":[{kinds}]}}"#)
        });
        self.item(&format!(r#"{{"type":"message","role":"{role}","content":{content}{kinds}}}"#));
    }

    fn call(&mut self, all: &Conversation<'_>, called: &PortedCall<'_>) {
        let made = called.action.as_ref().and_then(|action| tools::call(action, called.shows));
        let (name, arguments) = match made {
            Some((name, arguments)) => (name.to_owned(), arguments),
            None => (epitome_api::name(called.name()), called.arguments(all)),
        };
        let (kind, key, text) = match arguments {
            Arguments::Object(object) => ("function_call", "arguments", object),
            Arguments::Text(text) => {
                self.custom.push(called.id.clone());
                ("custom_tool_call", "input", text)
            }
        };
        let id = encode(&called.id);
        let name = encode(&name);
        let text = encode(&text);
        self.item(&format!(r#"{{"type":"{kind}","name":{name},"{key}":{text},"call_id":{id}}}"#));
    }

    fn result(&mut self, answer: &PortedResult<'_>) {
        let kind = if self.custom.contains(&answer.id) {
            "custom_tool_call_output"
        } else {
            "function_call_output"
        };
        let output = match &answer.pieces[..] {
            [] => encode(""),
            [TextOrImage::Text(words)] => encode(words),
            pieces => parts(pieces),
        };
        let id = encode(&answer.id);
        let item = format!(r#"{{"type":"{kind}","call_id":{id},"output":{output}}}"#);
        self.item(&item);
        // A resume truncates the middle of long results, unless a result states a limit of its own,
        // in tokens. The limit written here is the length of the item in bytes: no result has more
        // tokens than bytes.
        let limit = format!(r#","metadata":{{"fallback_token_limit_override":{}}}}}"#, item.len());
        if let Some(line) = self.lines.last_mut() {
            line.pop();
            line.push_str(&limit);
        }
    }

    fn event(&mut self, event: &str) {
        self.push("event_msg", event);
    }

    fn item(&mut self, item: &str) {
        self.items += 1;
        self.push("response_item", item);
    }

    fn push(&mut self, kind: &str, payload: &str) {
        let time = encode(self.given.time);
        let ordinal = self.lines.len();
        self.lines.push(format!(
            r#"{{"timestamp":{time},"ordinal":{ordinal},"type":"{kind}","payload":{payload}}}"#
        ));
    }
}

fn parts(pieces: &[TextOrImage<'_>]) -> String {
    let parts = pieces.iter().map(|piece| match piece {
        TextOrImage::Text(words) => format!(r#"{{"type":"input_text","text":{}}}"#, encode(words)),
        TextOrImage::Picture { media, data } => {
            let url = encode(&format!("data:{media};base64,{data}"));
            format!(r#"{{"type":"input_image","image_url":{url}}}"#)
        }
        TextOrImage::Carried(raw) => raw.clone(),
    });
    format!("[{}]", parts.collect::<Vec<_>>().join(","))
}
