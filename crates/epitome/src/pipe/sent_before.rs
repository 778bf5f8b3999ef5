//! What a client has sent, and whether more has happened than that messages were added.

use crate::live::Context;

/// The items of a context that were sent.
#[derive(Default)]
pub struct SentBefore {
    /// The items that are sent, in order.
    sent: Vec<usize>,
    /// The number of items in the log. An edit adds some.
    items: usize,
}

impl SentBefore {
    /// What a client has sent that begins or resumes a session: nothing, so that the messages of a
    /// log that is resumed count as changed.
    pub fn at_the_beginning(context: &Context) -> SentBefore {
        let now = SentBefore::from_context(context);
        if now.sent.is_empty() { now } else { SentBefore::default() }
    }

    pub fn from_context(context: &Context) -> SentBefore {
        let view = context.unchanged_view();
        let transcript = view.transcript();
        SentBefore { sent: transcript.context.clone(), items: transcript.items.len() }
    }

    /// Whether this is what was sent before, followed by what was said since, as it was said.
    pub fn only_adds_to(&self, before: &SentBefore) -> bool {
        let new = self.items - before.items.min(self.items);
        self.sent.starts_with(&before.sent) && self.sent.len() == before.sent.len() + new
    }
}

#[cfg(test)]
#[path = "sent_before_tests.rs"]
mod tests;
