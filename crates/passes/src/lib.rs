//! Plans what to remove from a context: passes look at a [`View`] of a transcript and plan edits, a
//! [`Recipe`] selects and configures them, and a [`Plan`] is the result.
//!
//! Passes are pure: they propose and do not act. A new pass is one file here and one variant of
//! [`PassSettings`].
//!
//! # Absent
//!
//! Agents and API formats: readers map an agent's names to kinds, and formats have the invariants
//! of what they refuse. No files, no clock, no model.

// Pure crates do no input or output: `clippy.toml` names what they must not use.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod arguments;
mod ask;
mod compaction;
mod copies;
mod decisions;
mod digest;
mod evidence;
pub mod facts;
mod history;
mod images;
mod ingest;
mod keep;
mod key_blocks;
mod kind;
mod languages;
mod level;
mod listed;
mod live;
mod live_settings;
pub mod losses;
mod numbers;
mod pins;
mod recipe;
mod repeats;
mod results;
mod rule_files;
mod settings;
mod stale;
mod stored_ingest;
mod summary;
#[cfg(test)]
mod testing;
mod thinking;
mod trim;
mod verify;
mod view;

pub use arguments::DigestStyle;
pub use ask::{Ask, NoReply, Reply, StopReason, TokenUsage};
pub use compaction::{Options, Plan, PlannedEdit, add_edits, begin, compact, for_reading};
pub use digest::{
    Complete, Digest, DigestRule, FEATURES, FactIndex, Features, fact_features, is_digest,
    named_calls,
};
pub use evidence::is_error_line;
pub use history::history;
pub use ingest::{BatchRule, INGEST, IngestRule, SeenLines, SeenMark, only_text};
pub use keep::{All, Keep, KeepRule, Kept};
pub use kind::{ContextKind, PerKind};
pub use level::{ContextSize, Level, NoTarget, Target};
pub use live::{Event, EventReason, Machine, Missed, NextStep};
pub use live_settings::{Live, ToolRule, When};
pub use numbers::{
    Name, SaidText, call_numbers, calls_of_name, named_texts, response_name, response_numbers,
    results_of_calls, texts_at_calls, texts_of_responses,
};
pub use pins::{
    Pin, PinKind, PinSource, fitted, names as names_of_pins, pinned_text, pins, room_beside,
};
pub use recipe::{
    BUILT_IN, Recipe, RecipeError, Stages, Stop, ThinkingMode, built_in, overflow_recipes,
};
pub use rule_files::RuleFiles;
pub use settings::PassSettings;
pub use summary::{
    AskTotals, Caps, Old, Section, SectionSet, Sections, Struck, Summarising, SummaryProgress,
    SummaryRole, SummaryRule, ToolText, Writer, WrittenSummary, compact_tool,
};
pub use trim::{TrimRule, is_cut, messages};
pub use verify::{Side, recount, verify};
pub use view::{LinesOf, View};

use epitome_model::Edit;

/// Plans edits. A pure function: the same view gives the same edits.
pub trait Pass {
    /// The name of the pass in recipes and reports.
    fn name(&self) -> &'static str;

    /// The edits that the pass proposes, oldest first.
    fn plan(&self, view: &View<'_>) -> Vec<Edit>;
}
