//! A transcript as every wire can say it: what is told before, then replies, each with its results
//! and with what is said to it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use epitome_model::{
    Block, Call, Entry, Image, Output, Part, Role, Source, Span, Text, Transcript, decode,
};

use super::is_name;
use crate::document::{Document, Value};

/// What cannot be said on a wire and stays behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Left {
    /// Reasoning: it is signed or sealed for the wire that it came from.
    Reasoning,
    /// Calls that have no result: a request may not hold them.
    OpenCalls,
    /// Results whose call is not in the context.
    OrphanResults,
    /// Pictures of a kind that the wire does not take.
    Pictures,
    /// Definitions of tools.
    Tools,
    /// What epitome does not understand.
    Opaque,
    /// What the agent itself told the model: its prompt, its reminders.
    Prompts,
    /// What is sealed for the service that made it: a history that only it can open.
    Sealed,
    /// Marks of calls that failed: the words of their results arrive, the mark does not.
    Failures,
    /// What sub-agents did: sessions of their own.
    SubAgents,
}

impl Left {
    /// In one word, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Left::Reasoning => "reasoning",
            Left::OpenCalls => "open_calls",
            Left::OrphanResults => "orphan_results",
            Left::Pictures => "pictures",
            Left::Tools => "tools",
            Left::Opaque => "opaque",
            Left::Prompts => "prompts",
            Left::Sealed => "sealed",
            Left::Failures => "failures",
            Left::SubAgents => "sub_agents",
        }
    }
}

/// A body that was made from a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// The body: one JSON document. Empty if the transcript says nothing.
    pub body: String,
    /// Messages or items in it.
    pub messages: usize,
    /// What stayed behind, and how many of it.
    pub left: BTreeMap<Left, u64>,
}

/// What stands before a conversation that begins with a reply: every wire wants the user to begin.
pub const OPENING: &str = "[the session begins with the reply below]";

/// As whose words a summary is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SummaryAs {
    /// The user's: every wire takes them.
    #[default]
    User,
    /// The user's, and the model says that it has understood, unless it speaks next anyway.
    Acknowledged,
    /// What the model is told before the conversation, as long as anything else is said in it.
    System,
}

/// What a model says to a summary.
pub(crate) static UNDERSTOOD: LazyLock<Block> =
    LazyLock::new(|| Block::Text(Text::Made("Understood. I go on from the summary.".into())));

/// A transcript's context, in the order that wires want.
pub struct Conversation<'t> {
    source: &'t dyn Source,
    summary: SummaryAs,
    /// Whether a summary was just heard that the model is to acknowledge.
    heard: bool,
    /// What the model is told before.
    pub prompt: Vec<String>,
    /// What is said. The first has no reply if the user begins.
    pub steps: Vec<Step<'t>>,
    left: BTreeMap<Left, u64>,
    ids: Ids,
    /// What is not understood and is taken as it stands.
    carries: fn(&Value<'_>) -> bool,
}

/// A reply, the results of its calls, and what is said then.
#[derive(Default)]
pub struct Step<'t> {
    group: Option<&'t str>,
    /// Texts, reasoning and calls. Every call has its result.
    pub reply: Vec<&'t Block>,
    /// In the order of the calls.
    pub results: Vec<Answered<'t>>,
    /// Of the user and of the agent.
    pub words: Vec<Word<'t>>,
    open: Vec<(&'t Call, Option<&'t Output>)>,
}

/// Something said to the model.
#[derive(Clone, Copy)]
pub struct Word<'t> {
    /// What it is.
    pub block: &'t Block,
    /// Who said it.
    pub role: Role,
    /// The item that it stands in.
    pub item: usize,
}

/// A call with its result.
pub struct Answered<'t> {
    /// The call.
    pub call: &'t Call,
    /// What came of it.
    pub output: &'t Output,
}

impl<'t> Conversation<'t> {
    /// The context of a transcript.
    pub fn of(transcript: &'t Transcript, source: &'t dyn Source, longest_id: usize) -> Self {
        Conversation::told(transcript, source, longest_id, SummaryAs::User)
    }

    /// The context of a transcript, with its summary as whose words it is.
    pub fn told(
        transcript: &'t Transcript,
        source: &'t dyn Source,
        longest_id: usize,
        summary: SummaryAs,
    ) -> Self {
        let ids = Ids { longest: longest_id, ..Ids::default() };
        let (steps, left) = (vec![Step::default()], BTreeMap::new());
        // A request has to say something beside its prompt.
        let said = |(item, entry): (usize, &Entry)| {
            let is_summary = |block: &Block| matches!(block, Block::Summary(_));
            !transcript.head.prompt.contains(&item) && !entry.blocks.iter().all(is_summary)
        };
        let alone = summary == SummaryAs::System && !transcript.context().any(said);
        let summary = if alone { SummaryAs::User } else { summary };
        let prompt = Vec::new();
        let mut all = Conversation {
            source,
            summary,
            heard: false,
            prompt,
            steps,
            left,
            ids,
            carries: |_| false,
        };
        for (item, entry) in transcript.context() {
            if transcript.head.prompt.contains(&item) {
                all.told_before(entry);
            } else {
                all.entry(item, entry);
            }
        }
        all.close();
        all
    }

    /// With what the wire takes as it stands.
    pub fn carrying(mut self, carries: fn(&Value<'_>) -> bool) -> Self {
        self.carries = carries;
        self
    }

    fn told_before(&mut self, entry: &'t Entry) {
        for block in &entry.blocks {
            match block {
                Block::Text(text) | Block::Summary(text) => {
                    let text = text.read(self.source);
                    if !text.trim().is_empty() {
                        self.prompt.push(text.into_owned());
                    }
                }
                Block::Opaque(_) => self.leave(Left::Tools),
                _ => self.leave(Left::Opaque),
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
                Block::Thinking(_) => self.leave(Left::Reasoning),
                // It was said before.
                Block::Again(_) => {}
                _ => {
                    let is_summary = matches!(block, Block::Summary(_));
                    if self.heard && !is_summary {
                        self.steps.push(Step { reply: vec![&UNDERSTOOD], ..Step::default() });
                    }
                    self.heard = is_summary && self.summary == SummaryAs::Acknowledged;
                    let last = self.steps.len() - 1;
                    self.steps[last].words.push(Word { block, role: entry.role, item });
                }
            }
        }
    }

    /// The step that a reply belongs to: that of its response, or a new one once somebody else has
    /// said something.
    fn replying(&mut self, entry: &'t Entry) -> &mut Step<'t> {
        self.heard = false;
        let group = entry.group.as_deref();
        let last = self.steps.last().expect("there is a first step");
        let same = group.is_some() && last.group == group;
        let answered = last.open.iter().any(|(_, output)| output.is_some());
        let first = self.steps.len() == 1;
        if !same && (first || answered || !last.words.is_empty()) {
            self.steps.push(Step { group, ..Step::default() });
        }
        self.steps.last_mut().expect("there is a last step")
    }

    fn result(&mut self, output: &'t Output) {
        let open = self.steps.iter_mut().rev().flat_map(|step| step.open.iter_mut());
        let mut open = open.filter(|(call, answer)| call.id == output.call && answer.is_none());
        match open.next() {
            Some((_, answer)) => *answer = Some(output),
            None => self.leave(Left::OrphanResults),
        }
    }

    /// Takes out calls without results, and replies of which nothing is left.
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
                self.leave(Left::OpenCalls);
            }
            step.reply.retain(|block| match block {
                Block::Call(call) => !unanswered.contains(&std::ptr::from_ref(call)),
                _ => true,
            });
            let answered = open.into_iter().filter_map(|(call, output)| Some((call, output?)));
            step.results = answered.map(|(call, output)| Answered { call, output }).collect();
            for answer in &step.results {
                self.ids.give(answer.call);
            }
            if !step.reply.is_empty() || !step.words.is_empty() {
                self.steps.push(step);
            }
        }
    }

    /// Counts something that stays behind.
    pub fn leave(&mut self, what: Left) {
        *self.left.entry(what).or_default() += 1;
    }

    /// A text as it is read.
    pub fn text(&self, text: &'t Text) -> std::borrow::Cow<'t, str> {
        text.read(self.source)
    }

    /// The bytes of something that is taken as it stands.
    pub fn raw(&self, span: Span) -> String {
        String::from_utf8_lossy(&self.source.at(span)).into_owned()
    }

    fn is_blank(&self, text: &Text) -> bool {
        text.read(self.source).trim().is_empty()
    }

    /// What is not understood, as it stands, if the wire takes it so. It stays behind otherwise.
    pub fn carried(&mut self, span: Span) -> Option<Piece<'t>> {
        let raw = self.raw(span);
        let carries = |document: Document<'_>| (self.carries)(&document.root);
        if Document::parse(raw.as_bytes()).is_ok_and(carries) {
            return Some(Piece::Carried(raw));
        }
        self.leave(Left::Opaque);
        None
    }

    /// The id of a call on this wire: its own, if the wire takes it.
    pub fn id(&self, call: &Call) -> &str {
        self.ids.of(call)
    }

    /// The words and pictures of a result.
    pub fn parts(&mut self, output: &'t Output) -> Vec<Piece<'t>> {
        let mut pieces = Vec::new();
        for part in &output.parts {
            match part {
                Part::Text(text) if self.is_blank(text) => {}
                Part::Text(text) => pieces.push(Piece::Text(self.text(text))),
                Part::Image(image) => pieces.extend(self.picture(image)),
                Part::Opaque(span) => pieces.extend(self.carried(*span)),
            }
        }
        pieces
    }

    /// The words and pictures of something said to the model.
    pub fn words(&mut self, words: &[Word<'t>]) -> Vec<Piece<'t>> {
        let mut pieces = Vec::new();
        for word in words {
            match word.block {
                Block::Text(text) | Block::Summary(text) => {
                    pieces.push(Piece::Text(self.text(text)));
                }
                Block::Image(image) => pieces.extend(self.picture(image)),
                Block::Thinking(_) => self.leave(Left::Reasoning),
                Block::Opaque(span) => pieces.extend(self.carried(*span)),
                _ => self.leave(Left::Opaque),
            }
        }
        pieces
    }

    fn picture(&mut self, image: &Image) -> Option<Piece<'t>> {
        let literal = decode(&self.source.at(image.data)).into_owned();
        let data = match literal.split_once(";base64,") {
            Some((_, data)) => data.to_owned(),
            None => literal,
        };
        match media(&image.media, &data) {
            Some(media) => Some(Piece::Picture { media, data }),
            None => {
                self.leave(Left::Pictures);
                None
            }
        }
    }

    /// The arguments of a call: an object, or a text that is none.
    pub fn arguments(&self, call: &Call) -> Arguments {
        let raw = self.raw(call.arguments);
        if raw.starts_with('{') {
            return Arguments::Object(raw);
        }
        let text = decode(raw.as_bytes()).into_owned();
        let is_object = text.trim_start().starts_with('{');
        if is_object && crate::json::check(text.as_bytes()).is_ok() {
            Arguments::Object(text)
        } else if text.is_empty() || raw == "null" {
            Arguments::Object("{}".to_owned())
        } else {
            Arguments::Text(text)
        }
    }

    /// What is left behind.
    pub fn finish(self, body: String, messages: usize) -> Made {
        Made { body: if messages == 0 { String::new() } else { body }, messages, left: self.left }
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
    /// As an object.
    pub fn object(self) -> String {
        match self {
            Arguments::Object(object) => object,
            Arguments::Text(text) => format!(r#"{{"input":{}}}"#, epitome_model::encode(&text)),
        }
    }
}

/// Words or a picture.
pub enum Piece<'t> {
    /// Words.
    Text(std::borrow::Cow<'t, str>),
    /// A picture in base64.
    Picture {
        /// Its media type.
        media: &'static str,
        /// Its bytes in base64.
        data: String,
    },
    /// What the wire takes as it stands: JSON in its own words.
    Carried(String),
}

/// The media type of a picture that every wire takes: its bytes are base64, and of a known kind.
fn media(said: &str, data: &str) -> Option<&'static str> {
    let digits = data.trim_end_matches('=');
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    if !data.len().is_multiple_of(4)
        || data.len() - digits.len() > 2
        || !digits.bytes().all(is_digit)
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
    let by_name = || KNOWN.iter().find(|(media, _)| *media == said);
    by_bytes.or_else(by_name).map(|(media, _)| *media)
}

/// The name of a tool as every wire takes it.
pub fn name(name: &str) -> String {
    if is_name(name, 64) && !name.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return name.to_owned();
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let clean: String = name.chars().take(60).map(|c| if fits(c) { c } else { '_' }).collect();
    format!("_{clean}")
}

/// Ids of calls, each once.
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

    fn of(&self, call: &Call) -> &str {
        self.given.get(&std::ptr::from_ref(call)).map_or("", |id| id)
    }
}
