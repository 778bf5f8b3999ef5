//! What the vault records of a kept file and of its versions.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::FileStamp;
use crate::archive::{Digest, Hash};

/// Identifies a kept file: a file, or the rows of a session in a database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileKey {
    /// The name of the machine that keeps the file, which is also the name of the folder of its
    /// packs.
    #[serde(skip)]
    pub machine: String,
    /// The name of the agent: `claude`.
    pub agent: String,
    /// The id of the session that the file belongs to.
    pub session: String,
    /// The name of the file, if it belongs to the session but is not the session's main file, such
    /// as the file of a sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The address of the file: a path, or `DATABASE#ID`.
    #[serde(with = "crate::path_text")]
    pub path: PathBuf,
}

/// The state of a file at a scan for the vault: the content of the file, or that it was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The number of the version, from 1. It is greater than that of the version before it, also if
    /// the file had another path then. Numbers between the two may be missing.
    pub number: u64,
    /// When the version was seen.
    pub seen: Timestamp,
    /// When the file was last modified, if the system says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<Timestamp>,
    /// The length and hash of the content. If the file was deleted, those of an empty file.
    #[serde(flatten)]
    pub digest: Digest,
    /// How the content differs from that of the version before.
    pub change: ContentChange,
    /// Why epitome changed the content; `None` if another program did, or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// In how many places of the content a forgotten text was masked since. The length and the hash
    /// are those of the masked content.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub masked: u64,
    /// The state of the file on disk, if the same state at a later scan proves that the file was
    /// not changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<FileStamp>,
    /// Where the content is.
    pub(super) content: Content,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Version {
    /// Whether the version records that the file was deleted.
    pub fn is_deleted(&self) -> bool {
        self.change == ContentChange::Deleted
    }
}

/// How the content of a version differs from that of the version before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentChange {
    /// This is the first version.
    First,
    /// Bytes were appended.
    Appended,
    /// Bytes were removed from the end.
    Cut,
    /// The content is that of the version with this number.
    Back(u64),
    /// The content changed in another way.
    Rewritten,
    /// The file was deleted.
    Deleted,
}

/// Why epitome itself changed a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The version with this number was restored.
    Restored(u64),
}

/// Where the content of a version is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Content {
    /// These chunks, one after the other.
    Chunks(Vec<Hash>),
    /// The content of an older version, and then these chunks.
    Extends { of: u64, chunks: Vec<Hash> },
    /// The first bytes of another version, or all of them.
    Prefix { of: u64 },
    /// There is none: the file was deleted.
    Nothing,
}

impl Content {
    /// The number of the version that this content refers to, if there is one.
    pub fn base(&self) -> Option<u64> {
        match self {
            Content::Extends { of, .. } | Content::Prefix { of } => Some(*of),
            Content::Chunks(_) | Content::Nothing => None,
        }
    }

    /// The chunks that are named here, without those of other versions.
    pub fn chunks(&self) -> &[Hash] {
        match self {
            Content::Chunks(chunks) | Content::Extends { chunks, .. } => chunks,
            Content::Prefix { .. } | Content::Nothing => &[],
        }
    }
}

/// The versions of one file in a pack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FileVersions {
    #[serde(flatten)]
    pub file: FileKey,
    pub versions: Vec<Version>,
}

/// The last piece of a pack: all versions in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PackVersions {
    pub files: Vec<FileVersions>,
    /// The packs that this pack replaces, as ranges of numbers (first and last), and the packs that
    /// those had replaced. Copies of all these, for example in a remote archive, can be deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<(u64, u64)>,
}
