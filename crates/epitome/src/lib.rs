//! epitome makes the context of AI coding agents small, keeps it valid, and gives every byte back.
//!
//! This crate is the engine as programs use it: [`Loaded`] opens and reads a session, [`Planned`]
//! is a compaction that is carried out in memory and held against the laws, [`apply`] archives,
//! proves and replaces, [`restore()`] gives back.
//!
//! # Absent
//!
//! No network but for a model that somebody named. No agent's JSON and no policy: those are the
//! rooms below. Nothing is printed and nobody is asked: that is for the programs above.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod backup;
mod billed;
mod compact;
mod config;
mod drive;
mod family;
pub mod find;
mod garbage;
pub mod hooks;
mod in_place;
mod keyring;
mod list;
pub mod live;
mod port;
pub mod recipes;
mod redact;
mod render;
mod runs;
pub mod settings;
pub mod watch;

pub use archive::{
    About, Archive, Collected, Digest, Draft, EditedRecord, Found, GRACE, GcMode, GcReport,
    Generation, Generations, Grace, Hash, Hex, Made, Need, NoHash, PackWriter, Part, Reason,
    RecordHash, Run, SessionBlobs, SessionKey, UndoSplice, VerifyReport, WayBack,
};
pub use backup::{BackupPlace, keep_backup};
pub use billed::calibration;
pub use compact::{Planned, Shown, Way, apply, apply_to};
pub use config::{Config, Folders};
pub use drive::{
    Asked, Forecast, Naming, catalogue, chosen_model, named_models, summary_writer,
    summary_writer_of,
};
use epitome_error as error;
pub use epitome_error::{Error, ErrorKind, Result};
pub use epitome_store::carry::{ImportReport, Imported, Unjoined};
pub use epitome_store::regular;
use epitome_store::{
    archive, place, reference, restore, rows, session, source, spread, state, store,
};
pub use family::Family;
pub use find::{Meant, SessionFile};
pub use garbage::collect_garbage;
pub use in_place::{
    Compacted, CompactedFamily, CompactedFile, Compacting, GivenBack, GivingBack, Planner, What,
    archive_way_back, compact_family, compact_session, no_parts, plan_session, restore_session,
    undoable,
};
pub use keyring::{KeyPlace, Keyring, NoKeyring, PlatformKeyring, key_of, keyring};
pub use list::{Glance, Listed, known, list};
pub use place::{Place, exists, open};
pub use port::Ported;
pub use redact::{Redacted, Screen, SessionScreen, redacted, rules};
pub use reference::{GitObjects, Reference, Standing, blob_id};
pub use render::{
    ListPrices, Member, Reading, Rendered, ShownSource, Telling, facts_of, rebuild_index,
    render_into, repair, update_index, upsert,
};
pub use restore::{
    Blobs, Damage, Restoration, Restored, Target, check_stubs, restore, restore_block, restore_from,
};
pub use rows::{Rows, Told, vacuum};
pub use runs::{LoggedRun, RunLog, RunSession, RunState, archived_sessions, runs};
pub use session::{Loaded, format_of, writer};
pub use settings::Settings;
pub use source::{FileSource, Spliced};
pub use spread::Spread;
pub use store::{Hold, Replaced, Session, Store, User, users_of, write_new};

/// The examples of the page are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Page;
