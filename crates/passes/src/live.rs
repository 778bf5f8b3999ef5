//! A context while it is in use: when it is made small, in which steps, and what is told of it.
//!
//! The machine is pure. Whoever drives it says how large the context is, carries out what a step
//! asks for, and says what came of it.

use std::collections::BTreeMap;

use epitome_model::Tokens;
use serde::{Deserialize, Serialize};

use crate::birth::Birth;
use crate::summary::{Spent, Struck, SummaryRule, Written};

/// How a recipe runs in a context that is in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Live {
    /// When the passes run.
    pub when: When,
    /// What starts a compaction: any of these. Without one, 80 per cent of the window.
    pub trigger: Level,
    /// What it should come to. Without one, the passes do all that they can.
    pub target: Option<Target>,
    /// Tokens of the window that are kept for the reply.
    pub reserve: u64,
    /// Per cent of the window at which the user is warned.
    pub warn: u64,
    /// What is done to a result before it is first sent.
    pub birth: Option<Birth>,
    /// The summary that follows when the passes are not enough.
    pub summary: Option<SummaryRule>,
    /// The tool with which a model asks for a compaction.
    pub tool: ToolRule,
}

/// When the tool `compact` does anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolRule {
    /// Tokens of the context, without prompt and tools, below which it does not.
    pub min_tokens: u64,
}

impl Default for ToolRule {
    fn default() -> ToolRule {
        ToolRule { min_tokens: 10_000 }
    }
}

impl Default for Live {
    fn default() -> Live {
        Live {
            when: When::Trigger,
            trigger: Level::default(),
            target: None,
            reserve: 16_000,
            warn: 70,
            birth: None,
            summary: None,
            tool: ToolRule::default(),
        }
    }
}

/// When the passes of a recipe run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// When the trigger is reached. In between the context only grows.
    #[default]
    Trigger,
    /// Before every request. What a provider has cached is worth nothing behind the first change.
    Request,
    /// When somebody asks for it, or the provider refused the request, and not before.
    Asked,
}

/// A size of a context: any of what is set here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Level {
    /// Tokens, prompt and tools included.
    pub tokens: Option<u64>,
    /// Per cent of the window without the reserve.
    pub percent: Option<u64>,
    /// Bytes of words, as they are sent.
    pub bytes: Option<u64>,
    /// Results.
    pub results: Option<u64>,
    /// Turns of the user.
    pub turns: Option<u64>,
    /// Messages.
    pub messages: Option<u64>,
}

/// What a compaction should come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Tokens, prompt and tools included.
    Tokens(u64),
    /// Per cent of the window without the reserve.
    Percent(u64),
}

/// How large a context is: what the next request would send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gauge {
    /// Tokens, prompt and tools included.
    pub tokens: Tokens,
    /// Bytes of words.
    pub bytes: u64,
    /// Results.
    pub results: u64,
    /// Turns of the user.
    pub turns: u64,
    /// Messages.
    pub messages: u64,
}

/// Why a context is made small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// The recipe does so before every request.
    Request,
    /// Its trigger was reached.
    Trigger,
    /// The window without the reserve is full.
    Hard,
    /// Somebody asked for it.
    Manual,
    /// The model called the tool `compact`.
    Tool,
    /// The provider refused the request as too long.
    Overflow,
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

/// What happens to a context, in the order in which it happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Event {
    /// The window fills.
    Warning {
        /// What the next request would send.
        tokens: Tokens,
        /// Of the window without the reserve.
        percent: u64,
    },
    /// A compaction begins.
    Started {
        /// Why.
        why: Why,
        /// What the next request would have sent.
        tokens: Tokens,
    },
    /// A compaction is done.
    Finished {
        /// Why it was done.
        why: Why,
        /// What would have been sent.
        before: Tokens,
        /// What will be, counted anew.
        after: Tokens,
        /// Edits by pass.
        by_tier: BTreeMap<String, u64>,
        /// Tokens by which the target was missed.
        #[serde(skip_serializing_if = "Option::is_none")]
        over_target: Option<Tokens>,
    },
    /// A summary is written. How it changes the context follows.
    Summarised {
        /// Its tokens, as its writer counts.
        tokens: Tokens,
        /// Tokens of what it stands for, counted the same way.
        of: Tokens,
        /// What was struck out of it: the history does not hold it.
        struck: Struck,
        /// What it cost.
        spent: Spent,
    },
    /// Nothing was done.
    Skipped {
        /// Why it would have been.
        why: Why,
        /// Why it was not.
        reason: String,
    },
    /// Something went wrong. The context is as the step before left it.
    Failed {
        /// What was tried.
        why: Why,
        /// What went wrong.
        reason: String,
    },
    /// Compacting saves next to nothing: it is left until the context has grown.
    Breaker {
        /// What the next request would send.
        tokens: Tokens,
        /// Why it opened.
        reason: String,
    },
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
        }
    }

    /// Asks for a compaction before the next request, breaker or not.
    pub fn force(&mut self, why: Why) {
        self.asked_for = Some(why);
        self.stage = Stage::Idle;
        self.open_at = None;
        self.alone = false;
        self.poor = 0;
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
        match self.live.when {
            When::Request => return Step::Run(Why::Request),
            When::Asked => return Step::Send,
            When::Trigger => {}
        }
        let full = self.usable().is_some_and(|usable| gauge.tokens > usable);
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
            || over(level.results, gauge.results)
            || over(level.turns, gauge.turns)
            || over(level.messages, gauge.messages)
    }

    fn wants_summary(&self, gauge: &Gauge, why: Why) -> bool {
        let Some(rule) = &self.live.summary else { return false };
        // Who asks for a compaction wants one, and what overflowed has to fit.
        let by_hand = matches!(why, Why::Manual | Why::Tool);
        let over_target = self.target().is_none_or(|target| gauge.tokens > target);
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
        self.open_at.is_some_and(|at| gauge.tokens.0 * 100 < at.0 * (100 + POOR))
    }
}

fn share(tokens: Tokens, percent: u64) -> Tokens {
    Tokens(tokens.0 * percent / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge(tokens: u64) -> Gauge {
        Gauge { tokens: Tokens(tokens), ..Gauge::default() }
    }

    fn machine(live: Live) -> Machine {
        Machine::new(Live { reserve: 0, ..live }, Some(Tokens(1_000)))
    }

    fn tiers() -> BTreeMap<String, u64> {
        BTreeMap::from([("results".to_owned(), 1)])
    }

    #[test]
    fn a_context_is_warned_of_and_then_compacted() {
        let mut machine = machine(Live { target: Some(Target::Percent(60)), ..Live::default() });
        assert_eq!(machine.step(&gauge(699)), Step::Send);
        assert_eq!(machine.step(&gauge(700)), Step::Send);
        assert_eq!(machine.step(&gauge(800)), Step::Send);
        assert_eq!(machine.step(&gauge(801)), Step::Run(Why::Trigger));
        machine.ran(Why::Trigger, Tokens(801), &gauge(650), tiers());
        assert_eq!(machine.step(&gauge(650)), Step::Send);
        assert_eq!(machine.step(&gauge(650)), Step::Send);
        let (why, before, after) = (Why::Trigger, Tokens(801), Tokens(650));
        let over_target = Some(Tokens(50));
        assert_eq!(
            machine.events(),
            [
                Event::Warning { tokens: Tokens(700), percent: 70 },
                Event::Started { why, tokens: before },
                Event::Finished { why, before, after, by_tier: tiers(), over_target },
            ]
        );
    }

    #[test]
    fn any_part_of_a_trigger_starts_it() {
        let of = |trigger, gauge: Gauge| {
            machine(Live { trigger, ..Live::default() }).step(&gauge) == Step::Run(Why::Trigger)
        };
        let level = Level::default;
        let all = Gauge { tokens: Tokens(11), bytes: 12, results: 13, turns: 14, messages: 15 };
        for (trigger, expect) in [
            (Level { tokens: Some(10), ..level() }, true),
            (Level { tokens: Some(11), ..level() }, false),
            (Level { percent: Some(1), ..level() }, true),
            (Level { percent: Some(2), ..level() }, false),
            (Level { bytes: Some(11), ..level() }, true),
            (Level { bytes: Some(12), ..level() }, false),
            (Level { results: Some(12), ..level() }, true),
            (Level { turns: Some(13), ..level() }, true),
            (Level { messages: Some(14), ..level() }, true),
            (Level { messages: Some(15), results: Some(13), ..level() }, false),
        ] {
            assert_eq!(of(trigger, all), expect, "{trigger:?}");
        }
    }

    #[test]
    fn two_poor_gains_open_the_breaker_until_the_context_has_grown() {
        let mut machine = machine(Live::default());
        for _ in 0..2 {
            assert_eq!(machine.step(&gauge(900)), Step::Run(Why::Trigger));
            machine.ran(Why::Trigger, Tokens(900), &gauge(880), tiers());
            assert_eq!(machine.step(&gauge(880)), Step::Send);
        }
        assert!(matches!(
            machine.events().last(),
            Some(Event::Breaker { tokens: Tokens(880), .. }) | Some(Event::Warning { .. })
        ));
        assert_eq!(machine.step(&gauge(900)), Step::Send);
        assert_eq!(machine.step(&gauge(924)), Step::Run(Why::Trigger));
        machine.ran(Why::Trigger, Tokens(924), &gauge(923), tiers());
        assert_eq!(machine.step(&gauge(923)), Step::Send);
        // It does not open twice.
        let is_breaker = |event: &Event| matches!(event, Event::Breaker { .. });
        assert!(!machine.events().iter().any(is_breaker));
        machine.force(Why::Manual);
        assert_eq!(machine.step(&gauge(923)), Step::Run(Why::Manual));
    }

    #[test]
    fn three_failed_summaries_open_the_breaker() {
        let summary = SummaryRule::default();
        let mut machine = machine(Live { summary: Some(summary), ..Live::default() });
        for n in 0..3 {
            assert_eq!(machine.step(&gauge(900 + n * 40)), Step::Run(Why::Trigger), "{n}");
            machine.ran(Why::Trigger, Tokens(900 + n * 40), &gauge(810), tiers());
            assert_eq!(machine.step(&gauge(810)), Step::Ask(Why::Trigger));
            machine.answered(Why::Trigger, Tokens(810), Err("no model".into()));
            assert_eq!(machine.step(&gauge(810)), Step::Send);
        }
        let events = machine.events();
        assert!(events.iter().any(|it| matches!(it, Event::Breaker { .. })), "{events:?}");
        assert_eq!(machine.step(&gauge(820)), Step::Send);
    }

    #[test]
    fn a_full_window_is_hard_whatever_the_trigger_says() {
        let trigger = Level { results: Some(99), ..Level::default() };
        let mut machine = machine(Live { trigger, ..Live::default() });
        assert_eq!(machine.step(&gauge(1_000)), Step::Send);
        assert_eq!(machine.step(&gauge(1_001)), Step::Run(Why::Hard));
    }

    #[test]
    fn a_small_window_keeps_half_for_the_conversation() {
        let machine = Machine::new(Live::default(), Some(Tokens(20_000)));
        assert_eq!(machine.usable(), Some(Tokens(10_000)));
    }
}
