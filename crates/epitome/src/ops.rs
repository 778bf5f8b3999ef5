//! Operations on sessions: each takes an [`OpenSession`] and options, and returns a report whose
//! serde form is the documented JSON (`docs/json.md`). The program, the viewer, hooks and `watch`
//! call these.
//!
//! A session and the files that belong to it (the sessions of sub-agents, logs that a database
//! keeps) are one transaction. All files are planned first; then everything that will be removed is
//! archived and proved; then all new files are written next to the old ones; and only then they
//! replace them. If one cannot be replaced, those that were are replaced again by what they were.
//! If the process is killed between two replacements, a part of the session is compacted: the next
//! compaction does the rest, and a restore gives all of it back.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use epitome::Config;
//! use epitome::ops::{Compact, OpenSession};
//! use epitome_passes::built_in;
//! use epitome_tokens::O200k;
//!
//! let config = Config::from_env()?;
//! let recipe = built_in("epitome").expect("a recipe of the program");
//! let run = config.begin_run("example");
//! let session = OpenSession::at(&config, Path::new("session.jsonl"));
//! let report = Compact::new(&recipe, &O200k::new(), &run).run(&session)?;
//! println!("{} → {} tokens", report.file.context_tokens.before, report.file.context_tokens.after);
//! # Ok::<(), epitome::Error>(())
//! ```

pub(crate) mod archived;
mod change;
mod compact;
mod inspect;
mod losses;
mod open;
mod quote;
mod replace;
mod report;
mod restore;
mod restored;
mod show;
mod sizes;
mod summary;

pub use change::Change;
pub use compact::Compact;
pub use inspect::{Inspect, Inspection, InspectionFit, OriginalState};
pub use losses::{
    AgainTotal, Amount, CompactedBy, CompactionLosses, FactTotals, LossGroup, LossMembers,
    LossReport, Piece, WayBack, planned_losses, session_losses, session_text,
};
pub(crate) use open::is_no_part;
pub use open::{OpenSession, is_run_in};
pub(crate) use quote::timestamp;
pub use quote::{CompactionPrice, PROMPT, RecordedRequest, compaction_prices};
pub use report::{
    CompactReport, CompactedFile, FaultFound, Fitted, KeptBecause, Outcome, RuleKept, UserFound,
    WayTaken,
};
pub use restore::{Restore, What, archive_way_back};
pub use restored::{GivenBack, How, RestoreReport, RestoredFile};
pub use show::{ArchivedText, archived_text};
pub use sizes::SizeRow;
pub use summary::{AUTO, AskedModels, ModelEvent, ModelRequest, Questions, SummaryFrom, WouldAsk};

use std::path::Path;

use crate::archive::Generation;
use crate::config::Config;
use crate::error::Result;

/// The generations that are in effect in a file, oldest first. None if the file cannot be read.
///
/// # Errors
///
/// `NoPermission`, `Unreadable` when the archive cannot be listed.
pub(crate) fn compactions_in(config: &Config, path: &Path) -> Result<Option<Vec<Generation>>> {
    restore::compactions_in(config, &open::SessionPart::at(path))
}

#[cfg(test)]
mod tests;
