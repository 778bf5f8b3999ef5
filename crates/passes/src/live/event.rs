//! Events of a live context, which the caller reads.
//!
//! The reserve of a window is the number of tokens that the recipe keeps free for the reply
//! (`live.reserve`).

use std::collections::BTreeMap;

use epitome_model::Tokens;
use serde::{Deserialize, Serialize};

use crate::summary::{AskTotals, StruckCounts};

/// Why a context is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventReason {
    /// The recipe runs its passes before every request.
    Request,
    /// The trigger of the recipe was reached, or a compaction became worth its price.
    Trigger,
    /// The context came near the trigger, and the compaction was prepared in the background.
    Background,
    /// The context has more tokens than fit into the model's window, less the reserve: the tokens
    /// that the recipe keeps free for the reply (`live.reserve`).
    Hard,
    /// The user or the program requested the compaction.
    Manual,
    /// The model called the tool `compact`.
    Tool,
    /// The provider refused the request as too long.
    Overflow,
}

/// By how much the target was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetExcess {
    /// Tokens above the target. The tokens of the prompt and the tools are included.
    Tokens(Tokens),
    /// Characters above the target: of the texts as JSON strings (with quotes and escapes), plus an
    /// estimate of the JSON around each.
    Chars(u64),
}

/// An event of a context. Events are reported in the order in which they happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Event {
    /// The context has reached the warning level of the recipe.
    Warning {
        /// Tokens of the next request.
        tokens: Tokens,
        /// `tokens` in per cent of the window without the reserve.
        percent: u64,
    },
    /// A compaction begins.
    Started {
        /// Why the compaction begins.
        why: EventReason,
        /// Tokens of the next request before the compaction.
        tokens: Tokens,
        /// The target of a compaction that the user, the program or the model requested. `None` if
        /// the compaction was not requested, or has no target.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<Tokens>,
        /// For a requested compaction: the window without the reserve, if it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        usable: Option<Tokens>,
    },
    /// A step of a compaction is done: a middle cut, the passes (with the digest, if the recipe has
    /// one), a summary, or a digest that was made because nothing else was enough or allowed.
    Finished {
        /// Why the compaction was started.
        why: EventReason,
        /// Tokens of the next request before the step.
        before: Tokens,
        /// Tokens of the next request after the step, counted again.
        after: Tokens,
        /// Number of edits by pass or stage; for a middle cut, the number of removed messages.
        #[serde(rename = "by_tier")]
        by_stage: BTreeMap<String, u64>,
        /// By how much the target is missed; `None` if it is reached or was not checked.
        #[serde(skip_serializing_if = "Option::is_none")]
        over_target: Option<TargetExcess>,
        /// Why there is no summary, if the window was full and a digest was used instead.
        #[serde(skip_serializing_if = "Option::is_none")]
        no_summary: Option<String>,
    },
    /// A summary was put into the context. An event of the kind `Finished` follows.
    Summarised {
        /// Tokens of the summary, as counted by the writer's tokenizer.
        tokens: Tokens,
        /// Tokens of what the summary replaces, by the same tokenizer.
        of: Tokens,
        /// How many quotes and file names were removed from the summary because the history does
        /// not contain them.
        struck: StruckCounts,
        /// The number of questions that were asked for the summary, and their billed tokens.
        spent: AskTotals,
    },
    /// Something that was due was not done: a compaction, a middle cut, a summary, or the
    /// truncation of a result.
    Skipped {
        /// Why it was due.
        why: EventReason,
        /// Why it was not done.
        reason: String,
        /// By how much the target is missed; `None` if it is reached or was not checked.
        #[serde(skip_serializing_if = "Option::is_none")]
        over_target: Option<TargetExcess>,
    },
    /// A step failed and changed nothing, or the context is still too large after the last step.
    Failed {
        /// Why the compaction was started.
        why: EventReason,
        /// The error.
        reason: String,
        /// By how much the target is missed; `None` if it is reached or was not checked.
        #[serde(skip_serializing_if = "Option::is_none")]
        over_target: Option<TargetExcess>,
    },
    /// The circuit breaker opened, because compactions saved too little or failed several times; or
    /// a compaction was undone. No automatic compaction begins until the context has grown by 5 per
    /// cent, except in a full window. An open breaker is not reported again until it has closed:
    /// after a compaction that saved enough, or after a requested one.
    Breaker {
        /// Tokens of the next request.
        tokens: Tokens,
        /// Why the breaker opened.
        reason: String,
    },
}

impl Event {
    /// The event of a step in which no digest took the place of a summary.
    pub(super) fn finished(
        why: EventReason,
        before: Tokens,
        after: Tokens,
        by_stage: BTreeMap<String, u64>,
        over_target: Option<TargetExcess>,
    ) -> Event {
        Event::Finished { why, before, after, by_stage, over_target, no_summary: None }
    }
}
