//! Converts a request body into a transcript. Most messages become one item each; a message with
//! tool results and other blocks becomes one item for each block.

use epitome_json::{Document, Value, read_all};
use epitome_model::{
    Block, Entry, Fault, Faults, Head, HiddenField, HiddenRecord, Item, Part, Record, Role, Source,
    Span, Transcript,
};

/// Reads a request body. `each` adds the messages of the body, in the order in which they are sent.
/// Bytes that are not JSON become one hidden record, and are reported to `faults`. A source of only
/// white space gives an empty transcript.
pub fn read(
    source: &dyn Source,
    faults: &mut dyn Faults,
    each: fn(&mut Body<'_>, &Value<'_>),
) -> Transcript {
    let bytes = read_all(source);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Transcript::default();
    }
    let document = match Document::parse(&bytes) {
        Ok(document) => document,
        Err(bad) => {
            let what = format!("not valid JSON: {} at byte {}", bad.what, bad.offset);
            faults.report(Fault { line: 1, what });
            let span = Span { start: 0, end: bytes.len() as u64 };
            let kept = HiddenRecord { record: Record { line: 1, span }, hidden_fields: Vec::new() };
            return Transcript { items: vec![Item::Hidden(kept)], ..Transcript::default() };
        }
    };
    if std::str::from_utf8(&bytes).is_err() {
        faults.report(Fault::not_utf8(1));
    }
    let mut body = Body::new(&document);
    each(&mut body, &document.root);
    body.finish()
}

/// A request body that is being read.
pub struct Body<'d> {
    document: &'d Document<'d>,
    head: Head,
    model: Option<Box<str>>,
    /// The items so far, in the order in which they are sent.
    items: Vec<Item>,
    /// The number of items that are sent before the conversation.
    prompt: usize,
    /// The number of model responses so far: consecutive messages of the model are one response.
    responses: usize,
}

/// The blocks of a message whose `content` is a string or a list of parts. `part` parses one part.
/// An empty string has no block.
pub fn content(message: &Value<'_>, part: fn(&Value<'_>) -> Part) -> Vec<Block> {
    match message.get("content") {
        Some(content) if content.is_text() && content.range().len() > 2 => {
            vec![Block::Text(content.to_source_text())]
        }
        Some(content) => content.list().iter().map(|value| Block::from(part(value))).collect(),
        None => Vec::new(),
    }
}

/// The parts of a tool result whose content is a string or a list of parts. `part` parses one part.
pub fn parts(content: Option<&Value<'_>>, part: fn(&Value<'_>) -> Part) -> Vec<Part> {
    match content {
        Some(content) if content.is_text() => vec![Part::Text(content.to_source_text())],
        Some(content) => content.list().iter().map(part).collect(),
        None => Vec::new(),
    }
}

impl<'d> Body<'d> {
    pub(crate) fn new(document: &'d Document<'d>) -> Body<'d> {
        Body {
            document,
            head: Head::default(),
            model: None,
            items: Vec::new(),
            prompt: 0,
            responses: 0,
        }
    }

    /// The entries that were added, in the order in which they are sent. The flag of an entry is
    /// whether it is part of the prompt.
    pub(crate) fn into_entries(self) -> Vec<(bool, Entry)> {
        let Body { items, prompt, .. } = self;
        let entries = items.into_iter().enumerate().filter_map(|(idx, item)| match item {
            Item::Entry(entry) => Some((idx < prompt, *entry)),
            Item::Hidden(_) => None,
        });
        entries.collect()
    }

    /// Sets the name of the model for the responses that are added after this call. `value` is a
    /// JSON string with the name; `None` or any other value clears it.
    pub fn model(&mut self, value: Option<&Value<'_>>) {
        self.model = value.and_then(Value::text).map(|name| name.as_ref().into());
    }

    /// Reads the model and the tools of a request.
    pub fn model_and_tools(&mut self, root: &Value<'_>) {
        self.model(root.get("model"));
        if let Some(tools) = root.get("tools").filter(|tools| !tools.list().is_empty()) {
            self.prompt(tools, vec![Block::Opaque(tools.span())]);
        }
    }

    /// Adds an entry that is sent before the conversation: the system prompt, or the tools. Adds
    /// nothing if there are no blocks.
    pub fn prompt(&mut self, record: &Value<'_>, blocks: Vec<Block>) {
        if !blocks.is_empty() {
            self.say(record, Role::System, blocks);
            self.prompt = self.items.len();
        }
    }

    /// The head of the transcript, which has facts about the whole session.
    pub fn head(&mut self) -> &mut Head {
        &mut self.head
    }

    /// Adds a record that is not sent to a model, with its hidden fields.
    pub fn keep(&mut self, record: &Value<'_>, hidden_fields: Vec<HiddenField>) {
        let record = self.record(record);
        self.items.push(Item::Hidden(HiddenRecord { record, hidden_fields }));
    }

    /// Adds a message, and returns its entry.
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
            Some(Item::Hidden(_)) | None => unreachable!("it was just put there"),
        }
    }

    fn record(&self, value: &Value<'_>) -> Record {
        Record { line: self.document.line(value), span: value.span() }
    }

    fn finish(self) -> Transcript {
        let Body { document, head, items, prompt, .. } = self;
        let mut transcript = Transcript::default();
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|idx| items[*idx].record().span);
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
    match entry.role {
        Role::User => entry.blocks.iter().find_map(|block| match block {
            Block::Text(text) => Some(epitome_model::title(text.read(source).trim())),
            _ => None,
        }),
        Role::Assistant | Role::Tool | Role::System => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn messages_of_the_model_in_a_row_are_one_response() {
        let message = |role: &str| format!(r#"{{"role":"{role}","content":"a"}}"#);
        let roles = ["user", "assistant", "assistant", "user", "assistant"];
        let body = format!(r#"{{"messages":[{}]}}"#, roles.map(message).join(","));
        let transcript = (crate::openai_chat::API.format.read)(&body.as_bytes(), &mut ());
        let groups: Vec<_> =
            transcript.entries().map(|(_, entry)| entry.group.as_deref()).collect();
        let (first, second) = (Some("response 1"), Some("response 2"));
        assert_eq!(groups, [None, first, first, None, second]);
    }
}
