//! Replacing rows in a build without SQLite: always an error.

use std::fs::File;

use epitome_error::Result;

use super::{Rows, absent};
use crate::source::FileSource;
use crate::store::ReplaceReport;

impl Rows {
    pub(crate) fn replace(&self, _before: &FileSource, _after: &File) -> Result<ReplaceReport> {
        Err(absent(&self.address()))
    }
}
