//! Replaces the result of a read by a stub, if a later successful call reads or changes the same
//! file.

use std::collections::HashMap;

use epitome_model::{Block, Edit, Note, ToolKind};
use serde::{Deserialize, Serialize};

use crate::view::on_all_cores;
use crate::{Pass, View};

/// Settings of the pass that replaces results of reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Stale {
    /// Results of at most this many bytes are not replaced.
    pub min_bytes: u64,
}

impl Pass for Stale {
    fn name(&self) -> &'static str {
        "stale"
    }

    fn plan(&self, view: &View<'_>) -> Vec<Edit> {
        let later = LastAccess::from_view(view);
        let edits = on_all_cores(view.old_outputs().collect(), |(at, output, call)| {
            let goes = !output.error
                && !view.is_edited(at)
                && output.size() > self.min_bytes
                && view.stubbable(output);
            let call = call.filter(|call| goes && call.kind == ToolKind::Read)?;
            let path = view.text(call.target.as_ref()?).into_owned();
            let note = later.note(&path, call.part.as_deref(), at.item())?;
            let whole = view.ingest_original(output).unwrap_or(output);
            let stub = view.stub(whole, Some(call), &whole.text(view.source)).with_note(note);
            view.replace(at, &output.text(view.source), stub.to_string(), self.name())
        });
        edits.into_iter().flatten().collect()
    }
}

/// The items of the last successful read and of the last successful change of each file in the
/// context.
#[derive(Default)]
struct LastAccess {
    reads: HashMap<(String, Option<Box<str>>), usize>,
    changes: HashMap<String, usize>,
}

impl LastAccess {
    fn from_view(view: &View<'_>) -> LastAccess {
        let mut later = LastAccess::default();
        for (item, entry) in view.transcript.context() {
            for said in &entry.blocks {
                let Block::Call(call) = said else { continue };
                let Some(target) = &call.target else { continue };
                if !view.succeeded(call) {
                    continue;
                }
                if call.kind == ToolKind::Read {
                    let path = view.text(target).into_owned();
                    // The part is `None` if the whole file was read. Such a read repeats every part
                    // of the file.
                    later.reads.insert((path, call.part.clone()), item);
                } else if call.kind.changes_file() {
                    later.changes.insert(view.text(target).into_owned(), item);
                }
            }
        }
        later
    }

    fn note(&self, path: &str, part: Option<&str>, item: usize) -> Option<Note> {
        let same = self.reads.get(&(path.to_owned(), part.map(Into::into)));
        let whole = self.reads.get(&(path.to_owned(), None));
        if same.max(whole).is_some_and(|&read| read > item) {
            return Some(Note::ReadAgain);
        }
        self.changes.get(path).is_some_and(|&change| change > item).then_some(Note::Changed)
    }
}

#[cfg(test)]
#[path = "stale_tests.rs"]
mod tests;
