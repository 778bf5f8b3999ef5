//! Results are shortened before they are first sent.

use std::collections::hash_map::Entry;

use epitome_formats::epitome::{Batch, batch};
use epitome_model::{At, Block, Change, Edit, Ref, Role, Source, Stub, Tokens, ToolKind};
use epitome_passes::{Compaction, Complete, INGEST, Pin, PlannedEdit, View, Why, only_text, pins};

use super::Context;
use epitome_error::{Error, ErrorKind, Result};

/// Bytes of an entry that is read for digests when it is said.
const LEARNED: u64 = 1 << 20;

/// What a call does.
#[derive(Clone)]
pub(super) struct KnownCall {
    /// Its tool and its target, in a few words.
    pub what: Box<str>,
    pub kind: ToolKind,
    /// Item and block at which it was said.
    pub at: (usize, usize),
    /// Its number among those of the log, from 1.
    pub number: u64,
}

impl Context {
    /// Shortens the results of an entry before it is first sent.
    pub(super) fn truncate_on_ingest(&mut self, item: usize) -> Result<()> {
        let Some(rule) = self.recipe.stages.live.ingest else { return Ok(()) };
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let Some(entry) = transcript.items[item].entry() else { return Ok(()) };
        let mut edits = Vec::new();
        for (block, said) in entry.blocks.iter().enumerate() {
            let Block::Output(output) = said else { continue };
            let Some(text) = only_text(output).map(|text| text.read(source)) else { continue };
            let call = self.calls.get(&output.call);
            let what = call.map_or("result", |call| &call.what);
            let rule = rule.of(call.map(|call| call.kind));
            let whole = Ref::of(&Source::at(source, output.whole));
            let short = rule.shorten(&text, whole, &self.seen, &*self.counter);
            self.seen.add(short.as_deref().unwrap_or(&text), what);
            edits.extend(short.map(|short| Edit {
                at: At::Block { item, block },
                change: Change::Replace(short),
                pass: INGEST,
            }));
        }
        let edits = self.without_pinned(edits);
        if edits.is_empty() {
            return Ok(());
        }
        if !self.write_shortened(edits)? {
            return Ok(());
        }
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
        let ingest = self.recipe.stages.live.ingest;
        let Some(rule) = ingest.and_then(|rule| rule.batch) else { return Ok(()) };
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let newest = transcript.context().rev().take_while(|(_, it)| it.role != Role::Assistant);
        let mut newest: Vec<_> = newest.collect();
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
            let new = place.item() >= self.sent && only_text(output).is_some();
            new && Stub::parse(&texts[at]).is_none()
        };
        let all: Vec<(&str, bool)> =
            texts.iter().enumerate().map(|(at, text)| (&**text, may(at))).collect();
        let edits: Vec<Edit> = rule
            .too_much(&all)
            .into_iter()
            .filter_map(|at| {
                let (place, output) = results[at];
                let whole = Ref::of(&Source::at(source, output.whole));
                let preview = rule.preview(&texts[at], whole);
                let is_less = self.counter.count(&preview) < self.counter.count(&texts[at]);
                let change = Change::Replace(preview);
                is_less.then_some(Edit { at: place, change, pass: INGEST })
            })
            .collect();
        let edits = self.without_pinned(edits);
        if edits.is_empty() {
            return Ok(());
        }
        if !self.write_shortened(edits)? {
            return Ok(());
        }
        // What the provider counted did not hold them yet.
        let anchor = self.anchor;
        self.recount();
        self.anchor = anchor;
        Ok(())
    }

    /// The edits but for those of what sets rules: that is sent whole.
    fn without_pinned(&self, mut edits: Vec<Edit>) -> Vec<Edit> {
        let items: Vec<usize> = edits.iter().map(|edit| edit.at.item()).collect();
        if items.is_empty() {
            return edits;
        }
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let mut view =
            View::new(transcript, source, &*self.counter).with_rule_files(&self.recipe.rule_files);
        let pinned: Vec<Pin> = pins(&view, &items);
        view.pin(pinned.iter().map(|pin| (pin.item, pin.block)));
        edits.retain(|edit| !view.is_pinned(edit.at));
        edits
    }

    /// Writes what is left of results. Returns whether it did: what would violate an invariant is
    /// sent as it is, and an event says why.
    pub(super) fn write_shortened(&mut self, edits: Vec<Edit>) -> Result<bool> {
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let line = batch(transcript, source, &edits, Batch::Birth)
            .map_err(|err| Error::new(ErrorKind::Refused, err.why));
        let edits = edits.into_iter().map(|edit| PlannedEdit { edit, tokens: Tokens(0) });
        let mut plan = Compaction { edits: edits.collect(), ..Compaction::default() };
        match line.and_then(|line| self.apply_edits(&line, &mut plan)) {
            Ok(()) => Ok(true),
            Err(err) if err.kind() == ErrorKind::Refused => {
                let reason = format!("a result is not shortened before it is sent: {err}");
                self.machine.skip(Why::Request, reason);
                Ok(false)
            }
            Err(err) => Err(err),
        }
    }

    /// Remembers what the calls of an entry do.
    pub(super) fn learn(&mut self, item: usize) {
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let entry = transcript.items[item].entry();
        for (block, said) in entry.into_iter().flat_map(|entry| &entry.blocks).enumerate() {
            if let Block::Call(call) = said {
                let target = call.target.as_ref().map(|target| target.read(source));
                let what = match target {
                    Some(target) => format!("{} {target}", call.name),
                    None => call.name.to_string(),
                };
                let what = epitome_model::short(&what, 80).into();
                let number = self.calls.len() as u64 + 1;
                let (kind, at) = (call.kind, (item, block));
                let new = KnownCall { what, kind, at, number };
                match self.calls.entry(call.id.clone()) {
                    // It is where it was said first.
                    Entry::Occupied(mut known) => {
                        let KnownCall { at, number, .. } = *known.get();
                        known.insert(KnownCall { at, number, ..new });
                    }
                    Entry::Vacant(vacant) => drop(vacant.insert(new)),
                }
            }
        }
    }

    /// Reads what is complete with this entry for the next digest, if the recipe has one.
    pub(super) fn learn_for_digest(&mut self, item: usize) {
        let Some(rule) = self.recipe.stages.live.digest.clone() else { return };
        let entry = self.transcript().items[item].entry();
        // Of hundreds of megabytes the lines are not kept unless a digest is made of them.
        if entry.is_none_or(|entry| entry.record.span.len() > LEARNED) {
            return;
        }
        let mut index = std::mem::take(&mut self.index);
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let entry_of = |item: usize| transcript.items[item].entry();
        let blocks = entry_of(item).into_iter().flat_map(|entry| &entry.blocks);
        for (block, said) in blocks.enumerate() {
            // A call is complete with its result.
            let (at, number, result) = match said {
                Block::Call(_) => continue,
                Block::Output(output) => match self.calls.get(&output.call) {
                    Some(call) => (call.at, call.number, Some(output)),
                    None => continue,
                },
                _ => ((item, block), 0, None),
            };
            let Some(entry) = entry_of(at.0) else { continue };
            let blocks = self.counts.items().get(at.0);
            let tokens = blocks.and_then(|it| it.get(at.1)).copied().unwrap_or_default();
            let complete = Complete { at, entry, number, result, tokens };
            index.learn(&rule, source, &*self.counter, complete);
        }
        self.index = index;
    }
}
