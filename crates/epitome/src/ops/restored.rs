//! The report of a restore. Its serde form is the JSON of `epitome restore --json`
//! (`docs/json.md`), to which members are only added.

use std::path::PathBuf;

use epitome_model::{Bytes, lossy_path, lossy_path_option};
use serde::Serialize;

use super::change::Change;
use super::open::OpenSession;
use crate::archive::{Digest, SessionKey};
use crate::error::{Error, Result};
use crate::restore::RestoreOutcome;

/// A file of a session that was restored, or would be.
#[derive(Clone, Debug)]
pub struct FileRestore {
    /// The address of the session's own file, or of a file that belongs to it: a path, or
    /// `DATABASE#ID`.
    pub path: PathBuf,
    /// The key of the file in the archive.
    pub key: SessionKey,
    /// How the file was restored.
    pub outcome: RestoreOutcome,
    /// The number of edited records in the generations that were undone exactly.
    pub edits: u64,
    /// The length of the file before the restore.
    pub bytes_before: Bytes,
    /// Length and hash of the file after the restore.
    pub after: Digest,
    /// The number of the generation that archives the bytes from before the restore. Only a restore
    /// record by record makes one.
    pub generation: Option<u64>,
    /// The errors of parts of the archive that are damaged or missing.
    pub damaged: Vec<Error>,
    /// The error if the restored file is exact but not the original, because the archive does not
    /// have older bytes; otherwise `None`.
    pub short_of: Option<Error>,
    /// The numbers of the imported generations that were used for the restore. Imported generations
    /// may insert text that was never in the session.
    pub imported: Vec<u64>,
}

impl FileRestore {
    /// Whether there was nothing to undo.
    pub fn is_nothing(&self) -> bool {
        matches!(&self.outcome, RestoreOutcome::Exact { undone } if undone.is_empty())
    }

    /// The length of the file after the restore.
    pub fn bytes_after(&self) -> Bytes {
        Bytes(self.after.len)
    }
}

/// How a file was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Exactly: the bytes are proved by hash.
    Exact,
    /// Record by record, where no hash proves the result: for example, another program has changed
    /// the file.
    ByRecord,
    /// Exactly, but to a state later than the original: older bytes are not in the archive.
    Short,
    /// There was nothing to undo.
    Nothing,
}

/// The result of restoring one file. For a plan, the result that it would have.
#[derive(Clone, Debug, Serialize)]
pub struct RestoredFile {
    /// The address of the file.
    #[serde(serialize_with = "lossy_path")]
    pub session: PathBuf,
    /// The agent: the name of its format.
    pub agent: String,
    /// How the file was restored.
    pub outcome: How,
    /// The numbers of the generations that were undone.
    pub undone: Vec<u64>,
    /// The number of edits of records that were undone.
    pub restored: u64,
    /// How many of the edits in `restored` were undone record by record, which no hash proves.
    #[serde(skip)]
    pub by_record: u64,
    /// The number of edits of records that were not undone, for example because the record is not
    /// in the file as the edit left it.
    pub missing: u64,
    /// The length of the file.
    pub disk_bytes: Change<Bytes>,
    /// The blake3 hash of the file after the restore.
    pub blake3: String,
    /// The same hash as in `blake3`, if the archive proves it; otherwise `null`.
    pub restored_proof: Option<String>,
    /// The number of the generation that archives the bytes from before the restore, if there is
    /// one.
    pub generation: Option<u64>,
    /// The parts of the archive that are damaged or missing, each as a sentence.
    pub damaged: Vec<String>,
    /// The numbers of imported generations that were used.
    #[serde(skip)]
    pub imported: Vec<u64>,
}

/// The result of restoring a session with all files that belong to it. Its serde form is the JSON
/// of `epitome restore --json`.
#[derive(Clone, Debug, Serialize)]
pub struct RestoreReport {
    /// The result for the session's own file, even if it was never compacted. If that file does not
    /// exist any more, the result for the first of the session's other files.
    #[serde(flatten)]
    pub file: RestoredFile,
    /// Whether the restore was only planned.
    pub dry_run: bool,
    /// The path of the copy, if one was written; the session is then unchanged.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "lossy_path_option")]
    pub out: Option<PathBuf>,
    /// The results for the session's other files. Files without generations in the archive are left
    /// out.
    pub files: Vec<RestoredFile>,
    /// The files that were restored, or would be.
    #[serde(skip)]
    pub done: Vec<FileRestore>,
}

impl RestoreReport {
    /// Whether there was nothing to undo in any file.
    pub fn is_nothing(&self) -> bool {
        self.done.iter().all(FileRestore::is_nothing)
    }

    /// The length of the files in [`done`](RestoreReport::done), in sum.
    pub fn disk_bytes(&self) -> Change<Bytes> {
        Change {
            before: self.done.iter().map(|it| it.bytes_before).sum(),
            after: self.done.iter().map(FileRestore::bytes_after).sum(),
        }
    }

    /// The report of a plan. [`written`](RestoreReport::written) turns it into the report of a
    /// restore.
    pub(super) fn planned(
        session: &OpenSession<'_>,
        done: Vec<FileRestore>,
    ) -> Result<RestoreReport> {
        let own = done.iter().position(|back| back.path == session.path());
        // The session's own file may not exist any more, although its other files do.
        let own = own.or((!done.is_empty() && !session.place().exists()).then_some(0));
        let file = match own {
            Some(own) => RestoredFile::from_plan(&done[own]),
            None => RestoredFile::untouched(session)?,
        };
        let others = done.iter().enumerate().filter(|(n, _)| Some(*n) != own);
        let files = others.map(|(_, back)| RestoredFile::from_plan(back)).collect();
        Ok(RestoreReport { file, dry_run: true, out: None, files, done })
    }

    /// The report after the files were written. `generations` archive the bytes from before the
    /// restore; each is given with the index of its file in `done`. This reads nothing, so it
    /// cannot fail.
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
    fn from_plan(back: &FileRestore) -> RestoredFile {
        let (outcome, by_record, missing) = match &back.outcome {
            RestoreOutcome::Exact { .. } if back.short_of.is_some() => (How::Short, 0, 0),
            RestoreOutcome::Exact { .. } if back.is_nothing() => (How::Nothing, 0, 0),
            RestoreOutcome::Exact { .. } => (How::Exact, 0, 0),
            RestoreOutcome::ByRecord { restored, missing, .. } => {
                (How::ByRecord, *restored, *missing)
            }
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

    /// The result for the session's own file if it is not restored, for example because it was
    /// never compacted.
    fn untouched(session: &OpenSession<'_>) -> Result<RestoredFile> {
        let loaded = session.load()?;
        let Digest { len, blake3 } = Digest::from_source(&loaded.source)?;
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
