//! Sizes of a context: when a compaction starts ([`Level`]) and how far it goes ([`Target`]).

use serde::{Deserialize, Serialize};

/// A size of a context. It is reached when any of its members is reached; without members it never
/// is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Level {
    /// Tokens, prompt and tools included.
    pub tokens: Option<u64>,
    /// Per cent of the window without the reserve.
    pub percent: Option<u64>,
    /// Bytes of text, as they are sent.
    pub bytes: Option<u64>,
    /// Characters of text as written, with what the API's JSON adds around each text.
    pub chars: Option<u64>,
    /// Results.
    pub results: Option<u64>,
    /// Turns of the user.
    pub turns: Option<u64>,
    /// Messages.
    pub messages: Option<u64>,
}

/// What a compaction should come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Tokens, prompt and tools included.
    Tokens(u64),
    /// Per cent of the window without the reserve.
    Percent(u64),
    /// Characters of text as written, with what the API's JSON adds around each text.
    Chars(u64),
}
