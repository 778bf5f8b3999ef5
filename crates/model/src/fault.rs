//! Faults: what a reader reports about malformed records.

/// A malformed record. It is kept unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line number, from 1.
    pub line: u64,
    /// A short description of the fault.
    pub what: String,
}

impl Fault {
    /// The fault of a record on `line` that holds bytes which are not UTF-8. The record is kept.
    pub fn not_utf8(line: u64) -> Fault {
        Fault { line, what: "bytes that are not UTF-8".into() }
    }
}

/// Receives faults from a reader. The caller chooses to ignore, count or collect them.
pub trait Faults {
    /// Receives one fault.
    fn report(&mut self, fault: Fault);
}

/// Ignores all faults.
impl Faults for () {
    fn report(&mut self, _fault: Fault) {}
}

/// Collects all faults.
impl Faults for Vec<Fault> {
    fn report(&mut self, fault: Fault) {
        self.push(fault);
    }
}
