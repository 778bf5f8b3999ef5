//! Small transcripts for unit tests, built without any agent's format.
//!
//! ```
//! use epitome_model::ToolKind;
//! use samples::Sample;
//!
//! let sample = Sample::new()
//!     .user("What does it say?")
//!     .call(ToolKind::Read, "/p/a.rs")
//!     .output("fn main() {}")
//!     .reply("Nothing.");
//! assert_eq!(sample.transcript().context().count(), 4);
//! ```
//!
//! Every method that adds a message, call, result or hidden value appends one record, which is one
//! item of the transcript; the first is item 0. A record is a JSON array on its own line; all texts
//! are string literals in it. Each record of the model is a group of its own, but thinking is in
//! one group with the record of the model after it.
//!
//! # Absent
//!
//! Sessions as agents write them: these are in the crate `fixtures`.

use epitome_model::{
    Block, Call, Counter, Entry, Field, FieldRemainder, FieldRole, HiddenField, HiddenRecord,
    Image, Item, Output, Part, Record, Role, Source, Span, Text, Thinking, Tokens, ToolKind,
    Transcript, encode,
};

/// A transcript and its bytes.
#[derive(Default)]
pub struct Sample {
    bytes: Vec<u8>,
    transcript: Transcript,
    calls: usize,
}

impl Sample {
    /// A session without records.
    pub fn new() -> Sample {
        Sample::default()
    }

    /// The transcript.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The bytes of the transcript's texts.
    pub fn source(&self) -> &dyn Source {
        &self.bytes
    }

    /// A message of the user.
    #[must_use]
    pub fn user(self, text: &str) -> Sample {
        self.entry(Role::User, |to| Block::Text(to.text(text)))
    }

    /// A message that the agent adds by itself, with the role `System`.
    #[must_use]
    pub fn system(self, text: &str) -> Sample {
        self.entry(Role::System, |to| Block::Text(to.text(text)))
    }

    /// A summary of what came before.
    #[must_use]
    pub fn summary(self, text: &str) -> Sample {
        self.entry(Role::System, |to| Block::Summary(to.text(text)))
    }

    /// A text of the model.
    #[must_use]
    pub fn reply(self, text: &str) -> Sample {
        self.entry(Role::Assistant, |to| Block::Text(to.text(text)))
    }

    /// Reasoning of the model, which may be removed.
    #[must_use]
    pub fn thinking(self, text: &str) -> Sample {
        self.entry(Role::Assistant, |to| {
            let text = to.text(text);
            let whole = text.span().unwrap_or_default();
            Block::Thinking(Thinking { text: Some(text), whole, removable: true })
        })
    }

    /// A call of a tool without bulky arguments. The tool is named like its kind.
    #[must_use]
    pub fn call(self, kind: ToolKind, target: &str) -> Sample {
        self.call_with(kind, target, &[])
    }

    /// A call with bulky arguments: `fields`, each named after its role.
    #[must_use]
    pub fn call_with(
        mut self,
        kind: ToolKind,
        target: &str,
        fields: &[(FieldRole, &str)],
    ) -> Sample {
        self.calls += 1;
        let id = format!("call-{}", self.calls);
        self.entry(Role::Assistant, |to| {
            let start = to.put("{\"target\":");
            let target = Some(to.text(target));
            let field = |(role, text): &(FieldRole, &str)| {
                let name = format!("{role:?}").to_lowercase();
                to.put(&format!(",\"{name}\":"));
                Field { name: name.into(), role: *role, text: to.text(text) }
            };
            let fields = fields.iter().map(field).collect();
            to.put("}");
            let arguments = Span { start, end: to.bytes.len() as u64 };
            let name = format!("{kind:?}").into();
            Block::Call(Call { id: id.into(), name, kind, target, part: None, fields, arguments })
        })
    }

    /// The result of the last call.
    #[must_use]
    pub fn output(self, text: &str) -> Sample {
        self.result(false, &[text], None)
    }

    /// The result of the last call, marked as a failure.
    #[must_use]
    pub fn error(self, text: &str) -> Sample {
        self.result(true, &[text], None)
    }

    /// The result of the last call: a text, and an image of this many bytes of base64.
    #[must_use]
    pub fn output_with_image(self, text: &str, base64: usize) -> Sample {
        self.result(false, &[text], Some(base64))
    }

    /// An image that the user sends, with this many bytes of base64.
    #[must_use]
    pub fn image(self, base64: usize) -> Sample {
        self.entry(Role::User, |to| Block::Image(to.picture(base64)))
    }

    /// A record that no model sees, with a value that may be removed as a whole.
    #[must_use]
    pub fn hidden(mut self, name: &'static str, json: &str) -> Sample {
        let start = self.put("[");
        let value = Span { start: self.put(json), end: self.bytes.len() as u64 };
        let record = self.record(start);
        let hidden_fields = vec![HiddenField { name, value, left: FieldRemainder::Nothing }];
        self.transcript.items.push(Item::Hidden(HiddenRecord { record, hidden_fields }));
        self
    }

    /// Changes the last record, which must be an entry.
    ///
    /// # Panics
    ///
    /// If the last record is not an entry.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Entry)) -> Sample {
        match self.transcript.items.last_mut() {
            Some(Item::Entry(entry)) => change(entry),
            Some(Item::Hidden(_)) | None => panic!("the last record is not an entry"),
        }
        self
    }

    fn result(self, error: bool, texts: &[&str], image: Option<usize>) -> Sample {
        let call = format!("call-{}", self.calls).into();
        self.entry(Role::Tool, |to| {
            let start = to.put("[");
            let mut parts: Vec<Part> = texts.iter().map(|text| Part::Text(to.text(text))).collect();
            parts.extend(image.map(|base64| Part::Image(to.picture(base64))));
            to.put("]");
            let whole = Span { start, end: to.bytes.len() as u64 };
            let from_user = false;
            Block::Output(Output { call, error, parts, whole, numbered: false, from_user })
        })
    }

    fn entry(mut self, role: Role, block: impl FnOnce(&mut Sample) -> Block) -> Sample {
        let item = self.transcript.items.len();
        let start = self.put("[");
        let block = block(&mut self);
        let record = self.record(start);
        let before = self.transcript.items.last().and_then(Item::entry);
        let thinks = |entry: &&Entry| matches!(entry.blocks.last(), Some(Block::Thinking(_)));
        let group = match before.filter(thinks) {
            Some(before) if role == Role::Assistant => before.group.clone(),
            _ => (role == Role::Assistant).then(|| format!("response-{item}").into()),
        };
        let entry = Entry { record, role, group, blocks: vec![block], ..Entry::default() };
        self.transcript.items.push(Item::Entry(Box::new(entry)));
        self.transcript.context.push(item);
        self
    }

    fn record(&mut self, start: u64) -> Record {
        self.put("]");
        let span = Span { start, end: self.bytes.len() as u64 };
        self.put("\n");
        Record { line: self.transcript.items.len() as u64 + 1, span }
    }

    fn picture(&mut self, base64: usize) -> Image {
        let data = self.text(&"A".repeat(base64)).span().unwrap_or_default();
        Image { media: "image/png".into(), data, whole: data }
    }

    fn text(&mut self, text: &str) -> Text {
        let start = self.put(&encode(text));
        Text::Source(Span { start, end: self.bytes.len() as u64 })
    }

    /// Appends JSON and returns the offset of its beginning.
    fn put(&mut self, json: &str) -> u64 {
        let start = self.bytes.len() as u64;
        self.bytes.extend_from_slice(json.as_bytes());
        start
    }
}

/// A tokenizer that counts one token per four bytes, rounded up.
pub struct Quarters;

impl Counter for Quarters {
    fn name(&self) -> &'static str {
        "quarters"
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(text.len().div_ceil(4) as u64)
    }
}
