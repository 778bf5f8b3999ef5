//! What the readers of all JSON lines formats share.
//!
//! [`read`] parses each line and maintains the transcript: positions of records, faults, the title,
//! ids that repeat, and which entries a resume sends. An agent's reader implements [`Records`]: it
//! receives one parsed record after the other and returns its content.

use std::collections::HashSet;

use epitome_json::{Document, Value};
use epitome_model::{
    Block, Entry, Fault, Faults, HiddenField, HiddenRecord, Item, Role, Source, Text, Transcript,
};

use crate::tree::{self, Node, Orphan};
use crate::unknown::Unknown;
use crate::{Line, lines};

/// Interprets the records of one agent.
pub trait Records: Default {
    /// Interprets one record, which is an object.
    fn record(&mut self, session: &mut Session<'_>, record: &Value<'_>) -> RecordContent;

    /// Called after the last record: an agent whose records form a tree sets the context here.
    fn finish(self, _session: &mut Session<'_>) {}
}

/// The content of one record.
#[derive(Default)]
pub struct RecordContent {
    /// In the order of the context; none for a record that no model sees. [`read`] sets their
    /// `record`.
    pub entries: Vec<Entry>,
    /// Parts of the record that no model sees.
    pub copies: Vec<HiddenField>,
    /// The effect of the record on the context, unless the agent sets the context at the end.
    pub sent: Sent,
}

/// The effect of a record on the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sent {
    /// None.
    #[default]
    Nowhere,
    /// It is added at the end.
    Adds,
    /// It replaces the system prompt, or becomes the first entry.
    Prompt,
    /// It replaces everything but the system prompt.
    Compacts,
}

impl RecordContent {
    /// The content of a record that no model sees.
    pub fn nothing(copies: Vec<HiddenField>) -> RecordContent {
        RecordContent { copies, ..RecordContent::default() }
    }
}

/// A session that is being read.
pub struct Session<'f> {
    /// The transcript so far.
    pub transcript: Transcript,
    faults: &'f mut dyn Faults,
    /// The number of the current line, from 1.
    line: u64,
    /// Whether the title was set explicitly, not derived from the first message.
    is_named: bool,
    ids: HashSet<Box<str>>,
    unknown: Unknown,
    nodes: Vec<Node>,
    /// The index of the system prompt in the context.
    prompt: Option<usize>,
}

/// Reads a session. Readers never fail: a malformed line is kept and reported to `faults`.
pub fn read<A: Records>(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let mut agent = A::default();
    let mut session = Session {
        transcript: Transcript::default(),
        faults,
        line: 0,
        is_named: false,
        ids: HashSet::new(),
        unknown: Unknown::default(),
        nodes: Vec::new(),
        prompt: None,
    };
    lines(source, |line| session.line(&mut agent, &line));
    agent.finish(&mut session);
    session.transcript
}

/// Whether `is_of` is true for one of the records at the beginning of a file.
pub fn sniff(head: &[u8], is_of: fn(&Value<'_>) -> bool) -> bool {
    let mut found = false;
    lines(&head, |line| {
        found = found || Document::parse(line.bytes).is_ok_and(|document| is_of(&document.root));
    });
    found
}

impl Session<'_> {
    /// Reports a fault of the current record.
    pub fn fault(&mut self, what: impl Into<String>) {
        self.faults.report(Fault { line: self.line, what: what.into() });
    }

    /// Reports a kind that is not among the `known`, once per kind; `what` describes it, with its
    /// article.
    pub fn unknown(&mut self, what: &'static str, kind: &str, known: &[&str]) {
        self.unknown.kind((self.line, what), kind, known, self.faults);
    }

    /// The index of the next item.
    pub fn next(&self) -> usize {
        self.transcript.items.len()
    }

    /// Sets the id, the directory and the version of the session if they are not known yet.
    pub fn head(&mut self, id: Option<Box<str>>, cwd: Option<Box<str>>, version: Option<Box<str>>) {
        let head = &mut self.transcript.head;
        for (field, value) in
            [(&mut head.id, id), (&mut head.cwd, cwd), (&mut head.version, version)]
        {
            if field.is_none() {
                *field = value;
            }
        }
    }

    /// Sets the title that the user or the agent chose. The last one is used.
    pub fn name(&mut self, title: &str) {
        self.transcript.head.title = Some(epitome_model::title(title));
        self.is_named = true;
    }

    /// Sets the title from a user message if there is none yet.
    pub fn title(&mut self, message: &str) {
        let head = &mut self.transcript.head;
        if !self.is_named && head.title.is_none() {
            head.title = Some(epitome_model::title(message.trim()));
        }
    }

    /// Reports an id that was used before.
    pub fn id(&mut self, id: &str) {
        if !self.ids.insert(id.into()) {
            self.fault(format!("the id {id} repeats"));
        }
    }

    /// Adds the current record to the tree of records, as the next item.
    pub fn node(&mut self, id: Box<str>, parent: Option<Box<str>>) {
        let item = self.next();
        self.nodes.push(Node { item, id, parent });
    }

    /// The items of the records from a root to the last record of the tree, in this order.
    pub fn path(&self, orphan: Orphan) -> Vec<usize> {
        let Some(leaf) = self.nodes.len().checked_sub(1) else { return Vec::new() };
        let path = tree::path(&self.nodes, leaf, orphan);
        path.into_iter().map(|node| self.nodes[node].item).collect()
    }

    /// Removes everything but the system prompt from the context.
    pub fn forget(&mut self) {
        let context = &mut self.transcript.context;
        *context = self.prompt.map(|place| context[place]).into_iter().collect();
        self.prompt = self.prompt.map(|_| 0);
    }

    fn line<A: Records>(&mut self, agent: &mut A, line: &Line<'_>) {
        self.line = line.record.line;
        let content = self.parsed(line, |session, record| agent.record(session, record));
        let RecordContent { entries, mut copies, sent } = content;
        if entries.is_empty() {
            let kept = HiddenRecord { record: line.record, copies };
            self.transcript.items.push(Item::Kept(kept));
            return;
        }
        for mut entry in entries {
            entry.record = line.record;
            // Copies belong to the record: they are put into its first entry.
            entry.copies.append(&mut copies);
            self.title_from(&entry, line);
            self.send(sent);
            self.transcript.items.push(Item::Entry(Box::new(entry)));
        }
    }

    /// Parses a line; `None` if it is blank or malformed, which is reported.
    fn parsed(
        &mut self,
        line: &Line<'_>,
        mut each: impl FnMut(&mut Self, &Value<'_>) -> RecordContent,
    ) -> RecordContent {
        if line.bytes.iter().all(u8::is_ascii_whitespace) {
            return RecordContent::default();
        }
        match Document::parse_at(line.bytes, line.record.span.start) {
            Ok(document) => {
                if std::str::from_utf8(line.bytes).is_err() {
                    self.faults.report(Fault::not_utf8(self.line));
                }
                each(self, &document.root)
            }
            Err(bad) => {
                self.faults.report(bad.fault(self.line, line.ended));
                RecordContent::default()
            }
        }
    }

    /// Uses the first text of the user as the title of a session that has none.
    fn title_from(&mut self, entry: &Entry, line: &Line<'_>) {
        if entry.role != Role::User || entry.repeated || self.transcript.head.title.is_some() {
            return;
        }
        let text = entry.blocks.iter().find_map(|block| match block {
            Block::Text(Text::Source(span)) => Some(*span),
            _ => None,
        });
        if let Some(span) = text {
            let base = line.record.span.start;
            let literal = &line.bytes[(span.start - base) as usize..(span.end - base) as usize];
            self.title(&epitome_model::decode(literal));
        }
    }

    /// Adds the next item to the context.
    fn send(&mut self, sent: Sent) {
        let item = self.next();
        match sent {
            Sent::Nowhere => {}
            Sent::Adds => self.transcript.context.push(item),
            Sent::Prompt => match self.prompt {
                Some(place) => self.transcript.context[place] = item,
                None => {
                    self.transcript.context.insert(0, item);
                    self.prompt = Some(0);
                }
            },
            Sent::Compacts => {
                self.forget();
                self.transcript.context.push(item);
            }
        }
    }
}
