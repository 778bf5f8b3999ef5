//! What a reader says about records that it cannot read as they should be.

/// A record that is not as it should be. It is kept as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line number, from 1.
    pub line: u64,
    /// What is wrong, in a few words.
    pub what: String,
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
