//! What the archive knows of one compaction.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use epitome_model::Tokens;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Digest, Hash, RecordHash, Run, SessionKey};
use crate::reference::Reference;
use epitome_error::{Error, ErrorKind, Result};

/// What removed bytes were: for whoever asks to see them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The pass that removed them.
    pub pass: String,
    /// What it was, in a few words: `Read src/main.rs`.
    pub what: String,
    /// The line of its record in the session, from 1; 0 when it is not known.
    pub line: u64,
    /// Ranges of the raw bytes that are JSON string literals, quotes included. Their texts joined
    /// by line feeds are what a person wants to see. None: the raw bytes are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<(u32, u32)>,
    /// The media type, when it is a picture: `image/png`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
    /// The file that held the same text at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

impl About {
    /// What a person wants to see of `raw`: its texts, or the bytes as they stand.
    pub fn shown(&self, raw: &[u8]) -> Vec<u8> {
        let literal = |&(start, end): &(u32, u32)| raw.get(start as usize..end as usize);
        let literals: Option<Vec<&[u8]>> = self.texts.iter().map(literal).collect();
        match literals {
            Some(literals) if !literals.is_empty() => {
                let texts: Vec<_> = literals.into_iter().map(epitome_model::decode).collect();
                texts.join("\n").into_bytes()
            }
            Some(_) | None => raw.to_owned(),
        }
    }
}

/// A compaction as it is handed to the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The session file, as a person knows it.
    pub path: PathBuf,
    /// The name of the recipe.
    pub recipe: String,
    /// When it was made.
    pub made: Timestamp,
    /// The run of the program that made it.
    pub run: Option<Run>,
    /// The session that this one belongs to.
    pub part_of: Option<SessionKey>,
    /// What belongs to the session and was compacted with it.
    pub parts: Vec<Part>,
    /// The file before.
    pub before: Digest,
    /// The file after.
    pub after: Digest,
    /// The records that were edited, in the order of the file after.
    pub records: Vec<EditedRecord>,
    /// What a resume would have sent before.
    pub tokens_before: Tokens,
    /// What a resume sends after.
    pub tokens_after: Tokens,
    /// How many edits each pass made.
    pub edits: BTreeMap<String, u64>,
    /// Hashes of edited records that are also lines of the file before: such a line in a file is no
    /// proof of the edit. None: not known, as in packs of older versions.
    pub shared: Option<Vec<RecordHash>>,
}

/// One compaction of a session: what it was, and how it is undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Counts from 1 within a session. It is the name of the pack, and in the pack, so that one
    /// copied over another is noticed; packs of older versions do not hold it.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub number: u64,
    /// The name of the agent.
    pub agent: String,
    /// The id of the session.
    pub session: String,
    /// The session file, as a person knew it.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// The name of the recipe.
    pub recipe: String,
    /// When it was made.
    pub made: Timestamp,
    /// The run of the program that made it. Older versions stored none, and giving bytes back is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// The session that this one belongs to, for a sub-agent's or a log. Older versions stored
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<SessionKey>,
    /// What belongs to the session and was compacted with it: a sub-agent's, a log. Older versions
    /// stored none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The version of epitome that made it.
    pub epitome: String,
    /// The file before.
    pub before: Digest,
    /// The file after.
    pub after: Digest,
    /// The records that were edited, in the order of the file after.
    pub records: Vec<EditedRecord>,
    /// What a resume would have sent before.
    pub tokens_before: Tokens,
    /// What a resume sends after.
    pub tokens_after: Tokens,
    /// How many edits each pass made.
    pub edits: BTreeMap<String, u64>,
    /// Hashes of edited records that are also lines of the file before: such a line in a file is no
    /// proof of the edit. None: not known, as in packs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Vec<RecordHash>>,
    /// When it was imported, if it was: the pack may have been made by anyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Timestamp>,
}

/// A generation of what belongs to a session, made with one of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The session that belongs to the other one.
    pub key: SessionKey,
    /// The number of its generation.
    pub generation: u64,
    /// Its file before.
    pub before: Digest,
}

/// The number of a pack that does not hold it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_unknown(number: &u64) -> bool {
    *number == 0
}

/// A record of the compacted file that was edited: one line, or some that were edited as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditedRecord {
    /// Its first byte in the compacted file.
    pub at: u64,
    /// Its length in the compacted file, without the line feed.
    pub len: u64,
    /// The hash of those bytes.
    pub hash: RecordHash,
    /// How it is undone, in order.
    pub splices: Vec<UndoSplice>,
}

/// Bytes of a compacted record that stand in the place of removed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoSplice {
    /// Its first byte, counted from that of the record.
    pub at: u64,
    /// Its length; 0 when nothing was left.
    pub len: u64,
    /// The removed bytes.
    pub blob: Hash,
}

impl Draft {
    /// The generation that it is to be.
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
            imported: None,
        }
    }
}

impl Generation {
    /// The session that it is of.
    pub fn key(&self) -> SessionKey {
        SessionKey::new(self.agent.clone(), self.session.clone())
    }

    /// Whether it gave bytes back: what was there before it was compacted, and no original.
    pub fn is_way_back(&self) -> bool {
        // A user's recipe may have that name, but no pass has.
        self.recipe == "restore" && self.edits.contains_key("restore")
    }

    /// Whether the run of this id made it.
    pub fn is_of(&self, run: &str) -> bool {
        self.run.as_ref().is_some_and(|it| it.id == run)
    }

    /// Whether it did the same to a copy of the session: that copy is as well of either.
    pub fn is_twin_of(&self, other: &Generation) -> bool {
        (self.before, self.after) == (other.before, other.after) && self.path != other.path
    }

    /// The names of all removed bytes.
    pub fn blobs(&self) -> impl Iterator<Item = Hash> + '_ {
        self.records.iter().flat_map(|record| record.splices.iter().map(|splice| splice.blob))
    }

    /// Says what makes it no way back: splices out of order or out of their record, or bytes that
    /// are not among `held`.
    pub fn check(&self, held: &HashSet<Hash>) -> Result<()> {
        let wrong = |what: &str| Err(Error::new(ErrorKind::Broken, what));
        let mut from = 0;
        for record in &self.records {
            let end = record.at.checked_add(record.len);
            if record.at < from || end.is_none_or(|end| end > self.after.len) {
                return wrong("the records of a generation overlap or reach past its file");
            }
            let mut inside = 0;
            for splice in &record.splices {
                let end = splice.at.checked_add(splice.len);
                if splice.at < inside || end.is_none_or(|end| end > record.len) {
                    return wrong("the splices of a record overlap or reach past it");
                }
                if !held.contains(&splice.blob) {
                    return wrong("a splice names bytes that are not in the pack");
                }
                inside = splice.at + splice.len;
            }
            from = record.at + record.len;
        }
        Ok(())
    }
}

/// A path as text; on unix, one that is no text is kept as its bytes: a path that is changed on
/// its way would make a session look gone.
mod path_text {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        let stored = match path.to_str() {
            Some(text) => Stored::Text(text.to_owned()),
            None => Stored::Bytes(path.as_os_str().as_encoded_bytes().to_owned()),
        };
        stored.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Stored::deserialize(from)? {
            Stored::Text(text) => PathBuf::from(text),
            Stored::Bytes(bytes) => of_bytes(bytes),
        })
    }

    #[cfg(unix)]
    fn of_bytes(bytes: Vec<u8>) -> PathBuf {
        use std::os::unix::ffi::OsStringExt;
        PathBuf::from(std::ffi::OsString::from_vec(bytes))
    }

    #[cfg(not(unix))]
    fn of_bytes(bytes: Vec<u8>) -> PathBuf {
        PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// When and by what a compaction is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// When.
    pub at: Timestamp,
    /// By which run. None: by a program that does not group its compactions.
    pub run: Option<Run>,
    /// The session that this one belongs to, for a sub-agent's or a log.
    pub part_of: Option<SessionKey>,
    /// What belongs to it and was archived before it.
    pub parts: Vec<Part>,
}

impl From<Timestamp> for Made {
    fn from(at: Timestamp) -> Made {
        Made { at, run: None, part_of: None, parts: Vec::new() }
    }
}
