//! What may go: passes look at a [`View`] of a transcript and plan edits, a [`Recipe`] orders and
//! tunes them, and a [`Compaction`] is what they come to.
//!
//! Passes are pure: they propose and do not act. A new pass is one file here and one variant of
//! [`PassSettings`].
//!
//! # Absent
//!
//! No format and no wire: an agent's names end at its reader, and what its wire refuses is said by
//! its laws. No files, no clock, no model.

// Floors 1 and 2 do no IO: `clippy.toml` names what they do without.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod arguments;
mod ask;
mod birth;
mod changes;
mod compaction;
mod copies;
mod evidence;
mod images;
mod keep;
mod level;
mod live;
mod recipe;
mod repeats;
mod results;
mod settings;
mod snip;
mod stale;
mod summary;
#[cfg(test)]
mod testing;
mod thinking;
mod verify;
mod view;

pub use ask::{Ask, NoReply, Reply, StopReason, TokenUsage};
pub use birth::{BatchRule, Birth, Seen};
pub use changes::{Changes, Inputs, SummaryChanges};
pub use compaction::{Compaction, Options, Planned, compact, for_reading};
pub use evidence::is_error_line;
pub use keep::{Keep, KeepRule, Kept};
pub use level::{Level, Target};
pub use live::{Event, Gauge, Live, Machine, Missed, Step, ToolRule, When, Why};
pub use recipe::{BUILT_IN, Recipe, RecipeError, Stop, ThinkingMode, Trigger, built_in};
pub use settings::PassSettings;
pub use snip::{Snip, is_cut, messages};
pub use summary::{
    Answered, Caps, Old, Section, SectionSet, Sections, Spent, Struck, Summarising, SummaryRole,
    SummaryRule, ToolText, Writer, Written, compact_tool,
};
pub use verify::{Side, recount, verify, verify_appended, verify_marked, verify_summarised};
pub use view::{LinesOf, View};

use epitome_model::Edit;

/// Plans edits. Pure: the same view gives the same edits.
pub trait Pass {
    /// Its name in recipes and reports.
    fn name(&self) -> &'static str;

    /// The edits it proposes, oldest first.
    fn plan(&self, view: &View<'_>) -> Vec<Edit>;
}
