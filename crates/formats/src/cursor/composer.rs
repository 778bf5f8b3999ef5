//! Composers, the conversations of the editor: rows of `state.vscdb`.
//!
//! A bubble is a message. Since 2025, bubbles are separate rows, which a composer lists; before
//! 2025, a composer contained its bubbles.

use std::collections::{HashMap, HashSet};

use epitome_json::{Document, Value};
use epitome_model::{
    Block, DecodedLiteral, Entry, Faults, FieldRemainder, HiddenField, HiddenRecord, Item, Output,
    Part, Record, Role, Source, Text, Transcript, decode,
};

use super::message::{self, Calls, is_blank};
use super::record::{line, title};
use super::transcript::first_words;
use crate::database::folder;
use crate::{accounting, lines};

/// The name that is stored if no model was chosen.
const NO_MODEL: &str = "default";

/// Members of a result that contain the output of the tool, in order of preference. All other
/// members are metadata.
const SAYS: [&str; 4] = ["output", "contents", "content", "modelVisibleErrorMessage"];

/// Reads a composer.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let mut reader = Reader::default();
    let mut items = Vec::new();
    lines(source, |it| {
        line(&it, &mut items, faults, |document, items| {
            reader.row(document, it.record, items);
        });
    });
    reader.transcript.items = items;
    reader.finish(source)
}

#[derive(Default)]
struct Reader {
    transcript: Transcript,
    /// The ids of the bubbles, in the order of the conversation, as the composer lists them.
    order: Vec<Box<str>>,
    /// The items of bubbles that are inside the composer.
    inline: Vec<usize>,
    /// The items of bubbles in separate rows, in the order in which they were last written.
    rows: Vec<usize>,
    by_id: HashMap<Box<str>, usize>,
    summary: Option<Summary>,
    model: Option<Box<str>>,
    calls: Calls,
    /// The ids of calls so far.
    called: HashSet<Box<str>>,
    named: bool,
}

/// Cursor's own summary of the earlier conversation.
struct Summary {
    item: usize,
    /// The id of the first bubble that is sent after the summary.
    from: Option<Box<str>>,
    /// The id of the last bubble that the summary replaces.
    through: Option<Box<str>>,
}

impl Reader {
    fn row(&mut self, document: &Document<'_>, record: Record, items: &mut Vec<Item>) {
        let (Some(key), Some(data)) = (document.root.text_of("key"), document.root.get("data"))
        else {
            return;
        };
        let mut key = key.split(':');
        match (key.next(), key.next()) {
            (Some("composerData"), Some(id)) => self.composer(data, id, record, items),
            (Some("composerHeaders"), _) => self.facts(data),
            (Some("bubbleId"), _) => {
                let id = key.next().unwrap_or_default();
                let item = self.bubble(data, id, record);
                self.rows.push(items.len());
                self.by_id.insert(id.into(), items.len());
                items.push(item);
            }
            _ => {}
        }
    }

    fn composer(&mut self, data: &Value<'_>, id: &str, record: Record, items: &mut Vec<Item>) {
        self.transcript.head.id = Some(id.into());
        self.transcript.head.version =
            data.get("_v").map(|version| String::from_utf8_lossy(version.raw()).into());
        self.facts(data);
        self.model = data.get("modelConfig").and_then(|config| model(config, "modelName"));
        for header in data.list_of("fullConversationHeadersOnly") {
            self.order.extend(header.text_of("bubbleId").map(Box::from));
        }
        // Items must be in the order of their positions in the source.
        let mut inside: Vec<&Value<'_>> = data.list_of("conversation").iter().collect();
        let map = data.get("conversationMap").map_or(&[][..], Value::members);
        inside.extend(map.iter().map(|(_, bubble)| bubble));
        let summary = data.get("latestConversationSummary").and_then(summary);
        inside.extend(summary.as_ref().map(|summary| summary.words));
        inside.sort_by_key(|value| value.range().start);
        for value in inside {
            let record = Record { span: value.span(), ..record };
            let item = items.len();
            match &summary {
                Some(it) if it.words.range() == value.range() => {
                    let from = it.from.clone();
                    let through = it.through.clone();
                    self.summary = Some(Summary { item, from, through });
                    let blocks = vec![Block::Summary(value.to_source_text())];
                    let entry = Entry { record, role: Role::System, blocks, ..Entry::default() };
                    items.push(Item::Entry(Box::new(entry)));
                }
                Some(_) | None => {
                    let id: Box<str> = value.text_of("bubbleId").unwrap_or_default().into();
                    let bubble = self.bubble(value, &id, record);
                    self.inline.push(item);
                    self.by_id.insert(id, item);
                    items.push(bubble);
                }
            }
        }
    }

    /// Reads the title and the folder of the session. `data` is the composer, or its row in the
    /// table of headers.
    fn facts(&mut self, data: &Value<'_>) {
        let head = &mut self.transcript.head;
        if let Some(name) = data.text_of("name").and_then(|name| title(&name)) {
            head.title = Some(name);
            self.named = true;
        }
        if let Some(uri) = data.get("workspaceIdentifier").and_then(|it| it.get("uri")) {
            let place = uri.text_of("fsPath").or_else(|| uri.text());
            head.cwd = place.map(|place| folder(&place).into()).or(head.cwd.take());
        }
    }

    fn bubble(&mut self, data: &Value<'_>, id: &str, record: Record) -> Item {
        let head = &mut self.transcript.head;
        if head.cwd.is_none() {
            let folders = data.list_of("workspaceUris").iter();
            head.cwd = folders.filter_map(Value::text).next().map(|url| folder(&url).into());
        }
        let mut hidden_fields = vec![("richText", data.get("richText"))];
        if let Some(former) = data.get("toolFormerData")
            && former.get("rawArgs").is_some_and(|written| !is_blank(written))
        {
            hidden_fields.push(("params", former.get("params")));
        }
        let hidden_fields = hidden_fields.into_iter().filter_map(|(name, value)| {
            let value = value.filter(|value| !is_blank(value))?;
            Some(accounting::hidden(name, value, FieldRemainder::Nothing))
        });
        let hidden_fields: Vec<HiddenField> = hidden_fields.collect();
        let role = match data.get("type").map(Value::raw) {
            Some(b"1") => Role::User,
            Some(b"2") => Role::Assistant,
            Some(_) | None => return Item::Hidden(HiddenRecord { record, hidden_fields }),
        };
        let blocks = match role {
            Role::Assistant => self.response(data, id),
            Role::User | Role::System | Role::Tool => request(data),
        };
        if blocks.is_empty() {
            return Item::Hidden(HiddenRecord { record, hidden_fields });
        }
        let spoke = data.get("modelInfo").and_then(|info| model(info, "modelName"));
        Item::Entry(Box::new(Entry {
            record,
            id: Some(id.into()),
            role,
            time: data.any(&["createdAt"]).map(|it| decode(it.raw()).into()),
            model: spoke.or_else(|| self.model.clone()).filter(|_| role == Role::Assistant),
            blocks,
            hidden_fields,
            ..Entry::default()
        }))
    }

    /// The blocks of a message of the model: reasoning, text, and one call with its result.
    fn response(&mut self, data: &Value<'_>, id: &str) -> Vec<Block> {
        let mut blocks = Vec::new();
        if let Some(thinking) = data.get("thinking") {
            let words = if thinking.is_text() { Some(thinking) } else { thinking.get("text") };
            let thinking_text = words.filter(|words| !is_blank(words));
            let sealed = thinking.get("signature").is_some_and(|it| !is_blank(it));
            if thinking_text.is_some() || sealed {
                blocks.push(message::reasoning(thinking, thinking_text));
            }
        }
        blocks.extend(data.get("text").and_then(|words| message::text(words)));
        let Some(former) = data.get("toolFormerData").filter(|it| it.is_object()) else {
            return blocks;
        };
        let name = match former.text_of("name").filter(|name| !name.is_empty()) {
            Some(name) => Some(Box::from(name)),
            // Older versions have numbers of tools instead of names.
            None => former.get("tool").map(|tool| match tool.text() {
                Some(name) => name.into(),
                None => format!("tool {}", String::from_utf8_lossy(tool.raw())).into(),
            }),
        };
        if let Some(name) = name {
            let mut arguments = ["rawArgs", "params"].iter().filter_map(|key| former.get(key));
            let arguments = arguments.find(|it| it.is_object() || !is_blank(it));
            // A bubble contains one call, so the bubble's id distinguishes calls that have the same
            // id.
            let own = former.text_of("toolCallId").filter(|own| !own.is_empty());
            let own: Box<str> = own.map_or_else(|| id.into(), Box::from);
            let own = if self.called.insert(own.clone()) { own } else { id.into() };
            let own = Some(own);
            let call = message::call(former, (own, name), arguments, &mut self.calls);
            blocks.push(Block::Call(call.clone()));
            if let Some(output) = output(former) {
                let (_, from_user) = self.calls.end(Some(call.id.clone()));
                blocks.push(Block::Output(Output { call: call.id, from_user, ..output }));
            }
        }
        blocks
    }

    fn finish(mut self, source: &dyn Source) -> Transcript {
        let mut seen = HashSet::new();
        let named = self.order.iter().filter_map(|id| self.by_id.get(id).copied());
        let named: Vec<usize> = named.filter(|&item| seen.insert(item)).collect();
        let order = match (named.is_empty(), self.inline.is_empty()) {
            (false, _) => named,
            (true, false) => std::mem::take(&mut self.inline),
            (true, true) => std::mem::take(&mut self.rows),
        };
        let behind = self.summary.as_ref().and_then(|summary| {
            let from = match self.place(&order, summary.from.as_deref()) {
                Some(from) => Some(from),
                None => self.place(&order, summary.through.as_deref()).map(|through| through + 1),
            };
            Some((summary.item, from?))
        });
        let sent = match behind {
            Some((summary, from)) => [&[summary], &order[from..]].concat(),
            None => order,
        };
        let transcript = &mut self.transcript;
        let sent = sent.into_iter().filter(|&item| transcript.items[item].entry().is_some());
        transcript.context = sent.collect();
        if !self.named {
            transcript.head.title = first_words(transcript, source);
        }
        self.transcript
    }

    fn place(&self, order: &[usize], id: Option<&str>) -> Option<usize> {
        let item = self.by_id.get(id?)?;
        order.iter().position(|it| it == item)
    }
}

/// The blocks of a message of the user: text and attachments.
fn request(data: &Value<'_>) -> Vec<Block> {
    let words = data.get("text").and_then(|words| message::text(words));
    let attached = ["attachedCodeChunks", "images"].iter().filter_map(|key| data.get(key));
    let attached = attached.filter(|list| !list.list().is_empty());
    words.into_iter().chain(attached.map(|it| Block::Opaque(it.span()))).collect()
}

/// The result of a call; `None` if the call has no result.
fn output(former: &Value<'_>) -> Option<Output> {
    let error = former.is("status", "error");
    let keys = if error { ["error", "result"] } else { ["result", "error"] };
    let mut content = keys.iter().filter_map(|key| former.get(key));
    let content = content.find(|it| it.is_object() || !is_blank(it))?;
    let part = if content.is_text() {
        Part::Text(result_text(content))
    } else {
        Part::Opaque(content.span())
    };
    Some(Output {
        call: Box::default(),
        error,
        parts: vec![part],
        whole: content.span(),
        ..Output::default()
    })
}

/// The output in a result that is stored as a string of JSON: the first of its members in [`SAYS`]
/// that is a text and is not blank. The whole string if it is not JSON, or has no such member.
fn result_text(literal: &Value<'_>) -> Text {
    let inner = DecodedLiteral::decode(literal.raw(), literal.span().start);
    if let Ok(document) = Document::parse(&inner.text) {
        let mut words = SAYS.iter().filter_map(|key| document.root.get(key));
        if let Some(words) = words.find(|words| !is_blank(words)) {
            return Text::Source(inner.span(words.range()));
        }
    }
    literal.to_source_text()
}

fn model(value: &Value<'_>, key: &str) -> Option<Box<str>> {
    value.text_of(key).filter(|name| name != NO_MODEL && !name.is_empty()).map(Into::into)
}

/// A summary as stored in a composer.
struct Stored<'v, 'a> {
    words: &'v Value<'a>,
    from: Option<Box<str>>,
    through: Option<Box<str>>,
}

/// The summary of a composer; `None` if there is none or its text is blank. Newer versions store
/// the summary in a separate object.
fn summary<'v, 'a>(value: &'v Value<'a>) -> Option<Stored<'v, 'a>> {
    let inner = value.get("summary")?;
    let (all, words) =
        if inner.is_object() { (inner, inner.get("summary")?) } else { (value, inner) };
    let from = id(all, "clientShouldStartSendingFromInclusiveBubbleId");
    let through = id(all, "truncationLastBubbleIdInclusive");
    (!is_blank(words)).then_some(Stored { words, from, through })
}

fn id(value: &Value<'_>, key: &str) -> Option<Box<str>> {
    value.text_of(key).filter(|id| !id.is_empty()).map(Box::from)
}
