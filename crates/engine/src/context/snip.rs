//! What a recipe does before every request, whatever the size of the context: messages are cut out
//! of the middle.

use epitome_formats::api::anthropic::messages_of;
use epitome_formats::epitome::{Undone, cut, undo};
use epitome_model::{Block, Entry, Ref, Stub, Tokens};
use epitome_passes::{When, Why, is_cut, messages};
use tracing::debug_span;

use super::Context;
use epitome_error::Result;

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
