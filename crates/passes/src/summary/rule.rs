//! The settings of a recipe for its summaries.

use serde::{Deserialize, Serialize};

use super::{Caps, Sections};
use crate::level::Level;

/// When a summary is made, what it contains, and in which role it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default, expecting = "a table of settings")]
pub struct SummaryRule {
    /// The size of the context, after the passes, above which a summary is made. The default is the
    /// target; without a target, a summary is made at every compaction.
    pub over: Level,
    /// Maximum tokens of the model's part.
    pub max_tokens: u64,
    /// The sections of the model's part.
    pub sections: Sections,
    /// The role in which the summary is sent.
    pub role: SummaryRole,
    /// Maximum tokens of the user's messages that are included word for word; newer ones are
    /// preferred.
    pub user_tokens: u64,
    /// A topic to which every summary pays attention.
    pub focus: Option<String>,
    /// Texts that every summary contains word for word.
    pub protected: Vec<String>,
    /// The maximum number of bytes that the model reads of each record.
    pub caps: Caps,
}

impl Default for SummaryRule {
    fn default() -> SummaryRule {
        SummaryRule {
            over: Level::default(),
            max_tokens: 8_000,
            sections: Sections::default(),
            role: SummaryRole::default(),
            user_tokens: 20_000,
            focus: None,
            protected: Vec::new(),
            caps: Caps::default(),
        }
    }
}

/// The role in which a summary is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SummaryRole {
    /// As a user message, which every API accepts.
    #[default]
    User,
    /// As a user message, followed by a confirmation of the model.
    Acknowledged,
    /// In the system prompt.
    System,
}
