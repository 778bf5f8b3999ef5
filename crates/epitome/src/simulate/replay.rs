//! Replays a session: computes the context that would be sent with every request to the model.

use std::ops::Range;

use epitome_formats::epitome::blocks_of;
use epitome_measure::{CallFigures, Replay};
use epitome_model::{Entry, MicroDollars, Source};
use epitome_passes::{Event, Recipe};
use epitome_render::moment;

use super::command::Process;
use super::exchange::Exchange;
use super::rules::RequestTally;
use super::{Job, Pieces};
use crate::live::{Context, Speaker};

/// A request of a session to the model, with its response, as it is replayed under a recipe or a
/// policy command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveCall {
    /// The measured cost and quality of the request.
    pub figures: CallFigures,
    /// The cost of the request if the provider caches every beginning of an earlier request.
    pub cost: MicroDollars,
    /// The cost of the request if the provider caches only whole earlier requests.
    pub cost_requests: MicroDollars,
    /// The additional cost of reading again those texts that the edits in the response need and
    /// that the context does not contain.
    pub rereads: MicroDollars,
    /// The number of compactions between the previous request and this one.
    pub compactions: u64,
}

impl Job<'_> {
    /// Replays the session without any compaction.
    pub(super) fn uncompacted(&self, tally: &mut RequestTally) -> Vec<LiveCall> {
        let mut replay = self.replay();
        let mut calls = Vec::new();
        for call in 0..self.history.calls.len() {
            let view = self.history.blocks_sent(call).to_vec();
            self.judge(tally, call, &view);
            calls.push(self.call(&mut replay, call, view, 0));
        }
        calls
    }

    /// Replays the session under a recipe, which may compact before every request.
    pub(super) fn live(
        &self,
        recipe: &Recipe,
        tally: &mut RequestTally,
    ) -> crate::Result<Vec<LiveCall>> {
        let mut replay = self.replay();
        let mut pool = self.pool();
        let mut context = Context::in_memory(self.setup(recipe));
        let mut entries_so_far = 0;
        let mut calls = Vec::new();
        for (call, place) in self.history.calls.iter().enumerate() {
            self.say(&mut context, entries_so_far..place.entry)?;
            entries_so_far = place.entry;
            let view = pool.pieces(context.view()?, &self.counter);
            let events = context.events();
            let is_done = |event: &&Event| matches!(event, Event::Finished { .. });
            let compactions = events.iter().filter(is_done).count() as u64;
            self.judge(tally, call, &view);
            calls.push(self.call(&mut replay, call, view, compactions));
        }
        Ok(calls)
    }

    /// Replays the session under a policy command, which is asked before every request of the
    /// session. If the command's answer cannot be used, the whole history is sent.
    pub(super) fn live_of_command(
        &self,
        policy: &mut Process,
        exchange: &mut Exchange<'_>,
        tally: &mut RequestTally,
    ) -> crate::Result<Vec<LiveCall>> {
        let mut replay = self.replay();
        let mut entries_so_far = 0;
        let mut sent: Pieces = Vec::new();
        let mut calls = Vec::new();
        for (call, place) in self.history.calls.iter().enumerate() {
            let answer = policy.call(&exchange.outgoing(entries_so_far..place.entry))?;
            entries_so_far = place.entry;
            let read = answer.messages().and_then(|(messages, _)| exchange.incoming(&messages));
            let (view, compactions) = match read {
                Ok(view) => {
                    self.judge(tally, call, &view);
                    let begins_as_before = sent.iter().zip(&view).all(|(a, b)| a.id == b.id);
                    let is_longer = sent.len() <= view.len() && begins_as_before;
                    (view, u64::from(!is_longer))
                }
                Err(why) => {
                    tally.add_bad_answer(why, || self.place(call));
                    (self.history.blocks_sent(call).to_vec(), 0)
                }
            };
            sent.clone_from(&view);
            calls.push(self.call(&mut replay, call, view, compactions));
        }
        Ok(calls)
    }

    /// Adds a request of the session to the tally, with the rules for requests that it breaks.
    /// `call` is its index.
    pub(super) fn judge(&self, tally: &mut RequestTally, call: usize, view: &Pieces) {
        tally.add(view, self.history.user_request(call), || self.place(call));
    }

    /// The name of the request with this index in the report: `call 12 of session.jsonl`.
    pub(super) fn place(&self, call: usize) -> String {
        format!("call {} of {}", call + 1, self.name)
    }

    /// Appends entries of the history to a context.
    pub(super) fn say(&self, context: &mut Context, entries: Range<usize>) -> crate::Result<()> {
        say(context, &self.history.entries[entries], self.source)
    }

    fn replay(&self) -> Replay<'_> {
        Replay::new(self.history, self.needs, self.counted_prompt())
    }

    fn call(
        &self,
        replay: &mut Replay<'_>,
        call: usize,
        view: Pieces,
        compactions: u64,
    ) -> LiveCall {
        let mut figures = replay.call(call, view, self.is_cold(call));
        figures.context = self.billed(figures.context);
        LiveCall {
            cost: self.dollars(&figures.prefix),
            cost_requests: self.dollars(&figures.requests),
            rereads: self.dollars(&figures.rereads),
            figures,
            compactions,
        }
    }

    /// Whether the cache has expired since the previous request. False if the session records no
    /// times.
    fn is_cold(&self, call: usize) -> bool {
        let time = |call: usize| moment(self.history.calls[call].time.as_deref()?);
        let Some(before) = call.checked_sub(1) else { return false };
        let Some((from, to)) = time(before).zip(time(call)) else { return false };
        to.duration_since(from).as_secs() > i64::try_from(self.with.ttl).unwrap_or(i64::MAX)
    }
}

/// Appends entries of a history to a context.
pub(super) fn say(
    context: &mut Context,
    entries: &[Entry],
    source: &dyn Source,
) -> crate::Result<()> {
    for entry in entries {
        let speaker = Speaker { role: entry.role, ..Speaker::default() };
        context.push(&speaker, &blocks_of(entry, source))?;
    }
    Ok(())
}
