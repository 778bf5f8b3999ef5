//! An agent as the options and settings name it.

use epitome::models::catalogue;
use epitome::{Config, recipes};
use epitome_chat::machine::Event;
use epitome_chat::prompt::prompt;
use epitome_chat::session::Session;
use epitome_chat::{Agent, Limits, Machine, Permissions, Workplace};
use epitome_llm::Provider;
use epitome_model::Tokens;

use super::Args;
use super::outside::{Outside, model, session_event};
use crate::app::App;
use crate::failure::{Failure, Result};

/// An agent, and what it was made from.
pub struct Started {
    pub agent: Agent,
    pub outside: Outside,
}

impl Started {
    /// What a front shows first.
    pub fn event(&self) -> Event {
        let Outside { session, model, recipe, .. } = &self.outside;
        session_event(session, &**model, recipe)
    }
}

pub fn start(app: &App, args: &Args) -> Result<Started> {
    check(args)?;
    let recipe = recipes::resolve_live(&app.config, app.settings()?, args.recipe.as_deref())?;
    // A session that is not there is said before a key of the model is looked for.
    let mut session = match &args.resume {
        Some(id) => Session::resume(&app.config, id)?,
        None => Session::create(&app.config),
    };
    let model = model(app, args)?;
    let place = Workplace::new(&std::env::current_dir()?)?.without_variables(key_variables());
    let context = session.context(recipe.clone(), &*model, args.window.map(Tokens))?;
    let permissions = Permissions::new(place.root().to_owned())
        .with_rules(args.allow.iter().cloned())
        .with_yes(args.yes);
    let limits = Limits { budget: args.budget };
    let mut machine = Machine::new(context, permissions, limits)?;
    if session.is_new() {
        machine.prompt(&prompt(place.root()))?;
    }
    let agent = Agent::new(machine, model.clone(), catalogue(&app.config)?, place);
    let (app, args) = (app.clone(), args.clone());
    let outside = Outside { app, args, session, recipe, model };
    Ok(Started { agent, outside })
}

/// Refuses what could only fail later, before anything is written.
pub fn check(args: &Args) -> Result<()> {
    if args.prompt.as_deref().is_some_and(|prompt| prompt.trim().is_empty()) {
        return Err(Failure::usage("the message is empty").hint("say what to do: -p \"Fix it.\""));
    }
    if args.window == Some(0) {
        let what = "the context window is 0 tokens";
        return Err(Failure::usage(what).hint("without --window it is the model's"));
    }
    Ok(())
}

/// Variables that hold keys of providers.
fn key_variables() -> Vec<String> {
    let providers = Provider::ALL.into_iter();
    let names = providers.flat_map(|provider| Config::key_variables(provider).iter().copied());
    names.map(str::to_owned).collect()
}
