//! Packs of the archive in object storage: S3 and services with the same API, Google Cloud Storage,
//! Azure Blob Storage, or a folder.
//!
//! [`ObjectPackStore`] is a [`PackStore`](epitome_store::archive::pack_store::PackStore) over such
//! a storage. Before packs leave the machine, they are encrypted with a [`SealKey`]; their names
//! are replaced by keyed hashes. [`push`] copies to the storage the packs that it does not have;
//! [`pull`] copies the packs of one session or of all sessions to this machine, and proves each.
//! [`push_vault`] and [`pull_vault`] do so for the packs of the vault.
//!
//! [`SharedFolder`] is not part of the archive: it has redacted sessions that a team reads, and is
//! not encrypted.
//!
//! # Objects
//!
//! ```text
//! <url>/epitome.json            the format, and the public part of the key; not encrypted
//! <url>/n/<folder>/…/<name>     one for each name: what is stored under it, and where; encrypted
//! <url>/p/<hash of its header>  the bytes of a pack: an age file
//! ```
//!
//! Each part of a name is a keyed hash. The object of a pack's name is small, and is created only
//! if no object of that name exists, after the bytes are stored completely: so a pack is whole or
//! absent, and if two writers use one name, the first one gets it. A listing may be out of date, so
//! only the creation of the object decides whether a name is free. The object itself contains the
//! name, so there is no index that could be wrong.
//!
//! # Absent
//!
//! - What is pushed when, and where the key is kept: `epitome::remote`.
//! - Finding out which packs of the archive are no longer needed.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod address;
mod connection;
mod failure;
mod head;
mod key;
mod marker;
mod payload;
mod shared;
mod store;
mod transfer;
mod upload;
mod vault;

pub use address::{Address, Retries};
pub use key::{NotAKey, SealKey};
pub use shared::{SharedFile, SharedFolder};
pub use store::ObjectPackStore;
pub use transfer::{PullReport, PushRecord, PushReport, hidden_folder, pull, push, push_new};
pub use vault::{PulledPacks, VaultPushReport, pull_vault, push_vault};
