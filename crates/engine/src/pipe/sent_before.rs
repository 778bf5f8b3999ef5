//! Remembers what a client has sent to its model, to find out whether anything but the addition of
//! messages has changed since.

use crate::Context;

/// The items of a context that a client has sent to its model.
#[derive(Default)]
pub struct SentBefore {
    /// The indices of the sent items, in the order in which they are sent.
    sent: Vec<usize>,
    /// The number of items in the log when the items were sent. An edit adds items, too.
    items: usize,
}

impl SentBefore {
    /// The state for a client that begins or resumes a session. Such a client has sent nothing: if
    /// the log has messages, the next comparison finds a change.
    pub fn at_the_beginning(context: &Context) -> SentBefore {
        let now = SentBefore::from_context(context);
        if now.sent.is_empty() { now } else { SentBefore::default() }
    }

    pub fn from_context(context: &Context) -> SentBefore {
        let view = context.unchanged_view();
        let transcript = view.transcript();
        SentBefore { sent: transcript.context.clone(), items: transcript.items.len() }
    }

    /// Whether `self` has the items of `before`, unchanged and in the same order, followed by all
    /// items that were added to the log since.
    pub fn only_adds_to(&self, before: &SentBefore) -> bool {
        let new = self.items - before.items.min(self.items);
        self.sent.starts_with(&before.sent) && self.sent.len() == before.sent.len() + new
    }
}

#[cfg(test)]
#[path = "sent_before_tests.rs"]
mod tests;
