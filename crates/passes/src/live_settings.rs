//! The settings of a recipe that apply only to live contexts.

use epitome_model::Tokens;
use serde::{Deserialize, Serialize};

/// The settings that apply only to live contexts: when the stages run, the reserve of the window,
/// and the tool with which the model requests a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default, expecting = "a table of settings")]
pub struct Live {
    /// When the stages run.
    pub when: StageTiming,
    /// The reserve: tokens of the window that are kept free for the response.
    pub reserve: u64,
    /// The user is warned when the context has at least this many per cent of the window without
    /// the reserve.
    pub warn: u64,
    /// Whether a compaction is prepared in the background before it is due.
    pub background: bool,
    /// Whether a compaction also starts below the trigger, as soon as it is worth its price: the
    /// tokens that it saves until the context has grown back must be worth more than twice what
    /// writing the provider's cache again costs. This needs a target in tokens.
    pub priced: bool,
    /// The tool with which the model requests a compaction.
    pub tool: ToolRule,
}

impl Live {
    /// The maximum tokens of a request in this window: the window without the reserve.
    pub fn usable(&self, window: Tokens) -> Tokens {
        // Of a small window, at most half is reserved.
        window - Tokens(self.reserve.min(window.0 / 2))
    }
}

impl Default for Live {
    fn default() -> Live {
        Live {
            when: StageTiming::Trigger,
            reserve: 16_000,
            warn: 70,
            background: false,
            priced: false,
            tool: ToolRule::default(),
        }
    }
}

/// The rule of the tool `compact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default, expecting = "a table with `min_tokens`")]
pub struct ToolRule {
    /// The tool does nothing if the messages, without prompt and tools, have fewer tokens than
    /// this.
    pub min_tokens: u64,
}

impl Default for ToolRule {
    fn default() -> ToolRule {
        ToolRule { min_tokens: 10_000 }
    }
}

/// When the stages of a recipe run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StageTiming {
    /// When the trigger is reached, when the window is full, when a compaction is worth its price
    /// (`priced`), and when one is requested.
    #[default]
    Trigger,
    /// Before every request. The provider's prompt cache is then invalid from the first changed
    /// message on.
    Request,
    /// Only when a compaction is requested, or after the provider refused a request as too long.
    Asked,
}
