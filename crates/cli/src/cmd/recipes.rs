//! `epitome recipes`: the recipes, and the text of each.

use clap::Args as ClapArgs;
use epitome::recipes::{KnownRecipe, all, schema};
use epitome_passes::Recipe;
use serde::Serialize;

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::report::Lines;
use crate::text::{self, BOLD, DIM, one_line};

const EXAMPLES: &str = "\
Examples:
  epitome recipes
  epitome recipes gitclaw
  epitome recipes epitome > ~/.config/epitome/recipes/mine.toml";

/// The built-in recipes that are listed under the first heading.
const RECOMMENDED: [&str; 2] = ["epitome", "digest"];
/// The headings of the groups.
const HEADINGS: [&str; 3] = ["Recommended", "As other programs do it", "Yours"];

/// List the recipes, or print one
///
/// A recipe is a TOML file: which passes run, in which order, and what is kept whole. Put your own
/// into the folder that the list shows.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print the TOML of this recipe
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print the JSON Schema of recipe files, for editors
    #[arg(long, conflicts_with = "name")]
    pub schema: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    about: Option<&'a str>,
    #[serde(serialize_with = "epitome_model::lossy_path_option")]
    file: Option<&'a std::path::Path>,
    default: bool,
    error: Option<String>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    if args.schema {
        let schema = serde_json::to_string_pretty(&schema()).expect("a value is JSON");
        return app.print_bytes(format!("{schema}\n").as_bytes());
    }
    let known = all(&app.config);
    match &args.name {
        Some(name) => print(app, &known, name),
        None => list(app, &known),
    }
}

fn print(app: &App, known: &[KnownRecipe], name: &str) -> Result<()> {
    if let Some(known) = known.iter().find(|known| known.name == *name) {
        return app.print_bytes(known.text.as_bytes());
    }
    // Fails if the name is unknown, or if it is the path of a file that is not a valid recipe.
    epitome::recipes::find(&app.config, name)?;
    let text = std::fs::read(name).map_err(|err| {
        let what = format!("cannot read the recipe: {name}");
        Failure::new(Status::Unreadable, "unreadable", what).because(&err)
    })?;
    app.print_bytes(&text)
}

fn list(app: &App, known: &[KnownRecipe]) -> Result<()> {
    let mut groups: [Lines; 3] = Default::default();
    for (idx, it) in known.iter().enumerate() {
        let recipe = Recipe::parse(&it.text);
        if app.global.json {
            app.print_json(&Row {
                name: &it.name,
                about: recipe.as_ref().ok().map(|recipe| recipe.about.as_str()),
                file: it.file.as_deref(),
                default: idx == 0,
                error: recipe.as_ref().err().map(ToString::to_string),
            })?;
            continue;
        }
        let about = match &recipe {
            Ok(recipe) => one_line(&recipe.about, 200),
            Err(_) => "not a recipe".to_owned(),
        };
        let file = it.file.as_deref().map(|file| format!("  {}", text::path(file)));
        let group = match &it.file {
            None if RECOMMENDED.contains(&it.name.as_str()) => 0,
            None => 1,
            Some(_) => 2,
        };
        groups[group].add(&one_line(&it.name, 30), about + &file.unwrap_or_default());
    }
    if app.global.json {
        return Ok(());
    }
    let groups = HEADINGS.iter().zip(&groups).filter(|(_, lines)| !lines.is_empty());
    let groups =
        groups.map(|(heading, lines)| format!("{BOLD}{heading}{BOLD:#}\n{}", lines.render()));
    app.page(&groups.collect::<Vec<_>>().join("\n"))?;
    app.note(&format!(
        "{DIM}folder for your own recipes: {}{DIM:#}",
        text::path(&app.config.recipes())
    ));
    Ok(())
}
