//! The recipe of a command, with the changes from the command line.

use clap::{Args, ValueEnum};
use epitome::recipes;
use epitome_model::Tokens;
use epitome_passes::{All, Keep, Overlay, PerKind, Recipe, Target, ThinkingMode};

use crate::app::App;
use crate::failure::Result;
use crate::session::{parse_number, parse_size, parse_tokens};

/// Options that choose and change a recipe.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What to remove")]
pub struct Choice {
    /// A recipe by name, or a file; `epitome recipes` lists them [default: epitome]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,

    /// Stop when the context has shrunk to this many tokens (20000, 50k)
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub target: Option<u64>,

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
    #[arg(long, value_name = "MODE", hide_short_help = true)]
    pub thinking: Option<Thinking>,

    /// Leave texts of at most this many bytes unchanged (300, 2KB)
    #[arg(long, value_name = "BYTES", value_parser = parse_size, hide_short_help = true)]
    pub min_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Thinking {
    Keep,
    Drop,
}

impl Choice {
    /// The recipe with the changes of settings and options applied.
    pub fn recipe(&self, app: &App, summary: bool) -> Result<Recipe> {
        let keep = Keep {
            turns: self.keep_turns,
            results: self.keep_results,
            tokens: self.keep_tokens,
            // A number that the user typed is obeyed, even if it keeps the whole session.
            all: match self.keep_turns.or(self.keep_results) {
                Some(_) => All::Kept,
                None => All::Tail,
            },
            ..Keep::default()
        };
        let thinking = self.thinking.map(|mode| match mode {
            Thinking::Keep => ThinkingMode::Keep,
            Thinking::Drop => ThinkingMode::Drop,
        });
        let target = self.target.map(Tokens).map(Target::of_tokens);
        let overlay = Overlay {
            keep,
            target: PerKind { stored: target, live: None },
            thinking,
            min_bytes: self.min_size,
            summarise: summary,
            ..Overlay::default()
        };
        Ok(recipes::resolve(&app.config, app.settings()?, self.recipe.as_deref(), &overlay)?)
    }
}
