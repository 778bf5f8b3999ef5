//! Runs the passes and the digest of the recipe: writes their plans to the log, and reports the
//! result.

use std::collections::BTreeMap;

use epitome_formats::epitome::FORMAT;
use epitome_model::{At, Tokens};
use epitome_passes::{
    ContextKind, EventReason, Options, PerKind, Plan, PlannedEdit, Recipe, Target, plan_edits,
};
use tracing::debug_span;
use tracing::field::Empty;

use super::Context;
use epitome_error::{ErrorKind, Result};

impl Context {
    /// Runs the passes, and then the digest if the recipe has one.
    pub(super) fn run(&mut self, why: EventReason) -> Result<()> {
        self.attempt.has_begun = false;
        // An automatic compaction has the target of the recipe, but no target if the recipe runs
        // before every request. A requested compaction has a target of its own, or none. Without a
        // target the passes remove all that they can.
        let target = match why {
            EventReason::Trigger | EventReason::Background | EventReason::Hard => {
                let tokens = self.machine.target_tokens().map(|it| self.in_counts(it).0);
                self.machine.target().map(|target| Target { tokens, percent: None, ..target })
            }
            EventReason::Manual | EventReason::Tool => {
                self.machine.aim().map(|it| Target::from_tokens(self.in_counts(it)))
            }
            EventReason::Request | EventReason::Overflow => None,
        };
        // `at_least` is the saving below which a plan is not carried out. It does not apply if the
        // context must become smaller, or if a compaction was requested.
        let at_least = match why {
            EventReason::Trigger | EventReason::Background | EventReason::Request => {
                self.setup.recipe.at_least
            }
            EventReason::Hard | EventReason::Manual | EventReason::Tool | EventReason::Overflow => {
                None
            }
        };
        let targets = PerKind { live: target, ..self.setup.recipe.target };
        let recipe = Recipe { target: targets, at_least, ..self.setup.recipe.clone() };
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
        let outcome = self.carry_out(&recipe).and_then(|by_stage| self.digested(why, by_stage));
        if let Ok(by_stage) = &outcome {
            span.record("after", self.tokens().0);
            span.record("edits", by_stage.values().sum::<u64>());
        }
        self.conclude(why, before, outcome)
    }

    /// Reports the result of passes and digest to the state machine, and to the requested
    /// compaction if there is one. Returns an error only if the log cannot be written.
    pub(super) fn conclude(
        &mut self,
        why: EventReason,
        before: Tokens,
        outcome: Result<BTreeMap<String, u64>>,
    ) -> Result<()> {
        match outcome {
            Ok(by_stage) => {
                let after = self.gauge();
                self.ask.request.iter_mut().for_each(|asked| asked.did(&by_stage));
                self.machine.report_passes(why, before, &after, by_stage);
                Ok(())
            }
            // An error of another kind than `Refused` means that the log cannot be written.
            Err(err) if err.kind() != ErrorKind::Refused => Err(err),
            Err(err) => {
                self.ask.request.iter_mut().for_each(|asked| asked.did_not(&err.to_string()));
                let now = self.gauge();
                self.machine.report_failure(why, &now, err.to_string());
                Ok(())
            }
        }
    }

    /// Runs the passes of a recipe and writes their plan, except edits of the prompt, of items that
    /// are not sent, and of hidden fields. Writes nothing if the edits save no tokens. Returns the
    /// number of edits of each pass that were written.
    pub(super) fn carry_out(&mut self, recipe: &Recipe) -> Result<BTreeMap<String, u64>> {
        let transcript = self.log.parsed().transcript();
        let source = self.log.bytes();
        let options = Options {
            kind: ContextKind::Live,
            counter: &*self.setup.counter,
            thinking_is_bound: FORMAT.thinking_is_bound,
            counted: self.counts.items(),
        };
        let mut plan = plan_edits(transcript, source, recipe, &options);
        let sent: Vec<bool> = self.counts.sent_flags(transcript);
        plan.edits.retain(|PlannedEdit { edit, .. }| {
            sent[edit.at.item()] && !matches!(edit.at, At::HiddenField { .. })
        });
        // Edits that save nothing would only invalidate the prompt cache.
        if plan.edits.iter().all(|it| it.tokens == Tokens(0)) {
            return Ok(BTreeMap::new());
        }
        self.write_plan(&recipe.name, plan)
    }

    /// Writes the edits of a recipe. Returns the number of edits of each pass.
    pub(super) fn write_plan(&mut self, recipe: &str, plan: Plan) -> Result<BTreeMap<String, u64>> {
        let by_pass = plan.by_pass().into_iter();
        let by_stage = by_pass.map(|(pass, n)| (pass.to_owned(), n)).collect();
        self.apply(plan, Some(recipe))?;
        Ok(by_stage)
    }
}

#[cfg(test)]
mod tests {
    use epitome_passes::{Reply, StopReason, built_in};

    use super::super::{MessagePart, Next, Setup};
    use super::*;
    use crate::journal::Nowhere;

    #[test]
    fn the_steps_of_one_compaction_are_taken_back_together_after_a_resume_too() {
        let setup = || Setup::new(built_in("s06").expect("a built-in recipe"));
        let mut context = Context::in_memory(setup());
        context.user("Read them all.").expect("memory");
        for n in 0..6 {
            let id = format!("c{n}");
            let call = MessagePart::call(id.clone(), "Read", r#"{"path":"a.rs"}"#);
            context.assistant(&[call]).expect("memory");
            context.tool(&[MessagePart::output(id, "fn main() {}\n".repeat(90))]).expect("memory");
        }
        let before = context.unchanged_view().messages();
        context.ask_for_compaction(None, Some(Tokens(0)));
        while let Next::Ask(question) = context.step().expect("memory") {
            let headings = question.ask.prompt.lines().filter(|line| line.starts_with("## "));
            let text = headings.map(|line| format!("{line}\nAll is read.\n")).collect();
            let reply = Reply { text, stopped: StopReason::End, used: None };
            context.answer(Ok(reply)).expect("memory");
        }
        assert_eq!(context.report().compactions, 2, "passes and a summary");
        let log = context.log().to_vec();
        let mut resumed = Context::resume(log, Box::new(Nowhere), setup()).expect("a log");
        for context in [&mut context, &mut resumed] {
            assert!(context.undo().expect("memory"));
            assert_eq!(context.unchanged_view().messages(), before);
            assert_eq!(context.report().compactions, 0);
            assert!(!context.undo().expect("memory"), "there is nothing left");
        }
    }
}
