//! Which recipe, and what of it the command line changes.

use clap::{Args, ValueEnum};
use epitome::recipes::{self, Overlay};
use epitome_passes::{Keep, Recipe, ThinkingMode};

use crate::app::App;
use crate::failure::Result;
use crate::session::{parse_size, parse_tokens};

/// Options that choose and change a recipe.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What goes")]
pub struct Choice {
    /// A recipe by name, or a file; `epitome recipes` lists them [default: epitome]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,

    /// Stop when the context has come down to so many tokens (20000, 50k)
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub target: Option<u64>,

    /// Keep the last N turns whole. Any --keep option replaces all keep rules of the recipe but
    /// the one for results that the model has not answered
    #[arg(long, value_name = "N")]
    pub keep_turns: Option<u64>,

    /// Keep the last N results whole, with their calls
    #[arg(long, value_name = "N")]
    pub keep_results: Option<u64>,

    /// Keep the last N tokens whole (20000, 20k)
    #[arg(long, value_name = "N", value_parser = parse_tokens)]
    pub keep_tokens: Option<u64>,

    /// Keep old reasoning, or drop it, whatever the recipe says
    #[arg(long, value_name = "MODE")]
    pub thinking: Option<Thinking>,

    /// Leave everything of at most so many bytes (300, 2KB)
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub min_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Thinking {
    Keep,
    Drop,
}

impl Choice {
    /// The recipe as it is to be run.
    pub fn recipe(&self, app: &App) -> Result<Recipe> {
        let keep = Keep {
            turns: self.keep_turns,
            results: self.keep_results,
            tokens: self.keep_tokens,
            ..Keep::default()
        };
        let thinking = self.thinking.map(|mode| match mode {
            Thinking::Keep => ThinkingMode::Keep,
            Thinking::Drop => ThinkingMode::Drop,
        });
        let overlay = Overlay { keep, target: self.target, thinking, min_bytes: self.min_size };
        Ok(recipes::resolve(&app.config, app.settings()?, self.recipe.as_deref(), &overlay)?)
    }
}
