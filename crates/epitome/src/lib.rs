//! epitome makes the context of AI coding agents small, keeps it valid, and gives every byte back.
//!
//! [`ops`] compacts and restores stored sessions. An [`OpenSession`](ops::OpenSession) is a session
//! with all files that belong to it; [`Compact`](ops::Compact) and [`Restore`](ops::Restore) change
//! it as one transaction, and return reports. [`Loaded`] is a single session that was opened and
//! read. [`live`] manages the context of an agent that is running: it is [`live::Context`] with a
//! log in a file.
//!
//! [`Config`] has the folders of a machine and reads the environment variables. [`Settings`] are
//! what the user set in files, variables and options, and [`recipes`] finds the recipe that results
//! from them.
//!
//! Most other modules do one thing with sessions each: [`history`] reads them as they were before
//! compactions, [`list`](mod@list) lists them, [`render`] makes pages of them, [`redact`] hides
//! secrets in them, [`port`] converts them for another agent, [`cost`] and [`simulate`] compute
//! what they cost and what they would have cost with other recipes, [`runs`] lists past
//! compactions, [`hooks`] writes transcripts of sessions when they end, [`watch`] compacts sessions
//! that are no longer used, [`keep`] keeps every version of them, and [`forget`] removes what
//! epitome stored of them. [`pipe`] manages the context of a running agent for a program in any
//! language.
//!
//! ```
//! use epitome::ops::{Compact, OpenSession, Restore};
//! use epitome::{Config, built_in};
//! use epitome_tokens::Estimate;
//!
//! # let home = tempfile::tempdir().expect("a folder");
//! # let path = home.path().join("session.jsonl");
//! # let bytes = fixtures::get("pi", "pricing").bytes();
//! # std::fs::write(&path, &bytes).expect("a session");
//! let config = Config::from_home(home.path());
//! let run = config.begin_run("example");
//! let recipe = built_in("epitome").expect("a built-in recipe");
//! let session = OpenSession::new(&config, &path);
//! let report = Compact::new(&recipe, &Estimate::new(), &run).run(&session)?;
//! assert!(report.file.context_tokens.after < report.file.context_tokens.before);
//! Restore::default().run(&OpenSession::new(&config, &path))?;
//! assert_eq!(std::fs::read(&path).expect("a session"), bytes);
//! # Ok::<(), epitome::Error>(())
//! ```
//!
//! # Absent
//!
//! - The network: `epitome-llm` calls models that the user configured, and `epitome-remote` (only
//!   with the feature `remote`) stores copies in object storage.
//! - Agents' JSON: `epitome-formats`. Rules for what is removed: `epitome-passes`.
//! - Printing, and questions to the user: `epitome-cli`, `epitome-web` and `epitome-chat`.
//! - A search index: `epitome-search`.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod additions;
pub mod anatomy;
mod backup;
mod billed;
mod compact;
mod config;
pub mod cost;
pub mod doctor;
mod drive;
mod family;
pub mod forget;
mod garbage;
pub mod history;
pub mod hooks;
pub mod keep;
mod keyring;
pub mod list;
pub mod live;
pub mod ops;
pub mod pipe;
pub mod port;
pub mod quote;
pub mod recipes;
pub mod redact;
#[cfg(feature = "remote")]
pub mod remote;
pub mod render;
pub mod runs;
pub mod service;
pub mod settings;
#[cfg(feature = "remote")]
pub mod share;
pub mod simulate;
pub mod status_line;
pub mod watch;
pub mod wire;

use epitome_error as error;
#[cfg(test)]
use epitome_store::step;
// Modules of `epitome-store`: files of this crate call them `crate::session`, `crate::store` etc.
use epitome_store::{
    place, reference, regular, restore, rows, session, source, state, store, vault,
};

pub use config::Config;
pub use epitome_agents as agents;
pub use epitome_error::{Error, ErrorKind, Result, causes, sentence};
pub use epitome_model::Tokens;
pub use epitome_passes::{Recipe, built_in};
pub use history::{History, Version};
pub use place::{Place, open};
pub use session::Loaded;
pub use settings::{McpServer, Settings};

/// The archive: removed bytes in generations, references to them, and garbage collection.
pub mod archive {
    pub use epitome_store::archive::*;
    pub use epitome_store::archive_transfer::{ImportReport, ImportedPack, RejectedPack};
    pub use epitome_store::reference::{FileState, GitObjects, Reference, blob_id};

    pub use crate::garbage::collect_garbage;
}

/// Single steps of a compaction, for callers that do not use [`ops`].
pub mod compaction {
    pub use crate::backup::{BackupPlace, keep_backup};
    pub use crate::billed::calibration;
    pub use crate::compact::{
        Note, PreparedCompaction, Saving, Savings, ShownEdit, Way, apply, apply_to, removed_pieces,
    };
    pub use crate::family::Family;
}

/// Models that write summaries, and their keys.
pub mod models {
    pub use crate::drive::{
        Forecast, ModelSelection, SummaryJob, catalogue, chosen_model, named_models,
        summary_writer, summary_writer_of,
    };
    pub use crate::keyring::{KeyPlace, Keyring, NoKeyring, PlatformKeyring, key_of, keyring};
}

/// Sessions on disk: open, lock, replace, restore.
pub mod storage {
    pub use epitome_store::file_tree::FileTreeSession;
    pub use epitome_store::place::exists;
    pub use epitome_store::regular;
    pub use epitome_store::restore::{
        Blobs, Damage, Restoration, RestoreOutcome, RestoreTarget, check_stubs, restore,
        restore_block, restore_from,
    };
    pub use epitome_store::rows::{Rows, SessionRow, vacuum};
    pub use epitome_store::session::{format_of, key_of, load, load_at, writer};
    pub use epitome_store::source::{FileSource, Spliced};
    pub use epitome_store::state::compactions;
    pub use epitome_store::store::{
        FileLock, LockedSession, ReplaceReport, Store, User, users_of, write_new,
    };
}

/// Runs the examples of `docs/library.md` as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Page;
