//! What comes next for a context.
//!
//! The machine is pure. Whoever drives it says how large the context is, carries out what a step
//! asks for, and says what came of it.

use std::collections::BTreeMap;

use epitome_model::Tokens;
use serde::Serialize;

use super::{Event, Level, Live, Target, When, Why};
use crate::summary::Written;

/// How large a context is: what the next request would send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gauge {
    /// Tokens, prompt and tools included.
    pub tokens: Tokens,
    /// Bytes of words.
    pub bytes: u64,
    /// Characters of words as they are written, with what a wire puts around them.
    pub chars: u64,
    /// Results.
    pub results: u64,
    /// Turns of the user.
    pub turns: u64,
    /// Messages.
    pub messages: u64,
    /// Tokens by one count only, whatever a provider says of some of them.
    pub counted: Tokens,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send the context as it is.
    Send,
    /// Run the passes, and say what came of it: [`Machine::ran`].
    Run(Why),
    /// Ask a model for a summary, and say what came of it: [`Machine::answered`].
    Ask(Why),
}

/// Gains of less than so many per cent are poor.
const POOR: u64 = 5;
/// So many of them in a row open the breaker.
const POOR_GAINS: u32 = 2;
/// So many failures in a row open it.
const FAILURES: u32 = 3;

/// What comes next for one context.
#[derive(Clone, Debug)]
pub struct Machine {
    live: Live,
    window: Option<Tokens>,
    stage: Stage,
    asked_for: Option<Why>,
    warned: bool,
    /// Whether it was told that there is nobody to ask.
    alone: bool,
    poor: u32,
    failures: u32,
    /// The size at which the breaker opened.
    open_at: Option<Tokens>,
    /// The size, by one count, at which somebody took a compaction back.
    held_at: Option<Tokens>,
    events: Vec<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was done since the last request.
    Idle,
    /// The passes have run.
    Ran(Why),
    /// A summary is all that can help.
    Needs(Why),
    /// What could be done was.
    Done,
}

impl Machine {
    /// For a recipe, and a window if it is known.
    pub fn new(live: Live, window: Option<Tokens>) -> Machine {
        Machine {
            live,
            window,
            stage: Stage::Idle,
            asked_for: None,
            warned: false,
            alone: false,
            poor: 0,
            failures: 0,
            open_at: None,
            held_at: None,
            events: Vec::new(),
        }
    }

    /// The settings.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// Tokens of the window that a request may have.
    pub fn usable(&self) -> Option<Tokens> {
        // A reserve that takes more than half of a small window would leave no room for anything.
        self.window.map(|window| window - Tokens(self.live.reserve.min(window.0 / 2)))
    }

    /// The target in tokens.
    pub fn target(&self) -> Option<Tokens> {
        match self.live.target? {
            Target::Tokens(tokens) => Some(Tokens(tokens)),
            Target::Percent(percent) => Some(share(self.usable()?, percent)),
            Target::Chars(_) => None,
        }
    }

    /// The target in characters.
    pub fn target_chars(&self) -> Option<u64> {
        match self.live.target? {
            Target::Chars(chars) => Some(chars),
            Target::Tokens(_) | Target::Percent(_) => None,
        }
    }

    /// Asks for a compaction before the next request, breaker or not.
    pub fn force(&mut self, why: Why) {
        self.asked_for = Some(why);
        self.stage = Stage::Idle;
        self.open_at = None;
        self.held_at = None;
        self.alone = false;
        self.poor = 0;
    }

    /// Somebody took a compaction back at this size, by one count, and wants what it took: nothing
    /// but a full window is reason enough for another one until the context has grown.
    pub fn hold(&mut self, counted: Tokens) {
        self.stage = Stage::Idle;
        self.held_at = Some(counted);
    }

    /// Says that it is held: who goes on with a log is told nothing new.
    pub fn held(&mut self, tokens: Tokens) {
        let reason = "the last compaction was taken back".into();
        self.events.push(Event::Breaker { tokens, reason });
    }

    /// Asks for a summary next: the passes have run and were not enough.
    pub fn summarise(&mut self, why: Why) {
        self.stage = Stage::Needs(why);
    }

    /// Something was asked for that is not worth while.
    pub fn skip(&mut self, why: Why, reason: String) {
        self.events.push(Event::Skipped { why, reason });
    }

    /// What is to be done next. After [`Step::Send`] the next request begins.
    pub fn step(&mut self, gauge: &Gauge) -> Step {
        let step = match self.stage {
            Stage::Idle => self.begin(gauge),
            Stage::Ran(why) if self.wants_summary(gauge, why) => Step::Ask(why),
            Stage::Needs(why) => Step::Ask(why),
            Stage::Ran(_) | Stage::Done => Step::Send,
        };
        if step == Step::Send {
            self.stage = Stage::Idle;
            self.warn(gauge);
        }
        step
    }

    /// Messages were cut out of the middle before a request: the size before and after, and how
    /// many went.
    pub fn snipped(&mut self, before: Tokens, after: Tokens, messages: u64) {
        let by_tier = BTreeMap::from([("snip".to_owned(), messages)]);
        let why = Why::Request;
        self.events.push(Event::Finished { why, before, after, by_tier, over_target: None });
    }

    /// What came of the passes: the size before and after, and edits by pass.
    pub fn ran(&mut self, why: Why, before: Tokens, after: &Gauge, by_tier: BTreeMap<String, u64>) {
        self.stage = Stage::Ran(why);
        let sliding = why == Why::Request;
        if by_tier.is_empty() {
            if !sliding {
                let reason = "there is nothing to shorten".into();
                self.events.push(Event::Skipped { why, reason });
            }
        } else {
            self.held_at = None;
            let target = self.target().filter(|_| !sliding);
            let over_target = target.map(|it| after.tokens - it).filter(|it| *it > Tokens(0));
            let after = after.tokens;
            self.events.push(Event::Finished { why, before, after, by_tier, over_target });
        }
        if !sliding {
            self.gained(before, after.tokens);
        }
    }

    /// What came of a summary: the size before and after it, or why there is none.
    pub fn answered(&mut self, why: Why, before: Tokens, after: Result<Tokens, String>) {
        self.stage = Stage::Done;
        self.alone = false;
        match after {
            Ok(after) => {
                self.failures = 0;
                self.held_at = None;
                let by_tier = BTreeMap::from([("summary".to_owned(), 1)]);
                let over_target = self.target().map(|it| after - it).filter(|it| *it > Tokens(0));
                self.events.push(Event::Finished { why, before, after, by_tier, over_target });
                self.gained(before, after);
            }
            Err(reason) => {
                self.failures += 1;
                self.events.push(Event::Failed { why, reason });
                if self.failures >= FAILURES {
                    self.open(before, format!("{FAILURES} summaries failed"));
                }
            }
        }
    }

    /// What a summary is like that is to be put into the context now.
    pub fn wrote(&mut self, written: &Written) {
        let Written { tokens, of, struck, spent, .. } = *written;
        self.events.push(Event::Summarised { tokens, of, struck, spent });
    }

    /// Nobody was there to be asked: no failure of anybody's, and asked for again next time.
    pub fn unanswered(&mut self, why: Why, reason: String) {
        self.stage = Stage::Done;
        if !std::mem::replace(&mut self.alone, true) {
            self.events.push(Event::Skipped { why, reason });
        }
    }

    /// A step that could not be carried out: the context is as it was.
    pub fn failed(&mut self, why: Why, tokens: Tokens, reason: String) {
        self.answered(why, tokens, Err(reason));
    }

    /// What happened since this was last asked.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn begin(&mut self, gauge: &Gauge) -> Step {
        if let Some(why) = self.asked_for.take() {
            self.events.push(Event::Started { why, tokens: gauge.tokens });
            return Step::Run(why);
        }
        let full = self.usable().is_some_and(|usable| gauge.tokens > usable);
        if !full && self.is_held(gauge) {
            return Step::Send;
        }
        match self.live.when {
            When::Request => return Step::Run(Why::Request),
            When::Asked => return Step::Send,
            When::Trigger => {}
        }
        let why = if full { Why::Hard } else { Why::Trigger };
        if !full && !self.reached(&self.trigger(), gauge) || self.is_open(gauge) {
            return Step::Send;
        }
        self.events.push(Event::Started { why, tokens: gauge.tokens });
        Step::Run(why)
    }

    fn trigger(&self) -> Level {
        match self.live.trigger == Level::default() {
            true => Level { percent: Some(80), ..Level::default() },
            false => self.live.trigger,
        }
    }

    fn reached(&self, level: &Level, gauge: &Gauge) -> bool {
        let over = |limit: Option<u64>, is: u64| limit.is_some_and(|limit| is > limit);
        let percent = level.percent.and_then(|it| Some(share(self.usable()?, it).0));
        over(level.tokens, gauge.tokens.0)
            || over(percent, gauge.tokens.0)
            || over(level.bytes, gauge.bytes)
            || over(level.chars, gauge.chars)
            || over(level.results, gauge.results)
            || over(level.turns, gauge.turns)
            || over(level.messages, gauge.messages)
    }

    fn wants_summary(&self, gauge: &Gauge, why: Why) -> bool {
        let Some(rule) = &self.live.summary else { return false };
        // Who asks for a compaction wants one, and what overflowed has to fit.
        let by_hand = matches!(why, Why::Manual | Why::Tool);
        let over_chars = self.target_chars().map(|target| gauge.chars > target);
        let over_target =
            over_chars.unwrap_or_else(|| self.target().is_none_or(|it| gauge.tokens > it));
        let over = match rule.over == Level::default() {
            true => over_target,
            false => self.reached(&rule.over, gauge),
        };
        (by_hand || over) && !self.is_open(gauge)
    }

    fn warn(&mut self, gauge: &Gauge) {
        let Some(usable) = self.usable() else { return };
        let percent = gauge.tokens.0 * 100 / usable.0.max(1);
        if percent < self.live.warn {
            self.warned = false;
        } else if !std::mem::replace(&mut self.warned, true) {
            self.events.push(Event::Warning { tokens: gauge.tokens, percent });
        }
    }

    fn gained(&mut self, before: Tokens, after: Tokens) {
        let poor = (before - after).0 * 100 < before.0 * POOR;
        self.poor = if poor { self.poor + 1 } else { 0 };
        if self.poor >= POOR_GAINS {
            self.open(after, format!("{} gains of less than {POOR} per cent", self.poor));
        }
    }

    fn open(&mut self, tokens: Tokens, reason: String) {
        let again = self.open_at.replace(tokens).is_some();
        if !again {
            self.events.push(Event::Breaker { tokens, reason });
        }
    }

    /// An open breaker lets one try through whenever the context has grown by as much as would
    /// have been a gain.
    fn is_open(&self, gauge: &Gauge) -> bool {
        self.open_at.is_some_and(|at| !has_grown(at, gauge.tokens))
    }

    /// Whether somebody took a compaction back, and the context has not grown since.
    pub fn is_held(&self, gauge: &Gauge) -> bool {
        self.held_at.is_some_and(|at| !has_grown(at, gauge.counted))
    }
}

/// By as much as would have been a gain.
fn has_grown(from: Tokens, to: Tokens) -> bool {
    to.0 * 100 >= from.0 * (100 + POOR)
}

fn share(tokens: Tokens, percent: u64) -> Tokens {
    Tokens(tokens.0 * percent / 100)
}

#[cfg(test)]
mod tests;
