//! Arranges a transcript as every API requires: the prompt, then the responses, each with the
//! results of its calls and the messages after it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use epitome_json::{Document, Value};
use epitome_model::{
    Block, Call, Entry, Image, Output, Part, Role, Source, Span, Text, Transcript, decode,
};

use super::is_name;

/// Content of a transcript that an API cannot express, and that is left out of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftBehind {
    /// Reasoning: only the API that signed or encrypted it accepts it.
    Reasoning,
    /// Calls without a result: a request must not contain them.
    OpenCalls,
    /// Results whose call is not before them in the context, or has a result already.
    OrphanResults,
    /// Pictures of a type that not every API accepts, or whose data is not base64.
    Pictures,
    /// Definitions of tools.
    Tools,
    /// Any other content, such as values that epitome does not understand.
    Opaque,
    /// The agent's own messages: its prompt, its reminders.
    Prompts,
    /// A compacted history that only the service that encrypted it can read.
    Sealed,
    /// The failure flags of results: the text is sent, the flag is not.
    Failures,
    /// The work of sub-agents, which are sessions of their own.
    SubAgents,
}

impl LeftBehind {
    /// The name in JSON output, in snake case.
    pub fn name(self) -> &'static str {
        match self {
            LeftBehind::Reasoning => "reasoning",
            LeftBehind::OpenCalls => "open_calls",
            LeftBehind::OrphanResults => "orphan_results",
            LeftBehind::Pictures => "pictures",
            LeftBehind::Tools => "tools",
            LeftBehind::Opaque => "opaque",
            LeftBehind::Prompts => "prompts",
            LeftBehind::Sealed => "sealed",
            LeftBehind::Failures => "failures",
            LeftBehind::SubAgents => "sub_agents",
        }
    }
}

/// A request body made from a transcript. `epitome-formats` returns new sessions in this type, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestBody {
    /// The body: one JSON document, or the text of a new session. Empty if the transcript has no
    /// content.
    pub body: String,
    /// The number of messages or items in the body; a system prompt is not counted.
    pub messages: usize,
    /// The content that was left out: the number of blocks, parts or flags of each kind.
    pub left: BTreeMap<LeftBehind, u64>,
}

/// The user message that is sent before a conversation that begins with a response: some APIs
/// require the user to begin.
pub const OPENING: &str = "[the session begins with the reply below]";

/// How a summary is sent: in which role, and whether the model acknowledges it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SummaryAs {
    /// As a user message: every API accepts this.
    #[default]
    User,
    /// As a user message. If another user message follows it, an acknowledgement in the role of the
    /// model is sent between the two.
    Acknowledged,
    /// In the system prompt. If the conversation has no other content, as a user message.
    System,
}

/// The model's acknowledgement of a summary.
pub(crate) static UNDERSTOOD: LazyLock<Block> =
    LazyLock::new(|| Block::Text(Text::Owned("Understood. I go on from the summary.".into())));

/// The context of a transcript, arranged in the order that APIs require.
pub struct Conversation<'t> {
    source: &'t dyn Source,
    summary: SummaryAs,
    /// Whether the last block was a summary that the model has to acknowledge.
    follows_summary: bool,
    /// The texts that are sent before the conversation.
    pub prompt: Vec<String>,
    /// The exchanges of the conversation. The first one has no response if the user begins.
    pub steps: Vec<Exchange<'t>>,
    left: BTreeMap<LeftBehind, u64>,
    ids: Ids,
    /// Whether the API accepts a value that epitome does not understand.
    carries: fn(&Value<'_>) -> bool,
}

/// A response, the results of its calls, and the messages after them.
#[derive(Default)]
pub struct Exchange<'t> {
    group: Option<&'t str>,
    /// The blocks of the response. Each call among them is also in `results`.
    pub reply: Vec<&'t Block>,
    /// The calls with their results, in the order of the calls.
    pub results: Vec<AnsweredCall<'t>>,
    /// The blocks of the user and the agent that follow the results.
    pub words: Vec<InputBlock<'t>>,
    open: Vec<(&'t Call, Option<&'t Output>)>,
}

/// A block that is not from the model.
#[derive(Clone, Copy)]
pub struct InputBlock<'t> {
    /// The block.
    pub block: &'t Block,
    /// The role of the entry that the block is from.
    pub role: Role,
    /// The item that contains the block: an index into `Transcript::items`.
    pub item: usize,
}

/// A call with its result.
pub struct AnsweredCall<'t> {
    /// The call.
    pub call: &'t Call,
    /// The result of the call.
    pub output: &'t Output,
}

impl<'t> Conversation<'t> {
    /// Arranges the context of a transcript. `longest_id` is the maximum length of a call id in
    /// characters.
    pub fn from_context(
        transcript: &'t Transcript,
        source: &'t dyn Source,
        longest_id: usize,
    ) -> Self {
        Conversation::with_summary(transcript, source, longest_id, SummaryAs::User)
    }

    /// Like [`from_context`](Self::from_context), but sends a summary as `summary` says.
    pub fn with_summary(
        transcript: &'t Transcript,
        source: &'t dyn Source,
        longest_id: usize,
        summary: SummaryAs,
    ) -> Self {
        let ids = Ids { longest: longest_id, ..Ids::default() };
        let steps = vec![Exchange::default()];
        let left = BTreeMap::new();
        // Whether the context has an entry that is neither a prompt nor a summary: a request must
        // contain one.
        let has_messages = transcript.context().any(|(item, entry)| {
            !transcript.head.prompt.contains(&item)
                && !entry.blocks.iter().all(|block| matches!(block, Block::Summary(_)))
        });
        let alone = summary == SummaryAs::System && !has_messages;
        let summary = if alone { SummaryAs::User } else { summary };
        let prompt = Vec::new();
        let mut all = Conversation {
            source,
            summary,
            follows_summary: false,
            prompt,
            steps,
            left,
            ids,
            carries: |_| false,
        };
        for (item, entry) in transcript.context() {
            if transcript.head.prompt.contains(&item) {
                all.add_prompt(entry);
            } else {
                all.entry(item, entry);
            }
        }
        all.close();
        all
    }

    /// Sets the function that says whether the API accepts a value that epitome does not
    /// understand. Values that it accepts are sent unchanged.
    pub fn carrying(mut self, carries: fn(&Value<'_>) -> bool) -> Self {
        self.carries = carries;
        self
    }

    fn add_prompt(&mut self, entry: &'t Entry) {
        for block in &entry.blocks {
            match block {
                Block::Text(text) | Block::Summary(text) => {
                    let text = text.read(self.source);
                    if !text.trim().is_empty() {
                        self.prompt.push(text.into_owned());
                    }
                }
                Block::Opaque(_) => self.leave(LeftBehind::Tools),
                _ => self.leave(LeftBehind::Opaque),
            }
        }
    }

    fn entry(&mut self, item: usize, entry: &'t Entry) {
        for block in &entry.blocks {
            match block {
                Block::Call(call) => {
                    let step = self.replying(entry);
                    step.reply.push(block);
                    step.open.push((call, None));
                }
                Block::Output(output) => self.result(output),
                Block::Text(text) | Block::Summary(text) if self.is_blank(text) => {}
                Block::Summary(text) if self.summary == SummaryAs::System => {
                    self.prompt.push(text.read(self.source).into_owned());
                }
                Block::Text(_) | Block::Thinking(_) | Block::Opaque(_) | Block::Image(_)
                    if entry.role == Role::Assistant =>
                {
                    self.replying(entry).reply.push(block);
                }
                Block::Thinking(_) => self.leave(LeftBehind::Reasoning),
                // An earlier block with the same result is sent.
                Block::Repeated(_) => {}
                _ => {
                    let is_summary = matches!(block, Block::Summary(_));
                    if self.follows_summary && !is_summary {
                        self.steps
                            .push(Exchange { reply: vec![&UNDERSTOOD], ..Exchange::default() });
                    }
                    self.follows_summary = is_summary && self.summary == SummaryAs::Acknowledged;
                    let last = self.steps.len() - 1;
                    self.steps[last].words.push(InputBlock { block, role: entry.role, item });
                }
            }
        }
    }

    /// The exchange to which a block of a model's entry is added. This is the last exchange if its
    /// response has the group of `entry`, or if it has neither results nor messages yet. Otherwise
    /// a new exchange is added. The first exchange never gets a response.
    fn replying(&mut self, entry: &'t Entry) -> &mut Exchange<'t> {
        self.follows_summary = false;
        let group = entry.group.as_deref();
        let last = self.steps.last().expect("there is a first step");
        let same = group.is_some() && last.group == group;
        let answered = last.open.iter().any(|(_, output)| output.is_some());
        let first = self.steps.len() == 1;
        if !same && (first || answered || !last.words.is_empty()) {
            self.steps.push(Exchange { group, ..Exchange::default() });
        }
        self.steps.last_mut().expect("there is a last step")
    }

    fn result(&mut self, output: &'t Output) {
        let open = self.steps.iter_mut().rev().flat_map(|step| step.open.iter_mut());
        let mut open = open.filter(|(call, answer)| call.id == output.call && answer.is_none());
        match open.next() {
            Some((_, answer)) => *answer = Some(output),
            None => self.leave(LeftBehind::OrphanResults),
        }
    }

    /// Completes the exchanges: stores the results of calls, and removes calls that have none. Then
    /// removes exchanges that have neither a response nor messages.
    fn close(&mut self) {
        let steps = std::mem::take(&mut self.steps);
        for mut step in steps {
            let open = std::mem::take(&mut step.open);
            let unanswered: HashSet<*const Call> = open
                .iter()
                .filter(|(_, output)| output.is_none())
                .map(|(call, _)| std::ptr::from_ref(*call))
                .collect();
            for _ in &unanswered {
                self.leave(LeftBehind::OpenCalls);
            }
            step.reply.retain(|block| match block {
                Block::Call(call) => !unanswered.contains(&std::ptr::from_ref(call)),
                _ => true,
            });
            let answered = open.into_iter().filter_map(|(call, output)| Some((call, output?)));
            step.results = answered.map(|(call, output)| AnsweredCall { call, output }).collect();
            for answer in &step.results {
                self.ids.give(answer.call);
            }
            if !step.reply.is_empty() || !step.words.is_empty() {
                self.steps.push(step);
            }
        }
    }

    /// Counts one block or part that is left out of the request.
    pub fn leave(&mut self, what: LeftBehind) {
        *self.left.entry(what).or_default() += 1;
    }

    /// The decoded text, read from the source of the transcript.
    pub fn text(&self, text: &'t Text) -> std::borrow::Cow<'t, str> {
        text.read(self.source)
    }

    /// The bytes of the source at `span`, as text: the JSON of a value as the session stores it.
    pub fn raw(&self, span: Span) -> String {
        String::from_utf8_lossy(&self.source.at(span)).into_owned()
    }

    fn is_blank(&self, text: &Text) -> bool {
        text.read(self.source).trim().is_empty()
    }

    /// A value that epitome does not understand, unchanged. `None` if the API does not accept it:
    /// then it is counted as left out.
    pub fn opaque_value(&mut self, span: Span) -> Option<TextOrImage<'t>> {
        let raw = self.raw(span);
        if Document::parse(raw.as_bytes()).is_ok_and(|document| (self.carries)(&document.root)) {
            return Some(TextOrImage::Carried(raw));
        }
        self.leave(LeftBehind::Opaque);
        None
    }

    /// The id of a call in the request: the call's own id if the API accepts it and no earlier call
    /// has it, otherwise a new one. Empty if the call has no result.
    pub fn id(&self, call: &Call) -> &str {
        self.ids.given_to(call)
    }

    /// The text and pictures of a tool result, and the values in it that are sent unchanged. Leaves
    /// out blank texts, and counts what the API does not accept as left out.
    pub fn parts(&mut self, output: &'t Output) -> Vec<TextOrImage<'t>> {
        let mut pieces = Vec::new();
        for part in &output.parts {
            match part {
                Part::Text(text) if self.is_blank(text) => {}
                Part::Text(text) => pieces.push(TextOrImage::Text(self.text(text))),
                Part::Image(image) => pieces.extend(self.picture(image)),
                Part::Opaque(span) => pieces.extend(self.opaque_value(*span)),
            }
        }
        pieces
    }

    /// The text and pictures of messages, and the values in them that are sent unchanged. Counts
    /// what the API does not accept as left out.
    pub fn text_and_images(&mut self, words: &[InputBlock<'t>]) -> Vec<TextOrImage<'t>> {
        let mut pieces = Vec::new();
        for word in words {
            match word.block {
                Block::Text(text) | Block::Summary(text) => {
                    pieces.push(TextOrImage::Text(self.text(text)));
                }
                Block::Image(image) => pieces.extend(self.picture(image)),
                Block::Thinking(_) => self.leave(LeftBehind::Reasoning),
                Block::Opaque(span) => pieces.extend(self.opaque_value(*span)),
                _ => self.leave(LeftBehind::Opaque),
            }
        }
        pieces
    }

    fn picture(&mut self, image: &Image) -> Option<TextOrImage<'t>> {
        let literal = decode(&self.source.at(image.data)).into_owned();
        let data = match literal.split_once(";base64,") {
            Some((_, data)) => data.to_owned(),
            None => literal,
        };
        match media(&image.media, &data) {
            Some(media) => Some(TextOrImage::Picture { media, data }),
            None => {
                self.leave(LeftBehind::Pictures);
                None
            }
        }
    }

    /// The arguments of a call, as an object or as any other text. Missing arguments become an
    /// empty object.
    pub fn arguments(&self, call: &Call) -> Arguments {
        let raw = self.raw(call.arguments);
        if raw.starts_with('{') {
            return Arguments::Object(raw);
        }
        let text = decode(raw.as_bytes()).into_owned();
        let is_object = text.trim_start().starts_with('{');
        if is_object && epitome_json::check(text.as_bytes()).is_ok() {
            Arguments::Object(text)
        } else if text.is_empty() || raw == "null" {
            Arguments::Object("{}".to_owned())
        } else {
            Arguments::Text(text)
        }
    }

    /// The finished [`RequestBody`]. `messages` is the number of messages in `body`; if it is 0,
    /// the body becomes empty.
    pub fn finish(self, body: String, messages: usize) -> RequestBody {
        RequestBody {
            body: if messages == 0 { String::new() } else { body },
            messages,
            left: self.left,
        }
    }
}

/// The arguments of a call.
pub enum Arguments {
    /// JSON text of an object.
    Object(String),
    /// Any text: the input of a custom tool.
    Text(String),
}

impl Arguments {
    /// Converts to an object. A text becomes the member `input` of a new object.
    pub fn object(self) -> String {
        match self {
            Arguments::Object(object) => object,
            Arguments::Text(text) => format!(r#"{{"input":{}}}"#, epitome_model::encode(&text)),
        }
    }
}

/// Text, a picture, or a value that is sent unchanged.
pub enum TextOrImage<'t> {
    /// Text.
    Text(std::borrow::Cow<'t, str>),
    /// A picture in base64.
    Picture {
        /// The media type of the picture.
        media: &'static str,
        /// The bytes of the picture in base64.
        data: String,
    },
    /// A value in the API's own JSON, sent unchanged.
    Carried(String),
}

/// The media type of a picture, from its first bytes or, if they begin no type of `KNOWN`, from
/// `said`, the stated type. `None` if neither gives a type of `KNOWN`, or if `data` is not base64.
fn media(said: &str, data: &str) -> Option<&'static str> {
    let digits = data.trim_end_matches('=');
    if !data.len().is_multiple_of(4)
        || data.len() - digits.len() > 2
        || !digits.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
    {
        return None;
    }
    const KNOWN: [(&str, &str); 4] = [
        ("image/png", "iVBOR"),
        ("image/jpeg", "/9j/"),
        ("image/gif", "R0lG"),
        ("image/webp", "UklG"),
    ];
    let by_bytes = KNOWN.iter().find(|(_, begins)| data.starts_with(begins));
    let found = by_bytes.or_else(|| KNOWN.iter().find(|(media, _)| *media == said));
    found.map(|(media, _)| *media)
}

/// The name under which a tool is sent: `name` itself if every API accepts it. Otherwise `_` and
/// the first 60 characters of `name`, each replaced by `_` unless it is an ASCII letter or digit.
pub fn name(name: &str) -> String {
    if is_name(name, 64) && !name.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return name.to_owned();
    }
    let clean = name.chars().take(60).map(|c| match c {
        '_' | 'a'..='z' | 'A'..='Z' | '0'..='9' => c,
        _ => '_',
    });
    let clean: String = clean.collect();
    format!("_{clean}")
}

/// The ids that calls have in a request. No two calls have the same id.
#[derive(Default)]
struct Ids {
    longest: usize,
    taken: HashSet<String>,
    given: HashMap<*const Call, String>,
}

impl Ids {
    fn give(&mut self, call: &Call) {
        let mut id = call.id.to_string();
        let mut n = self.given.len();
        while !is_name(&id, self.longest) || self.taken.contains(&id) {
            id = format!("call_{n}");
            n += 1;
        }
        self.taken.insert(id.clone());
        self.given.insert(std::ptr::from_ref(call), id);
    }

    fn given_to(&self, call: &Call) -> &str {
        self.given.get(&std::ptr::from_ref(call)).map_or("", |id| id)
    }
}

#[cfg(test)]
mod tests {
    use epitome_model::ToolKind;

    use super::*;

    #[test]
    fn the_media_type_of_a_picture_is_one_that_every_api_accepts() {
        for (media_type, data, expect) in [
            ("image/png", "iVBORw0K", Some("image/png")),
            // The first bytes decide which type a picture has. If they begin no known type, the
            // stated type is used.
            ("image/png", "/9j/4AAQ", Some("image/jpeg")),
            ("image/webp", "AAAA", Some("image/webp")),
            ("image/tiff", "AAAA", None),
            ("image/png", "AA==", Some("image/png")),
            ("image/png", "AAA=", Some("image/png")),
            ("image/png", "A===", None),
            ("image/png", "AAA", None),
            ("image/png", "AA A", None),
        ] {
            assert_eq!(media(media_type, data), expect, "{media_type} {data}");
        }
    }

    #[test]
    fn the_name_of_a_tool_has_only_characters_that_every_api_accepts() {
        let long = "a".repeat(65);
        let short = format!("_{}", "a".repeat(60));
        for (tool, expect) in [
            ("Read", "Read"),
            ("mcp__files-2__read", "mcp__files-2__read"),
            ("a.b c/\u{e9}", "_a_b_c__"),
            ("2nd", "_2nd"),
            ("-a", "__a"),
            (long.as_str(), short.as_str()),
        ] {
            assert_eq!(name(tool), expect, "{tool}");
        }
    }

    #[test]
    fn arguments_become_an_object() {
        for (raw, expect) in [
            (r#"{"path": "a"}"#, r#"{"path": "a"}"#),
            (r#""{\"path\": \"a\"}""#, r#"{"path": "a"}"#),
            (r#""""#, "{}"),
            ("null", "{}"),
            (r#""null""#, r#"{"input":"null"}"#),
            (r#""ls -l""#, r#"{"input":"ls -l"}"#),
        ] {
            let source = raw.as_bytes();
            let call = Call {
                id: "1".into(),
                name: "Read".into(),
                kind: ToolKind::Read,
                target: None,
                part: None,
                fields: Vec::new(),
                arguments: Span { start: 0, end: source.len() as u64 },
            };
            let transcript = Transcript::default();
            let all = Conversation::from_context(&transcript, &source, 64);
            assert_eq!(all.arguments(&call).object(), expect, "{raw}");
        }
    }

    #[test]
    fn without_a_function_that_accepts_them_opaque_values_are_left_out() {
        let source = br#"{"type":"document"}"#.as_slice();
        let transcript = Transcript::default();
        let mut all = Conversation::from_context(&transcript, &source, 64);
        let value = all.opaque_value(Span { start: 0, end: source.len() as u64 });
        assert!(value.is_none());
        assert_eq!(all.left, BTreeMap::from([(LeftBehind::Opaque, 1)]));
    }

    #[test]
    fn a_conversation_without_a_summary_has_no_acknowledgement() {
        let body = br#"{"messages":[{"role":"user","content":"Hi"}]}"#.as_slice();
        let transcript = (crate::anthropic::API.format.read)(&body, &mut ());
        let all = Conversation::with_summary(&transcript, &body, 64, SummaryAs::Acknowledged);
        let counts = all.steps.iter().map(|step| (step.reply.len(), step.words.len()));
        assert_eq!(counts.collect::<Vec<_>>(), [(0, 1)]);
    }
}
