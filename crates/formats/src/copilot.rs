//! GitHub Copilot CLI: JSON lines, one event per line. Read-only.
//!
//! `docs/formats/copilot.md` describes the events, and how that was found out.

mod read;
mod tools;

use crate::Format;

/// Copilot CLI's event logs.
///
/// A call that the user interrupted has no result in the log, and none in the requests, which
/// Copilot makes from the log.
pub const FORMAT: Format = Format::read_only(
    "copilot",
    read::sniff,
    read::read,
    "it is not known whether Copilot CLI resumes a log that another program has changed",
);
