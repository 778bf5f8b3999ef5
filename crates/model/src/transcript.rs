//! The normalised form of a session.

use crate::{Field, MicroDollars, Source, Span, Text, TokenUsage, Tokens, ToolKind};

/// What a session says. Items stand in the order of the file; what a resume would send is
/// [`context`](Transcript::context).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// What the session says about itself.
    pub head: Head,
    /// One item a record, in the order of the file.
    pub items: Vec<Item>,
    /// The items that a resume would send, as indices into `items`, in the order they are sent.
    pub context: Vec<usize>,
}

impl Transcript {
    /// The entries that a resume would send: the path from the leaf to the root of the tree of
    /// entries, from the newest compaction on, without side chains.
    pub fn context(&self) -> impl DoubleEndedIterator<Item = (usize, &Entry)> {
        self.context.iter().filter_map(|&idx| Some((idx, self.items[idx].entry()?)))
    }

    /// All entries in the order of the file, whether a resume sends them or not.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (usize, &Entry)> {
        self.items.iter().enumerate().filter_map(|(idx, item)| Some((idx, item.entry()?)))
    }
}

/// What a session says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The session's id.
    pub id: Option<Box<str>>,
    /// The folder it was run in.
    pub cwd: Option<Box<str>>,
    /// Its name, or else the beginning of the first user message.
    pub title: Option<Box<str>>,
    /// The version of the agent or of its format, as it is written there.
    pub version: Option<Box<str>>,
    /// What the model is told before the conversation (its system prompt, its tools), where the
    /// session holds it: indices into `Transcript::items`, in the order they are sent.
    pub prompt: Vec<usize>,
}

/// One record of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Something that a model sees, now or on another branch.
    Entry(Box<Entry>),
    /// A record that says nothing to a model.
    Kept(Kept),
}

impl Item {
    /// The entry, if it is one.
    pub fn entry(&self) -> Option<&Entry> {
        match self {
            Item::Entry(entry) => Some(entry),
            Item::Kept(_) => None,
        }
    }

    /// Where the record stands.
    pub fn record(&self) -> Record {
        match self {
            Item::Entry(entry) => entry.record,
            Item::Kept(kept) => kept.record,
        }
    }

    /// Parts of the record that no model ever sees.
    pub fn copies(&self) -> &[Copy] {
        match self {
            Item::Entry(entry) => &entry.copies,
            Item::Kept(kept) => &kept.copies,
        }
    }
}

/// Where a record stands in its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Line number, from 1.
    pub line: u64,
    /// The record without its line end.
    pub span: Span,
}

/// A record that says nothing to a model: kept as it is, but for its copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Where it stands.
    pub record: Record,
    /// Bulky parts that no model sees.
    pub copies: Vec<Copy>,
}

/// A part of a record that repeats what stands elsewhere and that no model ever sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The name the agent gives it.
    pub name: &'static str,
    /// The value.
    pub value: Span,
    /// What takes its place.
    pub left: Left,
}

/// What is left of a copy when it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing: the member of the object goes with its key.
    Nothing,
    /// The key stays, with an empty object: the agent expects one there.
    EmptyObject,
    /// The key stays, with an empty text.
    EmptyText,
    /// The key stays, with an empty list.
    EmptyArray,
}

/// Something that a model sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// Where it stands.
    pub record: Record,
    /// Its id among the entries of the session.
    pub id: Option<Box<str>>,
    /// The id of the entry it continues.
    pub parent: Option<Box<str>>,
    /// Who speaks.
    pub role: Role,
    /// Entries of one response of a model share a group, and those of one message of the user.
    pub group: Option<Box<str>>,
    /// Whether it is a copy of earlier entries, in an agent's record of a compaction that lists the
    /// history to send again. Copies begin no turns, and their calls were not made twice.
    pub repeated: bool,
    /// When, as it is written there.
    pub time: Option<Box<str>>,
    /// The model that wrote it.
    pub model: Option<Box<str>>,
    /// What the provider counted for the request that it answers.
    pub usage: Option<Usage>,
    /// What it says.
    pub blocks: Vec<Block>,
    /// Parts of the record that no model sees.
    pub copies: Vec<Copy>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// A person: their words are never changed.
    #[default]
    User,
    /// The model.
    Assistant,
    /// A tool, answering a call.
    Tool,
    /// The agent itself: prompts, reminders, summaries.
    System,
}

/// Tokens that a provider counted for one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All input: fresh, read from a cache and written to it.
    pub input: u64,
    /// Output; 0 when the session does not say what it came to in the end.
    pub output: u64,
    /// What of the input had to do with a cache, where the session says so.
    pub cache: Option<CacheUse>,
    /// What the session itself says that it cost.
    pub cost: Option<MicroDollars>,
}

/// Input that came from a cache, or went into one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Tokens that came from one.
    pub read: u64,
    /// Tokens that went into one.
    pub written: u64,
}

/// Of a response that the service has just given: what had to do with a cache is known.
impl From<TokenUsage> for Usage {
    fn from(usage: TokenUsage) -> Usage {
        let cache = CacheUse { read: usage.cached.0, written: usage.cache_written.0 };
        let (input, output) = (usage.all_input().0, usage.output.0);
        Usage { input, output, cache: Some(cache), cost: None }
    }
}

impl Usage {
    /// The tokens, each in one field. Nothing, where the session does not say what came from a
    /// cache or went into one.
    pub fn tokens(&self) -> Option<TokenUsage> {
        let CacheUse { read, written } = self.cache?;
        Some(TokenUsage {
            input: Tokens(self.input.saturating_sub(read).saturating_sub(written)),
            cached: Tokens(read),
            cache_written: Tokens(written),
            output: Tokens(self.output),
        })
    }

    /// What a request cost, as a session says it in dollars. Nothing where it says that tokens
    /// were free: so does a session whose agent knows no price.
    #[must_use]
    pub fn with_cost(mut self, dollars: &str) -> Usage {
        let cost = dollars.parse::<f64>().ok().filter(|cost| (1e-9..1e9).contains(cost));
        self.cost = cost.map(|cost| MicroDollars((cost * 1e6).round() as u64));
        self
    }
}

/// One thing that an entry says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Block {
    /// Words.
    Text(Text),
    /// Reasoning: kept to the byte or removed whole.
    Thinking(Thinking),
    /// A call of a tool.
    Call(Call),
    /// The result of a call.
    Output(Output),
    /// A result that stands, and is sent, more than once: this is not the first time.
    Again(Again),
    /// A picture.
    Image(Image),
    /// A summary of what came before, written by a model or by the agent.
    Summary(Text),
    /// Something that a model sees and that we do not understand: never edited.
    Opaque(Span),
}

/// A block of reasoning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thinking {
    /// The readable part, if there is one.
    pub text: Option<Text>,
    /// The whole block as it stands, signature included.
    pub whole: Span,
    /// Whether the wire takes the response without it: OpenAI's Responses refuses a call whose
    /// reasoning item is gone.
    pub removable: bool,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Ties it to its result.
    pub id: Box<str>,
    /// The name the agent uses.
    pub name: Box<str>,
    /// What the tool does.
    pub kind: ToolKind,
    /// What it acts on: a path, a command, a pattern, a URL.
    pub target: Option<Text>,
    /// Arguments that narrow a read to a part of the file (offset, limit), as they stand.
    pub part: Option<Box<str>>,
    /// Arguments that may be bulky.
    pub fields: Vec<Field>,
    /// All arguments as they stand.
    pub arguments: Span,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The id of the call it answers.
    pub call: Box<str>,
    /// Whether the tool failed.
    pub error: bool,
    /// What it says.
    pub parts: Vec<Part>,
    /// The value that holds the parts, as it stands; empty if there is none.
    pub whole: Span,
    /// Whether each line begins with its number in the file.
    pub numbered: bool,
    /// Whether it holds words of the user, who was asked or refused the call: never edited.
    pub from_user: bool,
}

impl Output {
    /// The text of the result: its text parts, joined by line feeds.
    pub fn text(&self, source: &dyn Source) -> String {
        // A text of hundreds of megabytes is not copied once more.
        if let [Part::Text(text)] = self.parts.as_slice() {
            return text.read(source).into_owned();
        }
        let mut text = String::new();
        for part in &self.parts {
            if let Part::Text(piece) = part {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&piece.read(source));
            }
        }
        text
    }

    /// Its bytes as it stands: the value that holds the parts, and pictures that stand beside it.
    pub fn size(&self) -> u64 {
        let beside = self.parts.iter().map(|part| match part {
            Part::Image(image) if !self.whole.contains(image.whole) => image.whole.len(),
            Part::Image(_) | Part::Text(_) | Part::Opaque(_) => 0,
        });
        self.whole.len() + beside.sum::<u64>()
    }
}

/// A result that was said before, word for word: it goes whole, and nothing is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// The result as it stands here.
    pub output: Output,
    /// All that goes: the value that holds it, with its id.
    pub whole: Span,
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Words.
    Text(Text),
    /// A picture.
    Image(Image),
    /// Something else that the model sees.
    Opaque(Span),
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its media type: `image/png`.
    pub media: Box<str>,
    /// The literal that holds its bytes in base64.
    pub data: Span,
    /// The whole block as it stands.
    pub whole: Span,
}
