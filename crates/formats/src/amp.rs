//! Amp: one JSON document per thread. Read-only.
//!
//! `docs/formats/amp.md` describes its members, and how that was found out.

mod read;

use crate::Format;

/// Amp's threads.
pub const FORMAT: Format = Format::read_only(
    "amp",
    read::sniff,
    read::read,
    "Amp keeps its threads on a server, and the file is a copy that it writes again",
);
