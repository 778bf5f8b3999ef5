//! Events into a transcript.

use std::collections::HashSet;
use std::ops::Range;

use epitome_model::{
    Block, Call, Copy, Entry, Item, Kept, Left, Output, Part, Role, Source, Thinking, Transcript,
    short,
};

use super::raw::{self, Data, Event};
use super::tools;
use crate::lines::record;
use crate::place::Place;
use crate::{Fault, Faults, Line, lines};

/// Characters of a title made from the first message.
const TITLE: usize = 80;

/// A log begins with `session.start`, and its producer is Copilot.
pub fn sniff(head: &[u8]) -> bool {
    let mut known = false;
    lines(&head, |line| {
        if line.record.line > 1 {
            return;
        }
        let begins = |start: &[u8]| line.bytes.starts_with(start);
        known = match raw::event(line.bytes) {
            Ok(event) => {
                let kind = event.kind.map(|place| &line.bytes[place]);
                kind == Some(b"\"session.start\"") && event.data.is_some()
            }
            // The head ends within a long first event.
            Err(_) => !line.ended && begins(br#"{"type":"session.start","data":{"#),
        };
    });
    known
}

/// Reads a log.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let mut reader = Reader::default();
    lines(source, |line| reader.line(&line, faults));
    reader.transcript
}

#[derive(Default)]
struct Reader {
    transcript: Transcript,
    named: bool,
    /// Where the system prompt stands in the context: a later one takes its place.
    prompt: Option<usize>,
    seen: HashSet<Box<str>>,
}

/// What an event does to the context.
enum Sent {
    /// It says something more.
    Adds,
    /// It takes the place of the system prompt before.
    Prompt,
    /// It stands for everything before it but the system prompt.
    Compacts,
    /// It is said to a sub-agent or by one.
    Elsewhere,
}

impl Reader {
    fn line(&mut self, line: &Line<'_>, faults: &mut dyn Faults) {
        let Some(event) = record(line, raw::event, faults) else {
            let kept = Kept { record: line.record, copies: Vec::new() };
            self.transcript.items.push(Item::Kept(kept));
            return;
        };
        let at = Place::of(line);
        let none = Data::default();
        let data = event.data.as_ref().unwrap_or(&none);
        let kind = at.maybe(event.kind.as_ref()).unwrap_or_default();
        self.head(&at, &kind, data);
        self.id(&at, &event, line, faults);
        if &*kind == "session.context_cleared" {
            self.forget();
        }
        let copies = copies(&at, data);
        let item = match entry(&at, &kind, data) {
            Some((mut entry, sent)) => {
                entry.record = line.record;
                entry.id = at.maybe(event.id.as_ref());
                entry.parent = at.maybe(event.parent.as_ref());
                entry.time = at.maybe(event.timestamp.as_ref());
                entry.copies = copies;
                let aside = event.agent.is_some() || data.parent_call.is_some();
                self.send(if aside { Sent::Elsewhere } else { sent });
                self.title(&at, &kind, data);
                Item::Entry(Box::new(entry))
            }
            None => Item::Kept(Kept { record: line.record, copies }),
        };
        self.transcript.items.push(item);
    }

    fn head(&mut self, at: &Place<'_>, kind: &str, data: &Data) {
        let head = &mut self.transcript.head;
        match kind {
            "session.start" | "session.resume" | "session.context_changed" => {
                for (field, place) in [
                    (&mut head.id, &data.session),
                    (&mut head.cwd, &data.cwd),
                    (&mut head.version, &data.version),
                ] {
                    if field.is_none() {
                        *field = at.maybe(place.as_ref());
                    }
                }
            }
            "session.title_changed" => {
                if let Some(title) = &data.title {
                    head.title = Some(short(&at.text(title), TITLE).into());
                    self.named = true;
                }
            }
            _ => {}
        }
    }

    fn id(&mut self, at: &Place<'_>, event: &Event, line: &Line<'_>, faults: &mut dyn Faults) {
        let Some(id) = at.maybe(event.id.as_ref()) else { return };
        if let Some(id) = self.seen.replace(id) {
            let what = format!("the id {id} repeats");
            faults.report(Fault { line: line.record.line, what });
        }
    }

    fn title(&mut self, at: &Place<'_>, kind: &str, data: &Data) {
        let head = &mut self.transcript.head;
        if kind == "user.message"
            && !self.named
            && head.title.is_none()
            && let Some(words) = &data.content
        {
            head.title = Some(short(at.text(words).trim(), TITLE).into());
        }
    }

    /// Puts the item that is about to be pushed into the context.
    fn send(&mut self, sent: Sent) {
        let item = self.transcript.items.len();
        match sent {
            Sent::Elsewhere => {}
            Sent::Adds => self.transcript.context.push(item),
            Sent::Prompt => match self.prompt {
                Some(place) => self.transcript.context[place] = item,
                None => {
                    self.transcript.context.insert(0, item);
                    self.prompt = Some(0);
                }
            },
            Sent::Compacts => {
                self.forget();
                self.transcript.context.push(item);
            }
        }
    }

    /// Nothing but the system prompt is sent any more.
    fn forget(&mut self) {
        let context = &mut self.transcript.context;
        *context = self.prompt.map(|place| context[place]).into_iter().collect();
    }
}

fn entry(at: &Place<'_>, kind: &str, data: &Data) -> Option<(Entry, Sent)> {
    let text = |place: &Range<usize>| Block::Text(at.source(place));
    let says = |role, blocks| Entry { role, blocks, ..Entry::default() };
    match kind {
        "system.message" => {
            let blocks = data.content.iter().map(text).collect();
            Some((says(Role::System, blocks), Sent::Prompt))
        }
        "system.notification" => {
            let blocks = data.content.iter().map(text).collect();
            Some((says(Role::System, blocks), Sent::Adds))
        }
        "user.message" => {
            let words = data.transformed.as_ref().or(data.content.as_ref());
            Some((says(Role::User, words.iter().map(|place| text(place)).collect()), Sent::Adds))
        }
        "assistant.message" => {
            let mut entry = says(Role::Assistant, response(at, data));
            entry.group = at.maybe(data.message.as_ref());
            entry.model = at.maybe(data.model.as_ref());
            Some((entry, Sent::Adds))
        }
        "tool.execution_complete" => {
            Some((says(Role::Tool, vec![Block::Output(output(at, data))]), Sent::Adds))
        }
        // One that failed has no summary, and changed nothing.
        "session.compaction_complete" => {
            let summary = data.summary.as_ref()?;
            let blocks = vec![Block::Summary(at.source(summary))];
            Some((says(Role::System, blocks), Sent::Compacts))
        }
        _ => None,
    }
}

fn response(at: &Place<'_>, data: &Data) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(whole) = reasoning(data) {
        blocks.push(Block::Thinking(Thinking {
            text: data.reasoning.as_ref().map(|place| at.source(place)),
            whole: at.span(&whole),
            removable: false,
        }));
    }
    // A response of calls alone has an empty text, which is not sent.
    let words = data.content.iter().filter(|place| place.len() > 2);
    blocks.extend(words.map(|place| Block::Text(at.source(place))));
    for request in &data.requests {
        let (Some(id), Some(name)) = (&request.id, &request.name) else { continue };
        let name = at.text(name);
        let nothing = name_end(request);
        let arguments = request.arguments.as_ref().unwrap_or(&nothing);
        let (kind, target, part, fields) = tools::known(&name, at.line, arguments, at.base);
        let (id, arguments) = (at.text(id), at.span(arguments));
        blocks.push(Block::Call(Call { id, name, kind, target, part, fields, arguments }));
    }
    blocks
}

/// The words and the seal of the reasoning: both, if they stand side by side.
fn reasoning(data: &Data) -> Option<Range<usize>> {
    let (words, seal) = match (&data.reasoning, &data.sealed) {
        (Some(words), Some(seal)) => (words, seal),
        (one, other) => return one.clone().or(other.clone()),
    };
    let hull = words.start.min(seal.start)..words.end.max(seal.end);
    let side_by_side = hull.len() < words.len() + seal.len() + "\"reasoningOpaque\": , ".len();
    Some(if side_by_side { hull } else { seal.clone() })
}

/// An empty place, for a call that has no arguments.
fn name_end(request: &raw::Request) -> Range<usize> {
    let end = request.name.as_ref().map_or(0, |name| name.end);
    end..end
}

fn output(at: &Place<'_>, data: &Data) -> Output {
    let place = data.result.as_ref().or(data.error.as_ref());
    Output {
        call: at.maybe(data.call.as_ref()).unwrap_or_default(),
        error: data.failed,
        parts: place.iter().map(|place| Part::Text(at.source(place))).collect(),
        whole: place.map_or_else(Default::default, |place| at.span(place)),
        numbered: false,
        from_user: false,
    }
}

/// What the log holds twice, and what only the screen showed.
fn copies(at: &Place<'_>, data: &Data) -> Vec<Copy> {
    let copy =
        |name, place: &Range<usize>| Copy { name, value: at.span(place), left: Left::Nothing };
    let mut copies: Vec<Copy> = data.copies.iter().map(|(name, it)| copy(name, it)).collect();
    if let (true, Some(typed)) = (data.transformed.is_some(), &data.content) {
        copies.push(copy("content", typed));
    }
    copies
}
