//! GitHub Copilot CLI: JSON lines, one event each. Only read.
//!
//! What the events mean, and how that was found, is in `docs/formats/copilot.md`.

mod laws;
mod read;
mod tools;

use crate::{Format, Writing};

/// Copilot CLI's event logs.
pub const FORMAT: Format = Format {
    name: "copilot",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::ReadOnly(
        "Copilot CLI has not been seen to resume a log that something else wrote",
    ),
    native: None,
    summarise: None,
    laws: &laws::CopilotLaws,
    thinking_is_bound: crate::claude::thinking_is_bound,
};
