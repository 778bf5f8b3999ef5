//! The digest stage: one entry replaces the old part of the context. The entry consists of lines of
//! that part.

use std::collections::BTreeMap;

use epitome_error::Result;
use epitome_formats::epitome::all_originals;
use epitome_model::{Block, Source, TOKENS_AROUND, Tokens, Transcript};
use epitome_passes::{DigestBudget, DigestRule, EventReason, FactIndex, View, is_digest};

use super::Context;
use crate::boundary::current_request;
use crate::digest::{Chosen, Digesting, saves_enough};

impl Context {
    /// Runs the digest stage after the passes, if the recipe has one. It does not run for
    /// [`EventReason::Request`]. `by_stage` is the number of edits of each pass; the result also
    /// counts the digest.
    pub(super) fn digested(
        &mut self,
        why: EventReason,
        mut by_stage: BTreeMap<String, u64>,
    ) -> Result<BTreeMap<String, u64>> {
        let rule =
            self.setup.recipe.stages.live.digest.clone().filter(|_| why != EventReason::Request);
        let Some(mut rule) = rule else { return Ok(by_stage) };
        let focus = self.ask.focus.clone().or_else(|| self.setup.focus.clone());
        rule.focus = focus.or(rule.focus);
        let automatic = self.machine.target_tokens().unwrap_or(Tokens(rule.budget));
        let target = match why {
            EventReason::Manual | EventReason::Tool => {
                let by_hand = self.machine.aim().or(self.machine.target_by_hand());
                by_hand.unwrap_or(Tokens(automatic.0 / 2))
            }
            EventReason::Request
            | EventReason::Trigger
            | EventReason::Background
            | EventReason::Hard
            | EventReason::Overflow => automatic,
        };
        if self.put_digest(&rule, target, target)? {
            by_stage.insert("digest".into(), 1);
        }
        Ok(by_stage)
    }

    /// Replaces the old part of the context by a digest, so that the context has at most `target`
    /// tokens, unless the parts that must stay have more. Returns false and changes nothing if a
    /// digest is not needed or would save too little. The error `Refused` has the reason why there
    /// can be no digest.
    ///
    /// `usual` is the target of a usual digest: the short texts of the model may have as many
    /// tokens as with that target, also if `target` is smaller.
    pub(super) fn put_digest(
        &mut self,
        rule: &DigestRule,
        target: Tokens,
        usual: Tokens,
    ) -> Result<bool> {
        // The digest reads the old part into the index, and so the next digest need not read it
        // again.
        let mut index = std::mem::take(&mut self.known.index);
        let is_put = self.put_digest_with(&mut index, rule, target, usual);
        self.known.index = index;
        is_put
    }

    fn put_digest_with(
        &mut self,
        index: &mut FactIndex,
        rule: &DigestRule,
        target: Tokens,
        usual: Tokens,
    ) -> Result<bool> {
        let (target, usual) = (self.in_counts(target), self.in_counts(usual));
        // `in_counts` has subtracted the tokens that the API format adds around all present blocks.
        // They are added again, because most of these blocks are going to be removed.
        let frames = self.counts.total().frames;
        let budget = target + frames;
        let short_texts = DigestBudget::from(usual + frames).short_texts;
        if self.counts.total().tokens <= budget {
            return Ok(false);
        }
        let transcript = self.transcript();
        let source = self.log.bytes();
        let view = View::new(transcript, source, &*self.setup.counter)
            .with_counts(self.counts.items())
            .with_rule_files(&self.setup.recipe.rule_files);
        // The tail is the newest part of the context, which is kept. Its length depends on
        // `target`, which stays the same, and not on `budget`, which is smaller for the next
        // digest, because there will be fewer blocks: with a smaller budget the next digest would
        // keep a shorter tail.
        let least = rule.longest_tail(&view, target);
        // Results that the model has not seen are digested, too, if they exceed half of the target:
        // otherwise they would leave no room for the older context that they are about.
        //
        // The kept part may have to begin earlier, with reasoning. If it then exceeds half of the
        // target, it is digested, too, to leave room for the digest.
        let end = self.end_of_old(least, rule.tail(&view, target), least, Tokens(target.0 / 2));
        // The user's current request stays word for word.
        let end = end.min(current_request(transcript));
        let originals_of = |old: &[usize], kept: &[usize]| {
            let mut items = all_originals(transcript, kept);
            // The text of a summary by a model is in no original entry.
            items.extend(old.iter().filter(|&&item| is_summary(transcript, source, item)));
            items.sort_unstable();
            items
        };
        let budget = DigestBudget { context: budget, short_texts };
        let digesting = Digesting { rule, view: &view, end, budget, around: TOKENS_AROUND };
        let chosen = digesting.choose(index, originals_of, |item| self.counts.item(item))?;
        let Some(Chosen { digest, items }) = chosen else { return Ok(false) };
        let goes = items.iter().map(|&item| self.counts.item(item)).sum();
        if !saves_enough(digest.tokens + TOKENS_AROUND, goes) {
            return Ok(false);
        }
        self.put(&digest.text, &items)?;
        Ok(true)
    }
}

fn is_summary(transcript: &Transcript, source: &dyn Source, item: usize) -> bool {
    let blocks = transcript.items[item].entry().map_or(&[][..], |entry| &entry.blocks);
    blocks.iter().any(|it| matches!(it, Block::Summary(_)) && !is_digest(it, source))
}
