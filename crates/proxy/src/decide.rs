//! Decides what is sent in place of new messages. Later requests repeat the decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use epitome::compaction::{PreparedCompaction, removed_pieces};
use epitome::wire::{Chain, Decision, Patch, RemovedText};
use epitome_api::Api;
use epitome_engine::stored::unanswered;
use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::Loaded;
use epitome_model::{At, Block, Counter, Output, Ref, Source, Transcript};
use epitome_passes::{IngestRule, Recipe, SeenLines, only_text};
use epitome_store::archive::Hash;
use memchr::memmem;

use crate::ambiguous::is_ambiguous;
use crate::body::{Messages, sole_text};
use crate::hint::with_hint;
use crate::memo::Memo;
use crate::splice::{narrowed, refused, sent, text};

/// A result with at most this many bytes is no reason to run the ingest stage: shortening it would
/// save little.
const LEAST: usize = 150;

/// A request of which the first messages are *known*, because an earlier request had them, and the
/// others are *new*.
pub(crate) struct NewMessages<'r> {
    pub(crate) api: &'static Api,
    pub(crate) body: &'r [u8],
    pub(crate) messages: &'r Messages,
    /// The decisions about the known messages. They were made for earlier requests.
    pub(crate) known: &'r [Arc<Decision>],
}

/// The decisions about the new messages.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// One decision for each new message.
    pub(crate) decisions: Vec<Decision>,
    /// What is sent in place of each shortened result, by the result's key in the memo: a hash of
    /// its text and the id of its call.
    pub(crate) results: BTreeMap<Chain, String>,
    /// The texts that are replaced by a shortened form.
    pub(crate) removed: Vec<RemovedText>,
    /// The number of results that were shortened for the first time.
    pub(crate) shortened: u64,
}

impl NewMessages<'_> {
    /// Decides what is sent in place of each new message.
    ///
    /// A result that no model has seen may be shortened. A result that was sent before is sent in
    /// the same form: shortened if the memo has its shortened text, otherwise whole. `seen` has the
    /// lines of the results in the known messages. The lines of the new results are added to it, if
    /// the recipe has an ingest stage.
    ///
    /// # Errors
    ///
    /// `Invariant` if the API would not accept the shortened request; `Refused` if an edit cannot
    /// be kept as a decision about a new message; the errors of reading the request.
    pub(crate) fn decide(
        &self,
        memo: &Memo,
        seen: &mut SeenLines,
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
        if may_be_shortened(&transcript, &tail, seen, recipe, counter) {
            self.shorten_new_results(memo, recipe, counter, &mut decided)?;
        }
        Ok(decided)
    }

    /// The lines of the results in the known messages.
    pub(crate) fn lines_before(&self) -> SeenLines {
        let mut seen = SeenLines::default();
        if self.known.is_empty() {
            return seen;
        }
        let end = self.messages.all[self.known.len() - 1].span.end;
        let known = &self.body[self.messages.list.start + 1..end];
        let beginning = [self.head().as_bytes(), known, b"]}"].concat();
        let transcript = (self.api.format.read)(&beginning, &mut ());
        for output in outputs(&transcript) {
            seen.add(&output.text(&beginning), "");
        }
        seen
    }

    /// The offset of the first new message in the body.
    fn start(&self) -> usize {
        self.messages.all[self.known.len()].span.start
    }

    /// A body that has only the new messages.
    fn tail(&self) -> Vec<u8> {
        let new = &self.body[self.start()..self.messages.list.end - 1];
        [self.head().as_bytes(), new, b"]}"].concat()
    }

    /// The body that [`tail`](NewMessages::tail) returns, up to its first message.
    fn head(&self) -> String {
        format!(r#"{{"{}":["#, self.api.list)
    }

    /// Looks up each result of the new messages in the memo, by its text and the id of its call. If
    /// the memo has a shortened text for it, decides to send that text again. A new message
    /// contains such a result if the agent has changed something before the message.
    fn repeat_results(
        &self,
        transcript: &Transcript,
        tail: &Vec<u8>,
        memo: &Memo,
        counter: &dyn Counter,
        decided: &mut Decided,
    ) -> Result<()> {
        for (item, entry) in transcript.context() {
            if is_ambiguous(&tail.at(transcript.items[item].record().span)) {
                continue;
            }
            for block in &entry.blocks {
                let Block::Output(output) = block else { continue };
                let key = result_key(transcript, tail, item, output);
                let Some(with) = key.and_then(|key| memo.result(key)) else { continue };
                let raw = tail.at(output.whole);
                let before = sole_text(&raw, &(0..raw.len())).map_or(&*raw, |text| &raw[text]);
                let text = |json: &[u8]| counter.count(&epitome_model::decode(json));
                let saved = text(before) - text(with.as_bytes());
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

    /// Shortens new results with the engine's ingest stage. The stage reads the whole request, with
    /// the known messages as they are sent.
    fn shorten_new_results(
        &self,
        memo: &Memo,
        recipe: &Recipe,
        counter: &dyn Counter,
        decided: &mut Decided,
    ) -> Result<()> {
        let sent = sent(self.body, self.messages, self.known)?;
        // The offset of the first new message in the request as it is sent: all replacements are
        // before it.
        let start = Source::len(&sent) - (self.body.len() - self.start()) as u64;
        let request = Loaded::read(sent, Some(self.api.format.name))?;
        let is_new = |item: &usize| {
            let transcript = &request.transcript;
            transcript.items[*item].record().span.start >= start
                && !is_known(transcript, &request.source, *item, memo)
                && !is_ambiguous(&request.source.at(transcript.items[*item].record().span))
        };
        let new: BTreeSet<usize> =
            unanswered(&request.transcript).into_iter().filter(is_new).collect();
        let Some(planned) = PreparedCompaction::ingested(&request, &new, recipe, counter)? else {
            return Ok(());
        };
        if let Some(violation) = planned.violations.first() {
            return Err(Error::new(ErrorKind::Invariant, violation.to_string()));
        }
        for (splice, at) in &planned.splices {
            let base = request.source.span_in_base(splice.span);
            let base = base.ok_or_else(|| refused("an edit reaches into a known message"))?;
            let length = splice.span.len() as usize;
            let with = with_hint(text(splice.with.to_vec())?, length);
            if let Some(output) = output_at(&request.transcript, *at)
                && output.whole == splice.span
                && let Some(key) =
                    result_key(&request.transcript, &request.source, at.item(), output)
            {
                let text = sole_text(with.as_bytes(), &(0..with.len()));
                let text = text.map_or_else(|| with.clone(), |text| with[text].to_owned());
                decided.results.insert(key, text);
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
        let (range, with) = narrowed(self.body, range, with);
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

/// Whether the ingest stage may shorten a result that no model has seen. False if the recipe has no
/// ingest stage. The stage reads the whole request; this check is quicker, because it reads only
/// the new messages. It compares their results with `seen`, the lines of earlier results, and adds
/// the lines of the new results to `seen`.
fn may_be_shortened(
    transcript: &Transcript,
    source: &Vec<u8>,
    seen: &mut SeenLines,
    recipe: &Recipe,
    counter: &dyn Counter,
) -> bool {
    let Some(rule) = recipe.stages.live.ingest else { return false };
    // Which of two limits applies to a result depends on its call. The call may be in a known
    // message, so the lower limit is used here.
    let rule = IngestRule { cap: rule.cap.into_iter().chain(rule.reads).min(), ..rule };
    let new = unanswered(transcript);
    let mut may = false;
    for (item, entry) in transcript.context() {
        for block in &entry.blocks {
            let Block::Output(output) = block else { continue };
            let text = only_text(output).filter(|_| new.contains(&item));
            if let Some(text) = text.map(|text| text.read(source)).filter(|it| it.len() > LEAST) {
                let short = || rule.shorten(&text, Ref::from_bytes(b""), seen, counter);
                may = may || rule.batch.is_some() || short().is_some();
            }
            seen.add(&output.text(source), "");
        }
    }
    may
}

fn outputs(transcript: &Transcript) -> impl Iterator<Item = &Output> {
    let blocks = transcript.context().flat_map(|(_, entry)| &entry.blocks);
    blocks.filter_map(|block| match block {
        Block::Output(output) => Some(output),
        _ => None,
    })
}

/// Whether the memo has a shortened text for a result in this item. That text is then sent again.
fn is_known(transcript: &Transcript, source: &dyn Source, item: usize, memo: &Memo) -> bool {
    let blocks = transcript.items[item].entry().into_iter().flat_map(|entry| &entry.blocks);
    blocks.into_iter().any(|block| match block {
        Block::Output(output) => {
            let key = result_key(transcript, source, item, output);
            key.is_some_and(|key| memo.result(key).is_some())
        }
        _ => false,
    })
}

/// The key of a result in the memo: a hash of its text and the id of its call. Unlike the chain of
/// a message, it does not depend on what is before it. `None` if the request does not state the id:
/// the reader of the format then makes up an id, and other results may have the same one.
fn result_key(
    transcript: &Transcript,
    source: &dyn Source,
    item: usize,
    output: &Output,
) -> Option<Chain> {
    let id = output.call.as_bytes();
    let message = source.at(transcript.items[item].record().span);
    let stated = [b"\"", id, b"\""].concat();
    if id.is_empty() || memmem::find(&message, &stated).is_none() {
        return None;
    }
    let raw = source.at(output.whole);
    // Clients add and remove cache marks around a text, so only the text counts.
    let text = sole_text(&raw, &(0..raw.len())).map_or(&*raw, |text| &raw[text]);
    Some(Chain::compute(&[id, b"\0", text].concat()))
}

/// The result at `at`; `None` if `at` is anything else.
fn output_at(transcript: &Transcript, at: At) -> Option<&Output> {
    let At::Block { item, block } = at else { return None };
    match transcript.items[item].entry()?.blocks.get(block)? {
        Block::Output(output) => Some(output),
        _ => None,
    }
}
