//! Decides once what is sent in place of messages that are new.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use epitome::compaction::{CompactionPlan, removed_pieces};
use epitome::wire::{Chain, Decision, Patch, RemovedText};
use epitome_api::Api;
use epitome_engine::stored::unanswered;
use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::Loaded;
use epitome_model::{At, Block, Counter, Output, Source, Transcript};
use epitome_passes::{Recipe, only_text};
use epitome_store::archive::Hash;

use crate::body::Messages;
use crate::memo::Memo;
use crate::splice::{refused, sent, text};

/// Results with fewer bytes are not shortened: they are below the least number of tokens.
const LEAST: usize = 150;

/// A request of which the first messages are known.
pub(crate) struct New<'r> {
    pub(crate) api: &'static Api,
    pub(crate) body: &'r [u8],
    pub(crate) messages: &'r Messages,
    /// The decisions about the known messages.
    pub(crate) known: &'r [Arc<Decision>],
}

/// What was decided about the messages that are new.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// One decision for each of them.
    pub(crate) decisions: Vec<Decision>,
    /// Results that are shortened, by id and text, and what is sent in place of each.
    pub(crate) results: BTreeMap<Chain, String>,
    /// The texts that are no longer sent.
    pub(crate) removed: Vec<RemovedText>,
    /// Results that were shortened for the first time.
    pub(crate) shortened: u64,
}

impl New<'_> {
    /// Decides about the messages that are not known.
    ///
    /// Only results that no model has seen are shortened. A result that was sent before is sent as
    /// it was: shortened, if the memo knows it, or else whole.
    ///
    /// # Errors
    ///
    /// `Invariant` if the shortened request would be refused, and the errors of reading it.
    pub(crate) fn decide(
        &self,
        memo: &Memo,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<Decided> {
        let first = self.known.len();
        let count = self.messages.all.len() - first;
        let mut decided =
            Decided { decisions: vec![Decision::default(); count], ..Decided::default() };
        let tail = self.tail();
        let transcript = (self.api.format.read)(&tail, &mut ());
        self.repeat_results(&transcript, &tail, memo, counter, &mut decided)?;
        if recipe.stages.live.ingest.is_some() && has_new_result(&transcript, &tail) {
            self.shorten_new_results(memo, recipe, counter, &mut decided)?;
        }
        Ok(decided)
    }

    /// The offset of the first new message in the body.
    fn start(&self) -> usize {
        self.messages.all[self.known.len()].span.start
    }

    /// A body with the new messages alone.
    fn tail(&self) -> Vec<u8> {
        let new = &self.body[self.start()..self.messages.list.end - 1];
        [self.head().as_bytes(), new, b"]}"].concat()
    }

    /// What is before the messages in [`tail`](New::tail).
    fn head(&self) -> String {
        format!(r#"{{"{}":["#, self.api.list)
    }

    /// Sends results that are known by their id and text as they were sent before, although
    /// something before them has changed.
    fn repeat_results(
        &self,
        transcript: &Transcript,
        tail: &Vec<u8>,
        memo: &Memo,
        counter: &dyn Counter,
        decided: &mut Decided,
    ) -> Result<()> {
        for (_, entry) in transcript.context() {
            for block in &entry.blocks {
                let Block::Output(output) = block else { continue };
                let raw = tail.at(output.whole);
                let Some(with) = result_key(output, &raw).and_then(|key| memo.result(key)) else {
                    continue;
                };
                let text = |json: &[u8]| counter.count(&epitome_model::decode(json));
                let saved = text(&raw) - text(with.as_bytes());
                let moved = self.start() - self.head().len();
                let span = |at: u64| at as usize + moved;
                self.patch(
                    span(output.whole.start)..span(output.whole.end),
                    with.to_string(),
                    saved.0,
                    decided,
                )?;
            }
        }
        Ok(())
    }

    /// Runs the engine's ingest stage over the whole request, as it is sent.
    fn shorten_new_results(
        &self,
        memo: &Memo,
        recipe: &Recipe,
        counter: &dyn Counter,
        decided: &mut Decided,
    ) -> Result<()> {
        let sent = sent(self.body, self.messages, self.known)?;
        // All replacements are before the first new message.
        let start = Source::len(&sent) - (self.body.len() - self.start()) as u64;
        let request = Loaded::read(sent, Some(self.api.format.name))?;
        let is_new = |item: &usize| {
            let transcript = &request.transcript;
            transcript.items[*item].record().span.start >= start
                && !is_known(transcript, &request.source, *item, memo)
        };
        let new: BTreeSet<usize> =
            unanswered(&request.transcript).into_iter().filter(is_new).collect();
        let Some(planned) = CompactionPlan::ingested(&request, &new, recipe, counter)? else {
            return Ok(());
        };
        if let Some(violation) = planned.violations.first() {
            return Err(Error::new(ErrorKind::Invariant, violation.to_string()));
        }
        for (splice, at) in &planned.splices {
            let base = request.source.in_base(splice.span);
            let base = base.ok_or_else(|| refused("an edit reaches into a known message"))?;
            let with = text(splice.with.to_vec())?;
            if let Some(output) = output_at(&request.transcript, *at)
                && output.whole == splice.span
                && let Some(key) = result_key(output, &request.source.at(output.whole))
            {
                decided.results.insert(key, with.clone());
            }
            let edits = planned.plan.edits.iter().filter(|it| it.edit.at == *at);
            let saved = edits.map(|planned| planned.tokens.0).sum();
            let range = base.start as usize..base.end as usize;
            self.patch(range, with, saved, decided)?;
            decided.shortened += 1;
        }
        for (span, about) in removed_pieces(&planned, counter) {
            let raw = request.source.at(span).into_owned();
            let hash = Hash::compute(&raw);
            decided.removed.push(RemovedText { hash, raw: text(raw)?, about });
        }
        Ok(())
    }

    /// Adds a replacement of a range of the body to the decision about its message.
    fn patch(
        &self,
        range: std::ops::Range<usize>,
        with: String,
        saved: u64,
        decided: &mut Decided,
    ) -> Result<()> {
        let place = self.messages.place(&range).filter(|(idx, ..)| *idx >= self.known.len());
        let (idx, start, end) = place.ok_or_else(|| {
            refused("an edit is outside of the new messages, or ends at a cache mark")
        })?;
        let decision = &mut decided.decisions[idx - self.known.len()];
        decision.patches.push(Patch { start, end, with });
        decision.patches.sort_by_key(|patch| patch.start);
        decision.saved += saved;
        Ok(())
    }
}

/// Whether there is a result that may be worth shortening and that no model has seen.
fn has_new_result(transcript: &Transcript, source: &Vec<u8>) -> bool {
    let new = unanswered(transcript);
    let entries = transcript.context().filter(|(item, _)| new.contains(item));
    let mut blocks = entries.flat_map(|(_, entry)| &entry.blocks);
    blocks.any(|block| match block {
        Block::Output(output) => {
            only_text(output).is_some_and(|text| text.read(source).len() > LEAST)
        }
        _ => false,
    })
}

/// Whether an item holds a result that the memo knows: it is sent as it was.
fn is_known(transcript: &Transcript, source: &dyn Source, item: usize, memo: &Memo) -> bool {
    let blocks = transcript.items[item].entry().into_iter().flat_map(|entry| &entry.blocks);
    blocks.into_iter().any(|block| match block {
        Block::Output(output) => {
            let key = result_key(output, &source.at(output.whole));
            key.is_some_and(|key| memo.result(key).is_some())
        }
        _ => false,
    })
}

/// The key of a result: the id of its call, and its text. Without an id it has none.
fn result_key(output: &Output, raw: &[u8]) -> Option<Chain> {
    let id = output.call.as_bytes();
    (!id.is_empty()).then(|| Chain::compute(&[id, b"\0", raw].concat()))
}

/// The result at a place.
fn output_at(transcript: &Transcript, at: At) -> Option<&Output> {
    let At::Block { item, block } = at else { return None };
    match transcript.items[item].entry()?.blocks.get(block)? {
        Block::Output(output) => Some(output),
        _ => None,
    }
}
