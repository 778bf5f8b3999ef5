//! An engine, with requests and answers as JSON.

use std::sync::Arc;

use epitome_api::{APIS, find_api};
use epitome_engine::pipe::{Server, ServerOptions, Size, error_json, parse_options};
use epitome_error::{Error, ErrorKind, Result};
use epitome_passes::{BUILT_IN, Recipe, built_in};
use epitome_tokens::Estimate;
use serde::Deserialize;
use serde_json::json;

/// The context of a running agent, without files.
pub struct Engine {
    server: Server,
}

/// How an engine is started.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    api: String,
    /// The name of a built-in recipe, or the text of a recipe: TOML of several lines.
    recipe: String,
    window: u64,
    overhead: u64,
}

impl Engine {
    /// Starts an engine with options as JSON.
    ///
    /// # Errors
    ///
    /// `Usage` if an option is not valid; `Recipe` if there is no built-in recipe of that name, or
    /// if the text is not a recipe.
    pub fn start(options: &[u8]) -> Result<Engine> {
        let start: Start = parse_options(options)?;
        let Some(api) = find_api(&start.api) else {
            let names: Vec<&str> = APIS.iter().map(|api| api.name).collect();
            return Err(usage(format!("no API is called `{}`", start.api))
                .with_hint(format!("there are: {}", names.join(", "))));
        };
        let size = Size { window: start.window, overhead: start.overhead, ..Size::default() };
        size.check()?;
        let options = ServerOptions {
            api: api.name.to_owned(),
            recipe: recipe(&start.recipe)?,
            logs: None,
            counter: Arc::new(Estimate::new()),
            model: None,
        };
        Ok(Engine { server: Server::new(options, size) })
    }

    /// The answer to a request, as `docs/engine.md` describes both.
    pub fn answer(&mut self, request: Vec<u8>) -> String {
        self.server.answer(request)
    }
}

/// An error as an answer.
pub fn error(err: &Error) -> String {
    json!({ "error": error_json(err) }).to_string()
}

/// The error for a request to an engine that is not running.
pub fn not_running() -> Error {
    usage("the engine is not running")
}

fn recipe(name: &str) -> Result<Recipe> {
    if let Some(recipe) = built_in(name) {
        return Ok(recipe);
    }
    if name.contains('\n') {
        return Recipe::parse(name).map_err(|err| {
            Error::new(ErrorKind::Recipe, "not a recipe").because(err.into_cause())
        });
    }
    let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    let hint = format!("there are: {}\nor give the text of a recipe", names.join(", "));
    Err(Error::new(ErrorKind::Recipe, format!("no recipe is called `{name}`")).with_hint(hint))
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}
