//! The context of an agent that is running: messages go in, and what to send to the model comes
//! out.
//!
//! All messages are kept in an append-only log. Compactions are lines of the log as well. What is
//! sent is the log with the edits of all compactions that are in effect. See `docs/library.md`.
//!
//! The line of a compaction holds the edited versions of entries, or the text of a summary, a
//! digest or a cut. In the transcript of the log these are new items, after all earlier items. An
//! edited version has the id of its original. The original stays in the list of items, but the
//! context contains the new item instead.
//!
//! [`Machine`] decides what is done next, and does nothing itself: [`Context::step`] asks the
//! machine, does what the machine says (in `run`, `fallback` and `question`), and reports the
//! result to the machine. A compaction may take several steps, for example passes and then a
//! summary. Each step that changes the context is a line of the log. [`Context::undo`] takes all
//! steps of a compaction back together.

mod api_json;
mod append;
mod apply;
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

use std::collections::BTreeMap;
use std::fmt;

use epitome_api::SummaryAs;
use epitome_error::Result;
use epitome_formats::epitome::{UndoReason, undo};
use epitome_model::{Tokens, Transcript};
use epitome_passes::{
    AskTotals, Event, EventReason, FactIndex, Machine, NextStep, NoReply, Reply, SeenLines,
    SeenMark, SummaryRole, Writer,
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

pub use api_json::{Outgoing, ResponseCall};
pub use contents::{Content, ContentShare};
pub use epitome_formats::epitome::{MessagePart, Origin, Speaker};
pub use list::ListChange;
pub use overflow::Recovery;
pub use prepare::Preparation;
pub use question::Question;
pub use recall::{Hit, RECALL, RecallResult};
pub use setup::{SavingsReport, Setup, WindowUse};
pub use tool::{NotDone, Outcome, compact_tool};

/// The context of an agent that is running: every message so far, and what of it is sent to the
/// model.
///
/// Add the messages of the conversation, and call [`view`](Context::view) before each request: it
/// runs those stages of the recipe that are due, and returns what to send. A model that writes
/// summaries is called by the caller, between [`step`](Context::step) and
/// [`answer`](Context::answer).
///
/// ```
/// use epitome_engine::{Context, MessagePart, Setup};
/// use epitome_passes::built_in;
///
/// let mut context = Context::in_memory(Setup::new(built_in("s06").expect("a built-in recipe")));
/// context.user("What is in a.rs?")?;
/// context.assistant(&[MessagePart::call("c1", "Read", r#"{"path":"a.rs"}"#)])?;
/// context.tool(&[MessagePart::output("c1", "fn main() {}")])?;
/// assert_eq!(context.view()?.transcript().context().count(), 3);
/// # Ok::<(), epitome_error::Error>(())
/// ```
pub struct Context {
    log: ContextLog,
    setup: Setup,
    machine: Machine,
    /// Tokens as epitome counts them.
    counts: Counts,
    /// Tokens as the provider counted them.
    bill: Bill,
    known: Knowledge,
    ask: Summarising,
    attempt: Attempt,
}

/// What is known about the messages so far, so that they need not be read again.
#[derive(Clone, Default)]
struct Knowledge {
    /// The lines of the results in the context, if the recipe has an ingest stage. That stage can
    /// leave such lines out of a new result, because they would be repetitions.
    seen: SeenLines,
    /// The state of `seen` at the last response of the model.
    answered: SeenMark,
    calls: Calls,
    /// Hashes of the messages that a client passed, by which they are recognised when it passes
    /// them again.
    bytes: KnownBytes,
    /// The facts in the log, indexed for digests.
    index: FactIndex,
    /// The calls that the digest in the context names, by number, each with its name in the digest.
    /// `None` if the context has no digest.
    digest: Option<BTreeMap<u64, String>>,
}

impl Knowledge {
    /// Reads all calls of the log again, and empties the index for digests. Needed when a context
    /// is made, after lines were removed from its log, and after messages left the conversation.
    fn reread(&mut self, log: &ContextLog) {
        let mut calls = Calls::default();
        for (item, entry) in log.parsed().transcript().entries() {
            calls.number_calls(item, entry, log.bytes());
        }
        self.calls = calls;
        self.index = FactIndex::default();
    }
}

/// The state of a requested compaction, and of the summary that is being written, which may also
/// belong to an automatic compaction.
#[derive(Default)]
struct Summarising {
    /// A summary that is being written.
    pending: Option<Pending>,
    /// What the digest or the summary of the requested compaction should pay attention to, if the
    /// request says it.
    focus: Option<String>,
    /// The number of questions and the billed tokens of all summaries so far, except the pending
    /// one.
    spent: AskTotals,
    /// The compaction that was requested and is not done: by the user, the model or a program, or,
    /// in a copy of the context, because it is prepared in the background.
    request: Option<CompactionRequest>,
    /// The outcome of the last requested compaction. `None` if that compaction is not done yet, or
    /// if none was requested.
    outcome: Option<Outcome>,
}

/// The state of the current attempt to make the context smaller, and facts about earlier requests.
#[derive(Clone, Default)]
struct Attempt {
    /// The number of items in the log when the context was last ready to be sent, or was resumed:
    /// these items may have been sent.
    sent: usize,
    /// Whether a step of this attempt was written to the log. An undo takes back all steps of an
    /// attempt.
    has_begun: bool,
    /// Number of requests that the provider refused as too long since the last response.
    overflows: u32,
    /// Whether a middle cut was refused. No other cut is tried then.
    is_cut_refused: bool,
    /// The steps so far, if this is a copy on which a compaction is prepared.
    steps: Option<Vec<PreparedStep>>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("recipe", &self.setup.recipe.name).finish_non_exhaustive()
    }
}

/// What the caller does before a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send the request: [`Context::view`] or [`Context::unchanged_view`] returns its content.
    Send,
    /// Ask a model this question, and pass the reply of the model, or the reason why there is none,
    /// to [`Context::answer`]. Then call [`Context::step`] again: a long history takes several
    /// questions.
    Ask(Question),
}

impl Context {
    /// A context whose log is only in memory.
    ///
    /// ```
    /// use epitome_engine::{Context, Setup};
    /// use epitome_passes::built_in;
    ///
    /// let recipe = built_in("epitome").expect("a recipe");
    /// let mut context = Context::in_memory(Setup::new(recipe));
    /// // An empty context: there is nothing to send, to compact or to undo.
    /// assert_eq!(context.view()?.body("anthropic")?.body, "");
    /// assert!(context.compact(None)?.by_stage.is_empty());
    /// assert!(!context.undo()?);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn in_memory(setup: Setup) -> Context {
        let log = ContextLog::in_memory(&setup.id, &setup.origin);
        Context::from_log(setup, log)
    }

    /// A context whose log is kept in `journal`, which must be empty: the first line is written
    /// now. See [`Journal`] for an example.
    ///
    /// # Errors
    ///
    /// The errors of the journal.
    pub fn create(journal: Box<dyn Journal>, setup: Setup) -> Result<Context> {
        let log = ContextLog::create(journal, &setup.id, &setup.origin)?;
        Ok(Context::from_log(setup, log))
    }

    /// Resumes the context of an existing log. `bytes` are the whole content of the journal, and
    /// later lines are appended to `journal`. See [`Journal`] for an example.
    ///
    /// ```
    /// use epitome_engine::{Context, Journal, Setup};
    /// use epitome_passes::built_in;
    ///
    /// # struct Lines;
    /// # impl Journal for Lines {
    /// #     fn append(&mut self, _: &[u8]) -> epitome_error::Result<()> {
    /// #         Ok(())
    /// #     }
    /// #     fn flush(&self) -> epitome_error::Result<()> {
    /// #         Ok(())
    /// #     }
    /// # }
    /// let setup = || Setup::new(built_in("epitome").expect("a recipe"));
    /// let mut context = Context::in_memory(setup());
    /// context.user("Hello.")?;
    /// let mut bytes = context.log().to_vec();
    /// // A program that is killed may leave an incomplete last line, which is ignored.
    /// bytes.extend(br#"{"type":"ent"#);
    /// let mut resumed = Context::resume(bytes, Box::new(Lines), setup())?;
    /// assert_eq!(resumed.view()?.messages(), context.view()?.messages());
    /// assert!(Context::resume(b"no log".to_vec(), Box::new(Lines), setup()).is_err());
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `UnknownFormat` if `bytes` is not a log, `NewerFormat` if a newer version of epitome wrote
    /// it, and the error of the journal if the last line is incomplete and the line feed that ends
    /// it cannot be written.
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
        let transcript = context.log.parsed().transcript();
        let source = context.log.bytes();
        context.counts.count_all(transcript, source, &*context.setup.counter);
        context.recount();
        context.hold_after_undo();
        context
    }

    /// What to send in the next request. If a compaction is due, it is made first, but without a
    /// summary by a model: for that, a caller uses [`view_with`](Context::view_with), or calls
    /// [`step`](Context::step) before this.
    ///
    /// ```
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.user("What is in a.rs?")?;
    /// context.assistant(&[MessagePart::call("c1", "Read", r#"{"path":"a.rs"}"#)])?;
    /// context.tool(&[MessagePart::output("c1", "fn main() {}")])?;
    /// let sent = context.view()?.body("anthropic")?.body;
    /// assert!(sent.starts_with(r#"{"messages":[{"role":"user""#));
    /// // Without new messages, the view is the same to the byte.
    /// assert_eq!(context.view()?.body("anthropic")?.body, sent);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn view(&mut self) -> Result<Outgoing<'_>> {
        self.view_with(|_| Err(NoReply::NoModel))
    }

    /// What to send in the next request. Like [`view`](Context::view), except that a model writes
    /// summaries: `write` is called for each question, and returns the model's answer or the reason
    /// why there is none. If there is no summary in the end, and the context has more tokens than
    /// the window without the part that is reserved for the response, a digest replaces the old
    /// part of the context.
    ///
    /// ```
    /// use epitome_engine::{Context, MessagePart, Setup};
    /// use epitome_model::Tokens;
    /// use epitome_passes::{NoReply, Recipe, Reply, StopReason};
    ///
    /// # let text = r#"
    /// #     name = "mine"
    /// #     about = "Summarises."
    /// #     keep = { messages = 1 }
    /// #     stages = { summary = { sections = ["Done"], user_tokens = 20 } }
    /// # "#;
    /// let mut context = Context::in_memory(Setup::new(Recipe::parse(text).expect("a recipe")));
    /// context.user(&"Count the lines of all files, please. ".repeat(200))?;
    /// context.assistant(&[MessagePart::text("There are 12.")])?;
    /// context.user("And the words?")?;
    /// context.ask_for_compaction(None, Some(Tokens(0)));
    /// let text = "## Done\nThe lines were counted.".to_owned();
    /// let reply = Reply { text, stopped: StopReason::End, used: None };
    /// let sent = context.view_with(|_| Ok(reply.clone()))?.messages();
    /// assert!(sent.contains("The lines were counted."));
    /// // No answer is no error.
    /// context.view_with(|_| Err(NoReply::Failed("the model is down".into())))?;
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written. A missing answer is not an error.
    pub fn view_with(
        &mut self,
        mut write: impl FnMut(&Question) -> std::result::Result<Reply, NoReply>,
    ) -> Result<Outgoing<'_>> {
        while let Next::Ask(question) = self.step()? {
            self.answer(write(&question))?;
        }
        Ok(self.unchanged_view())
    }

    /// What to send in the next request, without making a compaction that may be due.
    ///
    /// ```
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.user("Hello.")?;
    /// assert!(context.unchanged_view().messages().contains("Hello."));
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn unchanged_view(&self) -> Outgoing<'_> {
        let rule = self.setup.recipe.stages.live.summary.as_ref();
        let summary = match rule.map_or(SummaryRole::User, |rule| rule.role) {
            SummaryRole::User => SummaryAs::User,
            SummaryRole::Acknowledged => SummaryAs::Acknowledged,
            // A digest is a user message. If it is the only message, no other role is possible. It
            // keeps this role when messages follow, so that the request still begins with the same
            // bytes and the prompt cache stays valid.
            SummaryRole::System if self.known.digest.is_some() => SummaryAs::User,
            SummaryRole::System => SummaryAs::System,
        };
        Outgoing::new(self.transcript(), self.log.bytes(), summary)
    }

    /// Makes a compaction if one is due, and returns what the caller does next: send the request,
    /// or ask a model a question for a summary.
    ///
    /// ```
    /// use epitome_engine::Next;
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.user("Hello.")?;
    /// assert_eq!(context.step()?, Next::Send);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn step(&mut self) -> Result<Next> {
        let _span = trace_span!("live.step", tokens = self.tokens().0).entered();
        self.notice_tool_calls()?;
        self.before_request()?;
        loop {
            if let Some(pending) = &self.ask.pending {
                return Ok(Next::Ask(pending.question()));
            }
            let gauge = self.gauge();
            match self.machine.step(&gauge) {
                NextStep::Send => {
                    self.report_outcome()?;
                    // The model may have called the tool `compact` while another compaction was
                    // under way. Such a call is handled now.
                    self.notice_tool_calls()?;
                    if self.ask.request.is_some() {
                        continue;
                    }
                    self.attempt.sent = self.transcript().items.len();
                    // `run` resets this, too, but a compaction can also begin with a digest,
                    // without `run`.
                    self.attempt.has_begun = false;
                    return Ok(Next::Send);
                }
                NextStep::Run(why) => self.run(why)?,
                NextStep::Digest(why) => self.fall_back(why)?,
                NextStep::Ask(why) => match self.begin(why) {
                    Ok(pending) => self.ask.pending = Some(pending),
                    // This is no failure: there is nothing to summarise.
                    Err(reason) if reason == ALL_KEPT => {
                        self.machine.report_no_summary(why, &gauge, reason);
                    }
                    Err(reason) => {
                        self.ask.request.iter_mut().for_each(|asked| asked.did_not(&reason));
                        self.machine.report_summary(why, gauge.tokens, &gauge, Err(reason));
                    }
                },
            }
        }
    }

    /// Compacts the context now, without a summary by a model: for that, see
    /// [`ask_for_compaction`](Context::ask_for_compaction). The target is half of the recipe's
    /// target, and at most a quarter of the window without the tokens that the recipe reserves for
    /// the response. If the recipe has no target, the passes remove all that they can. The context
    /// is not changed if its messages have fewer tokens than both the recipe's
    /// `live.tool.min_tokens` and the target. `focus` is what a digest should pay attention to.
    ///
    /// ```
    /// use epitome_engine::NotDone;
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.user("Hello.")?;
    /// let outcome = context.compact(None)?;
    /// // The context is small: nothing needs to be done.
    /// assert!(matches!(outcome.not_done, Some(NotDone::Small { .. })));
    /// assert_eq!(outcome.before, outcome.after);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn compact(&mut self, focus: Option<&str>) -> Result<Outcome> {
        self.compact_to(focus, None)
    }

    /// Like [`compact`](Context::compact), with a target in tokens, prompt and tools included:
    /// stops as soon as the context is within `target`. A target applies to small contexts as well.
    /// With the target 0, the passes remove all that they can.
    ///
    /// ```
    /// # use epitome_model::Tokens;
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
    /// let outcome = context.compact_to(None, Some(Tokens(0)))?;
    /// assert!(outcome.after < outcome.before);
    /// // A compacted context has nothing left to remove.
    /// let again = context.compact_to(None, Some(Tokens(0)))?;
    /// assert_eq!((again.before, again.after), (outcome.after, outcome.after));
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn compact_to(&mut self, focus: Option<&str>, target: Option<Tokens>) -> Result<Outcome> {
        self.ask_for_compaction(focus, target);
        self.view()?;
        Ok(self.ask.outcome.clone().expect("what was asked for is done before a view"))
    }

    /// Requests a compaction with a target, as [`compact_to`](Context::compact_to) does, but does
    /// not make it yet: the next [`step`](Context::step) begins it. For a caller with a model that
    /// writes summaries.
    ///
    /// ```
    /// # use epitome_model::Tokens;
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
    /// let before = context.usage().tokens;
    /// context.ask_for_compaction(Some("the parser"), Some(Tokens(0)));
    /// context.step()?;
    /// assert!(context.usage().tokens < before);
    /// assert!(context.outcome().is_some());
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn ask_for_compaction(&mut self, focus: Option<&str>, target: Option<Tokens>) {
        // Without a target, a small context is left as it is, unless a requested compaction is
        // under way already.
        let is_new = self.ask.request.as_ref().is_none_or(CompactionRequest::is_needless);
        if let (None, true, Some(small)) = (target, is_new, self.small()) {
            let calls = self.ask.request.take().map(CompactionRequest::calls).unwrap_or_default();
            self.asked_by(EventReason::Manual, calls);
            self.needless(EventReason::Manual, small);
            return;
        }
        self.ask.focus = focus.map(Into::into);
        self.drop_question();
        // If the model has called the tool `compact`, the results of these calls report the outcome
        // of this compaction.
        let calls = self.ask.request.take().map(CompactionRequest::calls).unwrap_or_default();
        self.machine.force(EventReason::Manual);
        if let Some(target) = target {
            self.machine.aim_at((target > Tokens(0)).then_some(target));
        }
        self.asked_by(EventReason::Manual, calls);
    }

    /// Adds a text that every later summary contains word for word.
    ///
    /// ```
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.protect("The deadline is Friday.");
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn protect(&mut self, text: impl Into<String>) {
        self.setup.protected.push(text.into());
    }

    /// Sets the model that writes summaries. The length of questions depends on the window of this
    /// model, and not on the window of the conversation's model.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use epitome_model::Tokens;
    /// # use epitome_passes::Writer;
    /// # use epitome_tokens::O200k;
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// let counter = Arc::new(O200k::new());
    /// context.set_writer(Writer { window: Tokens(32_000), counter });
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn set_writer(&mut self, writer: Writer) {
        self.setup.writer = Some(writer);
    }

    /// Takes the last compaction back, with all its steps. Returns whether there was one. From then
    /// on the context is compacted only if the window is full. This ends when the context has grown
    /// by 5 per cent, or when a compaction is requested.
    ///
    /// ```
    /// # use epitome_model::Tokens;
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
    /// let whole = context.view()?.messages();
    /// context.compact_to(None, Some(Tokens(0)))?;
    /// assert!(context.undo()?);
    /// assert_eq!(context.view()?.messages(), whole);
    /// assert!(!context.undo()?, "there is no other compaction");
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn undo(&mut self) -> Result<bool> {
        if self.log.parsed().compactions() == 0 {
            return Ok(false);
        }
        self.drop_question();
        let from = self.log.bytes().len();
        self.log.gather();
        let mut steps = (0..self.log.parsed().steps()).map(|_| undo(UndoReason::UserRequest));
        let undone = steps.try_for_each(|line| self.log.append(line.as_bytes()));
        if let Err(err) = undone.and_then(|()| self.log.write_gathered()) {
            self.log.forget(from);
            return Err(err);
        }
        self.recount();
        self.hold_after_undo();
        // Even after an undo, a full window is compacted before the next request. Then nothing is
        // suspended.
        if self.machine.usable().is_none_or(|usable| self.tokens() <= usable) {
            self.machine.report_suspended(self.tokens());
        }
        Ok(true)
    }

    /// Takes back the last step of the attempt.
    fn take_back_step(&mut self) -> Result<()> {
        self.drop_question();
        self.log.append(undo(UndoReason::NoGain).as_bytes())?;
        if let Some(steps) = &mut self.attempt.steps {
            steps.push(PreparedStep::TakeBack);
        }
        self.recount();
        Ok(())
    }

    /// After an undo, keeps the context from being compacted again at once.
    fn hold_after_undo(&mut self) {
        let Some(sent) = self.log.parsed().entries_at_undo() else { return };
        let items = self.transcript().context.iter().take(sent);
        let then: Tokens = items.map(|&item| self.counts.item(item)).sum();
        self.machine.suspend_after_undo(self.setup.overhead + then);
    }

    /// Returns the events since the last call, and removes them.
    ///
    /// ```
    /// use epitome_passes::Event;
    /// # use epitome_model::Tokens;
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
    /// context.compact_to(None, Some(Tokens(0)))?;
    /// let events = context.events();
    /// assert!(matches!(events[..], [Event::Started { .. }, Event::Finished { .. }]));
    /// assert!(context.events().is_empty());
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn events(&mut self) -> Vec<Event> {
        self.machine.events()
    }

    /// All bytes of the log. If there is a journal, its content is the same.
    pub fn log(&self) -> &[u8] {
        self.log.bytes()
    }

    fn transcript(&self) -> &Transcript {
        self.log.parsed().transcript()
    }
}
