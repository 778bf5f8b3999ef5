//! Data that all parts of a page share.

use std::ops::Range;

use epitome_model::Source;

use super::code::Budget;
use super::name::PageName;
use crate::shorten::Limit;
use crate::spent::{Request, requests};
use crate::{Detail, Story, StorySession};

/// How a session is divided into pages, and data that each page needs.
pub(super) struct Layout<'a> {
    pub(super) story: &'a Story<'a>,
    pub(super) name: PageName,
    /// For each page, the range of the story's pieces (displayed elements) on that page.
    pub(super) pages: Vec<Range<usize>>,
    /// The usage of each request, in the order of the items.
    pub(super) requests: Vec<Request<'a>>,
    /// The indices of the pieces that are failed calls, or failed results without a call.
    pub(super) failed: Vec<usize>,
}

impl<'a> Layout<'a> {
    pub(super) fn new(
        story: &'a Story<'a>,
        name: PageName,
        pages: Vec<Range<usize>>,
    ) -> Layout<'a> {
        let requests = requests(story.session.transcript);
        let failed = story.failed();
        Layout { story, name, pages, requests, failed }
    }

    /// The address of a piece, relative to the page `from`.
    pub(super) fn address(&self, piece: usize, from: usize) -> String {
        let page = self.pages.iter().position(|pieces| pieces.contains(&piece)).unwrap_or(from);
        let file = if page == from { String::new() } else { self.name.file(page) };
        format!("{file}#{}", self.story.pieces[piece].anchor())
    }
}

/// A page that is being written.
pub(super) struct Page<'s, 'a> {
    pub(super) layout: &'s Layout<'a>,
    /// The number of the page, from 0.
    pub(super) number: usize,
    pub(super) story: &'s Story<'a>,
    pub(super) budget: Budget,
    /// Prefix of every anchor: each sub-agent on a page has its own prefix.
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

    pub(super) fn session(&self) -> &StorySession<'_> {
        &self.story.session
    }

    /// The address of a piece of this session, relative to this page.
    pub(super) fn address(&self, piece: usize) -> String {
        let address = self.layout.address(piece, self.number);
        match address.strip_prefix('#') {
            Some(anchor) => format!("#{}{anchor}", self.prefix),
            None => address,
        }
    }

    /// The address of the page of a sub-agent, by the id of the call that started it.
    pub(super) fn sub_agent(&self, call: &str) -> Option<&str> {
        self.story.session.sub_agents.get(call).map(String::as_str)
    }
}
