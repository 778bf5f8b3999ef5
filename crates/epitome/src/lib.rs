//! epitome makes the context of AI coding agents small, keeps it valid, and gives every byte back.
//!
//! [`Loaded`] opens and reads a session. [`ops`] compacts and restores it, with all that belongs to
//! it. [`live`] keeps the context of an agent that runs.
//!
//! # Absent
//!
//! No network but for a model that somebody named. No agent's JSON and no policy: those are the
//! rooms below. Nothing is printed and nobody is asked: that is for the programs above.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

#[cfg(feature = "sessions")]
mod backup;
#[cfg(feature = "sessions")]
mod billed;
#[cfg(feature = "sessions")]
mod compact;
#[cfg(feature = "sessions")]
mod config;
#[cfg(feature = "sessions")]
mod drive;
#[cfg(feature = "sessions")]
mod family;
#[cfg(feature = "sessions")]
mod garbage;
#[cfg(feature = "sessions")]
pub mod history;
#[cfg(feature = "render")]
pub mod hooks;
#[cfg(feature = "sessions")]
mod keyring;
#[cfg(feature = "sessions")]
pub mod list;
pub mod live;
#[cfg(feature = "sessions")]
pub mod ops;
#[cfg(feature = "sessions")]
pub mod pipe;
#[cfg(feature = "sessions")]
pub mod port;
#[cfg(feature = "sessions")]
pub mod quote;
#[cfg(feature = "sessions")]
pub mod recipes;
#[cfg(feature = "sessions")]
pub mod redact;
#[cfg(feature = "render")]
pub mod render;
#[cfg(feature = "sessions")]
pub mod runs;
#[cfg(feature = "sessions")]
pub mod settings;
#[cfg(feature = "render")]
pub mod simulate;
#[cfg(feature = "sessions")]
pub mod watch;

#[cfg(feature = "sessions")]
use epitome_error as error;
#[cfg(all(test, feature = "sessions"))]
use epitome_store::step;
#[cfg(feature = "sessions")]
use epitome_store::{place, reference, regular, restore, rows, session, source, state, store};

#[cfg(feature = "sessions")]
pub use config::Config;
#[cfg(feature = "sessions")]
pub use epitome_agents as agents;
pub use epitome_error::{Error, ErrorKind, Result, causes, sentence};
pub use epitome_model::Tokens;
pub use epitome_passes::{Recipe, built_in};
#[cfg(feature = "sessions")]
pub use history::{History, Version};
#[cfg(feature = "sessions")]
pub use place::{Place, open};
#[cfg(feature = "sessions")]
pub use session::Loaded;
#[cfg(feature = "sessions")]
pub use settings::{McpServer, Settings};

/// Removed bytes: generations, what they refer to, and what of them may go.
#[cfg(feature = "sessions")]
pub mod archive {
    pub use epitome_store::archive::*;
    pub use epitome_store::carry::{ImportReport, Imported, Unjoined};
    pub use epitome_store::reference::{FileState, GitObjects, Reference, blob_id};

    pub use crate::garbage::collect_garbage;
}

/// One compaction, step by step. [`ops`] does all of it.
#[cfg(feature = "sessions")]
pub mod compaction {
    pub use crate::backup::{BackupPlace, keep_backup};
    pub use crate::billed::calibration;
    pub use crate::compact::{CompactionPlan, Note, Saving, Savings, Shown, Way, apply, apply_to};
    pub use crate::family::Family;
}

/// Models that write summaries, and their keys.
#[cfg(feature = "sessions")]
pub mod models {
    pub use crate::drive::{
        Forecast, ModelSelection, SummaryJob, catalogue, chosen_model, named_models,
        summary_writer, summary_writer_of,
    };
    pub use crate::keyring::{KeyPlace, Keyring, NoKeyring, PlatformKeyring, key_of, keyring};
}

/// Sessions on disk: opened, locked, replaced, restored.
#[cfg(feature = "sessions")]
pub mod storage {
    pub use epitome_store::file_tree::FileTreeSession;
    pub use epitome_store::place::exists;
    pub use epitome_store::regular;
    pub use epitome_store::restore::{
        Blobs, Damage, Restoration, Restored, Target, check_stubs, restore, restore_block,
        restore_from,
    };
    pub use epitome_store::rows::{Rows, SessionRow, vacuum};
    pub use epitome_store::session::{format_of, key_of, load, load_at, writer};
    pub use epitome_store::source::{FileSource, Spliced};
    pub use epitome_store::state::compactions;
    pub use epitome_store::store::{Hold, Replaced, Session, Store, User, users_of, write_new};
}

/// The examples of the page are tests.
#[cfg(all(doctest, feature = "render"))]
#[doc = include_str!("../../../docs/library.md")]
struct Page;
