//! Reading records of any JSON lines format.
//!
//! [`read`] parses the lines, on all cores, and maintains the transcript: positions of records,
//! faults, the title, ids that repeat, and which entries a resume sends. An agent's reader, a type
//! parameter `A` here, implements [`Records`]: it receives one parsed record after the other and
//! returns the content of each. [`TranscriptBuilder`] is the part of the session that has been read
//! so far.

use std::collections::HashSet;

use epitome_json::{Document, Value};
use epitome_model::{
    Entry, Fault, Faults, HiddenField, HiddenRecord, Item, Record, Role, Source, Transcript,
    parallel,
};

use crate::Line;
use crate::lines::{ParseLine, batches, lines, record};
use crate::place::RecordBytes;
use crate::tree::{self, Node, Orphan};
use crate::unknown::Unknown;

/// Interprets the records of one agent. The folders of most agents have such a type, called
/// `Reader`.
pub trait Records: Default {
    /// A parsed line.
    type Record<'a>: ParseLine<'a>;

    /// Interprets one record.
    fn record(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        record: Self::Record<'_>,
    ) -> RecordContent;

    /// Returns a new title of the session, from a user message. `current` is the title from an
    /// earlier message. `None` if the title does not change.
    fn title(current: Option<&str>, message: &dyn Fn() -> Option<Box<str>>) -> Option<String> {
        if current.is_some() { None } else { Some(message()?.trim().to_owned()) }
    }

    /// Called after the last record. An agent whose records form a tree sets the context here; the
    /// effect of each of its records is [`ContextEffect::Unchanged`].
    fn finish(self, _session: &mut TranscriptBuilder<'_>) {}
}

/// The content of one record.
#[derive(Default)]
pub struct RecordContent {
    /// The entries of the record, in the order in which they are sent; none for a record that no
    /// model sees. [`TranscriptBuilder::add`] sets the `record` of each.
    pub entries: Vec<Entry>,
    /// Parts of the record that no model sees.
    pub hidden_fields: Vec<HiddenField>,
    /// The effect of the record on the context, unless the agent sets the context at the end.
    pub effect: ContextEffect,
}

/// The effect of a record on the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextEffect {
    /// The record has no effect, or its effect is known only after the last record.
    #[default]
    Unchanged,
    /// The entries are added at the end of the context.
    Adds,
    /// The entry, which must be the only one of the record, is the system prompt. It replaces an
    /// earlier system prompt, or becomes the first entry of the context. `Head::prompt` is not set.
    Prompt,
    /// The entry, which must be the only one of the record, replaces everything but the system
    /// prompt.
    Compacts,
}

impl RecordContent {
    /// The content of a record that no model sees.
    pub fn nothing(hidden_fields: Vec<HiddenField>) -> RecordContent {
        RecordContent { hidden_fields, ..RecordContent::default() }
    }
}

/// A session that is being read: its transcript so far, and what is needed to read the next
/// records. [`read`] adds the records. An agent's reader sets the title and the head, reports
/// faults, and builds the tree of records.
pub struct TranscriptBuilder<'f> {
    /// The transcript so far.
    pub transcript: Transcript,
    /// The tree of records: those that the agent's reader passed to [`TranscriptBuilder::node`], in
    /// the order of the file.
    pub nodes: Vec<Node>,
    /// The number of the current line, from 1.
    pub line: u64,
    faults: &'f mut dyn Faults,
    /// Whether the title was set by a record, and not derived from a message.
    is_named: bool,
    /// The ids with which [`TranscriptBuilder::check_id`] was called.
    ids: HashSet<Box<str>>,
    unknown: Unknown,
    /// The index of the system prompt in the context.
    prompt: Option<usize>,
}

/// Reads a session. Readers never fail: a malformed line is kept and reported to `faults`.
pub fn read<A: Records>(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    /// The minimum size in bytes of a batch that is parsed on several cores. Smaller batches are
    /// parsed before another core could start.
    const ENOUGH: u64 = 64 << 10;
    let mut agent = A::default();
    let mut session = TranscriptBuilder::new(faults);
    batches(source, |batch| {
        let parsed: Vec<_> =
            if batch.iter().map(|line| line.record.span.len()).sum::<u64>() < ENOUGH {
                batch.iter().map(parsed::<A>).collect()
            } else {
                parallel::map(batch.iter().collect(), parsed::<A>)
            };
        for (line, (record, faults)) in batch.iter().zip(parsed) {
            session.line = line.record.line;
            faults.into_iter().for_each(|fault| session.faults.report(fault));
            let at = RecordBytes::from_line(line);
            let content = match record {
                Some(record) => agent.record(&mut session, &at, record),
                None => RecordContent::default(),
            };
            session.add::<A>(&at, line.record, content);
        }
    });
    session.finish(agent)
}

fn parsed<'a, A: Records>(line: &Line<'a>) -> (Option<A::Record<'a>>, Vec<Fault>) {
    let mut faults = Vec::new();
    let record = record(line, &mut faults);
    (record, faults)
}

/// Whether `is_of` returns true for one of the records at the beginning of a file.
pub fn sniff(head: &[u8], is_of: fn(&Value<'_>) -> bool) -> bool {
    let mut found = false;
    lines(&head, |line| {
        found = found || Document::parse(line.bytes).is_ok_and(|document| is_of(&document.root));
    });
    found
}

impl<'f> TranscriptBuilder<'f> {
    /// A session without records.
    pub fn new(faults: &'f mut dyn Faults) -> TranscriptBuilder<'f> {
        TranscriptBuilder {
            transcript: Transcript::default(),
            nodes: Vec::new(),
            faults,
            line: 0,
            is_named: false,
            ids: HashSet::new(),
            unknown: Unknown::default(),
            prompt: None,
        }
    }

    /// Adds a record: as one item for each of its entries, or as one hidden record if it has no
    /// entries.
    pub fn add<A: Records>(
        &mut self,
        at: &RecordBytes<'_>,
        record: Record,
        content: RecordContent,
    ) {
        let RecordContent { entries, mut hidden_fields, effect } = content;
        if entries.is_empty() {
            self.transcript.items.push(Item::Hidden(HiddenRecord { record, hidden_fields }));
            return;
        }
        for mut entry in entries {
            entry.record = record;
            // Hidden fields belong to the record: the first entry of the record gets them.
            if entry.hidden_fields.is_empty() {
                entry.hidden_fields = std::mem::take(&mut hidden_fields);
            } else {
                entry.hidden_fields.append(&mut hidden_fields);
            }
            self.title_from::<A>(&entry, at);
            self.send(effect);
            self.transcript.items.push(Item::Entry(Box::new(entry)));
        }
    }

    /// Calls [`Records::finish`] of the agent's reader. Returns the transcript, with the context
    /// that a resume sends.
    pub fn finish<A: Records>(mut self, agent: A) -> Transcript {
        self.report_repeated_ids();
        agent.finish(&mut self);
        self.transcript
    }

    /// Reports a fault of the current record.
    pub fn fault(&mut self, what: impl Into<String>) {
        self.faults.report(Fault { line: self.line, what: what.into() });
    }

    /// Reports a kind that is not among the `known`, once per kind. `what` describes it, with its
    /// article: `a record type`.
    pub fn unknown(&mut self, what: &'static str, kind: &str, known: &[&str]) {
        self.unknown.kind((self.line, what), kind, known, self.faults);
    }

    /// The index of the next item.
    pub fn next(&self) -> usize {
        self.transcript.items.len()
    }

    /// Sets the id, the directory and the version of the session, each if it is not set yet.
    pub fn head(
        &mut self,
        id: impl FnOnce() -> Option<Box<str>>,
        cwd: impl FnOnce() -> Option<Box<str>>,
        version: impl FnOnce() -> Option<Box<str>>,
    ) {
        let head = &mut self.transcript.head;
        head.id = head.id.take().or_else(id);
        head.cwd = head.cwd.take().or_else(cwd);
        head.version = head.version.take().or_else(version);
    }

    /// Sets the title that the user or the agent chose. If it is set several times, the last one is
    /// used.
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

    /// Reports the id of a record that is in no tree, if this function was called with the same id
    /// before. Ids in the tree are checked at the end.
    pub fn check_id(&mut self, id: &str) {
        if !self.ids.insert(id.into()) {
            self.fault(format!("the id {id} repeats"));
        }
    }

    /// Adds the current record to the tree of records, as the next item.
    pub fn node(&mut self, id: Box<str>, parent: Option<Box<str>>) {
        let item = self.next();
        self.nodes.push(Node { item, id, parent });
    }

    /// The items of the records on the path from a root of the tree to its last record.
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

    /// Reports each id in the tree that several records have.
    fn report_repeated_ids(&mut self) {
        let mut seen = HashSet::new();
        for node in &self.nodes {
            if !seen.insert(&node.id) {
                let line = self.transcript.items[node.item].record().line;
                self.faults.report(Fault { line, what: format!("the id {} repeats", node.id) });
            }
        }
    }

    /// Sets the title from a user message, if the agent's reader makes one of it.
    fn title_from<A: Records>(&mut self, entry: &Entry, at: &RecordBytes<'_>) {
        if self.is_named || entry.role != Role::User {
            return;
        }
        let current = self.transcript.head.title.as_deref();
        if let Some(title) = A::title(current, &|| at.first_text(entry)) {
            self.transcript.head.title = Some(epitome_model::title(&title));
        }
    }

    /// Changes the context before the next item is added: `effect` is the effect of that item.
    fn send(&mut self, effect: ContextEffect) {
        let item = self.next();
        match effect {
            ContextEffect::Unchanged => {}
            ContextEffect::Adds => self.transcript.context.push(item),
            ContextEffect::Prompt => match self.prompt {
                Some(place) => self.transcript.context[place] = item,
                None => {
                    self.transcript.context.insert(0, item);
                    self.prompt = Some(0);
                }
            },
            ContextEffect::Compacts => {
                self.forget();
                self.transcript.context.push(item);
            }
        }
    }
}
