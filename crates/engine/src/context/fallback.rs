//! The last means to make a context fit the window: a digest of the old part, even if the recipe
//! has none, then passes that shorten the rest, above all results, and then a smaller digest. None
//! of them needs a model.

use std::collections::BTreeMap;

use epitome_error::{ErrorKind, Result};
use epitome_model::Tokens;
use epitome_passes::{EventReason, overflow_recipes};
use tracing::debug_span;

use super::Context;

/// The maximum target of the first digest, in per cent of the limit.
const AIM: u64 = 45;
/// The target, in per cent of the limit, if the first digest is refused, for example because a rule
/// that must stay in the context has more tokens than the first target.
const MOST: u64 = 90;
/// The target of the last digest, in per cent of the limit. It is made if the context is still too
/// large after the passes.
const LEAST: u64 = 10;

impl Context {
    /// Tries to make the context fit its limit without a model, and reports the result to the state
    /// machine.
    pub(super) fn fall_back(&mut self, why: EventReason) -> Result<()> {
        let Some(limit) = self.machine.limit() else { return Ok(()) };
        let before = self.tokens();
        let _span =
            debug_span!("live.fall_back", ?why, before = before.0, limit = limit.0).entered();
        let mut by_stage = BTreeMap::new();
        let refused = self.digest_within(limit, &mut by_stage)?;
        if self.tokens() > limit {
            for recipe in overflow_recipes() {
                self.carry_out_within(why, limit, recipe, &mut by_stage)?;
            }
        }
        if self.tokens() > limit {
            // It has as many short texts of the model as the first digest: they have few tokens,
            // and nothing else says what the model concluded.
            let usual = self.usual_digest(limit);
            self.digest_to(share(limit, LEAST), usual, &mut by_stage)?;
        }
        let misfit = (self.tokens() > limit).then(|| {
            let because = refused.unwrap_or_else(|| self.largest().join("; "));
            format!("the context cannot be made to fit {limit} tokens: {because}")
        });
        if let Some(asked) = &mut self.ask.request {
            asked.did(&by_stage);
            misfit.iter().for_each(|reason| asked.did_not(reason));
        }
        let now = self.gauge();
        self.machine.report_fallback(why, before, &now, by_stage, misfit);
        Ok(())
    }

    /// Replaces the old part by a digest. The target is that of the recipe, but at most [`AIM`] per
    /// cent of `limit`; if this digest is refused, another is tried with [`MOST`] per cent. Returns
    /// the reason if that is refused, too: for example, a rule that must stay in the context
    /// exceeds the target, the digest is longer than what it replaces, or the context would violate
    /// an invariant.
    pub(super) fn digest_within(
        &mut self,
        limit: Tokens,
        by_stage: &mut BTreeMap<String, u64>,
    ) -> Result<Option<String>> {
        let aim = self.usual_digest(limit);
        match self.digest_to(aim, aim, by_stage)? {
            Some(_) => {
                let most = share(limit, MOST);
                self.digest_to(most, most, by_stage)
            }
            None => Ok(None),
        }
    }

    /// The target of the first digest: that of the recipe, but at most [`AIM`] per cent of `limit`.
    fn usual_digest(&self, limit: Tokens) -> Tokens {
        let aim = share(limit, AIM);
        self.machine.target_tokens().map_or(aim, |target| target.min(aim))
    }

    /// Replaces the old part by a digest, so that the context has at most `target` tokens, with the
    /// short texts of the model that a digest with the target `usual` has. Returns the reason if
    /// the digest is refused.
    fn digest_to(
        &mut self,
        target: Tokens,
        usual: Tokens,
        by_stage: &mut BTreeMap<String, u64>,
    ) -> Result<Option<String>> {
        let rule = self.setup.recipe.stages.live.digest.clone().unwrap_or_default();
        match self.put_digest(&rule, target, usual) {
            Ok(is_put) => {
                if is_put {
                    by_stage.insert("digest".into(), 1);
                }
                Ok(None)
            }
            Err(err) if err.kind() == ErrorKind::Refused => Ok(Some(err.to_string())),
            Err(err) => Err(err),
        }
    }
}

fn share(tokens: Tokens, percent: u64) -> Tokens {
    Tokens(tokens.0 * percent / 100)
}

#[cfg(test)]
#[path = "fallback_tests.rs"]
mod tests;
