//! What stands in the index.
//!
//! A document for each thing that is said, and one for each session, which says what is known of
//! it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};

use super::words;

/// What stands in the field `role` of a session's own document.
pub(super) const SESSION: &str = "session";

/// The fields of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Of which session: a hash of its path.
    pub(super) session: Field,
    /// Which thing of the session: a hash of its anchor, or of the session for its own document.
    pub(super) piece: Field,
    /// Length and time of the session, in its own document.
    pub(super) size: Field,
    pub(super) modified: Field,
    /// What can be filtered by.
    pub(super) agent: Field,
    pub(super) project: Field,
    /// Hashes of the folder that the session was run in, and of those above it.
    pub(super) folder: Field,
    pub(super) role: Field,
    pub(super) id: Field,
    /// What is said.
    pub(super) text: Field,
    /// [`Place`] or [`Known`], in JSON.
    pub(super) about: Field,
    /// In a session's own document: all its pieces, each with a hash of what it says.
    pub(super) pieces: Field,
}

impl Shape {
    pub(super) fn new() -> (Schema, Shape) {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(words::NAME)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let text = TextOptions::default().set_indexing_options(indexing);
        let shape = Shape {
            session: schema.add_u64_field("session", INDEXED | FAST),
            piece: schema.add_u64_field("piece", INDEXED),
            size: schema.add_u64_field("size", FAST),
            modified: schema.add_u64_field("modified", FAST),
            agent: schema.add_text_field("agent", STRING),
            project: schema.add_text_field("project", text.clone()),
            folder: schema.add_u64_field("folder", INDEXED),
            role: schema.add_text_field("role", STRING),
            id: schema.add_text_field("id", STRING),
            text: schema.add_text_field("text", text.set_stored()),
            about: schema.add_text_field("about", STORED),
            pieces: schema.add_bytes_field("pieces", STORED),
        };
        (schema.build(), shape)
    }
}

/// Where something is said.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) anchor: String,
    pub(super) item: usize,
    pub(super) turn: usize,
    pub(super) role: String,
    pub(super) kind: String,
    pub(super) time: Option<String>,
    /// The sub-agent that says it: its number, from 0.
    pub(super) sub_agent: Option<usize>,
}

/// What is known of a session. All but the path is without secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) path: String,
    pub(super) agent: String,
    pub(super) id: String,
    pub(super) project: Option<String>,
    pub(super) title: String,
}

/// A number for a text, of which no two in a machine's sessions are the same.
pub(super) fn number(parts: &[&[u8]]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let hash = hasher.finalize();
    let (first, _) = hash.as_bytes().split_first_chunk().expect("a hash has 32 bytes");
    u64::from_le_bytes(*first)
}

/// A number for a folder.
pub(super) fn folder(path: &Path) -> u64 {
    number(&[path.as_os_str().as_encoded_bytes()])
}
