//! Prepares a compaction on a copy of a context while the context itself stays in use.

use std::fmt;

use epitome_error::{ErrorKind, Result};
use epitome_model::Verb;
use epitome_passes::{EventReason, NoReply, Reply};

use super::apply::{PreparedStep, moved};
use super::{Attempt, Context, Next, Pending, Question, Summarising};

/// A compaction that is prepared on a copy of a context, possibly in another thread. The context
/// then adopts the result with [`Context::swap`].
///
/// ```
/// use epitome_engine::{Context, MessagePart, Setup};
/// use epitome_model::Tokens;
/// use epitome_passes::Recipe;
///
/// let recipe = Recipe::parse(r#"
///     name = "mine"
///     about = "Clears results while the model answers."
///     trigger.live.tokens = 1_000
///     live.background = true
///
///     [[stages.passes]]
///     pass = "results"
///     style = "cleared"
/// "#)?;
/// let mut context = Context::in_memory(Setup::new(recipe).with_window(Tokens(9_000)));
/// context.user("What is in a.rs?")?;
/// context.assistant(&[MessagePart::call("c1", "Read", r#"{"path":"a.rs"}"#)])?;
/// context.tool(&[MessagePart::output("c1", "fn main() {}\n".repeat(225))])?;
/// context.step()?;
/// let mut prepared = context.prepare().expect("its trigger is near");
/// // In another thread:
/// prepared.work();
/// // Meanwhile:
/// context.assistant(&[MessagePart::text("The function main.")])?;
/// let before = context.usage().tokens;
/// assert!(context.swap(prepared)?);
/// assert!(context.usage().tokens < before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Preparation {
    copy: Context,
    /// The number of bytes of the log when it was copied.
    log_bytes: usize,
    /// The number of items in the log when it was copied.
    items: usize,
    /// The items of the context when it was copied.
    sent: Vec<usize>,
    question: Option<Question>,
    is_done: bool,
}

impl Preparation {
    /// Works until a model must be asked or the compaction is done.
    pub fn work(&mut self) {
        if self.question.is_some() || self.is_done {
            return;
        }
        match self.copy.step() {
            Ok(Next::Ask(question)) => self.question = Some(question),
            // `step` returns an error only if the journal cannot be written, and a copy has none.
            // Other failures are recorded in the copy, as part of its outcome.
            Ok(Next::Send) | Err(_) => self.is_done = true,
        }
    }

    /// The question that a model must answer before the work continues; `None` if there is none.
    pub fn question(&self) -> Option<&Question> {
        self.question.as_ref()
    }

    /// Whether there was a question for a model that writes a summary, even if no summary was
    /// written.
    pub fn has_asked(&self) -> bool {
        self.copy.ask.pending.is_some() || self.copy.ask.spent.asks > 0
    }

    /// Whether the work is finished.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Takes the answer to the question, or the reason why there is none. Does nothing if there is
    /// no question.
    pub fn answer(&mut self, reply: std::result::Result<Reply, NoReply>) {
        if self.question.take().is_some() && self.copy.answer(reply).is_err() {
            self.is_done = true;
        }
    }
}

impl fmt::Debug for Preparation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preparation")
            .field("is_done", &self.is_done)
            .field("steps", &self.copy.attempt.steps)
            .finish()
    }
}

/// Two preparations are equal if they are of the same log and have come equally far.
impl PartialEq for Preparation {
    fn eq(&self, other: &Preparation) -> bool {
        self.log_bytes == other.log_bytes
            && self.question == other.question
            && self.is_done == other.is_done
            && self.copy.log.bytes() == other.copy.log.bytes()
    }
}

impl Context {
    /// Returns a copy on which the next compaction can be prepared, at most once each time that the
    /// context comes near its trigger. `None`, for example, if the recipe has no `live.background`,
    /// or if a compaction is due already. Call it after [`step`](Context::step) has returned that
    /// the context can be sent. See [`Preparation`] for an example.
    ///
    /// ```
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.user("Hello.")?;
    /// assert!(context.prepare().is_none(), "the context is far from its trigger");
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn prepare(&mut self) -> Option<Preparation> {
        let gauge = self.gauge();
        if self.ask.pending.is_some() || !self.machine.should_prepare(&gauge) {
            return None;
        }
        let mut copy = self.copy();
        copy.asked_by(EventReason::Background, Vec::new());
        copy.machine.force(EventReason::Background);
        let sent = self.transcript().context.clone();
        let log_bytes = self.log.bytes().len();
        let items = self.transcript().items.len();
        Some(Preparation { copy, log_bytes, items, sent, question: None, is_done: false })
    }

    /// Whether an automatic compaction is due.
    ///
    /// ```
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.user("Hello.")?;
    /// assert!(!context.is_due());
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn is_due(&self) -> bool {
        self.machine.due_reason(&self.gauge()).is_some()
    }

    /// Adopts a prepared compaction. Messages that were added in the meantime stay after it.
    /// Returns false, and leaves the context unchanged, if the compaction cannot be adopted: for
    /// example, if the context was changed otherwise than by new messages, or if the preparation
    /// removed nothing. What the preparation spent on summaries is counted even then. See
    /// [`Preparation`] for an example.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written. The context is then unchanged.
    pub fn swap(&mut self, prepared: Preparation) -> Result<bool> {
        let Preparation { copy, log_bytes, sent, is_done, .. } = &prepared;
        self.ask.spent += copy.ask.spent;
        self.ask.spent += copy.ask.pending.as_ref().map(Pending::spent).unwrap_or_default();
        let context = &self.transcript().context;
        let can_adopt = self.ask.pending.is_none()
            && *is_done
            && context.starts_with(sent)
            && self.log.bytes().get(..*log_bytes) == copy.log.bytes().get(..*log_bytes);
        let by_stage = copy.outcome().map(|outcome| outcome.by_stage.clone()).unwrap_or_default();
        if !can_adopt || by_stage.is_empty() {
            return Ok(false);
        }
        let before = self.tokens();
        match self.all_or_nothing(|context| context.take_steps(&prepared)) {
            Ok(()) => {}
            Err(err) if err.kind() == ErrorKind::Refused => return Ok(false),
            Err(err) => return Err(err),
        }
        let after = self.gauge();
        self.machine.report_swap(before, &after, by_stage);
        Ok(true)
    }

    /// Repeats the steps that were made on the copy. Messages that were added to the context since
    /// it was copied are kept, after a summary or a digest.
    fn take_steps(&mut self, prepared: &Preparation) -> Result<()> {
        let Preparation { copy, items, sent, .. } = prepared;
        let since = self.transcript().items.len() - items;
        let new = self.transcript().context[sent.len()..].to_vec();
        for step in copy.attempt.steps.iter().flatten() {
            match step {
                PreparedStep::Apply { plan, recipe, continues } => {
                    let mut plan =
                        moved(plan, |item| Some(if item < *items { item } else { item + since }));
                    for planned in &mut plan.edits {
                        if let Verb::Summarise(summary) = &mut planned.edit.verb {
                            summary.kept.extend(&new);
                        }
                    }
                    self.attempt.has_begun = *continues;
                    self.apply(plan, recipe.as_deref())?;
                }
                PreparedStep::TakeBack => self.take_back_step()?,
            }
        }
        self.attempt.has_begun = false;
        Ok(())
    }

    /// A copy without the journal, a requested compaction or a pending summary.
    fn copy(&self) -> Context {
        let Context { log, setup, machine, counts, bill, known, ask, attempt } = self;
        Context {
            log: log.copy(),
            setup: setup.clone(),
            machine: machine.clone(),
            counts: counts.clone(),
            bill: *bill,
            known: known.clone(),
            ask: Summarising { focus: ask.focus.clone(), ..Summarising::default() },
            attempt: Attempt { has_begun: false, steps: Some(Vec::new()), ..attempt.clone() },
        }
    }
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
