//! What a recipe says of its summaries.

use serde::{Deserialize, Serialize};

use super::{Caps, Sections};
use crate::level::Level;

/// A summary: when it is asked for, what it is like, and as whose words it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SummaryRule {
    /// What the context has to reach, after the passes, before a summary is asked for; without it,
    /// whatever is over the target; with neither, every compaction asks.
    pub over: Level,
    /// Tokens that the model's part of it may have.
    pub max_tokens: u64,
    /// What it tells of.
    pub sections: Sections,
    /// As whose words it is sent.
    pub role: SummaryRole,
    /// Tokens of the user's words that are kept word for word, the newest first.
    pub user_tokens: u64,
    /// What every summary should look at.
    pub focus: Option<String>,
    /// Texts that stand in every summary as they are.
    pub protected: Vec<String>,
    /// How much of each record the model reads.
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

/// As whose words a summary is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SummaryRole {
    /// The user's: every wire takes them.
    #[default]
    User,
    /// The user's, and the model says that it has understood.
    Acknowledged,
    /// What the model is told before the conversation.
    System,
}
