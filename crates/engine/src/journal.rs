//! Where a context keeps its log.

use epitome_error::Result;

/// Where the log of a context is kept. The engine holds the log in memory and writes it here first:
/// a line that is not in the journal is not in the context either.
///
/// A file is one (`epitome::live::create`), a database table or a test can be another.
pub trait Journal: Send {
    /// Adds whole lines at the end. All bytes are added or none: after an error the journal is as
    /// it was.
    ///
    /// # Errors
    ///
    /// `Disk` and its like, if they cannot be written.
    fn append(&mut self, lines: &[u8]) -> Result<()>;

    /// Returns when all that was added survives a crash.
    ///
    /// # Errors
    ///
    /// As [`append`](Journal::append).
    fn flush(&self) -> Result<()>;
}
