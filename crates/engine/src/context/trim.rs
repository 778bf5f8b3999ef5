//! What is done before every request, whatever its size: large new results are truncated, and the
//! trim stage removes messages from the middle.

use epitome_api::anthropic::messages_of;
use epitome_error::{ErrorKind, Result};
use epitome_model::{Block, Edit, Ref, Stub};
use epitome_passes::{EventReason, Plan, StageTiming};
use tracing::debug_span;

use super::Context;
use crate::middle::middle_cut;

impl Context {
    /// Truncates results that are too large together. Then runs the trim stage, unless the recipe
    /// runs its stages only when a compaction is requested. Does nothing while a summary is being
    /// written.
    pub(super) fn before_request(&mut self) -> Result<()> {
        if self.ask.pending.is_some() {
            return Ok(());
        }
        self.preview()?;
        match self.setup.recipe.live.when {
            StageTiming::Asked => Ok(()),
            StageTiming::Trigger | StageTiming::Request => self.trim_middle(),
        }
    }

    /// Removes messages from the middle, if there are too many. Does nothing while compactions are
    /// suspended after an undo, or if an earlier cut was refused.
    fn trim_middle(&mut self) -> Result<()> {
        let wants = !self.attempt.is_cut_refused && !self.machine.is_suspended(&self.gauge());
        let Some(rule) = self.setup.recipe.stages.live.trim.filter(|_| wants) else {
            return Ok(());
        };
        let log = self.log.parsed();
        let rule = (&rule, &self.setup.recipe.rule_files);
        let counter = &*self.setup.counter;
        let cut = middle_cut(
            log,
            self.log.bytes(),
            rule,
            |_| false,
            |item| self.counts.item(item),
            counter,
        );
        let Some(cut) = cut else { return Ok(()) };
        let before = self.tokens();
        let _span = debug_span!("live.trim", messages = cut.messages, before = before.0).entered();
        let messages = cut.messages;
        self.attempt.has_begun = false;
        match self.apply(Plan::from_edit(Edit::cut(cut)), None) {
            // A cut is an attempt of its own: an undo does not take it back together with later
            // steps.
            Ok(()) => {
                self.attempt.has_begun = false;
                self.machine.report_trim(before, self.tokens(), messages);
            }
            Err(err) if err.kind() == ErrorKind::Refused => {
                // The same cut would be refused before every request, so none is tried again.
                self.attempt.is_cut_refused = true;
                let reason = format!("nothing is cut out of the middle: {err}");
                self.machine.skip(EventReason::Request, reason);
            }
            Err(err) => return Err(err),
        }
        Ok(())
    }

    /// All messages that a cut with this reference removed, in Anthropic's format; `None` if there
    /// is no such cut.
    pub(super) fn recall_cut(&self, reference: &Ref) -> Option<String> {
        let log = self.log.parsed();
        let transcript = log.transcript();
        let source = self.log.bytes();
        let item = log.cuts().find(|&item| {
            let entry = transcript.items[item].entry();
            let Some([Block::Text(text)]) = entry.map(|it| it.blocks.as_slice()) else {
                return false;
            };
            Stub::parse(&text.read(source)).is_some_and(|it| it.reference() == reference)
        })?;
        let original_items = log.cut_out(item).into_iter().map(|item| log.original_of(item));
        Some(messages_of(original_items.filter_map(|item| transcript.items[item].entry()), source))
    }
}
