//! The storage of a context's log.

use epitome_error::Result;

/// The storage of a context's log. The engine holds the log in memory, and writes each line here
/// first: a line that is not in the journal is not in the context either.
///
/// A file is a journal (`epitome::live::create`); a database table or a test can be another.
pub trait Journal: Send {
    /// Appends whole lines: all bytes or none. After an error the journal is unchanged.
    ///
    /// # Errors
    ///
    /// `Disk` or a similar kind, if they cannot be written.
    fn append(&mut self, lines: &[u8]) -> Result<()>;

    /// Returns once everything that was appended survives a crash.
    ///
    /// # Errors
    ///
    /// As [`append`](Journal::append).
    fn flush(&self) -> Result<()>;
}
