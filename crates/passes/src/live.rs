//! A context while it is in use: when it is made small, in which steps, and what is told of it.

mod event;
mod machine;

use serde::{Deserialize, Serialize};

use crate::birth::Birth;
use crate::level::{Level, Target};
use crate::settings::PassSettings;
use crate::snip::Snip;
use crate::summary::SummaryRule;

pub use event::{Event, Missed, Why};
pub use machine::{Gauge, Machine, Step};

/// How a recipe runs in a context that is in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Live {
    /// When the passes run.
    pub when: When,
    /// What starts a compaction: any of these. Without one, 80 per cent of the window.
    pub trigger: Level,
    /// What it should come to. Without one, the passes do all that they can.
    pub target: Option<Target>,
    /// Tokens of the window that are kept for the reply.
    pub reserve: u64,
    /// Per cent of the window at which the user is warned.
    pub warn: u64,
    /// The passes, where they are others than for a stored session.
    pub passes: Option<Vec<PassSettings>>,
    /// What is done to a result before it is first sent.
    pub birth: Option<Birth>,
    /// What is cut out of the middle when there are too many messages.
    pub snip: Option<Snip>,
    /// The summary that follows when the passes are not enough.
    pub summary: Option<SummaryRule>,
    /// The tool with which a model asks for a compaction.
    pub tool: ToolRule,
}

/// When the tool `compact` does anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolRule {
    /// Tokens of the context, without prompt and tools, below which it does not.
    pub min_tokens: u64,
}

impl Default for ToolRule {
    fn default() -> ToolRule {
        ToolRule { min_tokens: 10_000 }
    }
}

impl Default for Live {
    fn default() -> Live {
        Live {
            when: When::Trigger,
            trigger: Level::default(),
            target: None,
            reserve: 16_000,
            warn: 70,
            passes: None,
            birth: None,
            snip: None,
            summary: None,
            tool: ToolRule::default(),
        }
    }
}

/// When the passes of a recipe run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// When the trigger is reached. In between the context only grows.
    #[default]
    Trigger,
    /// Before every request. What a provider has cached is worth nothing behind the first change.
    Request,
    /// When somebody asks for it, or the provider refused the request, and not before.
    Asked,
}
