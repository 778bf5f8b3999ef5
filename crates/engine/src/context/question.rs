//! Summaries: the context returns a question for a model, and the caller passes the answer in.

use std::collections::{BTreeMap, HashSet};

use epitome_formats::epitome::{all_originals, originals_in_context};
use epitome_formats::find_format;
use epitome_model::{Edit, Role, Summary, Tokens};
use epitome_passes::{
    Ask, AskTotals, ContextKind, EventReason, NoReply, Options, Plan, Reply, SummaryInProgress,
    SummaryProgress, Writer,
};

use tracing::debug_span;
use tracing::field::Empty;

use super::Context;
use super::tool::LastResponse;
use crate::boundary::{CutPlace, with_reasoning};
use crate::summary::{StartedSummary, SummaryRequest, WINDOW};
use epitome_error::{Error, ErrorKind, Result};

/// A question for the model that writes the summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Why the context is being compacted.
    pub why: EventReason,
    /// The question. Together with its answer it fits the window of the model that writes
    /// summaries.
    pub ask: Ask,
    /// The items that the summary will replace, in the order in which they are sent.
    pub items: Vec<usize>,
    /// The items that will be sent unchanged after the summary.
    pub kept: Vec<usize>,
}

/// A summary that is being written.
pub(super) struct Pending {
    why: EventReason,
    items: Vec<usize>,
    kept: Vec<usize>,
    writing: SummaryInProgress,
}

impl Pending {
    /// The number of questions so far, and their billed tokens.
    pub(super) fn spent(&self) -> AskTotals {
        self.writing.spent()
    }

    pub(super) fn question(&self) -> Question {
        let Pending { why, items, kept, writing } = self;
        let items = items.clone();
        let kept = kept.clone();
        Question { why: *why, ask: writing.ask().clone(), items, kept }
    }
}

/// The reason why there is no question if there is nothing to summarise. This is no failure.
pub(super) const ALL_KEPT: &str = "everything is kept: there is nothing to summarise";

impl Context {
    /// Takes the answer to the last question, or the reason why there is none. A long history takes
    /// several questions: call [`step`](Context::step) for the next one. Without a summary the
    /// context stays as the passes left it; if it then has more tokens than the window without the
    /// part that is reserved for the response, the next step replaces its old part by a digest.
    /// [`view_with`](Context::view_with) does all this in a loop.
    ///
    /// ```
    /// use epitome_passes::NoReply;
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// // Without a question, an answer is an error.
    /// assert!(context.answer(Err(NoReply::TooLong)).is_err());
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written, `Refused` if there is no question.
    pub fn answer(&mut self, reply: std::result::Result<Reply, NoReply>) -> Result<()> {
        let asked = self.ask.pending.take();
        let pending = asked.ok_or_else(|| Error::new(ErrorKind::Refused, "nothing was asked"))?;
        let Pending { why, items, kept, writing } = pending;
        let has_no_model = matches!(reply, Err(NoReply::NoModel));
        let span = debug_span!("live.answer", ?why, read = Empty, written = Empty, came_to = Empty);
        let _span = span.clone().entered();
        if let Some(used) = reply.as_ref().ok().and_then(|reply| reply.used) {
            span.record("read", (used.input + used.cached + used.cache_written).0);
            span.record("written", used.output.0);
        }
        let before = self.tokens();
        let outcome = match writing.answer(reply) {
            SummaryProgress::Ask(writing) => {
                span.record("came_to", "question");
                self.ask.pending = Some(Pending { why, items, kept, writing: *writing });
                return Ok(());
            }
            SummaryProgress::Written(written) => {
                self.ask.spent += written.spent;
                match self.put(&written.text, &items) {
                    Ok(()) => {
                        self.machine.report_written_summary(&written);
                        Ok(())
                    }
                    Err(err) if err.kind() == ErrorKind::Refused => {
                        self.ask.spent.failed += 1;
                        Err(err.to_string())
                    }
                    Err(err) => return Err(err),
                }
            }
            SummaryProgress::Nothing { reason, spent } => {
                self.ask.spent += spent;
                Err(reason)
            }
        };
        span.record("came_to", if outcome.is_ok() { "summary" } else { "nothing" });
        if let Some(asked) = &mut self.ask.request {
            match &outcome {
                Ok(()) => asked.did(&BTreeMap::from([("summary".to_owned(), 1)])),
                Err(reason) => asked.did_not(reason),
            }
        }
        let now = self.gauge();
        match outcome {
            Err(reason) if has_no_model => self.machine.report_no_summary(why, &now, reason),
            outcome => self.machine.report_summary(why, before, &now, outcome),
        }
        Ok(())
    }

    /// Drops the pending question and its summary. The cost of the answers so far is still counted.
    pub(super) fn drop_question(&mut self) {
        if let Some(pending) = self.ask.pending.take() {
            self.ask.spent += pending.spent();
        }
    }

    /// Begins a summary, or returns the reason why there can be none: [`ALL_KEPT`] if there is
    /// nothing to summarise.
    pub(super) fn begin(&mut self, why: EventReason) -> std::result::Result<Pending, String> {
        let mut rule = self.setup.recipe.stages.live.summary.clone().unwrap_or_default();
        rule.focus = self.ask.focus.take().or_else(|| self.setup.focus.clone()).or(rule.focus);
        rule.protected.extend(self.setup.protected.iter().cloned());
        let log = self.log.parsed();
        let transcript = log.transcript();
        let source = self.log.bytes();
        let format = find_format("epitome").expect("our own format is one of them");
        let options = Options {
            kind: ContextKind::Live,
            counter: &*self.setup.counter,
            thinking_is_bound: format.thinking_is_bound,
            counted: self.counts.items(),
        };
        let longest = self.half_of_a_request();
        let end = |end: usize| self.end_of_old(self.half_of(end), end, 0, longest);
        let originals_of = |_: &[usize], kept: &[usize]| {
            (originals_in_context(log, kept), all_originals(transcript, kept))
        };
        let writer = self.setup.writer.clone().unwrap_or_else(|| Writer {
            window: self.setup.window.unwrap_or(WINDOW),
            counter: self.setup.counter.clone(),
        });
        // In a small window, the part that is kept must leave room for the rest of a request.
        let mut recipe = self.setup.recipe.clone();
        if let Some(usable) = self.machine.usable() {
            recipe.keep.tokens = recipe.keep.tokens.map(|tokens| tokens.min(usable.0 / 2));
        }
        let recipe = &recipe;
        let request = SummaryRequest { transcript, source, recipe, options, rule, writer };
        let begun = request.begin(end, originals_of)?.ok_or(ALL_KEPT)?;
        let StartedSummary { items, kept, writing } = begun;
        Ok(Pending { why, items, kept, writing })
    }

    /// The index in the context at which the kept part begins, near `end`: a summary or a digest
    /// may replace everything before it.
    ///
    /// The last response stays with its results if one of its calls has no result. It also stays if
    /// it begins at or after `unseen`, the model has not seen its results, and the recipe keeps
    /// such results.
    ///
    /// The kept part begins with reasoning if [`with_reasoning`] finds some, if possible not before
    /// `least`. If it would have to begin before `least` and would have more than `longest` tokens,
    /// everything is replaced, unless a call of the last response has no result.
    pub(super) fn end_of_old(
        &self,
        least: usize,
        end: usize,
        unseen: usize,
        longest: Tokens,
    ) -> usize {
        let transcript = self.log.parsed().transcript();
        let source = self.log.bytes();
        let last = LastResponse::from_transcript(transcript);
        let newest = transcript.context().next_back().map(|(_, entry)| entry.role);
        let is_unseen = newest == Some(Role::Tool) && last.begins >= unseen;
        let unseen = self.setup.recipe.keep.unanswered && is_unseen;
        let stays = unseen || !last.open.is_empty();
        let most = if stays { last.begins } else { transcript.context.len() };
        match with_reasoning(transcript, source, least, end.min(most), most) {
            CutPlace::At(end) => end,
            CutPlace::Before(end) if last.open.is_empty() && self.tokens_from(end) > longest => {
                transcript.context.len()
            }
            CutPlace::Before(end) => end,
        }
    }

    /// The tokens of the context from an index on.
    fn tokens_from(&self, begin: usize) -> Tokens {
        self.transcript().context[begin..].iter().map(|&item| self.counts.item(item)).sum()
    }

    /// Half of the tokens that a request may have, or half of the context's tokens if the window is
    /// unknown.
    fn half_of_a_request(&self) -> Tokens {
        Tokens(self.machine.usable().unwrap_or(self.counts.total().tokens).0 / 2)
    }

    /// The index in the context that divides the part before `end` into two with about the same
    /// number of tokens.
    fn half_of(&self, end: usize) -> usize {
        let weights = self.transcript().context[..end].iter().map(|&item| self.counts.item(item).0);
        let half = weights.clone().sum::<u64>().div_ceil(2);
        let sums = weights.scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        sums.take_while(|sum| *sum < half).count() + 1
    }

    /// Replaces these items by a summary or a digest with this text.
    pub(super) fn put(&mut self, text: &str, items: &[usize]) -> Result<()> {
        let sent: Vec<usize> = self.transcript().context.clone();
        let goes: HashSet<usize> = items.iter().copied().collect();
        let places: Vec<usize> = (0..sent.len()).filter(|&at| goes.contains(&sent[at])).collect();
        let (Some(last), true) = (places.last(), places.len() == goes.len()) else {
            return Err(Error::new(
                ErrorKind::Refused,
                "the context has changed since it was asked",
            ));
        };
        let stands_for: Tokens = items.iter().map(|&item| self.counts.item(item)).sum();
        if self.setup.counter.count(text) >= stands_for {
            return Err(Error::new(
                ErrorKind::Refused,
                "the summary is longer than what it replaces",
            ));
        }
        let total = self.counts.total();
        let tokens = total.tokens - total.frames;
        // Messages that were added after the question are kept as well.
        let summary = Summary { text: text.to_owned(), kept: sent[last + 1..].to_vec(), tokens };
        self.apply(Plan::from_edit(Edit::summary(summary, &sent, "summary")), None)
    }
}
