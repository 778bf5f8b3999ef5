//! The calls of a log: what each does, and which wait for their results.

use std::collections::HashMap;
use std::collections::hash_map;

use epitome_model::{Block, Call, Entry, Source, ToolKind, Transcript};

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

/// The calls that have no result yet, in order.
#[derive(Clone, Debug, Default)]
pub struct OpenCalls(Vec<OpenCall>);

/// What the id of a result begins with that names only its tool.
pub const NO_CALL: &str = "no call of ";
/// What is between the id of a call and a number, when there was such an id before. Every API takes
/// these characters.
pub const AGAIN: &str = "_again_";

/// The id that a call was made with, of one whose id was there before.
pub fn without_again(id: &str) -> &str {
    match id.rsplit_once(AGAIN) {
        Some((made, n)) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => made,
        Some(_) | None => id,
    }
}

impl OpenCalls {
    /// The calls.
    pub fn iter(&self) -> impl Iterator<Item = &OpenCall> {
        self.0.iter()
    }

    /// A call is made.
    pub fn make(&mut self, call: &Call) {
        self.0.push(OpenCall { id: call.id.clone(), tool: call.name.clone() });
    }

    /// A result names this id, or its tool alone: the id of the call that it answers, which is open
    /// no more.
    pub fn answer(&mut self, id: &str) -> Option<Box<str>> {
        let find = |is: &dyn Fn(&OpenCall) -> bool| self.0.iter().position(is);
        let name = id.strip_prefix(NO_CALL);
        let found = find(&|open| *open.id == *id)
            .or_else(|| find(&|open| open.id.len() > id.len() && without_again(&open.id) == id))
            .or_else(|| find(&|open| Some(&*open.tool) == name))?;
        Some(self.0.remove(found).id)
    }

    /// Takes what an entry calls and answers.
    pub fn link(&mut self, entry: &Entry) {
        for block in &entry.blocks {
            match block {
                Block::Call(call) => self.make(call),
                Block::Output(output) => {
                    // The newest of an id is the one that is answered.
                    let answered = self.0.iter().rposition(|open| open.id == output.call);
                    answered.map(|at| self.0.remove(at));
                }
                _ => {}
            }
        }
    }
}

/// The calls of a log.
#[derive(Clone, Default)]
pub struct Calls {
    known: HashMap<Box<str>, KnownCall>,
    /// Their ids, by their numbers.
    ids: Vec<Box<str>>,
    open: OpenCalls,
}

impl Calls {
    /// The call with this id.
    pub fn get(&self, id: &str) -> Option<&KnownCall> {
        self.known.get(id)
    }

    /// What the call with this id does, in a few words.
    pub fn description(&self, id: &str) -> Option<&str> {
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
    pub fn open(&self) -> &OpenCalls {
        &self.open
    }

    /// Takes an entry that is sent last.
    pub fn add(&mut self, item: usize, entry: &Entry, source: &dyn Source) {
        self.learn(item, entry, source);
        self.open.link(entry);
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
        self.open = OpenCalls::default();
        transcript.context().for_each(|(_, entry)| self.open.link(entry));
    }
}
