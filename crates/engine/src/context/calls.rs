//! The calls in a log: what each of them does, and which have no result yet.

use std::collections::HashMap;
use std::collections::hash_map;

use epitome_model::{Block, Call, Entry, Source, ToolKind, Transcript};

/// A call in the log, and what it does.
#[derive(Clone)]
pub struct KnownCall {
    /// The tool and its target, in a few words.
    pub what: Box<str>,
    pub kind: ToolKind,
    /// The position of the first block with this call: the indices of the item and of the block in
    /// it.
    pub at: (usize, usize),
    /// The number of the call among the calls of the log, from 1.
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

/// The beginning of the call id of a result that states only the name of its tool, as results of
/// the Gemini API may. The name of the tool follows.
pub const NO_CALL: &str = "no call of ";
/// Separates the id of a call from the number that makes it unique, if an earlier call has the same
/// id. All APIs accept these characters in ids.
pub const AGAIN: &str = "_again_";

/// The original id of a call whose id was made unique with [`AGAIN`]. Any other id is returned as
/// it is.
pub fn without_again(id: &str) -> &str {
    match id.rsplit_once(AGAIN) {
        Some((made, n)) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => made,
        Some(_) | None => id,
    }
}

impl OpenCalls {
    /// The calls without a result, in order.
    pub fn iter(&self) -> impl Iterator<Item = &OpenCall> {
        self.0.iter()
    }

    /// Adds a call without a result.
    pub fn add(&mut self, call: &Call) {
        self.0.push(OpenCall { id: call.id.clone(), tool: call.name.clone() });
    }

    /// Removes the call that a result is for, and returns the id of the call. A result names its
    /// call by id, by the id that the call had before [`AGAIN`] made it unique, or only by tool,
    /// after [`NO_CALL`]. The three are tried in this order, and the first call that matches is
    /// removed. `None` if no call matches.
    pub fn answer(&mut self, id: &str) -> Option<Box<str>> {
        let name = id.strip_prefix(NO_CALL);
        let mut open = self.0.iter();
        let found = open.clone().position(|open| *open.id == *id);
        let found = found.or_else(|| {
            open.clone().position(|open| open.id.len() > id.len() && without_again(&open.id) == id)
        });
        let found = found.or_else(|| open.position(|open| Some(&*open.tool) == name))?;
        Some(self.0.remove(found).id)
    }

    /// Adds the calls of an entry of the log, and removes those whose results are in the entry. In
    /// the log, a result names its call by id.
    pub fn link(&mut self, entry: &Entry) {
        for block in &entry.blocks {
            match block {
                Block::Call(call) => self.add(call),
                Block::Output(output) => {
                    // If several calls have the same id, the result is for the newest.
                    let answered = self.0.iter().rposition(|open| open.id == output.call);
                    answered.map(|at| self.0.remove(at));
                }
                _ => {}
            }
        }
    }
}

/// All calls of a log, and which of them have no result.
#[derive(Clone, Default)]
pub struct Calls {
    known: HashMap<Box<str>, KnownCall>,
    /// The ids of the calls, in the order of their numbers.
    ids: Vec<Box<str>>,
    open: OpenCalls,
}

impl Calls {
    /// The call with this id.
    pub fn get(&self, id: &str) -> Option<&KnownCall> {
        self.known.get(id)
    }

    /// A description of the call with this id, in a few words.
    pub fn description(&self, id: &str) -> Option<&str> {
        self.known.get(id).map(|call| &*call.what)
    }

    /// The id of the call with this number.
    pub fn id(&self, number: u64) -> Option<&str> {
        let at = usize::try_from(number.checked_sub(1)?).ok()?;
        self.ids.get(at).map(|id| &**id)
    }

    /// The number of calls in the log; calls with the same id count as one.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// The calls that are sent and have no result yet, in order.
    pub fn open(&self) -> &OpenCalls {
        &self.open
    }

    /// Adds the calls of an entry that was appended to the context, and removes the calls whose
    /// results are in the entry from the calls without a result.
    pub fn add(&mut self, item: usize, entry: &Entry, source: &dyn Source) {
        self.number_calls(item, entry, source);
        self.open.link(entry);
    }

    /// Numbers the calls of an entry, and records what they do.
    pub fn number_calls(&mut self, item: usize, entry: &Entry, source: &dyn Source) {
        for (block, said) in entry.blocks.iter().enumerate() {
            let Block::Call(call) = said else { continue };
            let target = call.target.as_ref().map(|target| target.read(source));
            let what = match target {
                Some(target) => format!("{} {target}", call.name),
                None => call.name.to_string(),
            };
            let what = epitome_model::short(&what, 80).into();
            let number = self.ids.len() as u64 + 1;
            let kind = call.kind;
            let at = (item, block);
            let new = KnownCall { what, kind, at, number };
            match self.known.entry(call.id.clone()) {
                // The position and the number of the first occurrence stay.
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

    /// Determines again which calls have no result, after the context has changed.
    pub fn reopen(&mut self, transcript: &Transcript) {
        self.open = OpenCalls::default();
        transcript.context().for_each(|(_, entry)| self.open.link(entry));
    }
}
