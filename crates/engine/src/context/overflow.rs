//! Makes the context smaller after a provider refused a request as too long, for one retry. The
//! crate's module `overflow` recognises such refusals.

use std::collections::{BTreeMap, HashSet};

use crate::{KnownBy, Overflow, overflow};
use epitome_model::{Block, Tokens};
use epitome_passes::{EventReason, PerKind, Recipe, Target, View, overflow_recipes, pins};
use serde::Serialize;

use tracing::debug_span;

use super::Context;
use epitome_error::{ErrorKind, Result};

/// What to do after a refused request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "recovery", rename_all = "kebab-case")]
pub enum Recovery {
    /// The request was not too long: the context is unchanged.
    NotAnOverflow,
    /// The context is smaller now: send it once more.
    Retry {
        /// Tokens of the refused request.
        before: Tokens,
        /// Tokens of the next request.
        after: Tokens,
    },
    /// Only a summary can make the context small enough, and there is a model for it: do what
    /// [`step`](Context::step) returns, call [`recovered`](Context::recovered), and send it again.
    Summarise {
        /// What the refused request sent.
        before: Tokens,
        /// Tokens of the next request without a summary.
        after: Tokens,
    },
    /// It cannot be made to fit.
    Final {
        /// The largest parts of the context, largest first.
        because: Vec<String>,
    },
}

/// What a retry may have, in per cent of the last request that fitted, or of the provider's limit:
/// the provider counts more than we do, or there had been no overflow.
const MARGIN: u64 = 90;

impl Context {
    /// Decides what to do after a refused request. After an overflow the context is made smaller
    /// for one retry; another overflow before a response is final.
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
        // A pending question is about the context before this change.
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
        // Take back steps that did not help.
        while self.log.log().compactions() > stands {
            self.take_back_step()?;
        }
        let reason = "the context cannot be made to fit".to_owned();
        let now = self.gauge();
        self.machine.failed(EventReason::Overflow, &now, reason);
        Ok(Recovery::Final { because })
    }

    /// Runs a recipe until the context is within a limit, except for what must stay.
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
            // The step is taken back already; earlier steps stay, and the next one is tried.
            Err(err) if err.kind() == ErrorKind::Refused => {
                self.machine.part_failed(why, err.to_string());
                Ok(())
            }
            Err(err) => Err(err),
        }
    }

    /// The final result of a recovery, once [`step`](Context::step) returns that the context can be
    /// sent: one that waited for a summary is final if the context is no smaller than the refused
    /// request. Any other is returned unchanged.
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

    /// Whether a refusal can be an overflow: one without a message may mean anything, and is not
    /// taken for one while less than half of the window is used.
    fn may_be(&self, told: &Overflow) -> bool {
        let window = self.machine.usable();
        let is_full = window.is_none_or(|window| self.tokens().0 >= window.0 / 2);
        match told.known {
            KnownBy::Words | KnownBy::Status => true,
            KnownBy::Silence => is_full,
        }
    }

    /// The size, by our count, that a request may have after an overflow.
    fn fitting(&self, told: &Overflow) -> Tokens {
        let now = self.tokens();
        let share = |tokens: Tokens| Tokens(tokens.0 * MARGIN / 100);
        // Scale the limit by the provider's count of the refused request.
        let limit = told.limit.map(|limit| match told.asked.filter(|asked| *asked > Tokens(0)) {
            Some(asked) => super::size::scaled(limit, now, asked),
            None => limit,
        });
        let reserved = self.machine.usable();
        [Some(now), limit, reserved].into_iter().flatten().map(share).min().unwrap_or(now)
    }

    /// Descriptions of the largest parts of the context.
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
