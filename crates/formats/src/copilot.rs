//! GitHub Copilot CLI: JSON lines, one event per line. Read-only.
//!
//! `docs/formats/copilot.md` describes the events, and how that was found out.

mod invariants;
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
    invariants: &invariants::CopilotInvariants,
    make: None,
    thinking_is_bound: epitome_api::anthropic::thinking_is_bound,
    databases: &[],
    files: None,
};
