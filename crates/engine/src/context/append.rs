//! Adds messages: each entry is written to the log and counted, and its results are shortened if
//! the ingest stage of the recipe requires it.

use epitome_formats::epitome::{MessagePart, Speaker};
use epitome_model::{RecordedUsage, Role, Tokens};
use tracing::trace_span;

use super::Context;
use epitome_error::Result;

impl Context {
    /// Adds a message of the user.
    ///
    /// ```
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.user("What is in a.rs?")?;
    /// // Messages without a response between them are sent as one message.
    /// context.user("And in b.rs?")?;
    /// assert_eq!(context.report().entries, 2);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written; then nothing was added.
    pub fn user(&mut self, words: &str) -> Result<()> {
        self.push(&Speaker::default(), &[MessagePart::text(words)])
    }

    /// Adds a response of the model: its texts, reasoning and calls in order.
    ///
    /// ```
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.user("What is in a.rs?")?;
    /// let call = MessagePart::call("c1", "Read", r#"{"path":"a.rs"}"#);
    /// context.assistant(&[MessagePart::text("I read it."), call])?;
    /// assert_eq!(context.open_calls(), [("c1".into(), "Read".into())]);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written; then nothing was added.
    pub fn assistant(&mut self, parts: &[MessagePart<'_>]) -> Result<()> {
        self.push(&Speaker { role: Role::Assistant, ..Speaker::default() }, parts)
    }

    /// Adds a response of the model, with the name of the model and the tokens that its provider
    /// counted. From then on [`usage`](Context::usage) is based on these.
    ///
    /// ```
    /// use epitome_model::{RecordedUsage, Tokens};
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.user("Hello.")?;
    /// let usage = RecordedUsage { input: 15_000, output: 20, ..RecordedUsage::default() };
    /// context.response(&[MessagePart::text("Hi.")], "claude-opus-4-8", usage)?;
    /// assert_eq!(context.usage().tokens, Tokens(15_020));
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written; then nothing was added.
    pub fn response(
        &mut self,
        parts: &[MessagePart<'_>],
        model: &str,
        usage: RecordedUsage,
    ) -> Result<()> {
        let role = Role::Assistant;
        let model = Some(model);
        let usage = Some(usage);
        self.push(&Speaker { role, model, usage, ..Speaker::default() }, parts)
    }

    /// Adds results of calls. A result names the id of its call.
    ///
    /// ```
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// # context.user("What is in a.rs?")?;
    /// # context.assistant(&[MessagePart::call("c1", "Read", r#"{"path":"a.rs"}"#)])?;
    /// context.tool(&[MessagePart::failure("c1", "a.rs does not exist")])?;
    /// assert!(context.open_calls().is_empty());
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written; then nothing was added. If only the line that shortens
    /// a result cannot be written, the whole result is added, and an event reports why.
    pub fn tool(&mut self, parts: &[MessagePart<'_>]) -> Result<()> {
        self.push(&Speaker { role: Role::Tool, ..Speaker::default() }, parts)
    }

    /// Adds an entry with any role, for example the system prompt.
    ///
    /// ```
    /// use epitome_engine::Speaker;
    /// use epitome_model::Role;
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// let prompt = Speaker { role: Role::System, prompt: true, ..Speaker::default() };
    /// context.push(&prompt, &[MessagePart::text("Be brief.")])?;
    /// context.user("Hello.")?;
    /// let sent = context.view()?.body("anthropic")?.body;
    /// assert!(sent.contains(r#""system""#) && sent.contains("Be brief."));
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written; then nothing was added. If only the line that shortens
    /// a result cannot be written, the whole result is added, and an event reports why.
    pub fn push(&mut self, speaker: &Speaker<'_>, said: &[MessagePart<'_>]) -> Result<()> {
        let item = self.log_entry(speaker, said)?;
        self.take_entry(item, speaker);
        Ok(())
    }

    /// Writes an entry to the log, and returns the index of its item. The caller must pass this
    /// index to `take_entry` next.
    pub(super) fn log_entry(
        &mut self,
        speaker: &Speaker<'_>,
        parts: &[MessagePart<'_>],
    ) -> Result<usize> {
        // Consecutive entries of the model are one response, and have the same group.
        let last = self.transcript().context().next_back().map(|(_, entry)| entry);
        let before =
            last.filter(|entry| entry.role == Role::Assistant).and_then(|it| it.group.clone());
        let group = speaker.group.or(before.as_deref()).filter(|_| speaker.role == Role::Assistant);
        let role = speaker.role;
        let _span = trace_span!("live.push", ?role, blocks = parts.len()).entered();
        self.log.push(&Speaker { group, ..*speaker }, parts)
    }

    /// Updates the context for an entry that is in the log: counts the entry, and runs the ingest
    /// stage on its results.
    pub(super) fn take_entry(&mut self, item: usize, speaker: &Speaker<'_>) {
        self.count(item);
        self.learn_for_digest(item);
        if speaker.role == Role::Assistant {
            self.attempt.overflows = 0;
            self.known.answered = self.known.seen.mark();
        }
        if let Some(RecordedUsage { input, output, .. }) = speaker.usage {
            self.report_billed_tokens(Tokens(input + output));
        }
        self.truncate_on_ingest(item);
    }
}
