//! A body into a transcript: one item for what is said at once.

use epitome_model::{
    Block, Copy, Entry, Head, Item, Kept, Record, Role, Source, Span, Text, Transcript,
};

use crate::document::{Document, Value, whole};
use crate::{Fault, Faults};

/// Reads a body: `each` says what it says, in the order in which it is sent. A document that is
/// none is kept as it is.
pub fn read(
    source: &dyn Source,
    faults: &mut dyn Faults,
    each: fn(&mut Body<'_>, &Value<'_>),
) -> Transcript {
    let bytes = whole(source);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Transcript::default();
    }
    let document = match Document::parse(&bytes) {
        Ok(document) => document,
        Err(bad) => {
            let what = format!("no document: {} at byte {}", bad.what, bad.offset);
            faults.report(Fault { line: 1, what });
            let span = Span { start: 0, end: bytes.len() as u64 };
            let kept = Kept { record: Record { line: 1, span }, copies: Vec::new() };
            return Transcript { items: vec![Item::Kept(kept)], ..Transcript::default() };
        }
    };
    if std::str::from_utf8(&bytes).is_err() {
        faults.report(Fault::not_utf8(1));
    }
    let mut body = Body {
        document: &document,
        head: Head::default(),
        model: None,
        items: Vec::new(),
        prompt: 0,
        responses: 0,
    };
    each(&mut body, &document.root);
    body.finish()
}

/// A body while it is read.
pub struct Body<'d> {
    document: &'d Document<'d>,
    head: Head,
    model: Option<Box<str>>,
    /// In the order in which they are sent.
    items: Vec<Item>,
    /// How many of them the model is told before the conversation.
    prompt: usize,
    /// How often the model has spoken: what it says in one go is one response.
    responses: usize,
}

impl Body<'_> {
    /// The bytes of the document.
    pub fn bytes(&self) -> &[u8] {
        self.document.bytes()
    }

    /// The model that the body names.
    pub fn model(&mut self, value: Option<&Value<'_>>) {
        self.model = value.and_then(Value::text).map(|name| name.as_ref().into());
    }

    /// Something that is said before the conversation: the system prompt, the tools.
    pub fn prompt(&mut self, record: &Value<'_>, blocks: Vec<Block>) {
        if !blocks.is_empty() {
            self.say(record, Role::System, blocks);
            self.prompt = self.items.len();
        }
    }

    /// What the document says about itself.
    pub fn head(&mut self) -> &mut Head {
        &mut self.head
    }

    /// A value that says nothing to a model, and the parts of it that are bulky.
    pub fn keep(&mut self, record: &Value<'_>, copies: Vec<Copy>) {
        let record = self.record(record);
        self.items.push(Item::Kept(Kept { record, copies }));
    }

    /// Something that somebody says, and the value that stands for it.
    pub fn say(&mut self, record: &Value<'_>, role: Role, blocks: Vec<Block>) -> &mut Entry {
        let last = self.items.iter().rev().find_map(Item::entry).map(|entry| entry.role);
        let group = (role == Role::Assistant).then(|| {
            self.responses += usize::from(last != Some(Role::Assistant));
            format!("response {}", self.responses).into()
        });
        let model = self.model.clone().filter(|_| role == Role::Assistant);
        let record = self.record(record);
        let entry = Entry { record, role, group, model, blocks, ..Entry::default() };
        self.items.push(Item::Entry(Box::new(entry)));
        match self.items.last_mut() {
            Some(Item::Entry(entry)) => entry,
            Some(Item::Kept(_)) | None => unreachable!("it was just put there"),
        }
    }

    fn record(&self, value: &Value<'_>) -> Record {
        Record { line: self.document.line(value), span: value.span() }
    }

    fn finish(self) -> Transcript {
        let Body { document, head, items, prompt, .. } = self;
        let mut transcript = Transcript::default();
        let place = |idx: &usize| items[*idx].record().span;
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(place);
        let mut places = vec![0; items.len()];
        for (place, &sent) in order.iter().enumerate() {
            places[sent] = place;
        }
        transcript.head = head;
        transcript.head.prompt = places[..prompt].to_vec();
        let entries = places.iter().zip(&items).filter(|(_, item)| item.entry().is_some());
        transcript.context = entries.map(|(&place, _)| place).collect();
        let bytes = document.bytes();
        let mut entries = items.iter().filter_map(Item::entry);
        transcript.head.title = entries.find_map(|entry| title(entry, &bytes));
        transcript.items = order.iter().map(|&idx| items[idx].clone()).collect();
        transcript
    }
}

fn title(entry: &Entry, source: &dyn Source) -> Option<Box<str>> {
    let words = |text: &Text| crate::title::title(text.read(source).trim());
    match entry.role {
        Role::User => entry.blocks.iter().find_map(|block| match block {
            Block::Text(text) => Some(words(text)),
            _ => None,
        }),
        Role::Assistant | Role::Tool | Role::System => None,
    }
}
