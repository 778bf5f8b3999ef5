//! What slash commands change that needs settings, keys and sessions: model, recipe, session.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use epitome::live::{Context, Said, Speaker};
use epitome::models::{ModelSelection, named_models};
use epitome::recipes;
use epitome::render::{RenderOptions, RenderSource};
use epitome::storage::{Spliced, write_new};
use epitome_chat::history::history;
use epitome_chat::machine::{Change, Event};
use epitome_chat::prompt::{prompt, task_prompt};
use epitome_chat::session::{Session, newest};
use epitome_chat::{Agent, Changes};
use epitome_llm::Model;
use epitome_model::{Role, Tokens, short};
use epitome_passes::Recipe;
use epitome_render::{Detail, Html, markdown};

use super::Args;
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::redaction::Redaction;
use crate::text;

/// Sessions that `/resume` lists.
const LISTED: usize = 10;

/// What the agent was made from.
pub struct Outside {
    pub app: App,
    pub args: Args,
    pub session: Session,
    pub recipe: Recipe,
    pub model: Arc<dyn Model>,
    /// Sessions of tasks: no other process works on them.
    pub tasks: Vec<Session>,
}

impl Changes for Outside {
    fn begin_task(&mut self, agent: &Agent) -> std::result::Result<(Context, Event), String> {
        let mut session = self.session.task(&self.app.config);
        let window = self.args.window.map(Tokens);
        let mut begin = || {
            let mut context =
                session.context(self.recipe.clone(), &*self.model, window, agent.workplace())?;
            let place = agent.workplace();
            let text = task_prompt(&prompt(place.root(), &place.skills()));
            let speaker = Speaker { role: Role::System, prompt: true, ..Speaker::default() };
            context.push(&speaker, &[Said::text(&text)])?;
            Ok(context)
        };
        let context = begin().map_err(|err: epitome::Error| err.to_string())?;
        let event = session_event(&session, &*self.model, &self.recipe);
        self.tasks.push(session);
        Ok((context, event))
    }

    fn change(
        &mut self,
        change: &Change,
        agent: &mut Agent,
    ) -> std::result::Result<Vec<Event>, String> {
        let changed = match change {
            Change::Recipe(Some(name)) => self.set_recipe(name, agent),
            Change::Recipe(None) => Ok(vec![self.recipes()]),
            Change::Model(Some(name)) => self.set_model(name, agent),
            Change::Model(None) => Ok(vec![notice(format!("the model is {}", self.model.name()))]),
            Change::Resume(Some(id)) => self.resume(id, agent),
            Change::Resume(None) => Ok(vec![self.sessions()]),
            Change::Export(path) => self.export(path.as_deref()),
        };
        changed.map_err(|failure| failure.told())
    }
}

impl Outside {
    fn set_recipe(&mut self, name: &str, agent: &mut Agent) -> Result<Vec<Event>> {
        let recipe = recipes::resolve_live(&self.app.config, self.app.settings()?, Some(name))?;
        let model = self.model.clone();
        self.replace(recipe, model, agent)
    }

    fn set_model(&mut self, name: &str, agent: &mut Agent) -> Result<Vec<Event>> {
        let provider = |name: &str| name.split_once('/').map(|(provider, _)| provider.to_owned());
        let mut args = self.args.clone();
        // Another provider is elsewhere.
        if provider(name) != provider(&self.model.name().to_string()) {
            args.base_url = None;
        }
        args.model = Some(name.to_owned());
        let model = model(&self.app, &args)?;
        let recipe = self.recipe.clone();
        let events = self.replace(recipe, model, agent)?;
        self.args = args;
        Ok(events)
    }

    /// The same log under another recipe or for another model.
    fn replace(
        &mut self,
        recipe: Recipe,
        model: Arc<dyn Model>,
        agent: &mut Agent,
    ) -> Result<Vec<Event>> {
        let window = self.args.window.map(Tokens);
        agent.workplace_mut().refresh_tools();
        let place = agent.workplace();
        let context = self.session.context(recipe.clone(), &*model, window, place)?;
        agent.machine_mut().replace_context(context)?;
        agent.set_model(model.clone());
        (self.recipe, self.model) = (recipe, model);
        Ok(vec![self.event(), usage(agent)])
    }

    fn resume(&mut self, id: &str, agent: &mut Agent) -> Result<Vec<Event>> {
        if id == self.session.id() {
            return Err(Failure::usage("this is the session"));
        }
        let mut session = Session::resume(&self.app.config, id)?;
        let window = self.args.window.map(Tokens);
        agent.workplace_mut().refresh_tools();
        let place = agent.workplace();
        let context = session.context(self.recipe.clone(), &*self.model, window, place)?;
        agent.machine_mut().replace_context(context)?;
        self.session = session;
        let mut events = vec![self.event()];
        events.extend(history(agent.machine().context()));
        events.push(usage(agent));
        Ok(events)
    }

    fn event(&self) -> Event {
        session_event(&self.session, &*self.model, &self.recipe)
    }

    fn recipes(&self) -> Event {
        let known = recipes::known(&self.app.config);
        let names: Vec<String> = known.into_iter().map(|known| known.name).collect();
        notice(format!("the recipe is {}; there are {}", self.recipe.name, names.join(", ")))
    }

    fn sessions(&self) -> Event {
        let newest = newest(&self.app.config, LISTED);
        let line = |(id, first): &(String, String)| {
            let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{id}  {}", short(&first, 50))
        };
        let lines: Vec<String> = newest.iter().map(line).collect();
        notice(format!("{}\n/resume ID goes on with one", lines.join("\n")))
    }

    /// Writes the session into a new file: a page if its name ends so, Markdown otherwise.
    fn export(&self, path: Option<&Path>) -> Result<Vec<Event>> {
        let named = format!("{}.md", self.session.id());
        let path = path.unwrap_or_else(|| Path::new(&named));
        let is_off = self.app.settings()?.values.redaction.enabled == Some(false);
        let finder = if is_off { None } else { Some(Redaction::default().always(&self.app)?) };
        let reading = RenderSource::open(&self.app.config, self.session.path(), None)?;
        let archive = self.app.config.archive();
        let how = RenderOptions {
            detail: Detail::Steps,
            redact: finder.as_ref(),
            compact: None,
            archive: &archive,
            prices: None,
        };
        let is_page = path.extension().is_some_and(|it| it.eq_ignore_ascii_case("html"));
        let (written, found) = reading.tell(
            &how,
            |_| String::new(),
            |stories| {
                let Some(story) = stories.first() else { return String::new() };
                if is_page { Html::whole(story, Vec::new()).page(0) } else { markdown(story) }
            },
        )?;
        // In an editor the folder of the session is not that of the program.
        write_new(&self.app.config.here.join(path), |to| {
            Spliced::new(&written.as_bytes(), Vec::new())?.copy_to(to)
        })
        .map_err(Failure::writing)?;
        let taken = match found.len() {
            0 => String::new(),
            n => format!(", {} redacted", text::count(n as u64, "secret")),
        };
        Ok(vec![notice(format!("written: {}{taken}", path.display()))])
    }
}

fn usage(agent: &Agent) -> Event {
    let machine = agent.machine();
    Event::Usage { usage: machine.context().usage(), cost: machine.cost() }
}

fn notice(text: String) -> Event {
    Event::Notice { text }
}

/// What a front shows first of a session.
pub fn session_event(session: &Session, model: &dyn Model, recipe: &Recipe) -> Event {
    Event::Session {
        id: session.id().to_owned(),
        model: model.name().to_string(),
        recipe: recipe.name.to_string(),
        log: session.path().display().to_string(),
    }
}

/// The model that options and settings name.
pub fn model(app: &App, args: &Args) -> Result<Arc<dyn Model>> {
    let set = &app.settings()?.values.compaction;
    let naming = ModelSelection {
        model: Some(model_name(app, args)?),
        address: args.base_url.as_deref(),
        timeout: set.timeout.map(Duration::from_secs),
        tries: set.tries,
        ..ModelSelection::default()
    };
    Ok(Arc::new(named_models(&app.config, &naming)?))
}

/// Its name.
pub fn model_name<'a>(app: &'a App, args: &'a Args) -> Result<&'a str> {
    let set = app.settings()?.values.compaction.model.as_deref();
    args.model.as_deref().or(set).ok_or_else(|| {
        Failure::usage("no model is named")
            .hint("name one: --model anthropic/claude-haiku-4-5, ollama/qwen3:8b, …")
            .hint(
                "`epitome config` has the setting compaction.model; docs/models.md lists providers",
            )
    })
}
