//! Every change of what is sent goes through here: it is verified before it is written.

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::named;
use epitome_passes::{Plan, Side, verify};

use super::Context;

impl Context {
    /// Adds a line that changes what is sent, if that violates no invariant: the same that a stored
    /// session is verified with. The caller recounts.
    ///
    /// # Errors
    ///
    /// `Refused`, which names the first new violation; `Disk` if the line cannot be written. The
    /// log is then what it was.
    pub(super) fn apply(&mut self, line: &[u8], plan: &Plan<'_>) -> Result<()> {
        let format = named("epitome").expect("our own format is one of them");
        let trial = self.log.try_line(line);
        let source = self.log.bytes();
        let before = Side { transcript: trial.before(), source };
        let after = Side { transcript: self.transcript(), source };
        let violations = verify(before, after, plan, format.invariants, &*self.counter);
        match violations.first() {
            None => self.log.keep(trial),
            Some(first) => {
                // The lines of the log say nothing to the caller.
                let what = format!("{} ({})", first.what, first.invariant);
                self.log.discard(trial);
                Err(Error::new(ErrorKind::Refused, what))
            }
        }
    }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
