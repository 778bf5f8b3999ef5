//! Starts a chat: makes its agent from options and settings.

use epitome::models::catalogue;
use epitome::settings::Scope;
use epitome::{Config, Settings, recipes};
use epitome_error::{Error, ErrorKind, Result};

use crate::agent::Agent;
use crate::agent_setup::{AgentSetup, recipe_of, renewed};
use crate::history::history;
use crate::machine::{Event, Limits, LoadedFile, LoadedKind, Machine};
use crate::mcp::{Server, with_servers};
use crate::models::ChatModels;
use crate::notices;
use crate::options::{ChatOptions, Wait};
use crate::permissions::{BadRule, Permissions, Rule};
use crate::prompt::Prompt;
use crate::session::ChatFile;
use crate::tools::Workplace;

/// An agent, and the inputs from which it was made.
pub struct StartedChat {
    /// The agent.
    pub agent: Agent,
    /// What changes the agent on commands of the user.
    pub setup: AgentSetup,
    /// Events to show after the one that names the session, such as notices.
    pub notices: Vec<Event>,
}

impl StartedChat {
    /// The event that names the session.
    pub fn event(&self) -> Event {
        self.setup.event()
    }

    /// The events to show first: the earlier messages of the session, notices, and how full the
    /// context is.
    pub fn first(&self) -> Vec<Event> {
        let machine = self.agent.machine();
        let mut first = history(machine.context());
        first.extend(self.notices.iter().cloned());
        first.push(Event::Usage { usage: machine.context().usage(), cost: machine.cost() });
        first
    }
}

impl ChatOptions {
    /// Makes an agent with the MCP servers of the settings and `more`. If servers are started,
    /// `waits` is called before and afterwards.
    ///
    /// # Errors
    ///
    /// Among others: `Usage`, `Settings` and `Recipe` for options and settings that cannot be used;
    /// `NotFound` and `Locked` for the session to resume; `Disk` or `NoPermission` if the log
    /// cannot be written.
    pub fn start(&self, more: &[Server], waits: &dyn Fn(Wait<'_>)) -> Result<StartedChat> {
        self.check()?;
        let rules = self.rules()?;
        let ChatOptions { config, settings, .. } = self;
        if self.recipe.is_some() {
            recipes::resolve_live(config, settings, self.recipe.as_deref())?;
        }
        // A missing session is reported before a key is read for the model.
        let mut session = match &self.resume {
            Some(id) => ChatFile::resume(config, id)?,
            None => ChatFile::create(config),
        };
        let (recipe, mut notices) = recipe_of(self, &session)?;
        let of_session = session.origin().model.clone();
        let (models, more_notices) = ChatModels::new(self, of_session.as_deref(), &recipe)?;
        notices.extend(more_notices);
        let place = Workplace::new(&config.here)
            .map_err(|err| Error::reading(err, "the folder of the project", &config.here))?
            .without_variables(hidden_variables())
            .with_skills(config.skills(), config.user.clone());
        let (place, of_servers) = with_servers(self, place, &hidden_variables(), more, waits)?;
        notices.extend(of_servers);
        let before = session.origin().cwd.clone();
        let mut context =
            session.context(config, recipe.clone(), models.as_models(), self.window, &place)?;
        if !session.is_new() {
            notices.extend(renewed(&mut context, before.as_deref(), &place)?);
        }
        let permissions =
            Permissions::new(place.root().to_owned()).with_rules(rules).with_yes(self.yes);
        let limits = Limits { budget: self.budget };
        let mut machine = Machine::new(context, permissions, limits)?;
        if session.is_new() {
            let prompt = Prompt::new(&place);
            machine.prompt(&prompt.text)?;
            notices.extend(prompt.events());
        }
        notices.extend(self.project_settings());
        if self.window.is_some() {
            let context = machine.context();
            let reserve = notices::reserve(context.window(), context.usage().usable);
            notices.extend(reserve.map(|text| Event::Notice { text }));
        }
        let mut agent = Agent::new(machine, models.answers.clone(), catalogue(config)?, place);
        agent.set_models(models.answers.clone(), models.summarises.clone());
        let options = self.clone();
        let setup = AgentSetup { options, session, recipe, models, tasks: Vec::new() };
        Ok(StartedChat { agent, setup, notices })
    }

    /// The event that names the settings files of the project. `None` if there are none.
    fn project_settings(&self) -> Option<Event> {
        let ChatOptions { config, settings, .. } = self;
        let files = settings.files.iter().filter(|file| file.scope != Scope::User);
        let files = files.map(|file| LoadedFile {
            kind: LoadedKind::Settings,
            name: file.path.strip_prefix(&config.here).unwrap_or(&file.path).display().to_string(),
            path: None,
        });
        let files: Vec<LoadedFile> = files.collect();
        (!files.is_empty()).then_some(Event::Loaded { files })
    }

    /// The rules of the settings and options. The last rule that covers a call decides, so the
    /// rules that refuse come last.
    fn rules(&self) -> Result<Vec<Rule>> {
        let settings = &self.settings;
        let set = &settings.values.chat;
        let mut rules = parsed(settings, "chat.allow", set.allow.as_deref(), Rule::allow)?;
        rules.extend(self.allow.iter().cloned());
        rules.extend(parsed(settings, "chat.deny", set.deny.as_deref(), Rule::deny)?);
        rules.extend(self.deny.iter().cloned());
        Ok(rules)
    }
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
        Error::new(ErrorKind::Settings, format!("{place}{key}: {bad}"))
    })
}

/// Environment variables that commands and MCP servers do not get.
fn hidden_variables() -> Vec<String> {
    Config::hidden_variables().map(str::to_owned).collect()
}
