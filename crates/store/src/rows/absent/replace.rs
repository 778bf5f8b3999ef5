//! Rows cannot be replaced.

use std::fs::File;
use std::io::Write;

use epitome_error::Result;

use super::{Rows, absent};
use crate::source::FileSource;
use crate::store::Replaced;

impl Rows {
    /// Fails.
    ///
    /// # Errors
    ///
    /// `Unsupported`.
    pub fn written(&self, _write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<File> {
        Err(absent(&self.address()))
    }

    /// Fails.
    ///
    /// # Errors
    ///
    /// `Unsupported`.
    pub fn replace(&self, _before: &FileSource, _after: &File) -> Result<Replaced> {
        Err(absent(&self.address()))
    }
}
