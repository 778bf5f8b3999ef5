//! A session compacted or given back in place, with what belongs to it: what its sub-agents did,
//! and logs that a database keeps.
//!
//! The session and what belongs to it are one transaction. All files are planned first, then all
//! that goes is archived and proved, then all files are written next to the old ones, and only then
//! they take their places. If one cannot, those that did are replaced by what they were. A process
//! that is killed between two of them leaves a part compacted: the next compaction does the rest,
//! and a restore gives all of it back.

mod compact;
mod family;
mod restore;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use epitome_model::{Bytes, Counter, Source, Tokens};
use epitome_passes::Recipe;
use epitome_tokens::Calibration;

use crate::compact::Planned;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::find;
use crate::place::{self, Place};
use crate::session::Loaded;
use crate::source::FileSource;

pub use compact::{
    CompactedFamily, CompactedFile, Compacting, Planner, compact_family, compact_session,
};
pub(crate) use restore::compactions_in;
pub use restore::{GivenBack, GivingBack, What, archive_way_back, restore_session, undoable};

/// A file of a session that was compacted, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// The session, or what a sub-agent did.
    pub path: PathBuf,
    /// What a resume sent before.
    pub tokens_before: Tokens,
    /// What it sends afterwards, counted anew.
    pub tokens_after: Tokens,
    /// Its length before.
    pub bytes_before: Bytes,
    /// Its length afterwards.
    pub bytes_after: Bytes,
    /// What its pack in the archive takes, or would take.
    pub archive_bytes: Bytes,
    /// How what the provider bills for a request follows from the tokens of the messages, if the
    /// session records it.
    pub calibration: Option<Calibration>,
    /// Edits by the names of the passes that planned them.
    pub edits: BTreeMap<String, u64>,
    /// The generation in the archive. None: there was nothing to do, or it was only planned.
    pub generation: Option<u64>,
}

/// Plans a compaction of a session and of what its sub-agents did, the session first, and writes
/// nothing. Each plan is handed to `look`. A law that it would break is no error here: the plan
/// names it.
///
/// # Errors
///
/// `ReadOnly`, and what opening, reading and planning may say.
pub fn plan_session(
    config: &Config,
    path: &Path,
    recipe: &Recipe,
    counter: &dyn Counter,
    mut look: impl FnMut(&Path, &Planned<'_, FileSource>),
) -> Result<Vec<Compacted>> {
    let mut done = Vec::new();
    for path in family::members(path) {
        Place::of(&path).check_writable()?;
        let session = match Loaded::open(&path, None) {
            Ok(session) => session,
            Err(err) if is_no_part(&err, done.is_empty()) => continue,
            Err(err) => return Err(err),
        };
        let planned = Planned::as_usual(&session, recipe, counter)?;
        look(&path, &planned);
        let mut planned_so = Compacted::of(config, &path, &planned, counter);
        planned_so.archive_bytes = planned.pack_len(&path, counter)?;
        done.push(planned_so);
    }
    Ok(done)
}

/// A file beside a session that is no session stays as it is, as in any other folder.
fn is_no_part(err: &Error, is_session: bool) -> bool {
    !is_session && (err.kind() == ErrorKind::UnknownFormat || is_no_file(err))
}

/// Whether something is no file: a folder, a pipe, a link to what is gone, or not there any more.
fn is_no_file(err: &Error) -> bool {
    matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotAFile)
}

/// What stands where parts of a session do and is no file, or is gone: it is no part of it.
pub fn no_parts(session: &Path) -> Vec<PathBuf> {
    let is_none = |path: &PathBuf| place::open(path).is_err_and(|err| is_no_file(&err));
    find::companions(session).into_iter().filter(is_none).collect()
}

impl Compacted {
    fn of<S: Source>(
        config: &Config,
        path: &Path,
        planned: &Planned<'_, S>,
        counter: &dyn Counter,
    ) -> Compacted {
        let edits = planned.compaction.by_pass().into_iter();
        Compacted {
            path: path.to_owned(),
            tokens_before: planned.compaction.tokens_before,
            tokens_after: planned.tokens_after,
            bytes_before: Bytes(planned.session.source.len()),
            bytes_after: planned.bytes_after,
            archive_bytes: Bytes(0),
            calibration: crate::billed::calibration(planned.session, config, path, counter),
            edits: edits.map(|(pass, n)| (pass.to_owned(), n)).collect(),
            generation: None,
        }
    }
}

#[cfg(test)]
mod tests;
