//! epitome makes the context of AI coding agents small, keeps it valid, and gives every byte back.
//!
//! [`Loaded`] is a session that was opened and read. [`ops`] compacts and restores sessions, with
//! all files that belong to them. [`live`] keeps the context of an agent that is running.
//!
//! # Absent
//!
//! No network unless a model is configured. No agent's JSON and no compaction rules: those are in
//! lower crates. Nothing is printed and the user is never asked: that is for the programs above.

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
mod garbage;
pub mod history;
pub mod hooks;
mod keyring;
pub mod list;
pub mod live;
pub mod ops;
pub mod pipe;
pub mod port;
pub mod quote;
pub mod recipes;
pub mod redact;
pub mod render;
pub mod runs;
pub mod settings;
pub mod simulate;
pub mod status_line;
pub mod watch;

use epitome_error as error;
#[cfg(test)]
use epitome_store::step;
use epitome_store::{place, reference, regular, restore, rows, session, source, state, store};

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
    pub use epitome_store::carry::{ImportReport, Imported, Unjoined};
    pub use epitome_store::reference::{FileState, GitObjects, Reference, blob_id};

    pub use crate::garbage::collect_garbage;
}

/// One compaction, step by step. [`ops`] does all steps.
pub mod compaction {
    pub use crate::backup::{BackupPlace, keep_backup};
    pub use crate::billed::calibration;
    pub use crate::compact::{
        CompactionPlan, Note, Saving, Savings, ShownEdit, Way, apply, apply_to,
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
        Blobs, Damage, Restoration, RestoreTarget, Restored, check_stubs, restore, restore_block,
        restore_from,
    };
    pub use epitome_store::rows::{Rows, SessionRow, vacuum};
    pub use epitome_store::session::{format_of, key_of, load, load_at, writer};
    pub use epitome_store::source::{FileSource, Spliced};
    pub use epitome_store::state::compactions;
    pub use epitome_store::store::{Hold, Replaced, Session, Store, User, users_of, write_new};
}

/// The examples of `docs/library.md` are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Page;
