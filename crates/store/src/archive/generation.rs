//! The archive's record of one compaction.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use epitome_model::Tokens;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Digest, Hash, RecordHash, Run, SessionKey};
use crate::reference::Reference;
use epitome_error::{Error, ErrorKind, Result};

/// A description of removed bytes, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The name of the pass that removed the bytes.
    pub pass: String,
    /// What the bytes were, in a few words: `Read src/main.rs`.
    pub what: String,
    /// The number of the line of the session file that contained the bytes, from 1; 0 if it is
    /// unknown.
    pub line: u64,
    /// The ranges of the raw bytes that are JSON string literals, with their quotes. A person is
    /// shown the texts of these, joined by line feeds. If there are none, a person is shown the raw
    /// bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<(u32, u32)>,
    /// For a picture, its media type: `image/png`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
    /// The file that contained the same text at the time of the compaction, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

impl About {
    /// The text that a person is shown for the raw bytes `raw`.
    pub fn text_for_people(&self, raw: &[u8]) -> Vec<u8> {
        let literals = self.texts.iter();
        let literals = literals.map(|&(start, end)| raw.get(start as usize..end as usize));
        let literals: Option<Vec<&[u8]>> = literals.collect();
        match literals {
            Some(literals) if !literals.is_empty() => {
                let texts: Vec<_> = literals.into_iter().map(epitome_model::decode).collect();
                texts.join("\n").into_bytes()
            }
            Some(_) | None => raw.to_owned(),
        }
    }
}

/// A compaction, or a restore, that is going to be archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The path of the session file.
    pub path: PathBuf,
    /// The name of the recipe.
    pub recipe: String,
    /// When the compaction was made.
    pub made: Timestamp,
    /// The run of the program that made the compaction.
    pub run: Option<Run>,
    /// For a sub-agent's session or a log: the session that it belongs to.
    pub part_of: Option<SessionKey>,
    /// The sub-agents' sessions and logs that belong to the session and were compacted together
    /// with it.
    pub parts: Vec<PartGeneration>,
    /// The digest of the file before the compaction.
    pub before: Digest,
    /// The digest of the file after the compaction.
    pub after: Digest,
    /// The records that were edited, in the order of the compacted file.
    pub records: Vec<EditedRecord>,
    /// Tokens that a resume would have sent before the compaction.
    pub tokens_before: Tokens,
    /// Tokens that a resume sends after the compaction.
    pub tokens_after: Tokens,
    /// The number of edits of each pass.
    pub edits: BTreeMap<String, u64>,
    /// Hashes of edited records that equal a line of the file before the compaction. A file that
    /// contains such a record is not necessarily the compacted one. `None` if these are unknown, as
    /// in packs of older versions.
    pub shared: Option<Vec<RecordHash>>,
}

/// One compaction of a session, or a restore that was archived, and how to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// The number of the generation, from 1 within a session. It is the name of the pack and is
    /// also in the pack, so that a pack which was copied over another is noticed. Packs of older
    /// versions do not contain it.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub number: u64,
    /// The name of the agent.
    pub agent: String,
    /// The id of the session.
    pub session: String,
    /// The path of the session file at the time of the compaction.
    #[serde(with = "crate::path_text")]
    pub path: PathBuf,
    /// The name of the recipe.
    pub recipe: String,
    /// When the compaction was made.
    pub made: Timestamp,
    /// The run of the program that made the compaction. `None` in packs of older versions, for
    /// restores, and for programs that do not group their compactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// For a sub-agent's session or a log: the session that it belongs to. Older versions stored
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<SessionKey>,
    /// The sub-agents' sessions and logs that belong to the session and were compacted together
    /// with it. Older versions stored none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartGeneration>,
    /// The version of epitome that made the compaction.
    pub epitome: String,
    /// The digest of the file before the compaction.
    pub before: Digest,
    /// The digest of the file after the compaction.
    pub after: Digest,
    /// The records that were edited, in the order of the compacted file.
    pub records: Vec<EditedRecord>,
    /// Tokens that a resume would have sent before the compaction.
    pub tokens_before: Tokens,
    /// Tokens that a resume sends after the compaction.
    pub tokens_after: Tokens,
    /// The number of edits of each pass.
    pub edits: BTreeMap<String, u64>,
    /// Hashes of edited records that equal a line of the file before the compaction. A file that
    /// contains such a record is not necessarily the compacted one. `None` if these are unknown, as
    /// in packs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Vec<RecordHash>>,
    /// The hashes of removed bytes that were forgotten on purpose: they are not in the pack any
    /// more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<Hash>,
    /// When the generation was imported, if it was. Anyone may have made an imported pack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Timestamp>,
}

/// A generation of a sub-agent's session or of a log. It was made in the same compaction as a
/// generation of the main session, to which the sub-agent's session or the log belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartGeneration {
    /// The key of the sub-agent's session or the log.
    pub key: SessionKey,
    /// The number of the generation.
    pub generation: u64,
    /// The digest of the session's or log's file before the compaction.
    pub before: Digest,
}

/// Whether a generation's number is 0: then it is not written to the pack.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_unknown(number: &u64) -> bool {
    *number == 0
}

/// An edited record of the compacted file: one line, or several lines if a replacement spans them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditedRecord {
    /// The offset in bytes of the record in the compacted file.
    pub at: u64,
    /// The length in bytes of the record in the compacted file, without the line feed.
    pub len: u64,
    /// The hash of the record.
    pub hash: RecordHash,
    /// The splices that undo the edit, in order.
    pub splices: Vec<UndoSplice>,
}

impl EditedRecord {
    /// Whether the bytes with this hash were removed from the record.
    pub fn has_blob(&self, hash: &Hash) -> bool {
        self.splices.iter().any(|splice| splice.blob == *hash)
    }
}

/// A range of bytes in an edited record, and the removed bytes that replace it in a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoSplice {
    /// The offset of the range in the record, in bytes.
    pub at: u64,
    /// The length of the range in bytes; 0 if nothing was put in the place of the removed bytes.
    pub len: u64,
    /// The hash of the removed bytes.
    pub blob: Hash,
}

impl Draft {
    /// The generation for this draft. Its number is 0, until its pack gets a name.
    pub fn into_generation(self, key: &SessionKey) -> Generation {
        Generation {
            number: 0,
            agent: key.agent.clone(),
            session: key.id.clone(),
            path: self.path,
            recipe: self.recipe,
            made: self.made,
            run: self.run,
            part_of: self.part_of,
            parts: self.parts,
            epitome: env!("CARGO_PKG_VERSION").to_owned(),
            before: self.before,
            after: self.after,
            records: self.records,
            tokens_before: self.tokens_before,
            tokens_after: self.tokens_after,
            edits: self.edits,
            shared: self.shared,
            forgotten: Vec::new(),
            imported: None,
        }
    }
}

impl Generation {
    /// The key of the generation's session.
    pub fn key(&self) -> SessionKey {
        SessionKey::new(self.agent.clone(), self.session.clone())
    }

    /// Whether the generation is a restore: then the file before it was not an original.
    pub fn is_restore(&self) -> bool {
        // The name of the recipe alone is no proof: a user's recipe may be called `restore`. No
        // pass has this name.
        self.recipe == "restore" && self.edits.contains_key("restore")
    }

    /// Whether the run with this id made the generation.
    pub fn is_of(&self, run: &str) -> bool {
        self.run.as_ref().is_some_and(|it| it.id == run)
    }

    /// Whether both generations made the same change at different paths: to copies of one session.
    /// A file that contains the change may be the result of either.
    pub fn is_twin_of(&self, other: &Generation) -> bool {
        (self.before, self.after) == (other.before, other.after) && self.path != other.path
    }

    /// Whether `newer` made the same change to the same file again, after a restore. Then every
    /// restore that undoes this generation can undo `newer` instead, with the same bytes.
    pub fn is_repeated_by(&self, newer: &Generation) -> bool {
        self.is_own_compaction()
            && newer.is_own_compaction()
            && self.number < newer.number
            && self.key() == newer.key()
            && self.path == newer.path
            && (self.before, self.after) == (newer.before, newer.after)
            && self.records == newer.records
            && self.shared == newer.shared
    }

    fn is_own_compaction(&self) -> bool {
        !self.is_restore() && self.imported.is_none()
    }

    /// The hashes of all removed bytes.
    pub fn blobs(&self) -> impl Iterator<Item = Hash> + '_ {
        self.records.iter().flat_map(|record| record.splices.iter().map(|splice| splice.blob))
    }

    /// Returns an error if the generation cannot be used for a restore: records or splices overlap,
    /// reach past the file or their record, or need bytes that are neither in the pack nor
    /// forgotten. `held` are the hashes of the removed bytes in the pack.
    pub fn check(&self, held: &HashSet<Hash>) -> Result<()> {
        let mut from = 0;
        for record in &self.records {
            let end = record.at.checked_add(record.len);
            if record.at < from || end.is_none_or(|end| end > self.after.len) {
                return Err(broken("the records of a generation overlap or reach past its file"));
            }
            let mut inside = 0;
            for splice in &record.splices {
                let end = splice.at.checked_add(splice.len);
                if splice.at < inside || end.is_none_or(|end| end > record.len) {
                    return Err(broken("the splices of a record overlap or reach past it"));
                }
                if !held.contains(&splice.blob) && !self.forgotten.contains(&splice.blob) {
                    return Err(broken("a splice names bytes that are not in the pack"));
                }
                inside = splice.at + splice.len;
            }
            from = record.at + record.len;
        }
        Ok(())
    }
}

fn broken(what: &str) -> Error {
    Error::new(ErrorKind::Broken, what)
}

/// When and by which run a compaction was made, and which sessions its session is related to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionInfo {
    /// When the compaction was made.
    pub at: Timestamp,
    /// The run that made it. `None` for programs that do not group their compactions.
    pub run: Option<Run>,
    /// For a sub-agent's session or a log: the session that it belongs to.
    pub part_of: Option<SessionKey>,
    /// The sub-agents' sessions and logs that belong to the session and were archived before the
    /// session itself.
    pub parts: Vec<PartGeneration>,
}

impl From<Timestamp> for CompactionInfo {
    fn from(at: Timestamp) -> CompactionInfo {
        CompactionInfo { at, run: None, part_of: None, parts: Vec::new() }
    }
}
