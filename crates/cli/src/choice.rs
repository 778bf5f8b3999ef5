//! The recipe of a command, with the changes from the command line.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use epitome::recipes;
use epitome::settings::values::{self, Compaction, JsonSchema, Keep, Values};
use epitome_passes::{self as passes, All, Recipe, Target, ThinkingMode};
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::failure::Result;
use crate::session::{parse_number, parse_size, parse_target, parse_tokens};

/// Options that choose and change a recipe.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What to remove")]
pub struct Choice {
    /// A recipe by name, or a file; `epitome recipes` lists them [default: epitome]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,

    /// Stop when the context has shrunk to this many tokens (20000, 50k), or per cent of the window
    /// (60%), or characters (80000chars)
    #[arg(long, value_name = "TOKENS", value_parser = parse_target)]
    pub target: Option<Target>,

    /// Keep the last N turns whole
    ///
    /// Any --keep option replaces all keep rules of the recipe, except the one for results that the
    /// model has not answered.
    #[arg(long, value_name = "N", value_parser = parse_number)]
    pub keep_turns: Option<u64>,

    /// Keep the last N results whole, with their calls
    #[arg(long, value_name = "N", value_parser = parse_number, hide_short_help = true)]
    pub keep_results: Option<u64>,

    /// Keep the last N tokens whole (20000, 20k)
    #[arg(long, value_name = "N", value_parser = parse_tokens, hide_short_help = true)]
    pub keep_tokens: Option<u64>,

    /// Keep or drop old reasoning, whatever the recipe says
    #[arg(long, value_name = "MODE", hide_short_help = true,
          value_parser = one_of::<ThinkingMode>())]
    pub thinking: Option<ThinkingMode>,

    /// Leave texts of at most this many bytes unchanged (300, 2KB)
    #[arg(long, value_name = "BYTES", value_parser = parse_size, hide_short_help = true)]
    pub min_size: Option<u64>,
}

/// Returns a parser for an option that takes the same words as a setting of type `T`. The words are
/// never freed, because clap keeps references to them.
pub fn one_of<T>() -> impl TypedValueParser<Value = T>
where
    T: JsonSchema + DeserializeOwned + Clone + Send + Sync + 'static,
{
    let words = values::accepted_values::<T>().into_iter();
    let words = words.map(|(word, about)| {
        PossibleValue::new(&*word.leak()).help(about.trim_end_matches('.').to_owned())
    });
    PossibleValuesParser::new(words)
        .map(|word| serde_json::from_value(word.into()).expect("it is one of the words"))
}

impl Choice {
    /// The recipe, with the changes that settings and options make. If `summarise`, a recipe
    /// without a summary gets the summary that the settings describe.
    pub fn recipe(&self, app: &App, summarise: bool) -> Result<Recipe> {
        let rules = passes::Keep {
            turns: self.keep_turns,
            results: self.keep_results,
            tokens: self.keep_tokens,
            // A number of turns or results that the user typed is used even if it keeps the whole
            // session.
            all: match self.keep_turns.or(self.keep_results) {
                Some(_) => All::Kept,
                None => All::Tail,
            },
            ..passes::Keep::default()
        };
        let compaction = Compaction {
            target: self.target,
            keep: Keep { rules, pins: None },
            thinking: self.thinking,
            min_bytes: self.min_size,
            ..Compaction::default()
        };
        let options = Values { compaction, ..Values::default() };
        let settings = app.settings()?;
        let name = self.recipe.as_deref();
        Ok(recipes::resolve_with(&app.config, settings, name, &options, summarise)?)
    }
}
