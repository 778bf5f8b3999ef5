//! A step that runs the passes: what they plan is written to the log, or taken back.

use std::collections::BTreeMap;

use epitome_formats::epitome::{Batch, Undone, batch, undo};
use epitome_formats::named;
use epitome_model::{At, Edit, Law, Tokens};
use epitome_passes::{Options, Recipe, Trigger, Why, compact};
use tracing::debug_span;
use tracing::field::Empty;

use super::Context;
use epitome_error::{Error, ErrorKind, Result};

impl Context {
    pub(super) fn run(&mut self, why: Why) -> Result<()> {
        let target = match why {
            Why::Trigger | Why::Hard | Why::Tool => {
                self.machine.target().map(|it| self.in_counts(it).0)
            }
            Why::Manual => self.machine.aim().map(|it| self.in_counts(it).0),
            Why::Request | Why::Overflow => None,
        };
        let target_chars = match why {
            Why::Trigger | Why::Hard | Why::Tool => self.machine.target_chars(),
            Why::Manual | Why::Request | Why::Overflow => None,
        };
        // Who has to come down, or asked for it, takes what there is.
        let at_least = match why {
            Why::Trigger | Why::Request => self.recipe.at_least,
            Why::Hard | Why::Manual | Why::Tool | Why::Overflow => None,
        };
        let trigger = Trigger::default();
        let recipe = Recipe { trigger, target, target_chars, at_least, ..self.recipe.clone() };
        let before = self.tokens();
        let span = debug_span!(
            "live.run",
            recipe = recipe.name.as_str(),
            ?why,
            before = before.0,
            after = Empty,
            edits = Empty
        );
        let _span = span.clone().entered();
        match self.carry_out(&recipe) {
            Ok(by_tier) => {
                let after = self.gauge();
                self.asked.iter_mut().for_each(|asked| asked.did(&by_tier));
                span.record("after", after.tokens.0);
                span.record("edits", by_tier.values().sum::<u64>());
                self.machine.ran(why, before, &after, by_tier);
                Ok(())
            }
            // The log could not be written: that is for the caller to know.
            Err(err) if err.kind() != ErrorKind::Refused => Err(err),
            Err(err) => {
                self.asked.iter_mut().for_each(|asked| asked.did_not(&err.to_string()));
                let now = self.gauge();
                self.machine.failed(why, &now, err.to_string());
                Ok(())
            }
        }
    }

    /// Runs the passes of a recipe and writes what they plan. Says how many edits each has made.
    pub(super) fn carry_out(&mut self, recipe: &Recipe) -> Result<BTreeMap<String, u64>> {
        let format = named("epitome").expect("our own format is one of them");
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let options = Options {
            counter: &*self.counter,
            thinking_is_bound: format.thinking_is_bound,
            counted: self.counts.items(),
        };
        let plan = compact(transcript, source, recipe, &options);
        let sent: Vec<bool> = self.counts.sent(transcript);
        let is_sent = |edit: &Edit| sent[edit.at.item()] && !matches!(edit.at, At::Copy { .. });
        let planned: Vec<_> = plan.edits.into_iter().filter(|it| is_sent(&it.edit)).collect();
        // What saves nothing would only spoil the prompt cache.
        if planned.iter().all(|it| it.tokens == Tokens(0)) {
            return Ok(BTreeMap::new());
        }
        let edits: Vec<Edit> = planned.into_iter().map(|it| it.edit).collect();
        let mut by_tier = BTreeMap::new();
        for edit in &edits {
            *by_tier.entry(edit.pass.to_owned()).or_default() += 1;
        }
        let what = Batch::Compaction(Some(&recipe.name));
        let line = batch(transcript, source, &edits, what).map_err(|err| {
            Error::new(ErrorKind::Refused, "an edit cannot be written").because(err)
        })?;
        let (before, broken) = (self.counts.total().tokens, self.breaches());
        // What goes is on disk before it goes.
        self.log.flush()?;
        self.log.append(&line)?;
        self.recount();
        let more = self.breaches().into_iter().find(|breach| !broken.contains(breach));
        let grew = self.counts.total().tokens > before;
        if more.is_some() || grew {
            self.log.append(undo(Undone::Refused).as_bytes())?;
            self.recount();
            let what = more.map_or_else(|| "it would grow".to_owned(), |breach| breach.1);
            return Err(Error::new(ErrorKind::Refused, what));
        }
        Ok(by_tier)
    }

    pub(super) fn breaches(&self) -> Vec<(Law, String)> {
        let format = named("epitome").expect("our own format is one of them");
        let found = format.laws.check(self.transcript(), self.log.bytes());
        found.into_iter().map(|breach| (breach.law, breach.what)).collect()
    }
}
