//! Makes the context smaller for one retry, after a provider refused a request as too long. The
//! module `overflow` of this crate recognises such refusals.

use std::collections::{BTreeMap, HashSet};

use crate::{Overflow, OverflowSign, overflow};
use epitome_model::{Block, Tokens};
use epitome_passes::{EventReason, PerKind, Recipe, Target, View, overflow_recipes, pins};
use serde::Serialize;

use tracing::debug_span;

use super::Context;
use epitome_error::{ErrorKind, Result};

/// What the caller does after a refused request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "recovery", rename_all = "kebab-case")]
pub enum Recovery {
    /// The provider did not refuse the request for its length: the context is unchanged.
    NotAnOverflow,
    /// The context is smaller now: send it again.
    Retry {
        /// Tokens of the refused request.
        before: Tokens,
        /// Tokens of the next request.
        after: Tokens,
    },
    /// The passes cannot make the context small enough, but the recipe has summaries, and there is
    /// a model that can write them. Call [`step`](Context::step) and answer its questions. Then
    /// send the context again, unless [`recovery_result`](Context::recovery_result) returns
    /// [`Recovery::Final`].
    Summarise {
        /// Tokens of the refused request.
        before: Tokens,
        /// Tokens of the next request without a summary.
        after: Tokens,
    },
    /// The context cannot be made to fit, or the retry was refused as too long as well.
    Final {
        /// Descriptions of the largest parts of the context, the largest first.
        because: Vec<String>,
    },
}

/// The maximum size of the retry, in per cent of the smallest of three sizes: the refused request,
/// the provider's limit, and the window without the tokens that are reserved for the response. The
/// value is below 100 because epitome may count fewer tokens than the provider.
const MARGIN: u64 = 90;

impl Context {
    /// Decides what to do after a refused request. After an overflow the context is made smaller
    /// for one retry, if possible; another overflow before a response is final. `status` is the
    /// HTTP status, if it is known, and `body` the body of the refusal.
    ///
    /// ```
    /// use epitome_engine::Recovery;
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("clear-tool-uses").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// # context.user("Read them.")?;
    /// # for n in 0..5 {
    /// #     context.assistant(&[MessagePart::call(n.to_string(), "Read", r#"{"path":"a.rs"}"#)])?;
    /// #     context.tool(&[MessagePart::output(n.to_string(), "fn main() {}\n".repeat(90))])?;
    /// # }
    /// let busy = r#"{"error":{"message":"slow down"}}"#;
    /// let other = context.recover_from_refusal(Some(429), busy)?;
    /// assert_eq!(other, Recovery::NotAnOverflow);
    /// let body = r#"{"error":{"message":"prompt is too long: 4000 tokens > 2000 maximum"}}"#;
    /// assert!(matches!(context.recover_from_refusal(Some(400), body)?, Recovery::Retry { .. }));
    /// // A second overflow without a response in between is final.
    /// assert!(matches!(context.recover_from_refusal(Some(400), body)?, Recovery::Final { .. }));
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn recover_from_refusal(&mut self, status: Option<u16>, body: &str) -> Result<Recovery> {
        let refusal = overflow(status, body).filter(|refusal| self.may_be(refusal));
        let Some(refusal) = refusal else { return Ok(Recovery::NotAnOverflow) };
        let _span = debug_span!("live.refused", status, tokens = self.tokens().0).entered();
        self.attempt.overflows += 1;
        if self.attempt.overflows > 1 {
            return Ok(Recovery::Final { because: self.largest() });
        }
        // A pending question is about the current context, which is changed below.
        self.drop_question();
        let before = self.tokens();
        let wanted = self.fitting(&refusal);
        let compactions_before = self.log.parsed().compactions();
        self.machine.force(EventReason::Overflow);
        self.machine.set_limit(wanted);
        self.attempt.has_begun = false;
        let gauge = self.gauge();
        // This call reports that the compaction begins. The step that it returns, to run the
        // recipe, is done below, together with other recipes.
        self.machine.step(&gauge);
        let mut recipes = vec![self.setup.recipe.clone()];
        recipes.extend(overflow_recipes());
        let mut by_stage = BTreeMap::new();
        for recipe in recipes {
            self.carry_out_within(EventReason::Overflow, wanted, recipe, &mut by_stage)?;
            let after = self.tokens();
            if after <= wanted && after < before {
                let gauge = self.gauge();
                self.machine.report_passes(EventReason::Overflow, before, &gauge, by_stage);
                return Ok(Recovery::Retry { before, after });
            }
        }
        if self.setup.writer.is_some() && self.setup.recipe.stages.live.summary.is_some() {
            let gauge = self.gauge();
            let after = self.tokens();
            self.machine.report_passes_too_little(EventReason::Overflow, before, &gauge, by_stage);
            return Ok(Recovery::Summarise { before, after });
        }
        self.digest_within(wanted, &mut by_stage)?;
        let after = self.tokens();
        if after <= wanted && after < before {
            let gauge = self.gauge();
            self.machine.report_passes(EventReason::Overflow, before, &gauge, by_stage);
            return Ok(Recovery::Retry { before, after });
        }
        let because = self.largest();
        // A context that cannot be made to fit stays as it was.
        while self.log.parsed().compactions() > compactions_before {
            self.take_back_step()?;
        }
        let reason = "the context cannot be made to fit".to_owned();
        let now = self.gauge();
        self.machine.report_failure(EventReason::Overflow, &now, reason);
        Ok(Recovery::Final { because })
    }

    /// Runs the passes of a recipe with the target `limit`, in tokens as the provider counts them.
    /// The exempt tools and the rule files of the context's own recipe replace those of `recipe`.
    /// If the plan is refused, nothing is changed, and an event reports the reason.
    pub(super) fn carry_out_within(
        &mut self,
        why: EventReason,
        limit: Tokens,
        recipe: Recipe,
        by_stage: &mut BTreeMap<String, u64>,
    ) -> Result<()> {
        let target = PerKind::for_both(Some(Target::from_tokens(self.in_counts(limit))));
        let exempt_tools = self.setup.recipe.exempt_tools.clone();
        let rule_files = self.setup.recipe.rule_files.clone();
        let recipe = Recipe { target, at_least: None, exempt_tools, rule_files, ..recipe };
        match self.carry_out(&recipe) {
            Ok(did) => {
                for (tier, n) in did {
                    *by_stage.entry(tier).or_default() += n;
                }
                Ok(())
            }
            // The plan was refused and not written. Earlier steps stay, and the caller tries the
            // next recipe.
            Err(err) if err.kind() == ErrorKind::Refused => {
                self.machine.report_part_failure(why, err.to_string());
                Ok(())
            }
            Err(err) => Err(err),
        }
    }

    /// The result of a recovery, after [`step`](Context::step) has returned that the context can be
    /// sent: [`Recovery::Final`] if a summary was needed, and the context is still no smaller than
    /// the refused request; otherwise `recovery` itself.
    pub fn recovery_result(&self, recovery: Recovery) -> Recovery {
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

    /// Whether a refusal can be an overflow. A refusal without a message can have any reason: it is
    /// taken for an overflow only if at least half of the window is used, or if the window is
    /// unknown.
    fn may_be(&self, refusal: &Overflow) -> bool {
        let window = self.machine.usable();
        let is_full = window.is_none_or(|window| self.tokens().0 >= window.0 / 2);
        match refusal.known {
            OverflowSign::Words | OverflowSign::Status => true,
            OverflowSign::Silence => is_full,
        }
    }

    /// The maximum size of the retry, in tokens as [`tokens`](Context::tokens) counts them.
    fn fitting(&self, refusal: &Overflow) -> Tokens {
        let now = self.tokens();
        // If the provider states its own count of the refused request, the limit is converted to
        // our tokens by the ratio of the two counts of this request.
        let asked = refusal.asked.filter(|asked| *asked > Tokens(0));
        let limit = refusal.limit.map(|limit| match asked {
            Some(asked) => super::size::scaled(limit, now, asked),
            None => limit,
        });
        let usable = self.machine.usable();
        let sizes = [Some(now), limit, usable].into_iter().flatten();
        sizes.map(|tokens| Tokens(tokens.0 * MARGIN / 100)).min().unwrap_or(now)
    }

    /// Descriptions of the three largest blocks of the context, the largest first. What every
    /// request has in addition to the log counts as one block.
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
