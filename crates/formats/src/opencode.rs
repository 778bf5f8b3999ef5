//! OpenCode: rows of `opencode.db` as lines, and the output of `opencode export`.
//!
//! `docs/formats/opencode.md` describes the records, and how that was found out.

mod database;
mod events;
mod export;
mod files;
mod hook;
mod invariants;
mod mark;
mod raw;
mod read;
mod summarise;
mod tools;
mod write;

pub use database::DATABASE;
pub use files::FILES;
pub use hook::HOOK;

use epitome_model::{Faults, Source, Transcript};

use crate::{Format, Mark, Native, records};

/// OpenCode's sessions: a database since 1.2, and the JSON of `opencode export`.
pub const FORMAT: Format = Format {
    native: Some(Native::Mark(Mark {
        sent: epitome_model::PRUNED,
        write: mark::write,
        reaches: mark::reaches,
    })),
    summarise: Some(summarise::summarise),
    databases: &[&DATABASE],
    files: Some(&FILES),
    ..Format::writable("opencode", sniff, read, write::write, &invariants::OpencodeInvariants)
};

/// Whether a source is an export or consists of rows as lines.
fn sniff(head: &[u8]) -> bool {
    is_rows(head) || export::sniff(head)
}

/// Reads a session.
fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    if is_rows(&source.read(0..64)) {
        return records::read::<read::Reader>(source, faults);
    }
    export::read(source, faults)
}

fn is_rows(head: &[u8]) -> bool {
    head.starts_with(b"{\"table\":\"")
}
