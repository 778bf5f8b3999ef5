//! Plans what to remove from a context. Everything here is a pure function: it proposes edits and
//! carries none out.
//!
//! A [`Recipe`] is data: what is kept whole, when a compaction starts and how far it goes, and
//! which stages do it. A pass, one of [`PassSettings`], looks at a [`View`] of a transcript and
//! proposes edits. [`plan_edits`] runs the passes of a recipe and returns a [`Plan`]: the
//! edits with
//! what each saves, and what is kept and why. [`verify`] checks a compacted session against the
//! original session and the plan, however the edits were written.
//!
//! The other stages: [`IngestRule`] truncates a result before it is first sent, [`TrimRule`]
//! removes messages from the middle, [`DigestRule`] replaces the old part by lines chosen from it,
//! and [`SummaryInProgress`] makes the questions for a summary and checks the answers. [`Machine`]
//! decides when a live context is compacted.
//!
//! [`pins`] finds texts that set rules for the agent: every compaction keeps them, or names those
//! that do not fit. [`facts`] finds the strings that a model cannot guess, and [`losses`] finds
//! what a compaction removed. A new pass is one file and one variant of [`PassSettings`].
//!
//! ```
//! use epitome_passes::{ContextKind, Options, built_in, plan_edits};
//! # use epitome_model::ToolKind;
//! # let mut sample = samples::Sample::new().user("Read it.");
//! # for _ in 0..9 {
//! #     sample = sample.call(ToolKind::Read, "a.rs").output(&"fn main() {}\n".repeat(90));
//! # }
//! # let sample = sample.reply("It has one function.");
//!
//! // `sample` is a session in which a file is read nine times.
//! let options = Options {
//!     kind: ContextKind::Stored,
//!     counter: &samples::Quarters,
//!     thinking_is_bound: |_| false,
//!     counted: &[],
//! };
//! let recipe = built_in("s06").expect("a built-in recipe");
//! let plan = plan_edits(sample.transcript(), sample.source(), &recipe, &options);
//! // The recipe replaces all results but the last three.
//! assert_eq!(plan.edits.len(), 6);
//! ```
//!
//! # Absent
//!
//! - Agents and their formats: readers map names of tools to kinds, and `epitome-formats` writes
//!   edits.
//! - Calling a model: the caller sends the questions of a summary.
//! - Files, clocks, the network.

// Pure crates do no input or output: `clippy.toml` names what they must not use.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod arguments;
mod ask;
mod compaction;
mod copies;
mod decisions;
mod digest;
mod effects;
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
mod price;
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
pub use compaction::{Options, Plan, PlannedEdit, add_edits, begin, edits_for_reading, plan_edits};
pub use digest::{
    Complete, Digest, DigestBudget, DigestRule, FEATURES, FactIndex, Features, fact_features,
    is_digest, named_calls,
};
pub use evidence::is_error_line;
pub use history::history;
pub use ingest::{BatchRule, INGEST, IngestRule, SHORTENED, SeenLines, SeenMark, only_text};
pub use keep::{All, Keep, KeepRule, KeptParts};
pub use kind::{ContextKind, PerKind};
pub use level::{ContextSize, Level, NoTarget, Target};
pub use live::{Event, EventReason, Machine, NextStep, TargetExcess};
pub use live_settings::{Live, StageTiming, ToolRule};
pub use numbers::{
    Name, ResponseText, call_numbers, calls_of_name, named_texts, response_name, response_numbers,
    results_of_calls, texts_at_calls, texts_of_responses,
};
pub use pins::{
    Pin, PinKind, PinSource, pin_names as names_of_pins, pinned_text, pins, remaining_room,
    shorten_to_fit,
};
pub use price::{CachePrices, PricedCut, is_worth};
pub use recipe::{
    BUILT_IN, Recipe, RecipeError, Stages, Stop, ThinkingMode, built_in, overflow_recipes,
};
pub use rule_files::RuleFiles;
pub use settings::PassSettings;
pub use summary::{
    AskTotals, Caps, ReplacedHistory, Section, SectionSet, Sections, StruckCounts,
    SummaryInProgress, SummaryProgress, SummaryRole, SummaryRule, ToolText, Writer, WrittenSummary,
    compact_tool,
};
pub use trim::{TrimRule, is_cut, messages};
pub use verify::{Side, new_violations, recount, verify};
pub use view::{LinesOf, View};

use epitome_model::Edit;

/// Plans edits. A pure function: the same view gives the same edits.
pub trait Pass {
    /// The name of the pass in recipes and reports.
    fn name(&self) -> &'static str;

    /// The edits that the pass proposes, in the order in which they are made until a target is
    /// reached: the oldest first, unless the settings of the pass say otherwise.
    fn plan(&self, view: &View<'_>) -> Vec<Edit>;
}
