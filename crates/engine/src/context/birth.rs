//! Results are shortened before they are first sent.

use epitome_formats::epitome::{Batch, batch};
use epitome_model::{At, Block, Change, Edit, Entry, Output, Part, Ref, Role, Source, Stub};

use super::Context;
use epitome_error::{Error, ErrorKind, Result};

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
            let whole = Ref::of(&Source::at(source, output.whole));
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
        self.write_born(&edits)?;
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

    /// Shortens the largest results that the model has not answered, if they are too much together.
    /// Those that were sent before stay as they were sent.
    pub(super) fn preview(&mut self) -> Result<()> {
        let Some(rule) = self.birth.and_then(|birth| birth.batch) else { return Ok(()) };
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let newest = transcript.context().rev().take_while(|(_, it)| it.role != Role::Assistant);
        let mut newest: Vec<(usize, &Entry)> = newest.collect();
        newest.reverse();
        let results: Vec<_> = newest
            .into_iter()
            .flat_map(|(item, entry)| {
                let blocks = entry.blocks.iter().enumerate();
                blocks.filter_map(move |(block, said)| match said {
                    Block::Output(output) => Some((At::Block { item, block }, output)),
                    _ => None,
                })
            })
            .collect();
        let texts: Vec<String> = results.iter().map(|(_, it)| it.text(source)).collect();
        let may = |at: usize| {
            let (place, output) = results[at];
            let new = place.item() >= self.sent && alone(output).is_some();
            new && Stub::parse(&texts[at]).is_none()
        };
        let all: Vec<(&str, bool)> =
            texts.iter().enumerate().map(|(at, text)| (&**text, may(at))).collect();
        let edits: Vec<Edit> = rule
            .too_much(&all)
            .into_iter()
            .map(|at| {
                let (place, output) = results[at];
                let whole = Ref::of(&Source::at(source, output.whole));
                let change = Change::Replace(rule.preview(&texts[at], whole));
                Edit { at: place, change, pass: "birth" }
            })
            .collect();
        if edits.is_empty() {
            return Ok(());
        }
        self.write_born(&edits)?;
        // What the provider counted did not hold them yet.
        let anchor = self.anchor;
        self.recount();
        self.anchor = anchor;
        Ok(())
    }

    fn write_born(&mut self, edits: &[Edit]) -> Result<()> {
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let line = batch(transcript, source, edits, Batch::Birth).map_err(|err| {
            Error::new(ErrorKind::Refused, "a result cannot be shortened").because(err)
        })?;
        self.log.append(&line)?;
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
fn alone(output: &Output) -> Option<&epitome_model::Text> {
    match output.parts.as_slice() {
        [Part::Text(text)] if !output.from_user => Some(text),
        _ => None,
    }
}
