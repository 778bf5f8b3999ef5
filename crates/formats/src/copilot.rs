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
        "it is not known whether Copilot CLI resumes a log that another program has changed",
    ),
    native: None,
    summarise: None,
    invariants: &invariants::CopilotInvariants,
    make: None,
    thinking_is_bound: epitome_api::anthropic::thinking_is_bound,
    databases: &[],
    files: None,
};
