//! The calls of a log: what each does, and which wait for their results.

use std::collections::HashMap;
use std::collections::hash_map;

use epitome_model::{Block, Entry, Source, ToolKind, Transcript};

/// What a call does.
#[derive(Clone)]
pub struct KnownCall {
    /// Its tool and its target, in a few words.
    pub what: Box<str>,
    pub kind: ToolKind,
    /// Item and block at which it was said.
    pub at: (usize, usize),
    /// Its number among those of the log, from 1.
    pub number: u64,
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    pub id: Box<str>,
    pub tool: Box<str>,
}

/// The calls of a log.
#[derive(Clone, Default)]
pub struct Calls {
    known: HashMap<Box<str>, KnownCall>,
    /// Their ids, by their numbers.
    ids: Vec<Box<str>>,
    open: Vec<OpenCall>,
}

impl Calls {
    /// The call with this id.
    pub fn get(&self, id: &str) -> Option<&KnownCall> {
        self.known.get(id)
    }

    /// What the call with this id does, in a few words.
    pub fn what(&self, id: &str) -> Option<&str> {
        self.known.get(id).map(|call| &*call.what)
    }

    /// The id of the call with this number.
    pub fn id(&self, number: u64) -> Option<&str> {
        let at = usize::try_from(number.checked_sub(1)?).ok()?;
        self.ids.get(at).map(|id| &**id)
    }

    /// How many calls were made.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// The calls that are sent and have no result yet, in order.
    pub fn open(&self) -> &[OpenCall] {
        &self.open
    }

    /// Takes an entry that is sent last.
    pub fn add(&mut self, item: usize, entry: &Entry, source: &dyn Source) {
        self.learn(item, entry, source);
        self.link(entry);
    }

    /// Remembers what the calls of an entry do.
    pub fn learn(&mut self, item: usize, entry: &Entry, source: &dyn Source) {
        for (block, said) in entry.blocks.iter().enumerate() {
            let Block::Call(call) = said else { continue };
            let target = call.target.as_ref().map(|target| target.read(source));
            let what = match target {
                Some(target) => format!("{} {target}", call.name),
                None => call.name.to_string(),
            };
            let what = epitome_model::short(&what, 80).into();
            let number = self.ids.len() as u64 + 1;
            let (kind, at) = (call.kind, (item, block));
            let new = KnownCall { what, kind, at, number };
            match self.known.entry(call.id.clone()) {
                // It is where it was said first.
                hash_map::Entry::Occupied(mut known) => {
                    let KnownCall { at, number, .. } = *known.get();
                    known.insert(KnownCall { at, number, ..new });
                }
                hash_map::Entry::Vacant(vacant) => {
                    vacant.insert(new);
                    self.ids.push(call.id.clone());
                }
            }
        }
    }

    /// Finds out again which calls are open: other items are sent now.
    pub fn reopen(&mut self, transcript: &Transcript) {
        self.open.clear();
        transcript.context().for_each(|(_, entry)| self.link(entry));
    }

    fn link(&mut self, entry: &Entry) {
        for block in &entry.blocks {
            match block {
                Block::Call(call) => {
                    self.open.push(OpenCall { id: call.id.clone(), tool: call.name.clone() });
                }
                Block::Output(output) => {
                    // The newest of an id is the one that is answered.
                    let answered = self.open.iter().rposition(|open| open.id == output.call);
                    answered.map(|at| self.open.remove(at));
                }
                _ => {}
            }
        }
    }
}
