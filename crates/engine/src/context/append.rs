//! Adding messages: each entry is written to the log, counted, and truncated before it is sent.

use epitome_formats::epitome::{Said, Speaker};
use epitome_model::{Role, Tokens, Usage};
use tracing::trace_span;

use super::Context;
use epitome_error::Result;

impl Context {
    /// Adds a message of the user.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written; then nothing was added.
    pub fn user(&mut self, words: &str) -> Result<()> {
        self.push(&Speaker::default(), &[Said::text(words)])
    }

    /// Adds a response of the model.
    ///
    /// # Errors
    ///
    /// As [`user`](Context::user).
    pub fn assistant(&mut self, said: &[Said<'_>]) -> Result<()> {
        self.push(&Speaker { role: Role::Assistant, ..Speaker::default() }, said)
    }

    /// Adds a response of the model, with the usage that the provider counted for it.
    ///
    /// # Errors
    ///
    /// As [`user`](Context::user).
    pub fn response(&mut self, said: &[Said<'_>], model: &str, usage: Usage) -> Result<()> {
        let role = Role::Assistant;
        let (model, usage) = (Some(model), Some(usage));
        self.push(&Speaker { role, model, usage, ..Speaker::default() }, said)
    }

    /// Adds results of calls.
    ///
    /// # Errors
    ///
    /// As [`user`](Context::user).
    pub fn tool(&mut self, said: &[Said<'_>]) -> Result<()> {
        self.push(&Speaker { role: Role::Tool, ..Speaker::default() }, said)
    }

    /// Adds an entry of any role.
    ///
    /// # Errors
    ///
    /// As [`user`](Context::user).
    pub fn push(&mut self, speaker: &Speaker<'_>, said: &[Said<'_>]) -> Result<()> {
        let item = self.log_entry(speaker, said)?;
        self.take_entry(item, speaker)
    }

    /// Writes an entry to the log and returns its item. The caller must then pass it to
    /// `take_entry`.
    pub(super) fn log_entry(&mut self, speaker: &Speaker<'_>, said: &[Said<'_>]) -> Result<usize> {
        // Consecutive entries of the model are one response, and share a group.
        let last = self.transcript().context().next_back().map(|(_, entry)| entry);
        let before =
            last.filter(|entry| entry.role == Role::Assistant).and_then(|it| it.group.clone());
        let group = speaker.group.or(before.as_deref()).filter(|_| speaker.role == Role::Assistant);
        let role = speaker.role;
        let _span = trace_span!("live.push", ?role, blocks = said.len()).entered();
        self.log.push(&Speaker { group, ..*speaker }, said)
    }

    /// Counts an entry that is in the log, and truncates it before it is sent.
    pub(super) fn take_entry(&mut self, item: usize, speaker: &Speaker<'_>) -> Result<()> {
        self.count(item);
        self.learn_for_digest(item);
        if speaker.role == Role::Assistant {
            self.attempt.overflows = 0;
            self.known.answered = self.known.seen.mark();
        }
        if let Some(Usage { input, output, .. }) = speaker.usage {
            self.billed(Tokens(input + output));
        }
        self.truncate_on_ingest(item)
    }
}
