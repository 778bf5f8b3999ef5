//! What a recipe has for contexts in use alone.

use epitome_model::Tokens;
use serde::{Deserialize, Serialize};

/// What only a context in use has: when the stages run, how much of the window is left free, and
/// the model's own tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Live {
    /// When the stages run.
    pub when: When,
    /// Tokens of the window that are kept for the reply.
    pub reserve: u64,
    /// Per cent of the window at which the user is warned.
    pub warn: u64,
    /// Whether a compaction is prepared while the model answers, before it is due.
    pub background: bool,
    /// The tool with which a model asks for a compaction.
    pub tool: ToolRule,
}

impl Live {
    /// The tokens that a request may have in this window.
    pub fn usable(&self, window: Tokens) -> Tokens {
        // A reserve that takes more than half of a small window would leave no room for anything.
        window - Tokens(self.reserve.min(window.0 / 2))
    }
}

impl Default for Live {
    fn default() -> Live {
        Live {
            when: When::Trigger,
            reserve: 16_000,
            warn: 70,
            background: false,
            tool: ToolRule::default(),
        }
    }
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

/// When the stages of a recipe run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// When the trigger is reached. In between the context only grows.
    #[default]
    Trigger,
    /// Before every request. What a provider has cached is worth nothing behind the first change.
    Request,
    /// When a person or a program asks for it, or the provider refused the request.
    Asked,
}
