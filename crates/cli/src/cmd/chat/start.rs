//! An agent as the options and settings name it.

use epitome::models::catalogue;
use epitome::{Config, Error, ErrorKind, Settings, recipes};
use epitome_chat::machine::Event;
use epitome_chat::mcp::Server;
use epitome_chat::permissions::{BadRule, Rule};
use epitome_chat::prompt::prompt;
use epitome_chat::session::Session;
use epitome_chat::{Agent, Limits, Machine, Permissions, Workplace};
use epitome_llm::Provider;
use epitome_model::Tokens;

use super::Args;
use super::outside::{Outside, model, session_event};
use super::servers::with_servers;
use crate::app::App;
use crate::failure::{Failure, Result};

/// An agent, and what it was made from.
pub struct Started {
    pub agent: Agent,
    pub outside: Outside,
    /// What else a front shows first.
    pub notices: Vec<Event>,
}

impl Started {
    /// What a front shows first.
    pub fn event(&self) -> Event {
        let Outside { session, model, recipe, .. } = &self.outside;
        session_event(session, &**model, recipe)
    }
}

/// Makes an agent, with the MCP servers of the settings and `more`.
pub fn start(app: &App, args: &Args, more: &[Server]) -> Result<Started> {
    check(args)?;
    let rules = rules(app, args)?;
    let recipe = recipes::resolve_live(&app.config, app.settings()?, args.recipe.as_deref())?;
    // A session that is not there is said before a key of the model is looked for.
    let mut session = match &args.resume {
        Some(id) => Session::resume(&app.config, id)?,
        None => Session::create(&app.config),
    };
    let model = model(app, args)?;
    let place = Workplace::new(&app.config.here)?
        .without_variables(key_variables())
        .with_skills(app.config.skills());
    let (place, notices) = with_servers(app, place, &key_variables(), more)?;
    let window = args.window.map(Tokens);
    let context = session.context(recipe.clone(), &*model, window, &place)?;
    let permissions =
        Permissions::new(place.root().to_owned()).with_rules(rules).with_yes(args.yes);
    let limits = Limits { budget: args.budget };
    let mut machine = Machine::new(context, permissions, limits)?;
    if session.is_new() {
        machine.prompt(&prompt(place.root(), &place.skills()))?;
    }
    let agent = Agent::new(machine, model.clone(), catalogue(&app.config)?, place);
    let (app, args) = (app.clone(), args.clone());
    let outside = Outside { app, args, session, recipe, model, tasks: Vec::new() };
    Ok(Started { agent, outside, notices })
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

/// The rules of the settings and options. The newest counts: those that refuse come last.
fn rules(app: &App, args: &Args) -> Result<Vec<Rule>> {
    let settings = app.settings()?;
    let set = &settings.values.chat;
    let mut rules = parsed(settings, "chat.allow", set.allow.as_deref(), Rule::allow)?;
    rules.extend(args.allow.iter().cloned());
    rules.extend(parsed(settings, "chat.deny", set.deny.as_deref(), Rule::deny)?);
    rules.extend(args.deny.iter().cloned());
    Ok(rules)
}

fn parsed(
    settings: &Settings,
    key: &str,
    texts: Option<&[String]>,
    parse: fn(&str) -> std::result::Result<Rule, BadRule>,
) -> Result<Vec<Rule>> {
    let rules = texts.unwrap_or_default().iter().map(|text| parse(text));
    rules.collect::<std::result::Result<_, _>>().map_err(|bad| {
        let place = settings.set.get(key).and_then(|sets| sets.first());
        let place = place.map_or(String::new(), |set| format!("{}: ", set.place));
        Error::new(ErrorKind::Settings, format!("{place}{key}: {bad}")).into()
    })
}

/// Variables that hold keys of providers.
fn key_variables() -> Vec<String> {
    let providers = Provider::ALL.into_iter();
    let names = providers.flat_map(|provider| Config::key_variables(provider).iter().copied());
    names.map(str::to_owned).collect()
}
