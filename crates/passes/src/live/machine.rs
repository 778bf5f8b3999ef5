//! The state machine that decides what happens next to a live context.
//!
//! The machine is pure. Its caller passes the size of the context, carries out the returned step,
//! and reports the result.
//!
//! The reserve of a window is the number of tokens that the recipe keeps free for the reply
//! (`live.reserve`). The window is full if the context has more tokens than the window without the
//! reserve.

mod breaker;

use std::collections::BTreeMap;

use epitome_model::Tokens;

use super::{Event, EventReason, TargetExcess};
use crate::level::{ContextSize, Level, Target};
use crate::live_settings::{Live, StageTiming};
use crate::price::{CachePrices, PricedCut, is_worth};
use crate::summary::WrittenSummary;
use crate::{ContextKind, Recipe};

use breaker::{AttemptResult, Breaker, has_grown};

/// What the caller of the machine has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Send the context unchanged.
    Send,
    /// Run the passes, and report the result with [`Machine::report_passes`].
    Run(EventReason),
    /// Ask a model for a summary, and report the result with [`Machine::report_summary`].
    Ask(EventReason),
    /// Replace the beginning of the context by a digest, whatever the recipe says, and report the
    /// result with [`Machine::report_fallback`]. The context is larger than its
    /// [limit](Machine::limit), and nothing else helped, or the circuit breaker allows nothing
    /// else.
    Digest(EventReason),
}

/// The state of the compactions of one context.
#[derive(Clone, Debug)]
pub struct Machine {
    live: Live,
    trigger: Level,
    target: Option<Target>,
    /// The size above which a summary is made; if it has no members, a summary is made when the
    /// target is missed. `None` if the recipe has no summaries.
    summary_over: Option<Level>,
    usable: Option<Tokens>,
    stage: Stage,
    /// Why a compaction was requested; `None` once that compaction has begun.
    asked_for: Option<EventReason>,
    /// Whether the warning was reported since the context was last below the warning level.
    warned: bool,
    /// Whether a compaction was prepared since the context was last far from its trigger.
    prepared: bool,
    /// Whether it was already reported that no summary could be made, because there is no model or
    /// nothing to summarise. Any other result of a summary, or a requested compaction, sets this to
    /// false.
    alone: bool,
    /// The target of a compaction that the user, the program or the model requested. `None` if none
    /// was requested, or if the passes of the requested compaction remove all that they can.
    aim: Option<Tokens>,
    /// The size that the current compaction must reach, if a provider refused a larger request.
    must_fit: Option<Tokens>,
    /// Why there is no summary, if a digest is used instead of one.
    unwritten: Option<String>,
    /// The size of the context, in tokens as epitome counts them, when it did not fit into its
    /// limit even with a digest.
    misfit_at: Option<Tokens>,
    breaker: Breaker,
    /// The size of the context, in tokens as epitome counts them, when a compaction was undone.
    held_at: Option<Tokens>,
    growth: Option<Growth>,
    events: Vec<Event>,
}

/// How a context has grown since its last compaction, or since the machine first saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Growth {
    /// Tokens of the context after its last compaction, or when the machine first saw it.
    from: Tokens,
    /// Number of requests since the context had `from` tokens.
    requests: u64,
}

/// How far the machine has come with the work before the next request. Not a stage of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was done since the last request.
    Idle,
    /// The passes have run, and a summary follows.
    Needs(Attempt),
    /// The context is larger than its limit, and a digest is the only thing left to try.
    Misfits(Attempt),
    /// The attempt has ended: the next step is to send the context.
    Done,
}

/// A compaction that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attempt {
    why: EventReason,
    before: Tokens,
    /// Tokens that the attempt has saved so far.
    saved: Tokens,
}

impl Machine {
    /// A machine for a recipe, and for a window in tokens if it is known. If the recipe has no
    /// trigger, 80 per cent of [`usable`](Machine::usable) is the trigger.
    pub fn new(recipe: &Recipe, window: Option<Tokens>) -> Machine {
        let live = recipe.live;
        let trigger = match recipe.live_trigger() {
            none if none == Level::default() => Level { percent: Some(80), ..none },
            trigger => trigger,
        };
        Machine {
            live,
            trigger,
            target: recipe.target.live,
            summary_over: recipe.stages.live.summary.as_ref().map(|rule| rule.over),
            usable: window.map(|window| live.usable(window)),
            stage: Stage::Idle,
            asked_for: None,
            warned: false,
            prepared: false,
            alone: false,
            aim: None,
            must_fit: None,
            unwritten: None,
            misfit_at: None,
            breaker: Breaker::default(),
            held_at: None,
            growth: None,
            events: Vec::new(),
        }
    }

    /// The maximum tokens of a request: the tokens of the model's window, less the reserve. `None`
    /// if the window is not known.
    pub fn usable(&self) -> Option<Tokens> {
        self.usable
    }

    /// The target of the recipe; `None` if the recipe has no target.
    pub fn target(&self) -> Option<Target> {
        self.target
    }

    /// The target in tokens. `None` if the recipe has no target, or if the target has no limit in
    /// tokens, or only one in per cent of a window that is not known.
    pub fn target_tokens(&self) -> Option<Tokens> {
        self.target?.tokens(self.usable)
    }

    /// The default target of a requested compaction, in tokens: half of the target of an automatic
    /// one, and at most a quarter of [`usable`](Machine::usable). `None` if both are unknown.
    pub fn target_by_hand(&self) -> Option<Tokens> {
        let half = self.target_tokens().map(|target| Tokens(target.0 / 2));
        let quarter = self.usable.map(|usable| Tokens(usable.0 / 4));
        half.into_iter().chain(quarter).min()
    }

    /// The maximum tokens of a request: [`usable`](Machine::usable), or the lower limit that
    /// [`set_limit`](Machine::set_limit) set after the provider refused a request. `None` if
    /// neither is known.
    pub fn limit(&self) -> Option<Tokens> {
        self.must_fit.into_iter().chain(self.usable).min()
    }

    /// Sets the size that the current compaction must reach, because the provider refused a larger
    /// request.
    pub fn set_limit(&mut self, limit: Tokens) {
        self.must_fit = Some(limit);
    }

    /// Requests a compaction before the next request, even if the breaker is open. If `why` is
    /// [`EventReason::Manual`] or [`EventReason::Tool`] and the recipe has a target, the compaction
    /// has the lower target [`target_by_hand`](Machine::target_by_hand).
    pub fn force(&mut self, why: EventReason) {
        self.asked_for = Some(why);
        self.stage = Stage::Idle;
        self.aim = match why {
            EventReason::Manual | EventReason::Tool => {
                self.target_by_hand().filter(|_| self.target.is_some())
            }
            EventReason::Request
            | EventReason::Trigger
            | EventReason::Background
            | EventReason::Hard
            | EventReason::Overflow => None,
        };
        self.must_fit = None;
        self.unwritten = None;
        self.misfit_at = None;
        self.breaker = Breaker::default();
        self.held_at = None;
        self.alone = false;
    }

    /// Sets the target of the requested compaction, after [`force`](Machine::force). `None` means
    /// that the passes remove all that they can.
    pub fn aim_at(&mut self, aim: Option<Tokens>) {
        self.aim = aim;
    }

    /// The target of the requested compaction, which [`force`](Machine::force) or
    /// [`aim_at`](Machine::aim_at) set; `None` if neither set one.
    pub fn aim(&self) -> Option<Tokens> {
        self.aim
    }

    /// Records that a compaction was undone when the context had this size, in tokens as epitome
    /// counts them. Until the context has grown by 5 per cent, only a full window or a requested
    /// compaction ([`force`](Machine::force)) starts another one.
    pub fn suspend_after_undo(&mut self, counted: Tokens) {
        self.stage = Stage::Idle;
        self.held_at = Some(counted);
    }

    /// Reports that automatic compactions are suspended, because a compaction was undone.
    pub fn report_suspended(&mut self, tokens: Tokens) {
        let reason = "the last compaction was taken back".into();
        self.events.push(Event::Breaker { tokens, reason });
    }

    /// Reports that something that was due is not done, and the reason.
    pub fn skip(&mut self, why: EventReason, reason: String) {
        self.events.push(Event::Skipped { why, reason, over_target: None });
    }

    /// Returns what to do next. After [`NextStep::Send`], the next call of this function is for
    /// another request.
    pub fn step(&mut self, gauge: &ContextSize) -> NextStep {
        let step = match self.stage {
            Stage::Idle => self.begin(gauge),
            Stage::Needs(Attempt { why, .. }) => NextStep::Ask(why),
            Stage::Misfits(Attempt { why, .. }) => NextStep::Digest(why),
            Stage::Done => NextStep::Send,
        };
        if step == NextStep::Send {
            let growth = self.growth.get_or_insert(Growth { from: gauge.tokens, requests: 0 });
            growth.requests += 1;
            self.stage = Stage::Idle;
            self.warn(gauge);
        }
        step
    }

    /// Reports that messages were cut out of the middle before a request: the tokens before and
    /// after, and the number of messages.
    pub fn report_trim(&mut self, before: Tokens, after: Tokens, messages: u64) {
        let by_stage = BTreeMap::from([("snip".to_owned(), messages)]);
        let why = EventReason::Request;
        self.events.push(Event::finished(why, before, after, by_stage, None));
    }

    /// Takes the result of the passes: the tokens before, the size after, and the number of edits
    /// of each pass.
    pub fn report_passes(
        &mut self,
        why: EventReason,
        before: Tokens,
        after: &ContextSize,
        by_stage: BTreeMap<String, u64>,
    ) {
        self.report(why, before, after, by_stage);
        let attempt = Attempt { why, before, saved: before - after.tokens };
        if self.wants_summary(after, why) {
            self.stage = Stage::Needs(attempt);
        } else {
            self.end(attempt, after);
        }
    }

    /// Like [`report_passes`](Machine::report_passes), for passes that did not save enough. A
    /// summary is requested next, whatever the recipe says.
    pub fn report_passes_too_little(
        &mut self,
        why: EventReason,
        before: Tokens,
        after: &ContextSize,
        by_stage: BTreeMap<String, u64>,
    ) {
        self.report(why, before, after, by_stage);
        self.stage = Stage::Needs(Attempt { why, before, saved: before - after.tokens });
    }

    /// Takes the result of a summary: the tokens before, the size now, and the reason if there is
    /// no summary.
    pub fn report_summary(
        &mut self,
        why: EventReason,
        before: Tokens,
        now: &ContextSize,
        outcome: Result<(), String>,
    ) {
        let attempt = self.under_way(why, before);
        let over_target = self.missed(now);
        self.alone = false;
        match outcome {
            Ok(()) => {
                self.held_at = None;
                let after = now.tokens;
                let by_stage = BTreeMap::from([("summary".to_owned(), 1)]);
                self.events.push(Event::finished(why, before, after, by_stage, over_target));
                let saved = attempt.saved + (before - after);
                if self.misfits(now) {
                    self.fall_back(Attempt { saved, ..attempt });
                } else {
                    self.close(AttemptResult::Gained { of: attempt.before, saved }, now);
                }
            }
            Err(reason) if self.misfits(now) => {
                self.unwritten = Some(reason);
                self.fall_back(attempt);
            }
            Err(reason) => {
                self.events.push(Event::Failed { why, reason, over_target });
                self.close(AttemptResult::Unwritten, now);
            }
        }
    }

    /// Takes the result of a fallback digest: the tokens before, the size now, the number of edits
    /// of each pass, and the reason if the context still does not fit.
    pub fn report_fallback(
        &mut self,
        why: EventReason,
        before: Tokens,
        now: &ContextSize,
        by_stage: BTreeMap<String, u64>,
        misfit: Option<String>,
    ) {
        let attempt = self.under_way(why, before);
        let over_target = self.missed(now);
        let no_summary = self.unwritten.take();
        if !by_stage.is_empty() {
            self.held_at = None;
            let after = now.tokens;
            let no_summary = no_summary.clone();
            self.events.push(Event::Finished {
                why,
                before,
                after,
                by_stage,
                over_target,
                no_summary,
            });
        }
        let saved = attempt.saved + (before - now.tokens);
        let result = match (&misfit, &no_summary) {
            (Some(_), Some(_)) => AttemptResult::Unwritten,
            (Some(_), None) | (None, _) => AttemptResult::Gained { of: attempt.before, saved },
        };
        if let Some(misfit) = misfit {
            let reasons = no_summary.into_iter().chain([misfit]);
            let reason = reasons.collect::<Vec<_>>().join("; ");
            self.events.push(Event::Failed { why, reason, over_target });
            self.misfit_at = Some(now.counted);
        }
        self.close(result, now);
    }

    /// Reports a summary that was put into the context.
    pub fn report_written_summary(&mut self, written: &WrittenSummary) {
        let WrittenSummary { tokens, of, struck, spent, .. } = *written;
        self.events.push(Event::Summarised { tokens, of, struck, spent });
    }

    /// Records that no summary was requested, because there is no model or nothing to summarise.
    /// This does not count as a failed summary.
    pub fn report_no_summary(&mut self, why: EventReason, now: &ContextSize, reason: String) {
        let attempt = self.under_way(why, now.tokens);
        if self.misfits(now) {
            self.unwritten = Some(reason);
        } else if !std::mem::replace(&mut self.alone, true) {
            let over_target = self.missed(now);
            self.events.push(Event::Skipped { why, reason, over_target });
        }
        self.end(attempt, now);
    }

    /// Reports that one part of the compaction failed; the other parts are tried.
    pub fn report_part_failure(&mut self, why: EventReason, reason: String) {
        self.events.push(Event::Failed { why, reason, over_target: None });
    }

    /// Reports that the passes or the digest after them failed, or that nothing made the context
    /// fit after an overflow. If the context is larger than a request may be and a digest could
    /// help, the next step is a digest; otherwise the attempt ends.
    pub fn report_failure(&mut self, why: EventReason, now: &ContextSize, reason: String) {
        let over_target = self.missed(now);
        self.events.push(Event::Failed { why, reason, over_target });
        if self.misfits(now) {
            return self.fall_back(self.under_way(why, now.tokens));
        }
        self.close(AttemptResult::Refused, now);
    }

    /// Returns the events since the last call, and removes them.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Why the context would be compacted automatically before the next request; `None` if it would
    /// not. If the breaker is open and the recipe runs at a trigger, the only reason is a full
    /// window, and the compaction is only a digest.
    pub fn due_reason(&self, gauge: &ContextSize) -> Option<EventReason> {
        let full = self.usable.is_some_and(|usable| gauge.tokens > usable);
        if !full && self.is_suspended(gauge) {
            return None;
        }
        match self.live.when {
            StageTiming::Request => return Some(EventReason::Request),
            StageTiming::Asked => return None,
            StageTiming::Trigger => {}
        }
        let may = self.breaker.allows(gauge.tokens);
        if full && (may || self.misfits(gauge)) {
            return Some(EventReason::Hard);
        }
        let is_due = self.is_reached(&self.trigger, gauge) || self.is_worth_its_price(gauge);
        (may && is_due).then_some(EventReason::Trigger)
    }

    /// Whether the recipe compacts when that saves money, and a compaction would save money now,
    /// assuming that the provider writes the whole compacted context to its cache again, and that
    /// the context keeps growing as fast as it has so far.
    fn is_worth_its_price(&self, gauge: &ContextSize) -> bool {
        let (Some(growth), Some(target)) = (self.growth, self.target_tokens()) else {
            return false;
        };
        let saved = gauge.tokens - target;
        // A context that is less than a quarter above its target is not worth a compaction.
        if !self.live.priced || saved.0 * 4 < target.0 {
            return false;
        }
        let per_request = (gauge.tokens - growth.from).0 / growth.requests.max(1);
        // If the context has not grown yet, as when it was just opened, its rate of growth is
        // unknown.
        let Some(requests) = saved.0.checked_div(per_request) else { return false };
        let cut = PricedCut { saved, rewritten: target, requests, is_warm: true };
        is_worth(cut, CachePrices::USUAL)
    }

    /// Whether to prepare a compaction now: the recipe wants it, automatic compactions are allowed,
    /// none is due yet, and the context is at the warning level or would, if it were a seventh
    /// larger, reach the trigger or be worth compacting for its price. After it has returned true,
    /// returns false until the context has been far from its trigger.
    pub fn should_prepare(&mut self, gauge: &ContextSize) -> bool {
        let is_near = self.percent(gauge).is_some_and(|percent| percent >= self.live.warn)
            || self.is_reached(&self.trigger, &a_seventh_larger(gauge))
            || self.is_worth_its_price(&a_seventh_larger(gauge));
        if !is_near {
            self.prepared = false;
            return false;
        }
        let wants = self.live.background && self.live.when == StageTiming::Trigger;
        let may = !self.is_suspended(gauge) && self.breaker.allows(gauge.tokens);
        if !wants || !may || self.due_reason(gauge).is_some() {
            return false;
        }
        !std::mem::replace(&mut self.prepared, true)
    }

    /// Reports that a prepared compaction was adopted: the tokens before, the size after, and the
    /// number of edits of each pass.
    pub fn report_swap(
        &mut self,
        before: Tokens,
        after: &ContextSize,
        by_stage: BTreeMap<String, u64>,
    ) {
        let why = EventReason::Background;
        self.events.push(Event::Started { why, tokens: before, target: None, usable: None });
        self.report(why, before, after, by_stage);
        let saved = before - after.tokens;
        self.close(AttemptResult::Gained { of: before, saved }, after);
        // Before the next request, the machine decides whether the compaction was enough.
        self.stage = Stage::Idle;
    }

    /// Whether a compaction was undone and the context has not grown by 5 per cent since then.
    pub fn is_suspended(&self, gauge: &ContextSize) -> bool {
        self.held_at.is_some_and(|at| !has_grown(at, gauge.counted))
    }

    /// Begins the compaction that was requested, or one that is due. If there is neither, the next
    /// step is to send the context.
    fn begin(&mut self, gauge: &ContextSize) -> NextStep {
        if let Some(why) = self.asked_for.take() {
            self.start(why, gauge);
            return NextStep::Run(why);
        }
        match self.due_reason(gauge) {
            // A recipe that runs before every request has no trigger to report.
            Some(EventReason::Request) => NextStep::Run(EventReason::Request),
            Some(why) => {
                self.start(why, gauge);
                if self.breaker.allows(gauge.tokens) {
                    return NextStep::Run(why);
                }
                // The window is full, but the breaker is open: a digest is all that is tried.
                self.fall_back(Attempt { why, before: gauge.tokens, saved: Tokens(0) });
                NextStep::Digest(why)
            }
            None => NextStep::Send,
        }
    }

    /// Reports that a compaction begins.
    fn start(&mut self, why: EventReason, gauge: &ContextSize) {
        let tokens = gauge.tokens;
        let target = self.aim;
        let usable = self.usable.filter(|_| matches!(why, EventReason::Manual | EventReason::Tool));
        self.events.push(Event::Started { why, tokens, target, usable });
    }

    /// Makes a digest the next step. If the recipe runs before every request, the reported reason
    /// is the full window.
    fn fall_back(&mut self, attempt: Attempt) {
        let why = if attempt.why == EventReason::Request { EventReason::Hard } else { attempt.why };
        self.stage = Stage::Misfits(Attempt { why, ..attempt });
    }

    /// Whether the context is larger than a request may be, and a digest could help. If an earlier
    /// digest did not make the context fit, another one can help only after the context has grown
    /// by 5 per cent.
    fn misfits(&self, gauge: &ContextSize) -> bool {
        let is_over = self.limit().is_some_and(|limit| gauge.tokens > limit);
        is_over && self.misfit_at.is_none_or(|at| has_grown(at, gauge.counted))
    }

    fn is_reached(&self, level: &Level, gauge: &ContextSize) -> bool {
        level.is_reached(ContextKind::Live, gauge, self.usable)
    }

    /// Whether a summary follows the passes.
    fn wants_summary(&self, gauge: &ContextSize, why: EventReason) -> bool {
        let Some(over) = self.summary_over else { return false };
        // A compaction that the user or the model requested always includes a summary.
        let by_hand = matches!(why, EventReason::Manual | EventReason::Tool);
        let over = if over == Level::default() {
            !self.target.is_some_and(|target| target.is_reached(gauge, self.usable))
        } else {
            // A small window may be full below this level, so a summary also follows if the context
            // is above its limit.
            self.is_reached(&over, gauge) || self.limit().is_some_and(|it| gauge.tokens > it)
        };
        // The breaker has allowed the attempt already, except for a recipe that runs before every
        // request.
        (by_hand || over) && (why != EventReason::Request || self.breaker.allows(gauge.tokens))
    }

    /// Adds the event for the result of the passes.
    fn report(
        &mut self,
        why: EventReason,
        before: Tokens,
        after: &ContextSize,
        by_stage: BTreeMap<String, u64>,
    ) {
        // A recipe that runs before every request may miss the target, and may find nothing to do:
        // neither is reported.
        let sliding = why == EventReason::Request;
        let over_target = self.missed(after).filter(|_| !sliding);
        if !by_stage.is_empty() {
            self.held_at = None;
            let after = after.tokens;
            self.events.push(Event::finished(why, before, after, by_stage, over_target));
        } else if !sliding {
            let reason = "there is nothing to shorten".into();
            self.events.push(Event::Skipped { why, reason, over_target });
        }
    }

    /// By how much the target is missed, in tokens if the limit in tokens is exceeded, otherwise in
    /// characters. `None` if the target is reached, or if there is none.
    fn missed(&self, gauge: &ContextSize) -> Option<TargetExcess> {
        let target = self.aim.map(Target::from_tokens).or(self.target)?;
        let tokens = target.tokens(self.usable).map(|it| gauge.tokens - it);
        let chars = target.chars.map(|it| gauge.chars.saturating_sub(it));
        let tokens = tokens.filter(|it| *it > Tokens(0)).map(TargetExcess::Tokens);
        tokens.or_else(|| chars.filter(|it| *it > 0).map(TargetExcess::Chars))
    }

    /// The current attempt, or a new one if there is none.
    fn under_way(&self, why: EventReason, before: Tokens) -> Attempt {
        match self.stage {
            Stage::Needs(attempt) | Stage::Misfits(attempt) => attempt,
            Stage::Idle | Stage::Done => Attempt { why, before, saved: Tokens(0) },
        }
    }

    /// Ends an attempt in which no summary was written: the attempt saved what its passes saved. If
    /// the context is still too large, makes a digest the next step instead. The breaker does not
    /// judge an attempt of a recipe that runs before every request.
    fn end(&mut self, attempt: Attempt, now: &ContextSize) {
        if self.misfits(now) {
            return self.fall_back(attempt);
        }
        let Attempt { why, before, saved } = attempt;
        match why {
            EventReason::Request => self.stage = Stage::Done,
            EventReason::Trigger
            | EventReason::Background
            | EventReason::Hard
            | EventReason::Manual
            | EventReason::Tool
            | EventReason::Overflow => {
                self.close(AttemptResult::Gained { of: before, saved }, now);
            }
        }
    }

    /// Ends the attempt, and lets the breaker judge its result.
    fn close(&mut self, result: AttemptResult, now: &ContextSize) {
        self.stage = Stage::Done;
        self.growth = Some(Growth { from: now.tokens, requests: 0 });
        self.aim = None;
        self.must_fit = None;
        let tokens = now.tokens;
        if let Some(reason) = self.breaker.judge(result, tokens) {
            self.events.push(Event::Breaker { tokens, reason });
        }
    }

    /// The size of the context in per cent of the window without the reserve; `None` if the window
    /// is unknown.
    fn percent(&self, gauge: &ContextSize) -> Option<u64> {
        self.usable.map(|usable| gauge.tokens.0 * 100 / usable.0.max(1))
    }

    /// Reports a context at the warning level, once.
    fn warn(&mut self, gauge: &ContextSize) {
        let Some(percent) = self.percent(gauge) else { return };
        if percent < self.live.warn {
            self.warned = false;
        } else if !std::mem::replace(&mut self.warned, true) {
            self.events.push(Event::Warning { tokens: gauge.tokens, percent });
        }
    }
}

fn a_seventh_larger(gauge: &ContextSize) -> ContextSize {
    let larger = |size: u64| size + size / 7;
    let ContextSize { tokens, bytes, chars, results, turns, messages, counted } = *gauge;
    ContextSize {
        tokens: Tokens(larger(tokens.0)),
        bytes: larger(bytes),
        chars: larger(chars),
        results: larger(results),
        turns: larger(turns),
        messages: larger(messages),
        counted: Tokens(larger(counted.0)),
    }
}

#[cfg(test)]
mod tests;
