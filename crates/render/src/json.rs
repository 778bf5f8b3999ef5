//! Converts a session to JSON and back; `docs/schema/transcript.schema.json` is the schema.

use std::borrow::Cow;
use std::collections::HashMap;

use epitome_model::{
    Block, CacheUse, Call, Entry, Field, FieldRole, Head, Image, Item, MicroDollars, Output, Part,
    Record, RecordedUsage, RepeatedOutput, Role, Source, Span, Text, Thinking, ToolKind,
    Transcript, decode, encode,
};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{Facts, PastCompaction, Story};

/// The version of the format. Members may be added without a new version, but not changed.
const VERSION: u64 = 1;

/// A document written by [`json`], parsed again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The name of the agent.
    pub agent: String,
    /// The transcript, without the records that no model sees.
    pub transcript: Transcript,
    /// The bytes that the spans of `transcript` point into: arguments, reasoning, results, images,
    /// unknown blocks.
    pub source: Vec<u8>,
    /// The sessions of the session's sub-agents.
    pub sub_agents: Vec<Document>,
}

/// Why a text is not a document that [`from_json`] can read.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON, or does not match the schema.
    #[error("not a transcript in JSON")]
    Malformed(#[from] serde_json::Error),
    /// A newer version of epitome wrote the document.
    #[error("it was written by a newer epitome: version {0}")]
    Newer(u64),
}

/// A session with its sub-agents as JSON. It includes everything that a model sees or saw in the
/// turns of `story`, regardless of the level of detail. [`from_json`] parses it.
pub fn json(story: &Story<'_>, sub_agents: &[Story<'_>]) -> String {
    let written = document(story, sub_agents);
    let text = serde_json::to_string(&written).expect("texts and numbers always serialise");
    let mut text = crate::inert_json(text);
    text.push('\n');
    text
}

/// Parses the output of [`json`].
///
/// # Errors
///
/// [`JsonError`] if the text is not such a document, or if a newer version of epitome wrote it.
pub fn from_json(bytes: &[u8]) -> Result<Document, JsonError> {
    #[derive(Deserialize)]
    struct Versioned {
        epitome_transcript: u64,
    }
    let Versioned { epitome_transcript: version } = serde_json::from_slice(bytes)?;
    if version > VERSION {
        return Err(JsonError::Newer(version));
    }
    Ok(Document::from_written(serde_json::from_slice(bytes)?))
}

#[derive(Serialize, Deserialize)]
struct Written {
    epitome_transcript: u64,
    agent: String,
    /// The key figures, for programs other than epitome. `from_json` ignores them.
    #[serde(default)]
    facts: Facts,
    head: WrittenHead,
    context: Vec<usize>,
    /// The compactions, for programs other than epitome. `from_json` ignores them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    compactions: Vec<PastCompaction>,
    entries: Vec<WrittenEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sub_agents: Vec<Written>,
}

#[derive(Serialize, Deserialize)]
struct WrittenHead {
    id: Option<Box<str>>,
    cwd: Option<Box<str>>,
    title: Option<Box<str>>,
    version: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    prompt: Vec<usize>,
}

#[derive(Serialize, Deserialize)]
struct WrittenEntry {
    line: u64,
    role: Speaker,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    repeated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Tokens>,
    blocks: Vec<WrittenBlock>,
    /// The indices of the blocks of which a resume no longer sends the text or a part of it, for
    /// programs other than epitome. `from_json` ignores them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unsent: Vec<usize>,
}

#[derive(Serialize, Deserialize)]
struct Tokens {
    input: u64,
    output: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cached: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cache_written: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    micro_dollars: Option<MicroDollars>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Speaker {
    User,
    Assistant,
    Tool,
    System,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenBlock {
    Text(String),
    Summary(String),
    Thinking(WrittenThinking),
    Call(WrittenCall),
    Output(WrittenOutput),
    /// A repetition of an earlier output.
    Again(WrittenOutput),
    Image(WrittenImage),
    Opaque(String),
}

#[derive(Serialize, Deserialize)]
struct WrittenThinking {
    text: Option<String>,
    removable: bool,
}

#[derive(Serialize, Deserialize)]
struct WrittenCall {
    id: Box<str>,
    name: Box<str>,
    kind: ToolKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<WrittenField>,
    /// The arguments unchanged if they are JSON, or else as a string.
    arguments: Box<RawValue>,
}

#[derive(Serialize, Deserialize)]
struct WrittenField {
    name: Box<str>,
    role: FieldRole,
    text: String,
}

#[derive(Serialize, Deserialize)]
struct WrittenOutput {
    call: Box<str>,
    error: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    numbered: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    from_user: bool,
    parts: Vec<WrittenPart>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenPart {
    Text(String),
    Image(WrittenImage),
    Opaque(String),
}

#[derive(Serialize, Deserialize)]
struct WrittenImage {
    media: Box<str>,
    /// The bytes of the image, in base64.
    data: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

fn document(story: &Story<'_>, sub_agents: &[Story<'_>]) -> Written {
    let session = &story.session;
    let transcript = session.transcript;
    let shown = || transcript.entries().filter(|(item, _)| story.has_item(*item));
    let places: HashMap<usize, usize> =
        shown().enumerate().map(|(at, (item, _))| (item, at)).collect();
    let placed = |items: &[usize]| items.iter().filter_map(|it| places.get(it).copied()).collect();
    let Head { id, cwd, title, version, prompt } = transcript.head.clone();
    let prompt = placed(&prompt);
    let unsent = |item| session.past.map(|past| past.unsent_blocks(item)).unwrap_or_default();
    Written {
        epitome_transcript: VERSION,
        agent: session.agent.to_owned(),
        facts: Facts::from_story(story),
        head: WrittenHead { id, cwd, title, version, prompt },
        context: placed(&transcript.context),
        compactions: session.past.map(|past| past.compactions.clone()).unwrap_or_default(),
        entries: shown().map(|(item, it)| entry(it, session.source, unsent(item))).collect(),
        sub_agents: sub_agents.iter().map(|story| document(story, &[])).collect(),
    }
}

fn entry(entry: &Entry, source: &dyn Source, unsent: Vec<usize>) -> WrittenEntry {
    let role = match entry.role {
        Role::User => Speaker::User,
        Role::Assistant => Speaker::Assistant,
        Role::Tool => Speaker::Tool,
        Role::System => Speaker::System,
    };
    WrittenEntry {
        line: entry.record.line,
        role,
        id: entry.id.clone(),
        parent: entry.parent.clone(),
        group: entry.group.clone(),
        repeated: entry.repeated,
        time: entry.time.clone(),
        model: entry.model.clone(),
        usage: entry.usage.map(|RecordedUsage { input, output, cache, cost }| Tokens {
            input,
            output,
            cached: cache.map(|cache| cache.read),
            cache_written: cache.map(|cache| cache.written),
            micro_dollars: cost,
        }),
        blocks: entry.blocks.iter().filter_map(|it| block(it, source)).collect(),
        unsent,
    }
}

fn block(block: &Block, source: &dyn Source) -> Option<WrittenBlock> {
    Some(match block {
        Block::Text(text) => WrittenBlock::Text(words(text, source)),
        Block::Summary(text) => WrittenBlock::Summary(words(text, source)),
        Block::Thinking(thinking) => WrittenBlock::Thinking(WrittenThinking {
            text: thinking.text.as_ref().map(|text| words(text, source)),
            removable: thinking.removable,
        }),
        Block::Call(call) => WrittenBlock::Call(WrittenCall {
            id: call.id.clone(),
            name: call.name.clone(),
            kind: call.kind,
            target: call.target.as_ref().map(|target| words(target, source)),
            part: call.part.clone(),
            fields: call
                .fields
                .iter()
                .map(|Field { name, role, text }| WrittenField {
                    name: name.clone(),
                    role: *role,
                    text: words(text, source),
                })
                .collect(),
            arguments: arguments(&source.at(call.arguments)),
        }),
        Block::Output(it) => WrittenBlock::Output(output(it, source)),
        Block::Repeated(it) => WrittenBlock::Again(output(&it.output, source)),
        Block::Image(it) => WrittenBlock::Image(image(it, source)),
        Block::Opaque(span) => WrittenBlock::Opaque(raw(source, *span)),
        // A kind of block that `epitome-model` may add later.
        _ => return None,
    })
}

fn words(text: &Text, source: &dyn Source) -> String {
    text.read(source).into_owned()
}

fn output(output: &Output, source: &dyn Source) -> WrittenOutput {
    let parts = output.parts.iter().map(|part| match part {
        Part::Text(text) => WrittenPart::Text(text.read(source).into_owned()),
        Part::Image(it) => WrittenPart::Image(image(it, source)),
        Part::Opaque(span) => WrittenPart::Opaque(raw(source, *span)),
    });
    WrittenOutput {
        call: output.call.clone(),
        error: output.error,
        numbered: output.numbered,
        from_user: output.from_user,
        parts: parts.collect(),
    }
}

fn image(image: &Image, source: &dyn Source) -> WrittenImage {
    let data = decode(&source.at(image.data)).into_owned();
    WrittenImage { media: image.media.clone(), data }
}

fn arguments(bytes: &[u8]) -> Box<RawValue> {
    let known = std::str::from_utf8(bytes).ok().and_then(|it| serde_json::from_str(it).ok());
    known.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(bytes);
        to_raw_value(&text).expect("a text always serialises")
    })
}

fn raw(source: &dyn Source, span: Span) -> String {
    match source.at(span) {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

impl Document {
    fn from_written(written: Written) -> Document {
        let mut document = Document { agent: written.agent, ..Document::default() };
        let WrittenHead { id, cwd, title, version, prompt } = written.head;
        let entries = written.entries.into_iter().map(|it| document.entry(it)).collect::<Vec<_>>();
        let known =
            |items: Vec<usize>| items.into_iter().filter(|it| *it < entries.len()).collect();
        document.transcript = Transcript {
            head: Head { id, cwd, title, version, prompt: known(prompt) },
            context: known(written.context),
            items: entries.into_iter().map(|it| Item::Entry(Box::new(it))).collect(),
        };
        document.sub_agents = written.sub_agents.into_iter().map(Document::from_written).collect();
        document
    }

    fn entry(&mut self, written: WrittenEntry) -> Entry {
        Entry {
            record: Record { line: written.line, span: Span::default() },
            id: written.id,
            parent: written.parent,
            role: match written.role {
                Speaker::User => Role::User,
                Speaker::Assistant => Role::Assistant,
                Speaker::Tool => Role::Tool,
                Speaker::System => Role::System,
            },
            group: written.group,
            repeated: written.repeated,
            time: written.time,
            model: written.model,
            usage: written.usage.map(|told| RecordedUsage {
                input: told.input,
                output: told.output,
                cache: told
                    .cached
                    .map(|read| CacheUse { read, written: told.cache_written.unwrap_or(0) }),
                cost: told.micro_dollars,
            }),
            blocks: written.blocks.into_iter().map(|it| self.block(it)).collect(),
            hidden_fields: Vec::new(),
        }
    }

    fn block(&mut self, written: WrittenBlock) -> Block {
        match written {
            WrittenBlock::Text(text) => Block::Text(Text::Owned(text.into())),
            WrittenBlock::Summary(text) => Block::Summary(Text::Owned(text.into())),
            WrittenBlock::Thinking(WrittenThinking { text, removable }) => {
                let whole = self.put(encode(text.as_deref().unwrap_or_default()).as_bytes());
                let text = text.map(|text| Text::Owned(text.into()));
                Block::Thinking(Thinking { text, whole, removable })
            }
            WrittenBlock::Call(call) => Block::Call(Call {
                id: call.id,
                name: call.name,
                kind: call.kind,
                target: call.target.map(|text| Text::Owned(text.into())),
                part: call.part,
                fields: call
                    .fields
                    .into_iter()
                    .map(|WrittenField { name, role, text }| Field {
                        name,
                        role,
                        text: Text::Owned(text.into()),
                    })
                    .collect(),
                arguments: self.put(call.arguments.get().as_bytes()),
            }),
            WrittenBlock::Output(output) => Block::Output(self.output(output)),
            WrittenBlock::Again(output) => {
                let output = self.output(output);
                let whole = output.whole;
                Block::Repeated(RepeatedOutput { output, whole })
            }
            WrittenBlock::Image(image) => Block::Image(self.image(image)),
            WrittenBlock::Opaque(text) => Block::Opaque(self.put(text.as_bytes())),
        }
    }

    fn output(&mut self, written: WrittenOutput) -> Output {
        let start = self.source.len() as u64;
        let parts: Vec<Part> = written
            .parts
            .into_iter()
            .map(|part| match part {
                WrittenPart::Text(text) => {
                    Part::Text(Text::Source(self.put(encode(&text).as_bytes())))
                }
                WrittenPart::Image(image) => Part::Image(self.image(image)),
                WrittenPart::Opaque(text) => Part::Opaque(self.put(text.as_bytes())),
            })
            .collect();
        Output {
            call: written.call,
            error: written.error,
            parts,
            whole: Span { start, end: self.source.len() as u64 },
            numbered: written.numbered,
            from_user: written.from_user,
        }
    }

    fn image(&mut self, written: WrittenImage) -> Image {
        let data = self.put(encode(&written.data).as_bytes());
        Image { media: written.media, data, whole: data }
    }

    fn put(&mut self, bytes: &[u8]) -> Span {
        let start = self.source.len() as u64;
        self.source.extend_from_slice(bytes);
        Span { start, end: self.source.len() as u64 }
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
