//! Recipes: data that says which stages run, in which order, and with which settings.

mod change;
mod file;

use std::fmt;

use epitome_model::Tokens;
use serde::{Deserialize, Serialize};
use toml::de::DeTable;

use crate::settings::PassSettings;
use crate::{
    DigestRule, IngestRule, Keep, Level, Live, PerKind, RuleFiles, SummaryRule, Target, TrimRule,
};

/// A recipe: what is kept whole, when a compaction starts and how far it goes, and the stages that
/// remove the rest.
///
/// ```
/// use epitome_passes::Recipe;
///
/// let recipe = Recipe::parse(r#"
///     name = "mine"
///     about = "Clears old results."
///     keep = { results = 3 }
///
///     [[stages.passes]]
///     pass = "results"
///     style = "cleared"
/// "#)?;
/// assert_eq!(recipe.name, "mine");
/// # Ok::<(), epitome_passes::RecipeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a recipe")]
pub struct Recipe {
    /// The name of the recipe.
    pub name: String,
    /// What the recipe does, in one sentence.
    pub about: String,
    /// What is kept whole.
    #[serde(default)]
    pub keep: Keep,
    /// Names of files that set rules for the agent, whose texts stay. In a recipe file:
    /// `keep.pins`.
    #[serde(default)]
    pub rule_files: RuleFiles,
    /// The size of a context at which a compaction starts. See [`Recipe::live_trigger`].
    #[serde(default)]
    pub trigger: PerKind<Level>,
    /// The size that a compaction should reach. Without a target, the passes remove all that they
    /// can.
    #[serde(default)]
    pub target: PerKind<Option<Target>>,
    /// Where a compaction may stop once the target is reached.
    #[serde(default)]
    pub stop: Stop,
    /// Minimum saving in tokens: a smaller one is not worth invalidating the provider's cache.
    pub at_least: Option<u64>,
    /// Names of tools whose calls and results stay, in every pass.
    #[serde(default)]
    pub exempt_tools: Vec<String>,
    /// The stages, in order.
    pub stages: PerKind<Stages>,
    /// Settings for live contexts only.
    #[serde(default)]
    pub live: Live,
}

/// The stages of a recipe, in the order in which they run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default, expecting = "a table of stages")]
pub struct Stages {
    /// How results are truncated before they are first sent. In a stored session they are truncated
    /// afterwards, by the same rules.
    pub ingest: Option<IngestRule>,
    /// How messages are removed from the middle of a context that has too many.
    pub trim: Option<TrimRule>,
    /// The passes, in order. If two passes would edit the same position, only the first of them
    /// edits it. The exception is the pass `results` with the setting `again`, which edits it once
    /// more.
    pub passes: Vec<PassSettings>,
    /// The digest: one entry of chosen lines that replaces the beginning of the context.
    pub digest: Option<DigestRule>,
    /// The summary, if the passes are not enough. For a stored session, a model is called only if
    /// the user names one.
    pub summary: Option<SummaryRule>,
}

/// Where a compaction may stop once its target is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// After any edit.
    #[default]
    Edit,
    /// After a whole pass.
    Pass,
}

/// What to do with old reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ThinkingMode {
    /// Old reasoning stays.
    Keep,
    /// Old reasoning is removed, whole.
    Drop,
}

/// The error of parsing a text that is not a recipe.
#[derive(Debug)]
pub struct RecipeError(toml::de::Error);

impl fmt::Display for RecipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a recipe")
    }
}

impl std::error::Error for RecipeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl RecipeError {
    /// The parse error, with its position.
    pub fn into_cause(self) -> toml::de::Error {
        self.0
    }
}

impl Recipe {
    /// Parses a recipe in TOML. `docs/recipes.md` lists its keys; keys of earlier versions are
    /// accepted, too.
    ///
    /// # Errors
    ///
    /// [`RecipeError`], whose source has the position and the reason. An unknown key is an error.
    pub fn parse(text: &str) -> Result<Recipe, RecipeError> {
        file::parse(text).map_err(RecipeError)
    }

    /// Parses the tables of a recipe file. Each value is at the position that it has in `Recipe`,
    /// and keys have the positions at which they are in the text, unless they were moved.
    ///
    /// # Errors
    ///
    /// [`RecipeError`] if the text is not TOML, or if it has a value twice, by different names.
    pub fn parse_table(text: &str) -> Result<toml::Spanned<DeTable<'_>>, RecipeError> {
        file::table(text).map_err(RecipeError)
    }

    /// The size at which a live context is compacted: the recipe's trigger for live contexts, or
    /// else its trigger for stored sessions. If the recipe has neither, [`Machine`](crate::Machine)
    /// uses 80 per cent of the window without the reserve, the tokens that are kept free for the
    /// reply.
    pub fn live_trigger(&self) -> Level {
        let PerKind { stored, live } = self.trigger;
        if live == Level::default() { stored } else { live }
    }

    /// Whether the recipe has a limit in per cent of the window for stored sessions. If so, the
    /// caller must set the window: see [`Recipe::with_window`].
    pub fn asks_for_window(&self) -> bool {
        let target = self.target.stored.and_then(|target| target.percent);
        target.or(self.trigger.stored.percent).is_some()
    }

    /// The recipe with its percentages for stored sessions converted to tokens. `window` is the
    /// window of the model, in tokens.
    #[must_use]
    pub fn with_window(mut self, window: Tokens) -> Recipe {
        let usable = Some(self.live.usable(window));
        if let Some(target) = &mut self.target.stored {
            let tokens = target.tokens(usable).map(|tokens| tokens.0);
            *target = Target { tokens, percent: None, ..*target };
        }
        let trigger = &mut self.trigger.stored;
        if let Some(percent) = trigger.percent.take() {
            let tokens = Target { percent: Some(percent), ..Target::default() }.tokens(usable);
            // The context must reach both limits, so the larger limit applies.
            trigger.tokens = trigger.tokens.max(tokens.map(|tokens| tokens.0));
        }
        self
    }

    /// Whether a summary is the only thing that the recipe does to a stored session.
    pub fn is_summary_alone(&self) -> bool {
        let Stages { ingest, trim, passes, digest, summary } = &self.stages.stored;
        let others = ingest.is_some() || trim.is_some() || digest.is_some();
        summary.is_some() && passes.is_empty() && !others
    }
}

/// The built-in recipes with their TOML. The first is the default.
pub const BUILT_IN: [(&str, &str); 11] = [
    ("epitome", include_str!("recipes/epitome.toml")),
    ("digest", include_str!("recipes/digest.toml")),
    ("gitclaw", include_str!("recipes/gitclaw.toml")),
    ("transcript", include_str!("recipes/transcript.toml")),
    ("transcript-no-thinking", include_str!("recipes/transcript-no-thinking.toml")),
    ("clear-tool-uses", include_str!("recipes/clear-tool-uses.toml")),
    ("s06", include_str!("recipes/s06.toml")),
    ("s08", include_str!("recipes/s08.toml")),
    ("jcli", include_str!("recipes/jcli.toml")),
    ("ion", include_str!("recipes/ion.toml")),
    ("pi", include_str!("recipes/pi.toml")),
];

/// The recipes for a context that is still too large after its own recipe. They are used one after
/// the other: the first compacts all results that the model has answered, the second also results
/// without an answer.
const OVERFLOW: [&str; 2] = [
    include_str!("recipes/overflow/answered.toml"),
    include_str!("recipes/overflow/unanswered.toml"),
];

/// The recipes that are used one after the other if a context is too large for its window and its
/// own recipe is not enough. They cannot be selected by name.
///
/// # Panics
///
/// If a built-in recipe is invalid; a test parses them all.
pub fn overflow_recipes() -> [Recipe; 2] {
    OVERFLOW.map(|text| Recipe::parse(text).expect("a test reads every recipe of the program"))
}

/// The built-in recipe with the name `name`; `None` if there is no such recipe.
///
/// # Panics
///
/// If the built-in recipe is invalid; a test parses them all.
pub fn built_in(name: &str) -> Option<Recipe> {
    let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
    Some(Recipe::parse(text).expect("a test reads every built-in recipe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_recipes_are_called_what_their_files_are() {
        for (name, _) in BUILT_IN {
            assert_eq!(built_in(name).map(|recipe| recipe.name).as_deref(), Some(name));
        }
        assert!(overflow_recipes().iter().all(|recipe| recipe.name == "overflow"));
    }

    #[test]
    fn per_cent_become_tokens_of_the_window_without_the_reserve() {
        let percent = |tokens, percent| Target { tokens, percent, chars: Some(7) };
        let level = |tokens, percent| Level { tokens, percent, ..Level::default() };
        for (target, trigger, in_tokens, starts_at) in [
            (percent(None, Some(60)), level(None, Some(80)), 600, 800),
            (percent(Some(500), Some(60)), level(Some(900), Some(80)), 500, 900),
            (percent(Some(700), Some(60)), level(Some(700), Some(80)), 600, 800),
        ] {
            let mut recipe = Recipe::default();
            recipe.live.reserve = 200;
            recipe.target = PerKind::for_both(Some(target));
            recipe.trigger = PerKind::for_both(trigger);
            assert!(recipe.asks_for_window());
            let mut expect = recipe.clone();
            expect.target.stored = Some(percent(Some(in_tokens), None));
            expect.trigger.stored = level(Some(starts_at), None);
            assert_eq!(recipe.with_window(Tokens(1_200)), expect);
            assert!(!expect.asks_for_window());
        }
    }
}
