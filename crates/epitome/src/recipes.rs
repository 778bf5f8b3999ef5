//! Recipes by name, and the recipe that results from a name, the settings and the options of one
//! call. The program, the viewer, hooks and `watch` all get their recipe here.

use std::fs;
use std::path::{Path, PathBuf};

use epitome_passes::{BUILT_IN, Keep, Recipe, ThinkingMode, built_in};

use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::settings::Settings;

/// A recipe that can be named, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRecipe {
    /// Its name.
    pub name: String,
    /// The user's file; `None` for a recipe of the program.
    pub file: Option<PathBuf>,
    /// The TOML.
    pub text: String,
}

/// What one call changes of a recipe. It counts more than the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlay {
    /// What is kept whole, if any of it is set: in place of the keep rules of settings and recipe.
    pub keep: Keep,
    /// Tokens of context at which the compaction stops.
    pub target: Option<u64>,
    /// What is done with old reasoning.
    pub thinking: Option<ThinkingMode>,
    /// Bytes of whatever is left as it is.
    pub min_bytes: Option<u64>,
}

/// All recipes: those of the program, then the user's own by file name.
pub fn known(config: &Config) -> Vec<KnownRecipe> {
    let of_program = BUILT_IN.iter().map(|(name, text)| KnownRecipe {
        name: (*name).to_owned(),
        file: None,
        text: (*text).to_owned(),
    });
    let mut known: Vec<KnownRecipe> = of_program.collect();
    let entries = fs::read_dir(config.recipes()).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    for path in files.into_iter().filter(|path| path.extension().is_some_and(|it| it == "toml")) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // A name of the program's own means that one.
        if built_in(&name).is_none() {
            let text = regular::read_to_string(&path).unwrap_or_default();
            known.push(KnownRecipe { name, file: Some(path), text });
        }
    }
    known
}

/// The recipe of a name, as it is written: one of the program, one of the user's own, or a file.
///
/// # Errors
///
/// `Recipe` if there is none of that name, or the file cannot be read or is no recipe.
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
        let hint = format!(
            "there are: {}\nput your own in {}, or give a file",
            names.join(", "),
            config.recipes().display()
        );
        let what = format!("no recipe is called `{name}`");
        return Err(Error::new(ErrorKind::Recipe, what).with_hint(hint));
    }
    #[cfg_attr(
        not(test),
        expect(clippy::disallowed_methods, reason = "a pipe that the user names may be a recipe")
    )]
    let text = fs::read_to_string(&path).map_err(|err| {
        let what = format!("cannot read the recipe: {}", path.display());
        Error::new(ErrorKind::Recipe, what).because(err)
    })?;
    toml::from_str(&text).map_err(|err| {
        let what = format!("this is no recipe: {}", path.display());
        let hint = "`epitome recipes epitome` prints one to start from";
        Error::new(ErrorKind::Recipe, what).with_hint(hint).because(err)
    })
}

/// The recipe for stored sessions: that of `name`, else the one of the settings, else the default;
/// with what the settings and then `overlay` change of it.
///
/// # Errors
///
/// As [`find`].
pub fn resolve(
    config: &Config,
    settings: &Settings,
    name: Option<&str>,
    overlay: &Overlay,
) -> Result<Recipe> {
    let recipe = find(config, name.or(settings.recipe()).unwrap_or(BUILT_IN[0].0))?;
    let mut changes = settings.changes();
    if overlay.keep != Keep::default() {
        changes.keep = overlay.keep;
    }
    changes.target = overlay.target.or(changes.target);
    changes.thinking = overlay.thinking.or(changes.thinking);
    if overlay.min_bytes.is_some() {
        changes.min_bytes = overlay.min_bytes;
        (changes.min_result_bytes, changes.min_content_bytes) = (None, None);
    }
    Ok(recipe.with(&changes))
}

/// The recipe for contexts in use: that of `name`, else the one of the settings, else the default;
/// with what the settings change of it.
///
/// # Errors
///
/// As [`find`].
pub fn resolve_live(config: &Config, settings: &Settings, name: Option<&str>) -> Result<Recipe> {
    let name = name.or(settings.live_recipe()).unwrap_or(BUILT_IN[0].0);
    Ok(find(config, name)?.with(&settings.changes()))
}
