//! How much a planned compaction would add to the archive.

use std::collections::HashMap;
use std::path::Path;

use epitome_model::{Bytes, Counter, Source, Span};
use jiff::Timestamp;

use super::{CompactionPlan, draft, put_all};
use crate::archive::{CompactionInfo, Hash, PackSize, Run, WayBack};
use crate::error::Result;

/// The length of the pack that applying a plan to the session at `path` would write to the
/// archive, measured by compressing what would go: 0 when there is nothing to do. The pack that
/// is written later differs by the few bytes of its time, and of the names of what is compacted
/// with it. Nothing is written.
///
/// # Errors
///
/// `Changed` when the session gives fewer bytes than it has.
pub fn pack_len<S: Source>(
    planned: &CompactionPlan<'_, S>,
    path: &Path,
    counter: &dyn Counter,
) -> Result<Bytes> {
    if planned.is_empty() {
        return Ok(Bytes(0));
    }
    let (source, spliced) = (&planned.session.source, planned.spliced()?);
    let way = WayBack::between(source, &spliced)?;
    // Removed blobs, in the order of the splices.
    let blobs = way.records.iter().flat_map(|record| &record.splices).map(|undo| undo.blob);
    let spans = spliced.splices().iter().map(|splice| splice.span);
    let hashes: HashMap<Span, Hash> = spans.zip(blobs).collect();
    let mut size = PackSize::new(&crate::session::key_of(planned.session, path))?;
    put_all(planned, counter, |span, about| match hashes.get(&span) {
        // Bytes that are in the pack already: they are not read again.
        Some(hash) if size.holds(hash) => Ok(()),
        Some(_) | None => size.put(&source.at(span), &about()),
    })?;
    // Of the same length as any run's id.
    let run = Run { id: "0".repeat(8), command: "compact".to_owned() };
    let made = CompactionInfo { run: Some(run), ..CompactionInfo::from(Timestamp::UNIX_EPOCH) };
    size.finish(draft(planned, path, way, made))
}
