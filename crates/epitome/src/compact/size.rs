//! Computes how much a planned compaction would add to the archive.

use std::collections::HashSet;
use std::path::Path;

use epitome_model::{Bytes, Counter, Source, Span};
use jiff::Timestamp;

use super::{PreparedCompaction, References, draft, put_all};
use crate::archive::{About, CompactionInfo, PackSize, Run, UndoData};
use crate::error::Result;

/// The length of the pack that a compaction by this plan would add to the archive; 0 if the plan
/// changes nothing. `path` is where the session is stored. Nothing is written: the bytes that would
/// be removed are compressed in memory. The real pack may be a few bytes longer or shorter, because
/// it has another time and names the files that are compacted together with this one.
///
/// # Errors
///
/// `Changed` if the session returns fewer bytes than its length.
pub fn pack_len<S: Source>(
    planned: &PreparedCompaction<'_, S>,
    path: &Path,
    counter: &dyn Counter,
) -> Result<Bytes> {
    if planned.is_empty() {
        return Ok(Bytes(0));
    }
    let source = &planned.session.source;
    let spliced = planned.spliced()?;
    let references = References::from_session(planned.session);
    let mut removed: Vec<(Span, About)> = Vec::new();
    let mut known: HashSet<Span> = HashSet::new();
    put_all(planned, counter, &references, |span, about| {
        if known.insert(span) {
            removed.push((span, about()));
        }
        Ok(())
    })?;
    let mut size = PackSize::new(&crate::session::key_of(planned.session, path))?;
    let (put, undo_data) =
        rayon::join(|| size.put_all(source, &removed), || UndoData::for_size(source, &spliced));
    put?;
    let undo_data = undo_data?;
    // An id with the same length as that of any run.
    let run = Run { id: "0".repeat(8), command: "compact".to_owned() };
    let info = CompactionInfo { run: Some(run), ..CompactionInfo::from(Timestamp::UNIX_EPOCH) };
    size.finish(draft(planned, path, undo_data, info))
}
