//! Transcripts: the normalised form of a session.

use crate::{Field, MicroDollars, Source, Span, Text, TokenUsage, Tokens, ToolKind};

/// The content of a session. Items are in the order of the file; what a resume would send is
/// [`context`](Transcript::context).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// What the session records about itself, such as its id and title.
    pub head: Head,
    /// The records, in the order of the file: one item for each, or several with the same
    /// [`Record`] if a record holds several entries.
    pub items: Vec<Item>,
    /// The items that a resume would send, as indices into `items`, in the order in which they are
    /// sent.
    pub context: Vec<usize>,
}

impl Transcript {
    /// The entries that a resume would send, each with its index into `items`, in the order in
    /// which they are sent.
    pub fn context(&self) -> impl DoubleEndedIterator<Item = (usize, &Entry)> {
        self.context.iter().filter_map(|&idx| Some((idx, self.items[idx].entry()?)))
    }

    /// All entries in the order of the file, whether a resume sends them or not.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (usize, &Entry)> {
        self.items.iter().enumerate().filter_map(|(idx, item)| Some((idx, item.entry()?)))
    }
}

/// What a session records about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The session's id.
    pub id: Option<Box<str>>,
    /// The working directory.
    pub cwd: Option<Box<str>>,
    /// The title that the session stores; if it stores none, a title that the reader makes of an
    /// early user message.
    pub title: Option<Box<str>>,
    /// The version of the agent or of its format, as written in the session.
    pub version: Option<Box<str>>,
    /// What the model is sent before the conversation (system prompt, tools), as indices into
    /// `Transcript::items`, in the order in which it is sent; empty if the session does not store
    /// it. The entries among these items are also in the context.
    pub prompt: Vec<usize>,
}

/// A record of a session, or one of the entries of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Content for a model, whether a resume sends it or not.
    Entry(Box<Entry>),
    /// A record that no model sees.
    Hidden(HiddenRecord),
}

impl Item {
    /// The entry, if the item is an entry; `None` for a hidden record.
    pub fn entry(&self) -> Option<&Entry> {
        match self {
            Item::Entry(entry) => Some(entry),
            Item::Hidden(_) => None,
        }
    }

    /// The position of the record.
    pub fn record(&self) -> Record {
        match self {
            Item::Entry(entry) => entry.record,
            Item::Hidden(hidden) => hidden.record,
        }
    }

    /// The hidden fields of the record: parts that no model ever sees.
    pub fn hidden_fields(&self) -> &[HiddenField] {
        match self {
            Item::Entry(entry) => &entry.hidden_fields,
            Item::Hidden(hidden) => &hidden.hidden_fields,
        }
    }
}

/// The position of a record in its source. The record itself is read from the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Line number, from 1.
    pub line: u64,
    /// The record without its line ending.
    pub span: Span,
}

/// A record that no model sees: never changed, except for its hidden fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenRecord {
    /// The position of the record.
    pub record: Record,
    /// The hidden fields of the record.
    pub hidden_fields: Vec<HiddenField>,
}

/// A bulky part of a record that no model ever sees.
///
/// Most hidden fields repeat what an entry holds. Some hold what is stored nowhere else, such as
/// output that a tool showed while it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenField {
    /// The agent's name for the field.
    pub name: &'static str,
    /// The value, as a span of the source.
    pub value: Span,
    /// What remains in place of the field when it is removed.
    pub left: FieldRemainder,
}

/// What remains of a hidden field when it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldRemainder {
    /// Nothing: the member is removed with its key.
    Nothing,
    /// The key remains, with an empty object: the agent requires one.
    EmptyObject,
    /// The key remains, with an empty string.
    EmptyText,
    /// The key remains, with an empty list.
    EmptyArray,
}

/// What a model sees of a record: a message, or a part of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The position of the record.
    pub record: Record,
    /// The id by which other entries of the session name this entry.
    pub id: Option<Box<str>>,
    /// The id of the entry that precedes this entry in the conversation.
    pub parent: Option<Box<str>>,
    /// The speaker.
    pub role: Role,
    /// The id of the message that the entry is part of: entries of one model response, or of one
    /// user message, have the same group.
    pub group: Option<Box<str>>,
    /// Whether the entry is a copy of earlier entries: some agents record a compaction together
    /// with the history that is sent after it, and a log of epitome holds the edited versions of
    /// entries. Such entries begin no turns, and their calls are not counted twice.
    pub repeated: bool,
    /// The time of the entry, as written in the session.
    pub time: Option<Box<str>>,
    /// The model that wrote the entry.
    pub model: Option<Box<str>>,
    /// The tokens that the provider counted for the request that this entry answers.
    pub usage: Option<RecordedUsage>,
    /// The content of the entry, in the order in which it is sent.
    pub blocks: Vec<Block>,
    /// The hidden fields of the record. If several entries are read from one record, the first of
    /// them has the fields.
    pub hidden_fields: Vec<HiddenField>,
}

/// The speaker of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// The user. No pass changes the user's text; a summary or a digest may be sent in its place.
    #[default]
    User,
    /// The model.
    Assistant,
    /// A tool: the result of a call.
    Tool,
    /// The agent itself: prompts, reminders, summaries.
    System,
}

/// Tokens that a provider counted for one request, as a session records them.
///
/// `input` includes the cached tokens. [`TokenUsage`] has the same numbers in fields that do not
/// overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedUsage {
    /// Input tokens: fresh tokens, tokens that were read from a cache, and tokens that were written
    /// to a cache.
    pub input: u64,
    /// Output tokens; 0 if the session does not record the final number.
    pub output: u64,
    /// How many of the input tokens were read from a cache or written to one, if the session
    /// records it.
    pub cache: Option<CacheUse>,
    /// The cost, if the session records it.
    pub cost: Option<MicroDollars>,
}

/// Input tokens that were read from a cache or written to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Tokens read from a cache.
    pub read: u64,
    /// Tokens written to a cache.
    pub written: u64,
}

/// The usage of a response that was just received: its use of the cache is known.
impl From<TokenUsage> for RecordedUsage {
    fn from(usage: TokenUsage) -> RecordedUsage {
        let cache = CacheUse { read: usage.cached.0, written: usage.cache_written.0 };
        let input = usage.all_input().0;
        let output = usage.output.0;
        RecordedUsage { input, output, cache: Some(cache), cost: None }
    }
}

impl RecordedUsage {
    /// The tokens, each counted in one field. `None` if the session does not record the use of a
    /// cache.
    pub fn tokens(&self) -> Option<TokenUsage> {
        let CacheUse { read, written } = self.cache?;
        Some(TokenUsage {
            input: Tokens(self.input.saturating_sub(read).saturating_sub(written)),
            cached: Tokens(read),
            cache_written: Tokens(written),
            output: Tokens(self.output),
        })
    }

    /// Sets the cost from a number of dollars that a session records. The cost is unknown if the
    /// text is not a plausible number, or if it is zero, because agents that do not know the price
    /// record zero.
    #[must_use]
    pub fn with_cost(mut self, dollars: &str) -> RecordedUsage {
        let cost = dollars.parse::<f64>().ok().filter(|cost| (1e-9..1e9).contains(cost));
        self.cost = cost.map(|cost| MicroDollars((cost * 1e6).round() as u64));
        self
    }
}

/// One part of an entry.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Block {
    /// Text of the user, the model or the agent.
    Text(Text),
    /// Reasoning. An edit either removes it whole or leaves it unchanged.
    Thinking(Thinking),
    /// A call of a tool.
    Call(Call),
    /// The result of a call.
    Output(Output),
    /// A result that repeats an earlier result: the session stores it, and sends it, more than
    /// once.
    Repeated(RepeatedOutput),
    /// A picture.
    Image(Image),
    /// A summary or a digest of the earlier conversation.
    Summary(Text),
    /// Something that a model sees and that epitome does not understand: never edited.
    Opaque(Span),
}

/// A block of reasoning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thinking {
    /// The readable part, if there is one.
    pub text: Option<Text>,
    /// The whole block as stored, signature included.
    pub whole: Span,
    /// Whether the block may be removed. It must stay, for example, if the API would refuse the
    /// rest of the session without it.
    pub removable: bool,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The id that the result of the call names.
    pub id: Box<str>,
    /// The name of the tool, as the agent writes it.
    pub name: Box<str>,
    /// What the tool does.
    pub kind: ToolKind,
    /// What the call is about, such as a path, a command or a URL.
    pub target: Option<Text>,
    /// Arguments that narrow a read to a part of the file (offset, limit), as stored. This is not a
    /// [`Part`], which belongs to a result.
    pub part: Option<Box<str>>,
    /// Arguments that may be bulky.
    pub fields: Vec<Field>,
    /// All arguments, as stored.
    pub arguments: Span,
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The id of the call that the result answers.
    pub call: Box<str>,
    /// Whether the tool failed.
    pub error: bool,
    /// The content of the result.
    pub parts: Vec<Part>,
    /// The value that holds the parts, as stored; empty if there is none.
    pub whole: Span,
    /// Whether each line begins with its number in the file.
    pub numbered: bool,
    /// Whether the result contains text of the user, who answered a question or refused the call.
    /// No pass edits such a result.
    pub from_user: bool,
}

impl Output {
    /// The text of the result: its text parts, joined by line feeds.
    pub fn text(&self, source: &dyn Source) -> String {
        // A single text is returned directly: it may have hundreds of megabytes, and joining would
        // copy it.
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

    /// The size of the result as stored, in bytes: `whole`, and the pictures that are outside of
    /// it.
    pub fn size(&self) -> u64 {
        let part_texts = self.parts.iter().map(|part| match part {
            Part::Image(image) if !self.whole.contains(image.whole) => image.whole.len(),
            Part::Image(_) | Part::Text(_) | Part::Opaque(_) => 0,
        });
        self.whole.len() + part_texts.sum::<u64>()
    }
}

/// A result that repeats an earlier one exactly. The model loses nothing if it is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedOutput {
    /// The repetition itself.
    pub output: Output,
    /// The bytes that are removed with the repetition: the value that contains the result, and the
    /// id of the call if that is in the same value.
    pub whole: Span,
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(Text),
    /// A picture.
    Image(Image),
    /// Another value that the model sees and epitome does not understand.
    Opaque(Span),
}

/// A part of a result as a block.
impl From<Part> for Block {
    fn from(part: Part) -> Block {
        match part {
            Part::Text(text) => Block::Text(text),
            Part::Image(image) => Block::Image(image),
            Part::Opaque(span) => Block::Opaque(span),
        }
    }
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The media type: `image/png`.
    pub media: Box<str>,
    /// The string literal that holds the picture in base64.
    pub data: Span,
    /// The whole block as stored.
    pub whole: Span,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_cost_is_a_positive_number_of_dollars() {
        let cost = |dollars| RecordedUsage::default().with_cost(dollars).cost;
        assert_eq!(cost("0.0123456"), Some(MicroDollars(12_346)));
        assert_eq!(cost("2"), Some(MicroDollars(2_000_000)));
        for dollars in ["0", "0.0", "-1", "1e9", "NaN", "inf", "a lot", ""] {
            assert_eq!(cost(dollars), None, "{dollars}");
        }
    }
}
