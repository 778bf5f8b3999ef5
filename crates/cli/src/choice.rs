//! Which recipe, and what of it the command line changes.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use epitome::Config;
use epitome_passes::{BUILT_IN, Keep, Recipe, ThinkingMode, built_in};

use crate::app::App;
use crate::failure::{Failure, Result};
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
        let settings = app.settings()?;
        let recipe = set(app, self.recipe.as_deref().or(settings.recipe()))?;
        let mut changes = settings.changes();
        let keep = Keep {
            turns: self.keep_turns,
            results: self.keep_results,
            tokens: self.keep_tokens,
            ..Keep::default()
        };
        if keep != Keep::default() {
            changes.keep = keep;
        }
        changes.target = self.target.or(changes.target);
        changes.thinking = match self.thinking {
            Some(Thinking::Keep) => Some(ThinkingMode::Keep),
            Some(Thinking::Drop) => Some(ThinkingMode::Drop),
            None => changes.thinking,
        };
        if self.min_size.is_some() {
            changes.min_bytes = self.min_size;
            (changes.min_result_bytes, changes.min_content_bytes) = (None, None);
        }
        Ok(recipe.with(&changes))
    }
}

/// The recipe of a name, or the default, as it is written.
pub fn set(app: &App, name: Option<&str>) -> Result<Recipe> {
    find(&app.config, name.unwrap_or(BUILT_IN[0].0))
}

/// A recipe and where it comes from.
pub struct Known {
    pub name: String,
    /// Nothing: it is part of the program.
    pub file: Option<PathBuf>,
    pub text: String,
}

/// Every recipe: those of the program, then the user's own.
pub fn known(config: &Config) -> Vec<Known> {
    let mut known: Vec<Known> = BUILT_IN
        .iter()
        .map(|(name, text)| Known {
            name: (*name).to_owned(),
            file: None,
            text: (*text).to_owned(),
        })
        .collect();
    let entries = fs::read_dir(config.recipes()).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    for path in files.into_iter().filter(|path| path.extension().is_some_and(|it| it == "toml")) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // A name of the program's own means that one.
        if built_in(&name).is_none() {
            let text = fs::read_to_string(&path).unwrap_or_default();
            known.push(Known { name, file: Some(path), text });
        }
    }
    known
}

/// A recipe of the program, one of the user's own, or a file.
pub fn find(config: &Config, name: &str) -> Result<Recipe> {
    if let Some(recipe) = built_in(name) {
        return Ok(recipe);
    }
    let is_file = name.ends_with(".toml") || Path::new(name).components().count() != 1;
    let path = match is_file {
        true => PathBuf::from(name),
        false => config.recipes().join(format!("{name}.toml")),
    };
    if !path.exists() {
        let names: Vec<String> = known(config).into_iter().map(|known| known.name).collect();
        return Err(Failure::usage(format!("no recipe is called `{name}`"))
            .hint(format!("there are: {}", names.join(", ")))
            .hint(format!("put your own in {}, or give a file", config.recipes().display())));
    }
    let text = fs::read_to_string(&path).map_err(|err| {
        Failure::usage(format!("cannot read the recipe: {}", path.display())).because(&err)
    })?;
    Recipe::parse(&text).map_err(|err| {
        let mut failure = Failure::usage(format!("this is no recipe: {}", path.display()));
        failure.causes.extend(std::error::Error::source(&err).map(ToString::to_string));
        failure.hint("`epitome recipes epitome` prints one to start from")
    })
}
