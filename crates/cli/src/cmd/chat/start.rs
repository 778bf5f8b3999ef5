//! An agent as the options and settings name it.

use std::sync::Arc;
use std::time::Duration;

use epitome::models::{ModelSelection, catalogue, named_models};
use epitome::{Config, recipes};
use epitome_chat::machine::Event;
use epitome_chat::prompt::prompt;
use epitome_chat::session::Session;
use epitome_chat::{Agent, Limits, Machine, Permissions, Workplace};
use epitome_llm::{Model, Provider};
use epitome_model::Tokens;

use super::Args;
use crate::app::App;
use crate::failure::{Failure, Result};

/// An agent, and the session it works on.
pub struct Started {
    pub agent: Agent,
    pub session: Session,
    pub model: String,
    pub recipe: String,
}

impl Started {
    /// What a front shows first.
    pub fn event(&self) -> Event {
        Event::Session {
            id: self.session.id().to_owned(),
            model: self.model.clone(),
            recipe: self.recipe.clone(),
            log: self.session.path().display().to_string(),
        }
    }
}

pub fn start(app: &App, args: &Args) -> Result<Started> {
    check(args)?;
    let settings = app.settings()?;
    let recipe = recipes::resolve_live(&app.config, settings, args.recipe.as_deref())?;
    // A session that is not there is said before a key of the model is looked for.
    let mut session = match &args.resume {
        Some(id) => Session::resume(&app.config, id)?,
        None => Session::create(&app.config),
    };
    let model = model(app, args)?;
    let place = Workplace::new(&std::env::current_dir()?)?.without_variables(key_variables());
    let (name, window) = (recipe.name.to_string(), args.window.map(Tokens));
    let context = session.context(recipe, &*model, window)?;
    let permissions = Permissions::new(place.root().to_owned())
        .with_rules(args.allow.iter().cloned())
        .with_yes(args.yes);
    let limits = Limits { budget: args.budget };
    let mut machine = Machine::new(context, permissions, limits)?;
    if session.is_new() {
        machine.prompt(&prompt(place.root()))?;
    }
    let model_name = model.name().to_string();
    let agent = Agent::new(machine, model, catalogue(&app.config)?, place);
    Ok(Started { agent, session, model: model_name, recipe: name })
}

/// Refuses what could only fail later, before anything is written.
fn check(args: &Args) -> Result<()> {
    if args.prompt.as_deref().is_some_and(|prompt| prompt.trim().is_empty()) {
        return Err(Failure::usage("the message is empty").hint("say what to do: -p \"Fix it.\""));
    }
    if args.window == Some(0) {
        let what = "the context window is 0 tokens";
        return Err(Failure::usage(what).hint("without --window it is the model's"));
    }
    Ok(())
}

fn model(app: &App, args: &Args) -> Result<Arc<dyn Model>> {
    let set = &app.settings()?.values.compaction;
    let model = args.model.as_deref().or(set.model.as_deref());
    let Some(model) = model else {
        return Err(Failure::usage("no model is named")
            .hint("name one: --model anthropic/claude-haiku-4-5, ollama/qwen3:8b, …")
            .hint(
                "`epitome config` has the setting compaction.model; docs/models.md lists providers",
            ));
    };
    let naming = ModelSelection {
        model: Some(model),
        address: args.base_url.as_deref(),
        timeout: set.timeout.map(Duration::from_secs),
        tries: set.tries,
        ..ModelSelection::default()
    };
    Ok(Arc::new(named_models(&app.config, &naming)?))
}

/// Variables that hold keys of providers.
fn key_variables() -> Vec<String> {
    let providers = Provider::ALL.into_iter();
    let names = providers.flat_map(|provider| Config::key_variables(provider).iter().copied());
    names.map(str::to_owned).collect()
}
