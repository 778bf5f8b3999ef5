//! Recipes by name, and the recipe that results from a name, the settings and the options of one
//! call.

mod unknown_key;

use std::fs;
use std::path::{Path, PathBuf};

use epitome_passes::{BUILT_IN, Recipe, RuleFiles, built_in};
use serde_json::{Value, json};

use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::settings::{Settings, Values, schema_of};
use unknown_key::UnknownKey;

/// A recipe that can be selected by name, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRecipe {
    /// The name of the recipe.
    pub name: String,
    /// The user's file; `None` for a built-in recipe.
    pub file: Option<PathBuf>,
    /// The text of the recipe, in TOML; empty if the user's file cannot be read.
    pub text: String,
}

/// All recipes: the built-in ones, then the user's own by file name. A file of the user with the
/// name of a built-in recipe is left out.
pub fn all(config: &Config) -> Vec<KnownRecipe> {
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
        if built_in(&name).is_none() {
            let text = regular::read_to_string(&path).unwrap_or_default();
            known.push(KnownRecipe { name, file: Some(path), text });
        }
    }
    known
}

/// The JSON Schema of recipe files, with which editors complete and check them. Keys of earlier
/// versions are not in it, although files may have them.
///
/// ```
/// let schema = epitome::recipes::schema();
/// assert_eq!(schema["required"], serde_json::json!(["name", "about", "stages"]));
/// ```
pub fn schema() -> Value {
    let mut schema = schema_of::<Recipe>("A recipe of epitome");
    schema["description"] = "Which stages a compaction has, and when it starts and stops.".into();
    let properties = &mut schema["properties"];
    let rule_files = take(properties, "rule_files");
    properties["keep"]["properties"]["pins"] = rule_files;
    let mut target = take(&mut properties["target"]["properties"], "stored");
    let about = take(&mut properties["target"], "description");
    target =
        json!({ "description": about, "anyOf": [{ "type": "integer", "minimum": 0 }, target] });
    properties["live"]["properties"]["target"] = target.clone();
    properties["target"] = target;
    let mut stages = take(&mut properties["stages"]["properties"], "stored");
    let mut live = stages.clone();
    live["description"] = "What live contexts have instead of these stages.".into();
    stages["properties"]["live"] = live;
    stages["description"] = take(&mut properties["stages"], "description");
    properties["stages"] = stages;
    schema
}

/// Removes a member of an object and returns it.
fn take(object: &mut Value, key: &str) -> Value {
    object.as_object_mut().and_then(|object| object.remove(key)).unwrap_or_default()
}

/// The recipe with this name, without changes by settings: a built-in recipe, or else one of the
/// user's own. A name that ends with `.toml` or has several path components is the path of a file.
///
/// ```
/// use epitome::{Config, ErrorKind, recipes};
///
/// let config = Config::from_home("/home/ada".as_ref());
/// assert_eq!(recipes::find(&config, "s06")?.name, "s06");
/// let err = recipes::find(&config, "no-such-recipe").expect_err("no recipe");
/// assert_eq!(err.kind(), ErrorKind::Recipe);
/// # Ok::<(), epitome::Error>(())
/// ```
///
/// # Errors
///
/// `Recipe` if there is no recipe with this name, or if its file cannot be read or is not a recipe.
pub fn find(config: &Config, name: &str) -> Result<Recipe> {
    if let Some(recipe) = built_in(name) {
        return Ok(recipe);
    }
    let is_file = name.ends_with(".toml") || Path::new(name).components().count() != 1;
    let path =
        if is_file { PathBuf::from(name) } else { config.recipes().join(format!("{name}.toml")) };
    if !path.exists() {
        let names: Vec<String> = all(config).into_iter().map(|known| known.name).collect();
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
    Recipe::parse(&text).map_err(|err| {
        let what = format!("not a recipe: {}", path.display());
        let not_a_recipe = Error::new(ErrorKind::Recipe, what);
        match UnknownKey::find(&text) {
            Some(key) => not_a_recipe.with_hint(key.hint()).because(key.error(&text)),
            None => {
                let hint = "`epitome recipes epitome` prints one to start from";
                not_a_recipe.with_hint(hint).because(err.into_cause())
            }
        }
    })
}

/// The recipe for stored sessions: the one called `name`, otherwise that of the settings, otherwise
/// the default. Changes that the settings make are applied to it.
///
/// # Errors
///
/// The errors of [`find`].
pub fn resolve(config: &Config, settings: &Settings, name: Option<&str>) -> Result<Recipe> {
    resolve_with(config, settings, name, &Values::default(), false)
}

/// Like [`resolve`], but the changes that `options` make are applied after those of the settings.
/// With `summarise`, a recipe without a summary gets the summary that the settings describe.
///
/// # Errors
///
/// The errors of [`find`].
pub fn resolve_with(
    config: &Config,
    settings: &Settings,
    name: Option<&str>,
    options: &Values,
    summarise: bool,
) -> Result<Recipe> {
    let recipe = find(config, name.or(settings.recipe()).unwrap_or(BUILT_IN[0].0))?;
    Ok(options.apply_to(settings.values.apply_to(recipe, summarise), summarise))
}

/// The patterns for the names of rule files, from the recipe for stored sessions and the settings.
///
/// # Errors
///
/// The errors of [`find`].
pub(crate) fn rule_files(config: &Config, settings: &Settings) -> Result<RuleFiles> {
    Ok(resolve(config, settings, None)?.rule_files)
}

/// The recipe for the contexts of running agents: the one called `name`, otherwise that of the
/// settings, otherwise the default. Changes that the settings make are applied to it.
///
/// # Errors
///
/// The errors of [`find`].
pub fn resolve_live(config: &Config, settings: &Settings, name: Option<&str>) -> Result<Recipe> {
    let name = name.or(settings.live_recipe()).unwrap_or(BUILT_IN[0].0);
    Ok(settings.values.apply_to(find(config, name)?, false))
}
