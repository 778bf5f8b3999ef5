//! Results are shortened before they are first sent.

use epitome_formats::epitome::{Batch, batch};
use epitome_model::{At, Block, Change, Edit, Output, Part, Ref};

use super::Context;
use crate::error::{Error, ErrorKind, Result};

impl Context {
    /// Shortens the results of an entry before it is first sent.
    pub(super) fn bear(&mut self, item: usize) -> Result<()> {
        let Some(birth) = self.birth else { return Ok(()) };
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let Some(entry) = transcript.items[item].entry() else { return Ok(()) };
        let mut edits = Vec::new();
        for (block, said) in entry.blocks.iter().enumerate() {
            let Block::Output(output) = said else { continue };
            let Some(text) = alone(output).map(|text| text.read(source)) else { continue };
            let what = self.calls.get(&output.call).map_or("result", |what| what);
            let whole = Ref::of(&epitome_model::Source::at(source, output.whole));
            let short = birth.shorten(&text, whole, &self.seen, &*self.counter);
            self.seen.add(short.as_deref().unwrap_or(&text), what);
            edits.extend(short.map(|short| Edit {
                at: At::Block { item, block },
                change: Change::Replace(short),
                pass: "birth",
            }));
        }
        if edits.is_empty() {
            return Ok(());
        }
        let line = batch(transcript, source, &edits, Batch::Birth).map_err(|err| {
            Error::new(ErrorKind::Refused, "a result cannot be shortened").because(err)
        })?;
        self.log.append(&line)?;
        let last = self.transcript().items.len() - 1;
        self.counts.replace(
            item,
            last,
            self.log.log().transcript(),
            self.log.bytes(),
            &*self.counter,
        );
        Ok(())
    }

    /// Remembers what the calls of an entry do.
    pub(super) fn learn(&mut self, item: usize) {
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let entry = transcript.items[item].entry();
        for block in entry.into_iter().flat_map(|entry| &entry.blocks) {
            if let Block::Call(call) = block {
                let target = call.target.as_ref().map(|target| target.read(source));
                let what = match target {
                    Some(target) => format!("{} {target}", call.name),
                    None => call.name.to_string(),
                };
                self.calls.insert(call.id.clone(), epitome_model::short(&what, 80).into());
            }
        }
    }
}

/// The words of a result that holds nothing else, and none of the user's.
pub(super) fn alone(output: &Output) -> Option<&epitome_model::Text> {
    match output.parts.as_slice() {
        [Part::Text(text)] if !output.from_user => Some(text),
        _ => None,
    }
}
