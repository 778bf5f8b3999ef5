//! A provider that refuses a request as too long: the one retry. How it is known stands in
//! `overflow.rs`.

use std::collections::{BTreeMap, HashSet};

use crate::{KnownBy, Overflow, overflow};
use epitome_model::{Block, Tokens};
use epitome_passes::{EventReason, PerKind, Recipe, Target, View, overflow_recipes, pins};
use serde::Serialize;

use tracing::debug_span;

use super::Context;
use epitome_error::{ErrorKind, Result};

/// What becomes of a request that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "recovery", rename_all = "kebab-case")]
pub enum Recovery {
    /// It was not too long: the context is as it was.
    NotAnOverflow,
    /// The context is smaller now: send it once more.
    Retry {
        /// What the refused request sent.
        before: Tokens,
        /// What the next one sends.
        after: Tokens,
    },
    /// Only a summary can make it fit, and there is somebody to write one: do what
    /// [`step`](Context::step) says, ask [`recovered`](Context::recovered), then send it once more.
    Summarise {
        /// What the refused request sent.
        before: Tokens,
        /// What the next one would send without a summary.
        after: Tokens,
    },
    /// It cannot be made to fit.
    Final {
        /// What is too big, largest first.
        because: Vec<String>,
    },
}

/// Of what fitted last, or of the limit that was told, in per cent: the provider counts
/// differently than we do, or there would have been no overflow.
const MARGIN: u64 = 90;

impl Context {
    /// What to do with a request that was refused. An overflow is tried once more with a smaller
    /// context; the next overflow before a response is final.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn refused(&mut self, status: Option<u16>, body: &str) -> Result<Recovery> {
        let told = overflow(status, body).filter(|told| self.may_be(told));
        let Some(told) = told else { return Ok(Recovery::NotAnOverflow) };
        let _span = debug_span!("live.refused", status, tokens = self.tokens().0).entered();
        self.attempt.overflows += 1;
        if self.attempt.overflows > 1 {
            return Ok(Recovery::Final { because: self.largest() });
        }
        // What was asked is about a context that is another one now.
        self.leave();
        let before = self.tokens();
        let wanted = self.fitting(&told);
        let stands = self.log.log().compactions();
        self.machine.force(EventReason::Overflow);
        self.machine.set_limit(wanted);
        self.attempt.has_begun = false;
        let gauge = self.gauge();
        self.machine.step(&gauge);
        let mut recipes = vec![self.setup.recipe.clone()];
        recipes.extend(overflow_recipes());
        let mut by_tier = BTreeMap::new();
        for recipe in recipes {
            self.carry_out_within(EventReason::Overflow, wanted, recipe, &mut by_tier)?;
            let after = self.tokens();
            if after <= wanted && after < before {
                let gauge = self.gauge();
                self.machine.ran(EventReason::Overflow, before, &gauge, by_tier);
                return Ok(Recovery::Retry { before, after });
            }
        }
        if self.setup.writer.is_some() && self.setup.recipe.stages.live.summary.is_some() {
            let (gauge, after) = (self.gauge(), self.tokens());
            self.machine.fell_short(EventReason::Overflow, before, &gauge, by_tier);
            return Ok(Recovery::Summarise { before, after });
        }
        self.digest_within(wanted, &mut by_tier)?;
        let after = self.tokens();
        if after <= wanted && after < before {
            let gauge = self.gauge();
            self.machine.ran(EventReason::Overflow, before, &gauge, by_tier);
            return Ok(Recovery::Retry { before, after });
        }
        let because = self.largest();
        // What did not help is taken back.
        while self.log.log().compactions() > stands {
            self.take_back_step()?;
        }
        let reason = "the context cannot be made to fit".to_owned();
        let now = self.gauge();
        self.machine.failed(EventReason::Overflow, &now, reason);
        Ok(Recovery::Final { because })
    }

    /// Carries out a recipe that makes as much room as it takes, except for what was to stay.
    pub(super) fn carry_out_within(
        &mut self,
        why: EventReason,
        limit: Tokens,
        recipe: Recipe,
        by_tier: &mut BTreeMap<String, u64>,
    ) -> Result<()> {
        let target = PerKind::same(Some(Target::of_tokens(self.in_counts(limit))));
        let exempt_tools = self.setup.recipe.exempt_tools.clone();
        let rule_files = self.setup.recipe.rule_files.clone();
        let recipe = Recipe { target, at_least: None, exempt_tools, rule_files, ..recipe };
        match self.carry_out(&recipe) {
            Ok(did) => {
                for (tier, n) in did {
                    *by_tier.entry(tier).or_default() += n;
                }
                Ok(())
            }
            // It is taken back already; what others did stands, and the next is tried.
            Err(err) if err.kind() == ErrorKind::Refused => {
                self.machine.part_failed(why, err.to_string());
                Ok(())
            }
            Err(err) => Err(err),
        }
    }

    /// What became of a recovery once [`step`](Context::step) says that the context can be sent:
    /// one that waited for a summary is final if the context is no smaller than what was refused.
    /// Any other is what it was.
    pub fn recovered(&self, recovery: Recovery) -> Recovery {
        match recovery {
            Recovery::Summarise { before, .. } if self.tokens() >= before => {
                Recovery::Final { because: self.largest() }
            }
            Recovery::Summarise { .. }
            | Recovery::NotAnOverflow
            | Recovery::Retry { .. }
            | Recovery::Final { .. } => recovery,
        }
    }

    /// Whether it can be one: a refusal without a word may mean anything, and means nothing of the
    /// kind where the window is not half full.
    fn may_be(&self, told: &Overflow) -> bool {
        let window = self.machine.usable();
        let is_full = window.is_none_or(|window| self.tokens().0 >= window.0 / 2);
        match told.known {
            KnownBy::Words | KnownBy::Status => true,
            KnownBy::Silence => is_full,
        }
    }

    /// What a request may come to after an overflow.
    fn fitting(&self, told: &Overflow) -> Tokens {
        let now = self.tokens();
        let share = |tokens: Tokens| Tokens(tokens.0 * MARGIN / 100);
        // What the provider counted for it tells how our count compares.
        let limit = told.limit.map(|limit| match told.asked.filter(|asked| *asked > Tokens(0)) {
            Some(asked) => super::size::scaled(limit, now, asked),
            None => limit,
        });
        let reserved = self.machine.usable();
        [Some(now), limit, reserved].into_iter().flatten().map(share).min().unwrap_or(now)
    }

    /// What is largest in the context, in words.
    pub(super) fn largest(&self) -> Vec<String> {
        let transcript = self.transcript();
        let view = View::new(transcript, self.log.bytes(), &*self.setup.counter)
            .with_rule_files(&self.setup.recipe.rule_files);
        let pinned = pins(&view, &transcript.context);
        let pinned: HashSet<(usize, usize)> =
            pinned.into_iter().map(|pin| (pin.item, pin.block)).collect();
        let mut all: Vec<(Tokens, String)> = Vec::new();
        for (item, entry) in transcript.context() {
            for (block, said) in entry.blocks.iter().enumerate() {
                let tokens = self.counts.items()[item].get(block).copied().unwrap_or_default();
                let what = match said {
                    Block::Output(output) => {
                        let call = self.known.calls.description(&output.call).unwrap_or("a call");
                        format!("the result of {call}")
                    }
                    Block::Call(call) => format!("a call of {}", call.name),
                    Block::Image(_) => "a picture".to_owned(),
                    Block::Thinking(_) => "reasoning".to_owned(),
                    Block::Summary(_) => "the summary".to_owned(),
                    _ => format!("words of the {:?}", entry.role).to_lowercase(),
                };
                let stays = if pinned.contains(&(item, block)) { ", which stays" } else { "" };
                all.push((tokens, format!("{what}{stays}")));
            }
        }
        if self.setup.overhead > Tokens(0) {
            all.push((self.setup.overhead, "the system prompt and the tools".to_owned()));
        }
        all.sort_by(|one, other| other.cmp(one));
        all.truncate(3);
        all.into_iter().map(|(tokens, what)| format!("{what}: {tokens} tokens")).collect()
    }
}
