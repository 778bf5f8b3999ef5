//! Writes OpenCode's own records of a summarised history: a user message that requests the summary,
//! and the summary as the model's answer (`SessionCompaction.create` and `.process`).
//!
//! The request names the first message that is sent after the summary.

use std::collections::HashSet;

use epitome_model::{Ref, Source, Summary, Transcript, encode};

use super::raw;
use crate::place::RecordBytes;
use crate::{Line, lines};

/// The rows to append, as lines: the request for the summary and its part, the answer and its part.
///
/// # Errors
///
/// The reason, if the source is an export, if the session was reverted, if no message has a time or
/// no answer names its model, or if the kept items are not a complete end of the session.
pub fn summarise(
    transcript: &Transcript,
    source: &dyn Source,
    summary: &Summary,
) -> Result<Vec<u8>, &'static str> {
    let session = ExistingRows::read(source)?;
    let tail = match summary.kept.first() {
        Some(&first) => {
            let id = session.begins_with(transcript, source, first, &summary.kept)?;
            format!(",\"tail_start_id\":{}", encode(&id))
        }
        None => String::new(),
    };
    let newest = session.newest(transcript)?;
    // OpenCode continues from the newest message: that with the latest time, or, of several with
    // this time, with the last id.
    let asked = session.time + 1;
    let done = session.time + 2;
    let request = session.id("msg", asked, "request");
    let answer = session.id("msg", done, "summary");
    let rows = [
        newest.request_row(&request, asked),
        request_part_row(&session.id("prt", asked, "tail"), &request, &tail),
        newest.answer_row(&answer, &request, done),
        answer_part_row(&session.id("prt", done, "words"), &answer, &summary.text, done),
    ];
    let before = if session.ended { "" } else { "\n" };
    Ok(format!("{before}{}\n", rows.join("\n")).into_bytes())
}

/// The part of the request for a summary. `tail` is a member that says where the kept part begins.
fn request_part_row(id: &str, request: &str, tail: &str) -> String {
    format!(
        concat!(
            r#"{{"table":"part","id":"{}","message_id":"{}","#,
            r#""data":{{"type":"compaction","auto":false{}}}}}"#,
        ),
        id, request, tail,
    )
}

/// The part with the text of the summary.
fn answer_part_row(id: &str, answer: &str, text: &str, time: u64) -> String {
    format!(
        concat!(
            r#"{{"table":"part","id":"{}","message_id":"{}","data":{{"type":"text","#,
            r#""text":{},"time":{{"start":{},"end":{}}}}}}}"#,
        ),
        id,
        answer,
        encode(text),
        time,
        time,
    )
}

/// Whether a line is a row that [`summarise`] made. In the id of such a row, the last digits are
/// derived from all characters before them.
pub fn is_made(line: &[u8]) -> bool {
    let Ok(raw::Row { id: Some(id), .. }) = raw::Row::parse(line) else { return false };
    let id = RecordBytes { line, base: 0 }.text(&id);
    let Some((begins, ends)) = id.split_at_checked(id.len().saturating_sub(Ref::DIGITS)) else {
        return false;
    };
    begins.len() == BEGINNING && checked(begins) == ends
}

/// The length of the part of an id before the derived digits: `msg_`, twelve digits of the time,
/// and the digits of a [`Ref`].
const BEGINNING: usize = 4 + 12 + Ref::DIGITS;

fn checked(begins: &str) -> String {
    Ref::from_bytes(format!("{begins} epitome").as_bytes()).digits().to_owned()
}

/// The values of the existing rows that are needed to make the new rows.
#[derive(Default)]
struct ExistingRows {
    id: Box<str>,
    directory: Option<Box<str>>,
    was_taken_back: bool,
    /// The time of the newest message, in milliseconds since 1970.
    time: u64,
    agent: Option<String>,
    model: Option<String>,
    assistant: Option<(String, String, Option<String>)>,
    ended: bool,
}

/// The directory, agent and model of the newest messages, as JSON, from which the new messages are
/// made.
struct Newest {
    agent: String,
    model: String,
    provider: String,
    name: String,
    path: String,
}

impl Newest {
    /// The user's message that requests a summary.
    fn request_row(&self, id: &str, time: u64) -> String {
        format!(
            concat!(
                r#"{{"table":"message","id":"{}","time_created":{},"data":{{"role":"user","#,
                r#""model":{},"agent":{},"time":{{"created":{}}}}}}}"#,
            ),
            id, time, self.model, self.agent, time,
        )
    }

    /// The model's message that is the summary.
    fn answer_row(&self, id: &str, request: &str, done: u64) -> String {
        let Newest { path, name, provider, .. } = self;
        format!(
            concat!(
                r#"{{"table":"message","id":"{id}","time_created":{done},"data":{{"#,
                r#""role":"assistant","parentID":"{request}","mode":"compaction","#,
                r#""agent":"compaction","summary":true,"path":{path},"cost":0,"#,
                r#""tokens":{{"input":0,"output":0,"reasoning":0,"#,
                r#""cache":{{"write":0,"read":0}}}},"#,
                r#""modelID":{name},"providerID":{provider},"#,
                r#""time":{{"created":{done},"completed":{done}}},"finish":"stop"}}}}"#,
            ),
            id = id,
            done = done,
            request = request,
            path = path,
            name = name,
            provider = provider,
        )
    }
}

impl ExistingRows {
    fn read(source: &dyn Source) -> Result<ExistingRows, &'static str> {
        let mut session = ExistingRows { ended: true, ..ExistingRows::default() };
        lines(source, |line| session.line(&line));
        if session.id.is_empty() {
            return Err("it is an export, not the session itself");
        }
        if session.was_taken_back {
            return Err(
                "it was taken back, and OpenCode deletes what follows with the next prompt",
            );
        }
        match session.time {
            0 => Err("no message has a time"),
            _ => Ok(session),
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        self.ended = line.ended;
        let Ok(row) = raw::Row::parse(line.bytes) else { return };
        let at = RecordBytes::from_line(line);
        match (at.maybe(row.table.as_ref()).as_deref(), &row.data) {
            (Some("session"), data) => {
                self.id = at.maybe(row.id.as_ref()).unwrap_or_default();
                self.directory = at.maybe(row.directory.as_ref());
                let revert = data.as_ref().and_then(|data| raw::Revert::at(line.bytes, data).ok());
                self.was_taken_back = revert.is_some_and(|it| it.message.is_some());
            }
            (Some("message"), Some(data)) => {
                self.time = self.time.max(row.time.unwrap_or_default());
                let Ok(found) = raw::Circumstances::at(line.bytes, data) else { return };
                if let (Some(agent), Some(model)) = (&found.agent, &found.model) {
                    self.agent = Some(json_at(line, agent));
                    self.model = Some(json_at(line, model));
                }
                if let (Some(name), Some(provider)) = (&found.model_id, &found.provider_id) {
                    let path = found.path.as_ref().map(|path| json_at(line, path));
                    self.assistant = Some((json_at(line, name), json_at(line, provider), path));
                }
            }
            _ => {}
        }
    }

    /// The id of the message with which the kept items begin: `first` belongs to it. The error says
    /// why OpenCode could not keep the items `kept`.
    fn begins_with(
        &self,
        transcript: &Transcript,
        source: &dyn Source,
        first: usize,
        kept: &[usize],
    ) -> Result<Box<str>, &'static str> {
        let id = message_id(transcript, source, first);
        let id = id.ok_or("the first kept item is not part of a message")?;
        let kept: HashSet<usize> = kept.iter().copied().collect();
        // OpenCode keeps whole messages, in their order.
        let is_whole_end = transcript.context.iter().all(|&item| {
            let follows =
                item >= first || message_id(transcript, source, item).as_ref() == Some(&id);
            follows == kept.contains(&item)
        });
        if is_whole_end { Ok(id) } else { Err("what is kept is not a complete end of the rows") }
    }

    fn newest(&self, transcript: &Transcript) -> Result<Newest, &'static str> {
        let (name, provider, path) =
            self.assistant.clone().ok_or("no answer says which model gave it")?;
        let path = path.unwrap_or_else(|| {
            let cwd = self.directory.as_deref().or(transcript.head.cwd.as_deref());
            let cwd = encode(cwd.unwrap_or("/"));
            format!("{{\"cwd\":{cwd},\"root\":{cwd}}}")
        });
        let model = self.model.clone();
        let model =
            model.unwrap_or_else(|| format!("{{\"providerID\":{provider},\"modelID\":{name}}}"));
        Ok(Newest {
            agent: self.agent.clone().unwrap_or_else(|| encode("build")),
            model,
            path,
            name,
            provider,
        })
    }

    /// An id in OpenCode's form: the time with the counter 1, digits derived from the session, the
    /// time and `what`, and digits derived from all before them, which [`is_made`] checks. It is
    /// the same in every run.
    fn id(&self, kind: &str, time: u64, what: &str) -> String {
        let stamp = (time.wrapping_mul(0x1000) + 1) & 0xffff_ffff_ffff;
        let own = Ref::from_bytes(format!("{} {time} {what}", self.id).as_bytes());
        let begins = format!("{kind}_{stamp:012x}{}", own.digits());
        let ends = checked(&begins);
        format!("{begins}{ends}")
    }
}

fn json_at(line: &Line<'_>, place: &std::ops::Range<usize>) -> String {
    String::from_utf8_lossy(&line.bytes[place.clone()]).into_owned()
}

/// The id of the message that the row of an item belongs to; `None` if the row has no such id.
fn message_id(transcript: &Transcript, source: &dyn Source, item: usize) -> Option<Box<str>> {
    let line = source.at(transcript.items[item].record().span);
    let row = raw::Row::parse(&line).ok()?;
    RecordBytes { line: &line, base: 0 }.maybe(row.message_id.as_ref())
}
