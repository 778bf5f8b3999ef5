//! What a reader says about records that it cannot read as they should be.

use crate::json::Malformed;

/// A record that is not as it should be. It is kept as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line number, from 1.
    pub line: u64,
    /// What is wrong, in a few words.
    pub what: String,
}

impl Fault {
    /// The record on `line` is kept, but it holds bytes that are not UTF-8.
    pub(crate) fn not_utf8(line: u64) -> Fault {
        Fault { line, what: "bytes that are not UTF-8".into() }
    }

    /// The record in `line` is not JSON from the byte that `bad` names. A line without a line feed
    /// may still be being written.
    pub(crate) fn no_record(line: u64, bad: &Malformed, is_ended: bool) -> Fault {
        let torn = if is_ended { "" } else { " (the last line is torn)" };
        Fault { line, what: format!("no record: {} at byte {}{torn}", bad.what, bad.offset) }
    }
}

/// Listens to faults. The caller chooses to ignore, count or collect them.
pub trait Faults {
    /// Takes one.
    fn report(&mut self, fault: Fault);
}

/// Ignores them.
impl Faults for () {
    fn report(&mut self, _fault: Fault) {}
}

/// Collects them.
impl Faults for Vec<Fault> {
    fn report(&mut self, fault: Fault) {
        self.push(fault);
    }
}
