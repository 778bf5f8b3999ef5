//! What a recipe does before every request, whatever the size of the context: giants among the
//! newest results become previews, and messages are cut out of the middle.

use epitome_formats::anthropic::messages_of;
use epitome_formats::epitome::{Batch, Undone, batch, cut, undo};
use epitome_model::{At, Block, Change, Edit, Entry, Ref, Role, Stub, Tokens};
use epitome_passes::{When, Why, is_cut, messages};
use tracing::debug_span;

use super::Context;
use super::birth::alone;
use crate::error::{Error, ErrorKind, Result};

impl Context {
    /// Does what is due before every request.
    pub(super) fn before_request(&mut self) -> Result<()> {
        if self.pending.is_some() {
            return Ok(());
        }
        self.preview()?;
        match self.machine.live().when {
            When::Asked => Ok(()),
            When::Trigger | When::Request => self.snip(),
        }
    }

    /// Shortens the largest results that the model has not answered, if they are too much together.
    /// Those that were sent before stay as they were sent.
    fn preview(&mut self) -> Result<()> {
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
                let whole = Ref::of(&epitome_model::Source::at(source, output.whole));
                let change = Change::Replace(rule.preview(&texts[at], whole));
                Edit { at: place, change, pass: "birth" }
            })
            .collect();
        if edits.is_empty() {
            return Ok(());
        }
        let line = batch(transcript, source, &edits, Batch::Birth).map_err(|err| {
            Error::new(ErrorKind::Refused, "a result cannot be shortened").because(err)
        })?;
        self.log.append(&line)?;
        // What the provider counted did not hold them yet.
        let anchor = self.anchor;
        self.recount();
        self.anchor = anchor;
        Ok(())
    }

    /// Cuts messages out of the middle, if there are too many.
    fn snip(&mut self) -> Result<()> {
        let wants = self.snips && !self.machine.is_held(&self.gauge());
        let Some(rule) = self.machine.live().snip.filter(|_| wants) else { return Ok(()) };
        let log = self.log.log();
        let (transcript, source) = (log.transcript(), self.log.bytes());
        let gone = rule.middle(transcript, source);
        let entries = |items: &[usize]| -> Vec<&Entry> {
            items.iter().filter_map(|&item| transcript.items[item].entry()).collect()
        };
        let removed = messages_of(entries(&gone).into_iter(), source);
        let mut all = Vec::new();
        for &item in &gone {
            let before = log.cut_out(item);
            if before.is_empty() { all.push(item) } else { all.extend(before) }
        }
        let said = messages(entries(&all).into_iter()).len() as u64;
        let new = entries(&gone).into_iter().filter(|entry| !is_cut(entry, source));
        let new = messages(new).len() as u64;
        let text = Stub::new(Ref::of(removed.as_bytes()))
            .with_what(&format!("{said} messages left out"))
            .to_string();
        let saves: Tokens = gone.iter().map(|&item| self.counts.item(item)).sum();
        if gone.is_empty() || saves <= self.counter.count(&text) + super::count::FRAME {
            return Ok(());
        }
        let (before, broken) = (self.tokens(), self.breaches());
        let _span = debug_span!("live.snip", messages = said, before = before.0).entered();
        let line = cut(transcript, source, &gone, &text);
        let more = match line {
            Ok(line) => {
                // What goes is on disk before it goes.
                self.log.flush()?;
                self.log.append(&line)?;
                self.recount();
                self.breaches().into_iter().find(|it| !broken.contains(it)).map(|it| it.1)
            }
            Err(why) => {
                self.snips = false;
                self.machine.skip(Why::Request, format!("nothing is cut out of the middle: {why}"));
                return Ok(());
            }
        };
        match more {
            None => self.machine.snipped(before, self.tokens(), new),
            Some(breach) => {
                self.log.append(undo(Undone::Refused).as_bytes())?;
                self.recount();
                // It would break the same law before every request.
                self.snips = false;
                let reason = format!("nothing is cut out of the middle: {breach}");
                self.machine.skip(Why::Request, reason);
            }
        }
        Ok(())
    }

    /// The messages that were cut out under a reference, as they were said, on Anthropic's wire.
    pub(super) fn recall_cut(&self, reference: &Ref) -> Option<String> {
        let log = self.log.log();
        let (transcript, source) = (log.transcript(), self.log.bytes());
        let item = log.cuts().find(|&item| {
            let entry = transcript.items[item].entry();
            let Some([Block::Text(text)]) = entry.map(|it| it.blocks.as_slice()) else {
                return false;
            };
            Stub::parse(&text.read(source)).is_some_and(|it| it.reference() == reference)
        })?;
        let said = log.cut_out(item).into_iter().map(|item| log.as_said(item));
        Some(messages_of(said.filter_map(|item| transcript.items[item].entry()), source))
    }
}
