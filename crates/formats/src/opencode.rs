//! OpenCode: rows of `opencode.db` as lines, the output of `opencode export`, and the files of
//! releases before 1.2.
//!
//! Sessions of its fork Kilo Code have the same form, in a database of their own.
//!
//! `docs/formats/opencode.md` describes the records, and how that was found out.

mod additions;
mod address;
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

pub use additions::{COMMAND, MCP};
pub use address::ADDRESS;
pub use database::DATABASE;
pub use files::FILES;
pub use hook::HOOK;

use epitome_model::{Faults, Source, Transcript};

use crate::{Format, Mark, Native, records};

/// OpenCode's sessions: rows of a database since 1.2, many files in earlier releases, and the JSON
/// of `opencode export`.
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

/// Kilo Code's sessions. Kilo Code is a fork of OpenCode: the rows of its database are marked as
/// its own, but its exports cannot be distinguished from OpenCode's.
pub const KILO: Format = Format {
    name: "kilo",
    sniff: is_rows_of_kilo,
    databases: &[&database::KILO],
    files: None,
    ..FORMAT
};

/// Whether a source is an export, or consists of rows of OpenCode as lines.
fn sniff(head: &[u8]) -> bool {
    is_rows(head) && !is_rows_of_kilo(head) || export::sniff(head)
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

/// Whether the first row of a conversation or of a log is marked as Kilo Code's.
fn is_rows_of_kilo(head: &[u8]) -> bool {
    let tables: [&[u8]; 2] = [b"{\"table\":\"session\",", b"{\"table\":\"event\","];
    let members = tables.iter().find_map(|begin| head.strip_prefix(*begin));
    members.is_some_and(|members| members.starts_with(b"\"agent\":\"kilo\","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_says_whose_it_is() {
        for (head, expect) in [
            (r#"{"table":"session","id":"ses_1","parent_id":null"#, "opencode"),
            (r#"{"table":"session","agent":"kilo","id":"ses_1"#, "kilo"),
            (r#"{"table":"event","id":"evt_1","session":"ses_1""#, "opencode"),
            (r#"{"table":"event","agent":"kilo","id":"evt_1"#, "kilo"),
            // Here `agent` is a member of a message, not the mark of Kilo Code.
            (r#"{"table":"message","data":{"agent":"kilo","#, "opencode"),
        ] {
            let known = [FORMAT, KILO].into_iter().filter(|it| (it.sniff)(head.as_bytes()));
            assert_eq!(known.map(|it| it.name).collect::<Vec<_>>(), [expect], "{head}");
        }
    }
}
