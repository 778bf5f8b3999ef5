//! The digest stage: the old part of the context becomes one entry made of its own lines.

use std::collections::BTreeMap;

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::{Block, Source, TOKENS_AROUND, Tokens, Transcript};
use epitome_passes::{Old, Target, View, Why, is_digest};

use super::Context;
use super::question::as_said;
use crate::summary::says_more_than_a_summary;

/// Tokens of a digest below which it says too little to be worth while.
const LEAST: Tokens = Tokens(200);

fn is_summary(transcript: &Transcript, source: &dyn Source, item: usize) -> bool {
    let blocks = transcript.items[item].entry().map_or(&[][..], |entry| &entry.blocks);
    blocks.iter().any(|it| matches!(it, Block::Summary(_)) && !is_digest(it, source))
}

impl Context {
    /// Adds a digest, if the recipe has one, to what the passes did.
    pub(super) fn digested(
        &mut self,
        why: Why,
        target: Option<Target>,
        mut by_tier: BTreeMap<String, u64>,
    ) -> Result<BTreeMap<String, u64>> {
        let Some(rule) = self.recipe.stages.live.digest.filter(|_| why != Why::Request) else {
            return Ok(by_tier);
        };
        // The target is without what a wire adds to each block, and most blocks go.
        let frames = self.counts.total().frames;
        let own = || {
            let tokens = self.machine.target_tokens().unwrap_or(Tokens(rule.budget));
            self.in_counts(tokens).0
        };
        let budget = Tokens(target.and_then(|it| it.tokens).unwrap_or_else(own)) + frames;
        if self.counts.total().tokens <= budget {
            return Ok(by_tier);
        }
        let (transcript, source) = (self.transcript(), self.log.bytes());
        let view = View::new(transcript, source, &*self.counter)
            .with_counts(self.counts.items())
            .with_rule_files(&self.recipe.rule_files);
        let least = rule.longest_tail(&view, budget);
        let end = self.end_of_old(least, rule.tail(&view, budget));
        let (old, kept) = transcript.context.split_at(end);
        if !says_more_than_a_summary(transcript, old) {
            return Ok(by_tier);
        }
        let is_prompt = |item: &usize| transcript.head.prompt.contains(item);
        let items: Vec<usize> = old.iter().filter(|item| !is_prompt(item)).copied().collect();
        let mut said = as_said(transcript, kept);
        // A model's summary says what no line does.
        said.extend(old.iter().filter(|&&item| is_summary(transcript, source, item)));
        said.sort_unstable();
        let stays = kept.iter().chain(old.iter().filter(|item| is_prompt(item)));
        let stays: Tokens = stays.map(|&item| self.counts.item(item)).sum();
        let left = Tokens(budget.0.saturating_sub((stays + TOKENS_AROUND).0)).max(LEAST);
        let old = Old { items: &items, read: &said, said: &said, kept };
        let digest = rule.digest(&view, &old, left);
        let digest = digest.map_err(|why| Error::new(ErrorKind::Refused, why))?;
        let Some(digest) = digest else { return Ok(by_tier) };
        if digest.tokens >= items.iter().map(|&item| self.counts.item(item)).sum() {
            return Ok(by_tier);
        }
        self.put(&digest.text, &items)?;
        by_tier.insert("digest".into(), 1);
        Ok(by_tier)
    }
}
