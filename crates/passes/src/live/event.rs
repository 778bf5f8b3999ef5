//! What happens to a context, as it is told.

use std::collections::BTreeMap;

use epitome_model::Tokens;
use serde::{Deserialize, Serialize};

use crate::summary::{AskTotals, Struck};

/// Why a context is made small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventReason {
    /// The recipe does so before every request.
    Request,
    /// Its trigger was reached.
    Trigger,
    /// Its trigger was near: it was prepared while the model answered.
    Background,
    /// The window without the reserve is full.
    Hard,
    /// Somebody asked for it.
    Manual,
    /// The model called the tool `compact`.
    Tool,
    /// The provider refused the request as too long.
    Overflow,
}

/// By how much what should have been reached was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Missed {
    /// Tokens, prompt and tools included.
    Tokens(Tokens),
    /// Characters of words as they are written, with what a wire puts around them.
    Chars(u64),
}

/// What happens to a context, in the order in which it happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Event {
    /// The window fills.
    Warning {
        /// What the next request would send.
        tokens: Tokens,
        /// Of the window without the reserve.
        percent: u64,
    },
    /// A compaction begins.
    Started {
        /// Why.
        why: EventReason,
        /// What the next request would have sent.
        tokens: Tokens,
        /// What it aims at, if it was asked for by hand.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<Tokens>,
        /// The window without the reserve, if it was asked for by hand.
        #[serde(skip_serializing_if = "Option::is_none")]
        usable: Option<Tokens>,
    },
    /// A compaction is done.
    Finished {
        /// Why it was done.
        why: EventReason,
        /// What would have been sent.
        before: Tokens,
        /// What will be, counted anew.
        after: Tokens,
        /// Edits by pass.
        by_tier: BTreeMap<String, u64>,
        /// By how much the target was missed.
        #[serde(skip_serializing_if = "Option::is_none")]
        over_target: Option<Missed>,
        /// Why there is no summary, if the window was full and a digest took its place.
        #[serde(skip_serializing_if = "Option::is_none")]
        no_summary: Option<String>,
    },
    /// A summary is written. How it changes the context follows.
    Summarised {
        /// Its tokens, as its writer counts.
        tokens: Tokens,
        /// Tokens of what it stands for, counted the same way.
        of: Tokens,
        /// What was struck out of it: the history does not hold it.
        struck: Struck,
        /// What it cost.
        spent: AskTotals,
    },
    /// Nothing was done.
    Skipped {
        /// Why it would have been.
        why: EventReason,
        /// Why it was not.
        reason: String,
        /// By how much the target is missed.
        #[serde(skip_serializing_if = "Option::is_none")]
        over_target: Option<Missed>,
    },
    /// Something went wrong. The context is as the step before left it.
    Failed {
        /// What was tried.
        why: EventReason,
        /// What went wrong.
        reason: String,
        /// By how much the target is missed.
        #[serde(skip_serializing_if = "Option::is_none")]
        over_target: Option<Missed>,
    },
    /// Nothing is made small by itself until the context has grown by 5 per cent: it saves next to
    /// nothing, it failed several times, or somebody took the last compaction back. Told again only
    /// after something was gained in between, or asked for.
    Breaker {
        /// What the next request would send.
        tokens: Tokens,
        /// Why.
        reason: String,
    },
}

impl Event {
    /// A compaction that did what its recipe says.
    pub(super) fn finished(
        why: EventReason,
        before: Tokens,
        after: Tokens,
        by_tier: BTreeMap<String, u64>,
        over_target: Option<Missed>,
    ) -> Event {
        Event::Finished { why, before, after, by_tier, over_target, no_summary: None }
    }
}
