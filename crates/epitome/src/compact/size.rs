//! What a planned compaction would take of the archive.

use std::path::Path;

use epitome_model::{Bytes, Counter, Source};
use jiff::Timestamp;

use super::{Planned, draft, put_all};
use crate::archive::{Made, PackSize, Run, WayBack};
use crate::error::Result;

impl<S: Source> Planned<'_, S> {
    /// The length of the pack that applying this plan to the session at `path` would write to the
    /// archive, measured by compressing what would go: 0 when there is nothing to do. The pack that
    /// is written later differs by the few bytes of its time, and of the names of what is compacted
    /// with it. Nothing is written.
    ///
    /// # Errors
    ///
    /// `Changed` when the session gives fewer bytes than it has.
    pub fn pack_len(&self, path: &Path, counter: &dyn Counter) -> Result<Bytes> {
        if self.is_empty() {
            return Ok(Bytes(0));
        }
        let way = WayBack::of(&self.session.source, &self.spliced()?)?;
        let mut size = PackSize::new(&self.session.key(path))?;
        put_all(self, counter, |raw, about| size.put(raw, &about))?;
        // As long as that of any run.
        let run = Run { id: "0".repeat(8), command: "compact".to_owned() };
        let made = Made { run: Some(run), ..Made::from(Timestamp::UNIX_EPOCH) };
        size.finish(draft(self, path, way, made))
    }
}
