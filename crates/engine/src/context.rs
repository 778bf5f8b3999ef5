//! The context of an agent in use: messages go in, and what to send to the model comes out.
//!
//! All messages are kept in an append-only log. Compactions are lines of the log as well: what is
//! sent is the log with the edits of these lines applied. See `docs/library.md`.

mod append;
mod apply;
mod boundary;
mod calls;
mod contents;
mod count;
mod digest;
mod excerpt;
mod fallback;
mod ingest;
mod known_messages;
mod list;
mod log;
mod origin;
mod overflow;
mod prepare;
mod question;
mod recall;
mod run;
mod setup;
mod size;
mod tool;
mod trim;
mod wire;

use std::fmt;

use epitome_api::SummaryAs;
use epitome_error::Result;
use epitome_formats::epitome::{Undone, undo};
use epitome_model::{Tokens, Transcript};
use epitome_passes::{
    AskTotals, Event, EventReason, FactIndex, Machine, NextStep, NoReply, Reply, SeenLines,
    SeenMark, SummaryRole, Writer, is_digest,
};
use tracing::trace_span;

use crate::Journal;

use apply::PreparedStep;
use calls::Calls;
use count::Counts;
use known_messages::KnownBytes;
use log::ContextLog;
use question::{ALL_KEPT, Pending};
use size::Bill;
use tool::CompactionRequest;

pub use contents::{Content, Share};
pub use epitome_formats::epitome::{Origin, Said, Speaker};
pub use list::ListChange;
pub use overflow::Recovery;
pub use prepare::Preparation;
pub use question::Question;
pub use recall::{Hit, RECALL, Recalled};
pub use setup::{Report, Setup, WindowUse};
pub use tool::{NotDone, Outcome, compact_tool};
pub use wire::{Called, Outgoing};

/// A live context.
///
/// ```
/// use epitome_engine::{Context, Said, Setup};
/// use epitome_passes::built_in;
///
/// let mut context = Context::in_memory(Setup::new(built_in("s06").expect("a built-in recipe")));
/// context.user("What is in a.rs?")?;
/// context.assistant(&[Said::call("c1", "Read", r#"{"path":"a.rs"}"#)])?;
/// context.tool(&[Said::output("c1", "fn main() {}")])?;
/// assert_eq!(context.view()?.transcript().context().count(), 3);
/// # Ok::<(), epitome_error::Error>(())
/// ```
pub struct Context {
    log: ContextLog,
    setup: Setup,
    machine: Machine,
    counts: Counts,
    bill: Bill,
    known: Knowledge,
    ask: Summarising,
    attempt: Attempt,
}

/// What was learned from the log, so that it is not read again.
#[derive(Clone, Default)]
struct Knowledge {
    /// Lines of results that were sent, which a new result may repeat.
    seen: SeenLines,
    /// State of `seen` at the last response of the model.
    answered: SeenMark,
    calls: Calls,
    /// Hashes of the messages that a client sent, to recognise them when it sends them again.
    bytes: KnownBytes,
    /// Facts of the log, indexed for digests.
    index: FactIndex,
}

impl Knowledge {
    /// Reads the calls again after the end of the log was removed; the index for digests starts
    /// over.
    fn reread(&mut self, log: &ContextLog) {
        let mut calls = Calls::default();
        for (item, entry) in log.log().transcript().entries() {
            calls.learn(item, entry, log.bytes());
        }
        self.calls = calls;
        self.index = FactIndex::default();
    }
}

/// A requested compaction, and the summary that is being written for it.
#[derive(Default)]
struct Summarising {
    /// A summary that is being written.
    pending: Option<Pending>,
    /// What the next summary should look at.
    focus: Option<String>,
    /// What all summaries cost so far, without the pending one.
    spent: AskTotals,
    /// A compaction that the user, the model or a program asked for.
    request: Option<CompactionRequest>,
    /// The outcome of the last requested compaction.
    outcome: Option<Outcome>,
}

/// The state of the current attempt to make the context smaller.
#[derive(Clone, Default)]
struct Attempt {
    /// The number of items that may have been sent already.
    sent: usize,
    /// Whether a step of this attempt was written: undo takes later steps back together with it.
    has_begun: bool,
    /// Requests that a provider refused as too long, since its last answer.
    overflows: u32,
    /// Whether a middle cut violated an invariant: then none is tried again.
    is_cut_refused: bool,
    /// The steps taken, if this is the copy on which a compaction is prepared.
    steps: Option<Vec<PreparedStep>>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("recipe", &self.setup.recipe.name).finish_non_exhaustive()
    }
}

/// What to do before a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send the view.
    Send,
    /// Ask a model, and pass its reply to [`Context::answer`]. Then call [`Context::step`] again: a
    /// long history takes several questions.
    Ask(Question),
}

impl Context {
    /// A context whose log is not on disk.
    pub fn in_memory(setup: Setup) -> Context {
        let log = ContextLog::in_memory(&setup.id, &setup.origin);
        Context::from_log(setup, log)
    }

    /// A context whose log is kept in a journal that is empty.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn create(journal: Box<dyn Journal>, setup: Setup) -> Result<Context> {
        let log = ContextLog::create(journal, &setup.id, &setup.origin)?;
        Ok(Context::from_log(setup, log))
    }

    /// Resumes the context of an existing log. `bytes` is the whole content of the journal.
    ///
    /// # Errors
    ///
    /// `UnknownFormat` if `bytes` is no log, `NewerFormat` if a newer epitome wrote it, and the
    /// errors of the journal if an incomplete last line has to be ended.
    pub fn resume(bytes: Vec<u8>, journal: Box<dyn Journal>, setup: Setup) -> Result<Context> {
        let log = ContextLog::resume(bytes, journal)?;
        Ok(Context::from_log(setup, log))
    }

    fn from_log(setup: Setup, log: ContextLog) -> Context {
        let mut context = Context {
            machine: Machine::new(&setup.recipe, setup.window),
            log,
            setup,
            counts: Counts::default(),
            bill: Bill::default(),
            known: Knowledge::default(),
            ask: Summarising::default(),
            attempt: Attempt::default(),
        };
        context.attempt.sent = context.transcript().items.len();
        context.known.reread(&context.log);
        let (transcript, source) = (context.log.log().transcript(), context.log.bytes());
        context.counts.know_all(transcript, source, &*context.setup.counter);
        context.recount();
        context.hold();
        context
    }

    /// What to send now. All due work is done first, except summaries: a caller with a model for
    /// them calls [`step`](Context::step) before.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn view(&mut self) -> Result<Outgoing<'_>> {
        self.view_with(|_| Err(NoReply::Nobody))
    }

    /// What to send now, as [`view`](Context::view), except that summaries are written by `write`:
    /// it is called once per question, and returns the answer or why there is none. Without an
    /// answer the context stays as the passes left it, and an event says why.
    ///
    /// # Errors
    ///
    /// As [`view`](Context::view). That there is no answer is no error.
    pub fn view_with(
        &mut self,
        mut write: impl FnMut(&Question) -> std::result::Result<Reply, NoReply>,
    ) -> Result<Outgoing<'_>> {
        while let Next::Ask(question) = self.step()? {
            self.answer(write(&question))?;
        }
        Ok(self.as_it_is())
    }

    /// What to send, without doing work that is due.
    pub fn as_it_is(&self) -> Outgoing<'_> {
        let rule = self.setup.recipe.stages.live.summary.as_ref();
        let summary = match rule.map_or(SummaryRole::User, |rule| rule.role) {
            SummaryRole::User => SummaryAs::User,
            SummaryRole::Acknowledged => SummaryAs::Acknowledged,
            // A digest that is alone is sent as a user message. Keep it one when messages follow,
            // so that the request still begins with the same bytes (prompt cache).
            SummaryRole::System if self.is_digested() => SummaryAs::User,
            SummaryRole::System => SummaryAs::System,
        };
        Outgoing::new(self.transcript(), self.log.bytes(), summary)
    }

    /// Whether the context contains a digest.
    fn is_digested(&self) -> bool {
        let mut blocks = self.transcript().context().flat_map(|(_, entry)| &entry.blocks);
        blocks.any(|block| is_digest(block, self.log.bytes()))
    }

    /// Returns what to do before the next request. All due work except questions is done here.
    ///
    /// # Errors
    ///
    /// As [`view`](Context::view).
    pub fn step(&mut self) -> Result<Next> {
        let _span = trace_span!("live.step", tokens = self.tokens().0).entered();
        self.notice()?;
        self.before_request()?;
        loop {
            if let Some(pending) = &self.ask.pending {
                return Ok(Next::Ask(pending.question()));
            }
            let gauge = self.gauge();
            match self.machine.step(&gauge) {
                NextStep::Send => {
                    self.report_outcome()?;
                    // The model may have called the tool while another compaction was under way:
                    // answer it.
                    self.notice()?;
                    if self.ask.request.is_some() {
                        continue;
                    }
                    self.attempt.sent = self.transcript().items.len();
                    // If the circuit breaker adds a digest later, it is not part of this attempt.
                    self.attempt.has_begun = false;
                    return Ok(Next::Send);
                }
                NextStep::Run(why) => self.run(why)?,
                NextStep::Digest(why) => self.fall_back(why)?,
                NextStep::Ask(why) => match self.begin(why) {
                    Ok(pending) => self.ask.pending = Some(pending),
                    // No failure: everything is kept, so there is nothing to summarise.
                    Err(reason) if reason == ALL_KEPT => {
                        self.machine.unanswered(why, &gauge, reason);
                    }
                    Err(reason) => {
                        self.ask.request.iter_mut().for_each(|asked| asked.did_not(&reason));
                        self.machine.answered(why, gauge.tokens, &gauge, Err(reason));
                    }
                },
            }
        }
    }

    /// Makes the context small now. The target is half of the target of the recipe, and at most a
    /// quarter of the window. A context below `live.tool.min_tokens` is not changed, as with the
    /// tool. No summary is written here: `focus` is kept for the next one.
    ///
    /// # Errors
    ///
    /// As [`view`](Context::view).
    pub fn compact(&mut self, focus: Option<&str>) -> Result<Outcome> {
        self.compact_to(focus, None)
    }

    /// As [`compact`](Context::compact), but stops as soon as the context is within `target`. A
    /// named target applies to small contexts as well; 0 means as small as possible.
    ///
    /// # Errors
    ///
    /// As [`view`](Context::view).
    pub fn compact_to(&mut self, focus: Option<&str>, target: Option<Tokens>) -> Result<Outcome> {
        self.ask_for_compaction(focus, target);
        self.view()?;
        Ok(self.ask.outcome.clone().expect("what was asked for is done before a view"))
    }

    /// Requests what [`compact_to`](Context::compact_to) does, for before the next request. A
    /// caller with a model for the summary then calls [`step`](Context::step).
    pub fn ask_for_compaction(&mut self, focus: Option<&str>, target: Option<Tokens>) {
        // A compaction that is already under way was worth starting.
        let is_new = self.ask.request.as_ref().is_none_or(CompactionRequest::is_needless);
        if let (None, true, Some(small)) = (target, is_new, self.small()) {
            let calls = self.ask.request.take().map(CompactionRequest::calls).unwrap_or_default();
            self.asked_by(EventReason::Manual, calls);
            self.needless(EventReason::Manual, small);
            return;
        }
        self.ask.focus = focus.map(Into::into);
        self.leave();
        // If the model called the tool as well, its calls get the same outcome.
        let calls = self.ask.request.take().map(CompactionRequest::calls).unwrap_or_default();
        self.machine.force(EventReason::Manual);
        if let Some(target) = target {
            self.machine.aim_at((target > Tokens(0)).then_some(target));
        }
        self.asked_by(EventReason::Manual, calls);
    }

    /// Adds a text that every later summary contains word for word.
    pub fn protect(&mut self, text: impl Into<String>) {
        self.setup.protected.push(text.into());
    }

    /// Sets the model that writes summaries. Its window alone limits the length of the questions.
    pub fn set_writer(&mut self, writer: Writer) {
        self.setup.writer = Some(writer);
    }

    /// Takes the last compaction back, with all of its steps. Returns whether there was one. Until
    /// the context has grown by 5 per cent, or a compaction is requested, only a full window is
    /// compacted.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn undo(&mut self) -> Result<bool> {
        if self.log.log().compactions() == 0 {
            return Ok(false);
        }
        self.leave();
        let from = self.log.bytes().len();
        self.log.gather();
        let mut steps = (0..self.log.log().steps()).map(|_| undo(Undone::Asked));
        let undone = steps.try_for_each(|line| self.log.append(line.as_bytes()));
        if let Err(err) = undone.and_then(|()| self.log.write_gathered()) {
            self.log.forget(from);
            return Err(err);
        }
        self.recount();
        self.hold();
        // A full window must be compacted before the next request nevertheless.
        if self.machine.usable().is_none_or(|usable| self.tokens() <= usable) {
            self.machine.resume_held(self.tokens());
        }
        Ok(true)
    }

    /// Takes back the last step, which did not help.
    fn take_back_step(&mut self) -> Result<()> {
        self.leave();
        self.log.append(undo(Undone::Refused).as_bytes())?;
        if let Some(steps) = &mut self.attempt.steps {
            steps.push(PreparedStep::TakeBack);
        }
        self.recount();
        Ok(())
    }

    /// After an undo, keeps the context from being compacted again at once.
    fn hold(&mut self) {
        let Some(sent) = self.log.log().undone() else { return };
        let items = self.transcript().context.iter().take(sent);
        let then: Tokens = items.map(|&item| self.counts.item(item)).sum();
        self.machine.hold(self.setup.overhead + then);
    }

    /// Removes and returns the events since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        self.machine.events()
    }

    /// The bytes of the log, as they are on disk.
    pub fn log(&self) -> &[u8] {
        self.log.bytes()
    }

    fn transcript(&self) -> &Transcript {
        self.log.log().transcript()
    }
}
