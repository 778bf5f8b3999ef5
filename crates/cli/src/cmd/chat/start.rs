//! An agent as the options and settings name it.

use epitome::models::catalogue;
use epitome::settings::Scope;
use epitome::{Config, Error, ErrorKind, Settings, recipes};
use epitome_chat::machine::{Event, LoadedFile, LoadedKind};
use epitome_chat::mcp::Server;
use epitome_chat::permissions::{BadRule, Rule};
use epitome_chat::prompt::Prompt;
use epitome_chat::session::Session;
use epitome_chat::{Agent, Limits, Machine, Permissions, Workplace, words};
use epitome_model::Tokens;

use super::Args;
use super::models::ChatModels;
use super::outside::{Outside, recipe_of, renewed, session_event};
use super::servers::with_servers;
use crate::app::App;
use crate::failure::{Failure, Result};

/// The smallest window in which a chat can begin.
const LEAST_WINDOW: u64 = 4_000;

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
        let Outside { session, models, recipe, .. } = &self.outside;
        session_event(session, models, recipe)
    }
}

/// Makes an agent, with the MCP servers of the settings and `more`.
pub fn start(app: &App, args: &Args, more: &[Server]) -> Result<Started> {
    check(args)?;
    let rules = rules(app, args)?;
    if args.recipe.is_some() {
        recipes::resolve_live(&app.config, app.settings()?, args.recipe.as_deref())?;
    }
    // A session that is not there is said before a key of the model is looked for.
    let mut session = match &args.resume {
        Some(id) => Session::resume(&app.config, id)?,
        None => Session::create(&app.config),
    };
    let (recipe, mut notices) = recipe_of(app, args, &session)?;
    let of_session = session.origin().model.clone();
    let (models, more_notices) = ChatModels::new(app, args, of_session.as_deref(), &recipe)?;
    notices.extend(more_notices);
    let place = Workplace::new(&app.config.here)?
        .without_variables(hidden_variables())
        .with_skills(app.config.skills(), app.config.user.clone());
    let (place, of_servers) = with_servers(app, place, &hidden_variables(), more)?;
    notices.extend(of_servers);
    let window = args.window.map(Tokens);
    let before = session.origin().cwd.clone();
    let mut context =
        session.context(&app.config, recipe.clone(), models.borrowed(), window, &place)?;
    if !session.is_new() {
        notices.extend(renewed(&mut context, before.as_deref(), &place)?);
    }
    let permissions =
        Permissions::new(place.root().to_owned()).with_rules(rules).with_yes(args.yes);
    let limits = Limits { budget: args.budget };
    let mut machine = Machine::new(context, permissions, limits)?;
    if session.is_new() {
        let prompt = Prompt::new(&place);
        machine.prompt(&prompt.text)?;
        notices.extend(prompt.events());
    }
    notices.extend(project_settings(app)?);
    if args.window.is_some() {
        let context = machine.context();
        let reserve = words::reserve(context.window(), context.usage().usable);
        notices.extend(reserve.map(|text| Event::Notice { text }));
    }
    let mut agent = Agent::new(machine, models.answers.clone(), catalogue(&app.config)?, place);
    agent.set_models(models.answers.clone(), models.summarises.clone());
    let (app, args) = (app.clone(), args.clone());
    let outside = Outside { app, args, session, recipe, models, tasks: Vec::new() };
    Ok(Started { agent, outside, notices })
}

/// The files of the project that settings come from, for the user.
fn project_settings(app: &App) -> Result<Option<Event>> {
    let files = app.settings()?.files.iter().filter(|file| file.scope != Scope::User);
    let files = files.map(|file| LoadedFile {
        kind: LoadedKind::Settings,
        name: file.path.strip_prefix(&app.config.here).unwrap_or(&file.path).display().to_string(),
        path: None,
    });
    let files: Vec<LoadedFile> = files.collect();
    Ok((!files.is_empty()).then_some(Event::Loaded { files }))
}

/// Refuses what could only fail later, before anything is written.
pub fn check(args: &Args) -> Result<()> {
    if args.prompt.as_deref().is_some_and(|prompt| prompt.trim().is_empty()) {
        return Err(Failure::usage("the message is empty").hint("say what to do: -p \"Fix it.\""));
    }
    if let Some(window) = args.window.filter(|window| *window < LEAST_WINDOW) {
        let what = format!("the context window is {window} tokens: nothing fits into it");
        return Err(Failure::usage(what)
            .hint(format!(
                "give at least {LEAST_WINDOW}: tools and prompt take about 1,500, and up to half \
                 is kept for the answer"
            ))
            .hint("without --window it is the model's"));
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

/// Variables that commands and MCP servers do not get.
fn hidden_variables() -> Vec<String> {
    Config::hidden_variables().map(str::to_owned).collect()
}
