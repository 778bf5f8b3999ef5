//! The lines of a log, and how they are written.

use std::borrow::Cow;

use epitome_model::{
    Block, CacheUse, Entry, MicroDollars, Output, Part, RecordedUsage, Role, Source, Span,
    ToolKind, encode, encode_to,
};

/// One block of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessagePart<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// Reasoning without a signature: only its text is known.
    Thinking(Cow<'a, str>),
    /// A call of a tool.
    Call {
        /// The id that the result of the call names.
        id: Cow<'a, str>,
        /// The tool's name.
        name: Cow<'a, str>,
        /// The kind of the tool. A reader uses it only if epitome does not know the tool's name.
        kind: Option<ToolKind>,
        /// The arguments: the text of a JSON value, or any text if the tool takes one text.
        arguments: Cow<'a, str>,
    },
    /// The result of a call.
    Output {
        /// The id of the call.
        call: Cow<'a, str>,
        /// Whether the tool failed.
        error: bool,
        /// Texts and pictures, in order.
        parts: Vec<MessagePart<'a>>,
    },
    /// A picture.
    Image {
        /// The media type: `image/png`.
        media: Cow<'a, str>,
        /// The picture in base64.
        data: Cow<'a, str>,
    },
    /// A block in the format of an API, such as signed reasoning or a document: the text of a JSON
    /// object with a `type`. It is sent to that API only.
    Wire(Cow<'a, str>),
}

impl<'a> MessagePart<'a> {
    /// A text.
    pub fn text(words: impl Into<Cow<'a, str>>) -> MessagePart<'a> {
        MessagePart::Text(words.into())
    }

    /// A call without a kind, for a tool whose name epitome knows.
    pub fn call(
        id: impl Into<Cow<'a, str>>,
        name: impl Into<Cow<'a, str>>,
        arguments: impl Into<Cow<'a, str>>,
    ) -> MessagePart<'a> {
        let id = id.into();
        let name = name.into();
        let arguments = arguments.into();
        MessagePart::Call { id, name, kind: None, arguments }
    }

    /// The result of a successful call.
    pub fn output(
        call: impl Into<Cow<'a, str>>,
        words: impl Into<Cow<'a, str>>,
    ) -> MessagePart<'a> {
        MessagePart::Output {
            call: call.into(),
            error: false,
            parts: vec![MessagePart::text(words)],
        }
    }

    /// The result of a failed call.
    pub fn failure(
        call: impl Into<Cow<'a, str>>,
        words: impl Into<Cow<'a, str>>,
    ) -> MessagePart<'a> {
        MessagePart::Output {
            call: call.into(),
            error: true,
            parts: vec![MessagePart::text(words)],
        }
    }
}

/// The role of an entry of a log, and its metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speaker<'a> {
    /// The role.
    pub role: Role,
    /// Whether the entry is sent before the conversation.
    pub prompt: bool,
    /// The model that wrote the entry.
    pub model: Option<&'a str>,
    /// The tokens that the provider counted for the request that the entry answers.
    pub usage: Option<RecordedUsage>,
    /// The id of the model response that the entry is part of, if the response has several entries.
    pub group: Option<&'a str>,
    /// If this is the last entry of a client message, the number of that message, from 1. A client
    /// message is one of the messages that a program passes to the engine; it may have several
    /// entries.
    pub message: Option<u64>,
}

/// The beginning of a line that sets the origin.
pub(super) const ORIGIN: &str = r#"{"type":"origin""#;

/// The origin of a conversation: its folder, model and recipe. The first line of a log states it;
/// later lines state what has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The working directory of the agent.
    pub cwd: Option<String>,
    /// The model of the conversation.
    pub model: Option<String>,
    /// The name of the recipe.
    pub recipe: Option<String>,
}

impl Origin {
    /// The members of the origin as JSON, each preceded by a comma.
    fn members(&self) -> String {
        let all = [("cwd", &self.cwd), ("model", &self.model), ("recipe", &self.recipe)];
        let members = all.into_iter().filter_map(|(name, value)| {
            Some(format!(r#","{name}":{}"#, encode(value.as_deref()?)))
        });
        members.collect()
    }

    /// Replaces the values that `later` states.
    pub fn update(&mut self, later: Origin) {
        let Origin { cwd, model, recipe } = later;
        self.cwd = cwd.or(self.cwd.take());
        self.model = model.or(self.model.take());
        self.recipe = recipe.or(self.recipe.take());
    }
}

/// The first line of a log, including its line feed.
pub fn header(id: &str, origin: &Origin) -> String {
    let members = origin.members();
    format!("{{\"type\":\"epitome\",\"version\":1,\"id\":{}{members}}}\n", encode(id))
}

/// A line, with its line feed, for the end of a log: entries after it have this origin.
pub fn origin_line(origin: &Origin) -> String {
    format!("{ORIGIN}{}}}\n", origin.members())
}

/// A line, with its line feed, for the end of a log: from there on, the prompt entry `id` has the
/// text `text`. No undo takes this back.
pub fn said_again(id: &str, text: &str) -> String {
    let id = encode(id);
    let text = encode(text);
    format!("{{\"type\":\"birth\",\"edits\":[{{\"of\":{id},\"blocks\":[{{\"text\":{text}}}]}}]}}\n")
}

/// The line of an entry, including its line feed.
pub fn line(id: &str, speaker: &Speaker<'_>, said: &[MessagePart<'_>]) -> String {
    let mut line = Vec::new();
    add_line(&mut line, id, speaker, said);
    String::from_utf8(line).expect("JSON of texts is text")
}

/// Appends the line of an entry to `line`, including its line feed.
pub fn add_line(line: &mut Vec<u8>, id: &str, speaker: &Speaker<'_>, said: &[MessagePart<'_>]) {
    let role = match speaker.role {
        _ if speaker.prompt => "prompt",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::System => "system",
    };
    let mut more = String::new();
    if let Some(model) = speaker.model {
        more += &format!(r#","model":{}"#, encode(model));
    }
    if let Some(group) = speaker.group {
        more += &format!(r#","group":{}"#, encode(group));
    }
    if let Some(message) = speaker.message {
        more += &format!(r#","message":{message}"#);
    }
    if let Some(RecordedUsage { input, output, cache, cost }) = speaker.usage {
        more += &format!(r#","usage":{{"input":{input},"output":{output}"#);
        if let Some(CacheUse { read, written }) = cache {
            more += &format!(r#","cached":{read},"cache_written":{written}"#);
        }
        if let Some(MicroDollars(cost)) = cost {
            more += &format!(r#","micro_dollars":{cost}"#);
        }
        more.push('}');
    }
    let id = encode(id);
    let head = format!(r#"{{"type":"entry","id":{id},"role":"{role}"{more},"blocks":"#);
    line.extend_from_slice(head.as_bytes());
    list(line, said);
    line.extend_from_slice(b"}\n");
}

/// Appends a list of blocks as JSON. Blocks may have hundreds of megabytes, and are copied only
/// once.
fn list(line: &mut Vec<u8>, said: &[MessagePart<'_>]) {
    line.push(b'[');
    for (idx, said) in said.iter().enumerate() {
        line.extend_from_slice(if idx > 0 { b"," } else { b"" });
        block(line, said);
    }
    line.push(b']');
}

/// A text as a block.
pub fn text_block(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, encode(text))
}

fn block(line: &mut Vec<u8>, said: &MessagePart<'_>) {
    match said {
        MessagePart::Text(words) => {
            line.extend_from_slice(b"{\"text\":");
            encode_to(line, words);
        }
        MessagePart::Thinking(words) => {
            line.extend_from_slice(b"{\"thinking\":");
            encode_to(line, words);
        }
        MessagePart::Call { id, name, kind, arguments } => {
            let kind = kind.map(|kind| format!(r#""kind":{},"#, word(kind))).unwrap_or_default();
            let id = encode(id);
            let name = encode(name);
            let head = format!(r#"{{"call":{id},"name":{name},{kind}"arguments":"#);
            line.extend_from_slice(head.as_bytes());
            value(line, arguments);
        }
        MessagePart::Output { call, error, parts } => {
            let failed = if *error { r#""error":true,"# } else { "" };
            let head = format!(r#"{{"output":{},{failed}"content":"#, encode(call));
            line.extend_from_slice(head.as_bytes());
            match parts.as_slice() {
                [MessagePart::Text(words)] => encode_to(line, words),
                parts => list(line, parts),
            }
        }
        MessagePart::Image { media, data } => {
            line.extend_from_slice(b"{\"image\":");
            encode_to(line, data);
            line.extend_from_slice(format!(",\"media\":{}", encode(media)).as_bytes());
        }
        MessagePart::Wire(raw) => return one_line(line, raw),
    }
    line.push(b'}');
}

fn word(kind: ToolKind) -> String {
    serde_json::to_string(&kind).unwrap_or_else(|_| "\"other\"".to_owned())
}

/// Appends `text` as JSON on one line if it is valid JSON, and otherwise as a JSON string.
fn value(line: &mut Vec<u8>, text: &str) {
    if epitome_json::check(text.as_bytes()).is_ok() {
        one_line(line, text)
    } else {
        encode_to(line, text)
    }
}

/// Appends JSON on one line: line feeds between values become spaces.
fn one_line(line: &mut Vec<u8>, json: &str) {
    let from = line.len();
    line.extend_from_slice(json.trim().as_bytes());
    for byte in &mut line[from..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// The blocks of an entry of any session, as blocks of a log.
pub fn blocks_of<'t>(entry: &'t Entry, source: &'t dyn Source) -> Vec<MessagePart<'t>> {
    let blocks = entry.blocks.iter().filter_map(|block| match block {
        Block::Text(text) | Block::Summary(text) => Some(MessagePart::Text(text.read(source))),
        Block::Thinking(thinking) => Some(match &thinking.text {
            Some(text) if !source.at(thinking.whole).starts_with(b"{") => {
                MessagePart::Thinking(text.read(source))
            }
            Some(_) | None => opaque(thinking.whole, source),
        }),
        Block::Call(call) => Some(MessagePart::Call {
            id: Cow::Borrowed(&call.id),
            name: Cow::Borrowed(&call.name),
            kind: Some(call.kind),
            arguments: arguments(&source.at(call.arguments)),
        }),
        Block::Output(output) => Some(result(output, source)),
        Block::Image(image) => Some(picture(image, source)),
        Block::Opaque(span) => Some(opaque(*span, source)),
        // A repeated result is left out, because it was sent before.
        _ => None,
    });
    blocks.collect()
}

fn picture<'t>(image: &'t epitome_model::Image, source: &dyn Source) -> MessagePart<'t> {
    MessagePart::Image { media: Cow::Borrowed(&image.media), data: base64(&source.at(image.data)) }
}

/// An opaque value as a block of a log: a JSON object stays in the format of its API; any other
/// text becomes reasoning.
fn opaque<'t>(span: Span, source: &dyn Source) -> MessagePart<'t> {
    let raw = String::from_utf8_lossy(&source.at(span)).into_owned();
    if raw.starts_with('{') {
        MessagePart::Wire(raw.into())
    } else {
        MessagePart::Thinking(raw.into())
    }
}

fn result<'t>(output: &'t Output, source: &'t dyn Source) -> MessagePart<'t> {
    let parts = output.parts.iter().map(|part| match part {
        Part::Text(text) => MessagePart::Text(text.read(source)),
        Part::Image(image) => picture(image, source),
        Part::Opaque(span) => opaque(*span, source),
    });
    MessagePart::Output {
        call: Cow::Borrowed(&output.call),
        error: output.error,
        parts: parts.collect(),
    }
}

/// The arguments of a call. Arguments that are stored as a string are decoded.
fn arguments<'t>(bytes: &[u8]) -> Cow<'t, str> {
    let text = match bytes.first() {
        Some(b'"') => epitome_model::decode(bytes).into_owned(),
        Some(_) | None => String::from_utf8_lossy(bytes).into_owned(),
    };
    Cow::Owned(text)
}

/// The base64 of a picture, from a `data:` URL or a plain literal.
fn base64<'t>(literal: &[u8]) -> Cow<'t, str> {
    let text = epitome_model::decode(literal).into_owned();
    let data = text.split_once(";base64,").map(|(_, data)| data.to_owned());
    Cow::Owned(data.unwrap_or(text))
}
