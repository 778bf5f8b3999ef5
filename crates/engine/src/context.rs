//! A context while an agent uses it: what was said goes in, what to send comes out.
//!
//! Messages are kept in a log that is only ever added to; what is sent is the log and the edits
//! behind it. See `docs/library.md`.

mod append;
mod apply;
mod calls;
mod contents;
mod count;
mod cut;
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

/// What is known of the log, so that it need not be read again.
#[derive(Clone, Default)]
struct Knowledge {
    /// Texts of results, which a new one may repeat.
    seen: SeenLines,
    /// What it held with the last answer of the model.
    answered: SeenMark,
    calls: Calls,
    /// The bytes of the messages of a client.
    bytes: KnownBytes,
    /// What digests know of the log.
    index: FactIndex,
}

impl Knowledge {
    /// Reads the calls of a log whose end was taken away; digests index it again.
    fn reread(&mut self, log: &ContextLog) {
        let mut calls = Calls::default();
        for (item, entry) in log.log().transcript().entries() {
            calls.learn(item, entry, log.bytes());
        }
        self.calls = calls;
        self.index = FactIndex::default();
    }
}

/// Compactions that were asked for, and summaries that are asked for them.
#[derive(Default)]
struct Summarising {
    /// A summary that is being written.
    pending: Option<Pending>,
    /// What the next summary should look at.
    focus: Option<String>,
    /// What summaries took, but for the pending one.
    spent: AskTotals,
    /// A compaction that the user, the model or a program asked for.
    request: Option<CompactionRequest>,
    /// What came of the last one.
    outcome: Option<Outcome>,
}

/// How far the attempt to make the context small has come.
#[derive(Clone, Default)]
struct Attempt {
    /// Items before this one may have been sent.
    sent: usize,
    /// Whether it has written a step: what follows is taken back with it.
    has_begun: bool,
    /// Requests that a provider refused as too long, since its last answer.
    overflows: u32,
    /// Whether an invariant refused a cut of the middle: then no other is tried.
    is_cut_refused: bool,
    /// The steps of a compaction that is prepared, on a copy.
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
    /// Ask a model, and say what it answered: [`Context::answer`]. Then ask again what is next: a
    /// long history takes several questions.
    Ask(Question),
}

impl Context {
    /// A context whose log is not on disk.
    pub fn in_memory(setup: Setup) -> Context {
        let log = ContextLog::in_memory(&setup.id, &setup.origin);
        Context::from_log(setup, log)
    }

    /// A context whose log is kept in a journal, which is still empty.
    ///
    /// # Errors
    ///
    /// What the journal says.
    pub fn create(journal: Box<dyn Journal>, setup: Setup) -> Result<Context> {
        let log = ContextLog::create(journal, &setup.id, &setup.origin)?;
        Ok(Context::from_log(setup, log))
    }

    /// The context of a log that a journal holds already, as it was left. `bytes` is the whole log.
    ///
    /// # Errors
    ///
    /// `UnknownFormat` if it is no log, `NewerFormat` if a newer epitome wrote it, and what the
    /// journal says when a torn last line is ended.
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

    /// What to send now: whatever is due is done first. A summary that would have to be asked for
    /// is left out; who has a model asks [`step`](Context::step) before.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn view(&mut self) -> Result<Outgoing<'_>> {
        self.view_with(|_| Err(NoReply::Nobody))
    }

    /// What to send now, as [`view`](Context::view), but `write` writes the summaries: it is asked
    /// once a question, and answers or says why there is no answer. Without one the context stays
    /// as the passes have left it, and an event says why.
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

    /// What would be sent if nothing were due.
    pub fn as_it_is(&self) -> Outgoing<'_> {
        let rule = self.setup.recipe.stages.live.summary.as_ref();
        let summary = match rule.map_or(SummaryRole::User, |rule| rule.role) {
            SummaryRole::User => SummaryAs::User,
            SummaryRole::Acknowledged => SummaryAs::Acknowledged,
            // A digest may stand alone, and is sent as a message then. It stays one, so that what
            // was sent is sent again when more is said.
            SummaryRole::System if self.is_digested() => SummaryAs::User,
            SummaryRole::System => SummaryAs::System,
        };
        Outgoing::new(self.transcript(), self.log.bytes(), summary)
    }

    /// Whether a digest is sent.
    fn is_digested(&self) -> bool {
        let mut blocks = self.transcript().context().flat_map(|(_, entry)| &entry.blocks);
        blocks.any(|block| is_digest(block, self.log.bytes()))
    }

    /// What is to be done before the next request; all but questions is done at once.
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
                    self.tell()?;
                    // A model that asked while another compaction was under way is answered, too.
                    self.notice()?;
                    if self.ask.request.is_some() {
                        continue;
                    }
                    self.attempt.sent = self.transcript().items.len();
                    // A digest that the breaker leaves the next time is no step of this attempt.
                    self.attempt.has_begun = false;
                    return Ok(Next::Send);
                }
                NextStep::Run(why) => self.run(why)?,
                NextStep::Digest(why) => self.fall_back(why)?,
                NextStep::Ask(why) => match self.begin(why) {
                    Ok(pending) => self.ask.pending = Some(pending),
                    // Nothing failed: there is nothing to do.
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

    /// Makes the context small now; `focus` is what a summary should look at. It aims at half of
    /// the recipe's target, and at a quarter of the window at most. One that is small already
    /// (`live.tool.min_tokens`) stays as it is, as with the tool.
    ///
    /// # Errors
    ///
    /// As [`view`](Context::view).
    pub fn compact(&mut self, focus: Option<&str>) -> Result<Outcome> {
        self.compact_to(focus, None)
    }

    /// The same, but no smaller than it takes to come down to the target. Who names one means it,
    /// whatever the size: 0 is as small as can be.
    ///
    /// # Errors
    ///
    /// As [`view`](Context::view).
    pub fn compact_to(&mut self, focus: Option<&str>, target: Option<Tokens>) -> Result<Outcome> {
        self.ask_for_compaction(focus, target);
        self.view()?;
        Ok(self.ask.outcome.clone().expect("what was asked for is done before a view"))
    }

    /// The same before the next request: who has a model for the summary asks
    /// [`step`](Context::step) then.
    pub fn ask_for_compaction(&mut self, focus: Option<&str>, target: Option<Tokens>) {
        // What is under way already was worth while.
        let is_new = self.ask.request.as_ref().is_none_or(CompactionRequest::is_needless);
        if let (None, true, Some(small)) = (target, is_new, self.small()) {
            let calls = self.ask.request.take().map(CompactionRequest::calls).unwrap_or_default();
            self.asked_by(EventReason::Manual, calls);
            self.needless(EventReason::Manual, small);
            return;
        }
        self.ask.focus = focus.map(Into::into);
        self.leave();
        // A model that asked as well is told the same.
        let calls = self.ask.request.take().map(CompactionRequest::calls).unwrap_or_default();
        self.machine.force(EventReason::Manual);
        if let Some(target) = target {
            self.machine.aim_at((target > Tokens(0)).then_some(target));
        }
        self.asked_by(EventReason::Manual, calls);
    }

    /// Keeps a text as it is in every summary from now on.
    pub fn protect(&mut self, text: impl Into<String>) {
        self.setup.protected.push(text.into());
    }

    /// Who is to write summaries from now on; nobody else's window counts.
    pub fn set_writer(&mut self, writer: Writer) {
        self.setup.writer = Some(writer);
    }

    /// Takes the last compaction back, with all of its steps. Says whether there was one. Until the
    /// context has grown by 5 per cent, or somebody asks, only a full window is compacted again.
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
        // A full window is compacted before the next request all the same.
        if self.machine.usable().is_none_or(|usable| self.tokens() <= usable) {
            self.machine.resume_held(self.tokens());
        }
        Ok(true)
    }

    /// Takes back the last step: it was of no use.
    fn take_back_step(&mut self) -> Result<()> {
        self.leave();
        self.log.append(undo(Undone::Refused).as_bytes())?;
        if let Some(steps) = &mut self.attempt.steps {
            steps.push(PreparedStep::TakeBack);
        }
        self.recount();
        Ok(())
    }

    /// Whoever took a compaction back wants what it took.
    fn hold(&mut self) {
        let Some(sent) = self.log.log().undone() else { return };
        let items = self.transcript().context.iter().take(sent);
        let then: Tokens = items.map(|&item| self.counts.item(item)).sum();
        self.machine.hold(self.setup.overhead + then);
    }

    /// What happened since this was last asked.
    pub fn events(&mut self) -> Vec<Event> {
        self.machine.events()
    }

    /// The log as it stands on disk.
    pub fn log(&self) -> &[u8] {
        self.log.bytes()
    }

    fn transcript(&self) -> &Transcript {
        self.log.log().transcript()
    }
}
