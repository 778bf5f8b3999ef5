//! Operations on sessions. Most take an [`OpenSession`] and options, and return a report whose
//! serde form is the documented JSON (`docs/json.md`). The program, the viewer, hooks and `watch`
//! call these.
//!
//! A session and the files that belong to it (the sessions of sub-agents, and other rows of the
//! session in a database) are changed in one transaction. First, all files are planned. Then all
//! bytes that will be removed are archived, and it is proved that they can be restored. Then all
//! new files are written next to the old files, and after that they replace the old files. If a
//! file cannot be replaced, the files that were replaced before it get their old content back. If
//! the process is killed between two replacements, only some of the files are compacted: the next
//! compaction compacts the others, and a restore gives everything back.
//!
//! ```
//! use epitome::ops::{Compact, OpenSession};
//!
//! # let home = tempfile::tempdir().expect("a folder");
//! # let config = epitome::Config::from_home(home.path());
//! # let path = home.path().join("session.jsonl");
//! # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
//! # let run = config.begin_run("example");
//! # let recipe = epitome::built_in("epitome").expect("a recipe");
//! # let counter = epitome_tokens::Estimate::new();
//! // `path` is a session, `run` is a run of the caller's program.
//! let session = OpenSession::new(&config, &path);
//! let report = Compact::new(&recipe, &counter, &run).run(&session)?;
//! assert!(report.file.context_tokens.after < report.file.context_tokens.before);
//! // A compacted session has nothing left to compact.
//! let again = Compact::new(&recipe, &counter, &run).run(&OpenSession::new(&config, &path))?;
//! assert!(again.is_nothing());
//! # Ok::<(), epitome::Error>(())
//! ```

pub(crate) mod archived;
mod change;
mod compact;
mod in_memory;
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
mod window;

pub use change::Change;
pub use compact::Compact;
pub use in_memory::{CompactedBytes, Extras, RestoredBytes, restore_bytes};
pub use inspect::{Inspect, Inspection, InspectionFit, OriginalState};
pub(crate) use losses::is_compaction;
pub use losses::{
    AgainTotal, CompactedBy, CompactionLosses, FactTotals, LossAmount, LossGroup, LossMembers,
    LossReport, LostText, RecoveryCommand, planned_losses, planned_losses_in_short, session_losses,
    session_text,
};
pub use open::{OpenSession, is_run_in};
pub(crate) use open::{SessionPart, is_no_part, is_same_file};
pub(crate) use quote::timestamp;
pub use quote::{CompactionPrice, PROMPT, RecordedRequest, compaction_prices};
pub(crate) use replace::{LockedFile, check_replaceable, replace_all};
pub use report::{
    BillingFit, CompactReport, CompactedFile, FaultFound, KeptBecause, MissedChars, Outcome,
    RuleCount, UserFound, WrittenWay,
};
pub use restore::{Restore, What, archive_way_back};
pub use restored::{FileRestore, How, RestoreReport, RestoredFile};
pub use show::{ArchivedText, archived_text};
pub use sizes::SizeRow;
pub use summary::{AUTO, AskedModels, ModelEvent, ModelRequest, Questions, SummaryFrom, WouldAsk};
pub use window::{WindowLimits, WindowShare};

use std::path::Path;

use crate::archive::Generation;
use crate::config::Config;
use crate::error::Result;

/// The generations that are in effect in the file at a path, the oldest first. `None` if there is
/// no file, or if it is no session.
///
/// # Errors
///
/// The errors of reading the file and the archive, for example `NoPermission`.
pub(crate) fn compactions_in(config: &Config, path: &Path) -> Result<Option<Vec<Generation>>> {
    restore::compactions_in(config, &SessionPart::at(path))
}

#[cfg(test)]
mod tests;
