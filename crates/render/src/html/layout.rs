//! What all parts of one page share.

use epitome_model::Source;

use super::code::Budget;
use crate::cut::Limit;
use crate::{Detail, Session, Story};

/// A page that is being written.
pub(super) struct Page<'s, 'a> {
    pub(super) story: &'s Story<'a>,
    pub(super) budget: Budget,
    /// Prefix of every anchor: each sub-agent on one page has its own.
    pub(super) prefix: String,
}

impl Page<'_, '_> {
    pub(super) fn source(&self) -> &dyn Source {
        self.story.session.source
    }

    pub(super) fn limit(&self) -> Limit {
        match self.story.session.detail {
            Detail::Full => Limit { text: 1 << 20, line: 64 << 10 },
            Detail::Steps | Detail::Calls | Detail::Conversation => {
                Limit { text: 32 << 10, line: 4 << 10 }
            }
        }
    }

    pub(super) fn session(&self) -> &Session<'_> {
        &self.story.session
    }

    /// The address of the page of a sub-agent, by the id of the call that started it.
    pub(super) fn sub_agent(&self, call: &str) -> Option<&str> {
        self.story.session.sub_agents.get(call).map(String::as_str)
    }
}
