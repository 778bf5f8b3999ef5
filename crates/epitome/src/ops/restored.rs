//! The report of a restore. Its serde form is the JSON of `epitome restore --json`
//! (`docs/json.md`): members are added to it, never changed or removed.

use std::path::PathBuf;

use epitome_model::{Bytes, lossy_path, lossy_path_option};
use serde::Serialize;

use super::change::Change;
use super::open::OpenSession;
use crate::archive::{Digest, SessionKey};
use crate::error::{Error, Result};
use crate::restore::Restored;

/// A file of a session that was restored, or would be.
#[derive(Clone, Debug)]
pub struct GivenBack {
    /// The session, or that of a sub-agent.
    pub path: PathBuf,
    /// Its key in the archive.
    pub key: SessionKey,
    /// How it was restored.
    pub outcome: Restored,
    /// The number of edits in the generations that were undone to the byte.
    pub edits: u64,
    /// Its length before.
    pub bytes_before: Bytes,
    /// Length and hash of the file afterwards.
    pub after: Digest,
    /// The generation that holds the bytes before the restore, if they cannot be made again by
    /// undoing.
    pub generation: Option<u64>,
    /// What is damaged or missing in the archive.
    pub damaged: Vec<Error>,
    /// If the result is not the original because older bytes are not in the archive: the error.
    pub short_of: Option<Error>,
    /// The numbers of imported generations that were used: they may insert text that was never
    /// there.
    pub imported: Vec<u64>,
}

impl GivenBack {
    /// Whether there was nothing to undo.
    pub fn is_nothing(&self) -> bool {
        matches!(&self.outcome, Restored::Exact { undone } if undone.is_empty())
    }

    /// Its length afterwards.
    pub fn bytes_after(&self) -> Bytes {
        Bytes(self.after.len)
    }
}

/// How a file was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// To the byte, proved by hash.
    Exact,
    /// Record by record: the file was edited since.
    ByRecord,
    /// To the byte, but not to the original: older bytes are not in the archive.
    Short,
    /// There was nothing to undo.
    Nothing,
}

/// The result of restoring one file.
#[derive(Clone, Debug, Serialize)]
pub struct RestoredFile {
    /// The address of the file.
    #[serde(serialize_with = "lossy_path")]
    pub session: PathBuf,
    /// The agent, as its format is called.
    pub agent: String,
    /// How it was restored.
    pub outcome: How,
    /// The generations that were undone.
    pub undone: Vec<u64>,
    /// The number of records or edits that were restored.
    pub restored: u64,
    /// The number of those that were not proved by hash.
    #[serde(skip)]
    pub by_record: u64,
    /// The number of edits that are not in the file any more.
    pub missing: u64,
    /// The length of the file.
    pub disk_bytes: Change<Bytes>,
    /// The blake3 hash of what was written.
    pub blake3: String,
    /// The same hash, if it was proved to be the one in the archive.
    pub restored_proof: Option<String>,
    /// The generation that holds the bytes before the restore, if they cannot be made again by
    /// undoing.
    pub generation: Option<u64>,
    /// What is damaged or missing in the archive.
    pub damaged: Vec<String>,
    /// The imported generations that were used.
    #[serde(skip)]
    pub imported: Vec<u64>,
}

/// The result of restoring a session with all files that belong to it.
#[derive(Clone, Debug, Serialize)]
pub struct RestoreReport {
    /// The session itself, even if it was never compacted.
    #[serde(flatten)]
    pub file: RestoredFile,
    /// Whether it was only planned.
    pub dry_run: bool,
    /// The path of the copy, if one was written; the session is unchanged.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "lossy_path_option")]
    pub out: Option<PathBuf>,
    /// The files that belong to it.
    pub files: Vec<RestoredFile>,
    /// The files with generations in the archive, the session first.
    #[serde(skip)]
    pub done: Vec<GivenBack>,
}

impl RestoreReport {
    /// Whether there was nothing to undo.
    pub fn is_nothing(&self) -> bool {
        self.done.iter().all(GivenBack::is_nothing)
    }

    /// The total length of the files with generations in the archive.
    pub fn disk_bytes(&self) -> Change<Bytes> {
        Change {
            before: self.done.iter().map(|it| it.bytes_before).sum(),
            after: self.done.iter().map(GivenBack::bytes_after).sum(),
        }
    }

    /// The report of a plan. [`written`](RestoreReport::written) turns it into that of a restore.
    pub(super) fn planned(
        session: &OpenSession<'_>,
        done: Vec<GivenBack>,
    ) -> Result<RestoreReport> {
        let own = done.iter().position(|back| back.path == session.path());
        // The session itself may not exist any more although its other files do.
        let own = own.or((!done.is_empty() && !session.place().exists()).then_some(0));
        let file = match own {
            Some(own) => RestoredFile::from_plan(&done[own]),
            None => RestoredFile::untouched(session)?,
        };
        let others = done.iter().enumerate().filter(|(n, _)| Some(*n) != own);
        let files = others.map(|(_, back)| RestoredFile::from_plan(back)).collect();
        Ok(RestoreReport { file, dry_run: true, out: None, files, done })
    }

    /// The report after the files were written. `generations` are those that archive the bytes
    /// before the restore, each with its index in `done`. Reads nothing, so that it cannot fail.
    pub(super) fn written(mut self, generations: &[(usize, u64)]) -> RestoreReport {
        self.dry_run = false;
        for &(n, number) in generations {
            let back = &mut self.done[n];
            back.generation = Some(number);
            let mut files = std::iter::once(&mut self.file).chain(&mut self.files);
            if let Some(file) = files.find(|file| file.session == back.path) {
                file.generation = Some(number);
            }
        }
        self
    }
}

impl RestoredFile {
    fn from_plan(back: &GivenBack) -> RestoredFile {
        let (outcome, by_record, missing) = match &back.outcome {
            Restored::Exact { .. } if back.short_of.is_some() => (How::Short, 0, 0),
            Restored::Exact { .. } if back.is_nothing() => (How::Nothing, 0, 0),
            Restored::Exact { .. } => (How::Exact, 0, 0),
            Restored::ByRecord { restored, missing, .. } => (How::ByRecord, *restored, *missing),
        };
        let blake3 = back.after.blake3.to_string();
        RestoredFile {
            session: back.path.clone(),
            agent: back.key.agent.clone(),
            outcome,
            undone: back.outcome.undone().to_vec(),
            restored: back.edits + by_record,
            by_record,
            missing,
            disk_bytes: Change { before: back.bytes_before, after: back.bytes_after() },
            restored_proof: matches!(outcome, How::Exact | How::Nothing).then(|| blake3.clone()),
            blake3,
            generation: back.generation,
            damaged: back.damaged.iter().chain(&back.short_of).map(ToString::to_string).collect(),
            imported: back.imported.clone(),
        }
    }

    /// The entry of a session that was never compacted, while files that belong to it were.
    fn untouched(session: &OpenSession<'_>) -> Result<RestoredFile> {
        let loaded = session.loaded()?;
        let Digest { len, blake3 } = Digest::of_source(&loaded.source)?;
        Ok(RestoredFile {
            session: session.path().to_owned(),
            agent: loaded.format.name.to_owned(),
            outcome: How::Nothing,
            undone: Vec::new(),
            restored: 0,
            by_record: 0,
            missing: 0,
            disk_bytes: Change { before: Bytes(len), after: Bytes(len) },
            blake3: blake3.to_string(),
            restored_proof: None,
            generation: None,
            damaged: Vec::new(),
            imported: Vec::new(),
        })
    }
}
