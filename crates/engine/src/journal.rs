//! Journals, which store the log of a context.

use epitome_error::Result;

/// Stores the log of a context. The engine keeps the log in memory as well. A line that cannot be
/// written to the journal is not in the context either.
///
/// A journal can be a file (`epitome::live::create`), a row of a database, or a vector, as here:
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use epitome_engine::{Context, Journal, Setup};
/// use epitome_error::Result;
///
/// #[derive(Clone, Default)]
/// struct Lines(Arc<Mutex<Vec<u8>>>);
///
/// impl Journal for Lines {
///     fn append(&mut self, lines: &[u8]) -> Result<()> {
///         self.0.lock().expect("no panic").extend(lines);
///         Ok(())
///     }
///     fn flush(&self) -> Result<()> {
///         Ok(())
///     }
/// }
///
/// # let recipe = || epitome_passes::built_in("epitome").expect("a recipe");
/// let journal = Lines::default();
/// let mut context = Context::create(Box::new(journal.clone()), Setup::new(recipe()))?;
/// context.user("Hello.")?;
/// let bytes = journal.0.lock().expect("no panic").clone();
/// assert_eq!(bytes, context.log());
/// let resumed = Context::resume(bytes, Box::new(journal), Setup::new(recipe()))?;
/// assert_eq!(resumed.report().entries, 1);
/// # Ok::<(), epitome_error::Error>(())
/// ```
pub trait Journal: Send {
    /// Appends whole lines: all bytes or none. After an error the journal must be unchanged.
    ///
    /// # Errors
    ///
    /// `Disk` or a similar kind, if the lines cannot be written.
    fn append(&mut self, lines: &[u8]) -> Result<()>;

    /// Returns when everything that was appended would survive a crash of the machine.
    ///
    /// # Errors
    ///
    /// `Disk` or a similar kind, if that cannot be ensured.
    fn flush(&self) -> Result<()>;
}

/// A journal that discards all lines.
#[cfg(test)]
pub(crate) struct Nowhere;

#[cfg(test)]
impl Journal for Nowhere {
    fn append(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}
