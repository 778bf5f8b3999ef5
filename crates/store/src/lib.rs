//! Sessions on disk, the archive of removed bytes, restoring and replacing.
//!
//! A [`Place`] is where a session is stored: a file, rows of a database, or many files. [`Loaded`]
//! is a session that was opened and read. A [`Store`] locks a session against other processes and
//! replaces it atomically; [`LockedSession`] is the locked session.
//!
//! The [`Archive`] keeps the bytes that were removed. Each compaction is a [`Generation`]: one pack
//! of removed bytes, with how to put each back. [`restore`] computes which bytes of a session to
//! replace to undo generations, and proves the result by hash; where another program has changed
//! the file, it undoes record by record. A restore is a list of splices: nothing is written until
//! [`Store`] does.
//!
//! The [`Vault`] keeps the versions of sessions that were seen, in chunks that versions and
//! sessions share.
//!
//! Everything survives a process that is killed and a disk that is full: a pack is complete or
//! absent, and a session is unchanged or replaced as a whole.
//!
//! ```
//! use epitome_formats::Spliced;
//! use epitome_model::{Span, Splice};
//! use epitome_store::archive::{About, Archive, SessionKey, UndoData};
//! use epitome_store::restore::{RestoreTarget, restore};
//! # use epitome_model::{Source, Tokens};
//! # use epitome_store::archive::Draft;
//! # let home = tempfile::tempdir().expect("a folder");
//!
//! let (archive, key) = (Archive::new(home.path()), SessionKey::new("pi", "s"));
//! let before: &[u8] = b"one two three\n";
//! let splice = Splice { span: Span { start: 4, end: 8 }, with: b"".as_slice().into() };
//! let after = Spliced::new(&before, vec![splice])?;
//! let way = UndoData::between(&before, &after)?;
//! let mut pack = archive.begin(&key)?;
//! pack.put(b"two ", About::default())?;
//! # let draft = Draft {
//! #     path: "s.jsonl".into(),
//! #     recipe: "example".into(),
//! #     made: jiff::Timestamp::UNIX_EPOCH,
//! #     run: None,
//! #     part_of: None,
//! #     parts: Vec::new(),
//! #     before: way.before,
//! #     after: way.after,
//! #     records: way.records,
//! #     tokens_before: Tokens(3),
//! #     tokens_after: Tokens(2),
//! #     edits: Default::default(),
//! #     shared: Some(way.shared),
//! # };
//! pack.commit(draft)?;
//! let generations = archive.generations(&key)?.whole;
//! let found = restore(&after, &generations, &archive.blobs(&key), RestoreTarget::Original)?;
//! let restored = Spliced::new(&after, found.splices)?;
//! assert_eq!(&*restored.read(0..restored.len()), before);
//! # Ok::<(), epitome_error::Error>(())
//! ```
//!
//! # Absent
//!
//! - Where agents keep sessions, and how they lock them: `epitome-agents`.
//! - What a compaction removes: `epitome-passes` and `epitome-engine`.
//! - Memory maps: if a file that is mapped becomes shorter, the process is killed.
//! - The process environment: the caller passes in the folder of the archive.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod archive;
pub mod archive_transfer;
pub mod compressed;
pub mod file_tree;
pub mod forgotten;
pub mod original;
pub(crate) mod path_text;
pub mod place;
pub mod reference;
pub mod regular;
pub mod restore;
pub mod rows;
pub mod session;
pub mod source;
pub mod state;
pub mod step;
pub mod store;
pub mod vault;

pub use archive::{Archive, Generation};
pub use place::Place;
pub use session::Loaded;
pub use store::{LockedSession, Store};
pub use vault::Vault;
