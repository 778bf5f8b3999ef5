//! Carries out the slash commands `/model`, `/recipe`, `/resume` and `/export`, and makes the
//! sessions of sub-agents: everything that needs settings, keys and files.

use std::path::Path;

use epitome::live::{Context, MessagePart, Speaker};
use epitome::recipes;
use epitome::redact::finder;
use epitome::render::{RenderOptions, RenderSource};
use epitome::storage::{Spliced, write_new};
use epitome_error::{Error, ErrorKind, Result, sentence};
use epitome_model::{Role, plural, short};
use epitome_passes::Recipe;
use epitome_render::{Detail, Html, markdown};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::agent::{Agent, Changes};
use crate::history::history;
use crate::machine::{Event, OutsideChange};
use crate::models::ChatModels;
use crate::options::ChatOptions;
use crate::prompt::{Prompt, moved_prompt, task_prompt};
use crate::session::{ChatFile, newest};
use crate::tools::Workplace;

/// The maximum number of sessions that `/resume` lists.
const LISTED: usize = 10;

/// What an agent was made from: needed to replace its model, its recipe or its session, and to make
/// sub-agents.
pub struct AgentSetup {
    /// The options of the chat.
    pub options: ChatOptions,
    /// The file of the agent's session.
    pub session: ChatFile,
    /// The recipe of the agent's context.
    pub recipe: Recipe,
    /// The models that answer and write summaries.
    pub models: ChatModels,
    /// The sessions of the sub-agents so far. They stay locked against other processes.
    pub(crate) tasks: Vec<ChatFile>,
}

impl Changes for AgentSetup {
    fn begin_task(&mut self, agent: &Agent) -> std::result::Result<(Context, Event), String> {
        let config = &self.options.config;
        let mut session = self.session.task(config);
        let place = agent.workplace();
        let recipe = self.recipe.clone();
        let models = self.models.as_models();
        let context = session.context(config, recipe, models, self.options.window, place);
        let context = context.and_then(|mut context| {
            let text = task_prompt(&Prompt::new(place).text);
            let speaker = Speaker { role: Role::System, prompt: true, ..Speaker::default() };
            context.push(&speaker, &[MessagePart::text(&text)])?;
            Ok(context)
        });
        let context = context.map_err(|err| err.to_string())?;
        let event = session_event(&session, &self.models, &self.recipe);
        self.tasks.push(session);
        Ok((context, event))
    }

    fn change(
        &mut self,
        change: &OutsideChange,
        agent: &mut Agent,
    ) -> std::result::Result<Vec<Event>, String> {
        let changed = match change {
            OutsideChange::Recipe(Some(name)) => self.set_recipe(name, agent),
            OutsideChange::Recipe(None) => Ok(vec![self.recipes()]),
            OutsideChange::Model(Some(name)) => self.set_model(name, agent),
            OutsideChange::Model(None) => Ok(vec![notice(self.named_models())]),
            OutsideChange::Resume(Some(id)) => self.resume(id, agent),
            OutsideChange::Resume(None) => Ok(vec![self.sessions()]),
            OutsideChange::Export(path) => self.export(path.as_deref()),
        };
        changed.map_err(|err| sentence(&err))
    }
}

impl AgentSetup {
    fn set_recipe(&mut self, name: &str, agent: &mut Agent) -> Result<Vec<Event>> {
        let ChatOptions { config, settings, .. } = &self.options;
        let recipe = recipes::resolve_live(config, settings, Some(name))?;
        let answers = self.models.answers.name().to_string();
        let (models, notices) = ChatModels::new(&self.options, Some(&answers), &recipe)?;
        let mut events = self.replace(recipe, models, agent)?;
        self.options.recipe = Some(name.to_owned());
        events.extend(notices);
        Ok(events)
    }

    fn set_model(&mut self, name: &str, agent: &mut Agent) -> Result<Vec<Event>> {
        let mut options = self.options.clone();
        // The base URL belongs to the former provider, so a model of another provider does not use
        // it.
        if provider_of(name) != provider_of(&self.models.answers.name().to_string()) {
            options.base_url = None;
        }
        options.model = Some(name.to_owned());
        let recipe = self.recipe.clone();
        let (models, notices) = ChatModels::new(&options, None, &recipe)?;
        let mut events = self.replace(recipe, models, agent)?;
        self.options = options;
        events.extend(notices);
        Ok(events)
    }

    /// Replaces the recipe and the models of the agent; its log stays the same. Returns the events
    /// to show.
    fn replace(
        &mut self,
        recipe: Recipe,
        models: ChatModels,
        agent: &mut Agent,
    ) -> Result<Vec<Event>> {
        let context = context_of(&self.options, &mut self.session, &recipe, &models, agent)?;
        self.take(context, recipe, models, agent)?;
        Ok(vec![self.event(), usage(agent)])
    }

    fn resume(&mut self, id: &str, agent: &mut Agent) -> Result<Vec<Event>> {
        if id == self.session.id() {
            return Err(is_this_session());
        }
        let mut session = ChatFile::resume(&self.options.config, id)?;
        if session.id() == self.session.id() {
            return Err(is_this_session());
        }
        let (recipe, mut notices) = recipe_of(&self.options, &session)?;
        let of_session = session.origin().model.clone();
        let (models, more) = ChatModels::new(&self.options, of_session.as_deref(), &recipe)?;
        notices.extend(more);
        let before = session.origin().cwd.clone();
        let mut context = context_of(&self.options, &mut session, &recipe, &models, agent)?;
        notices.extend(renewed(&mut context, before.as_deref(), agent.workplace())?);
        self.take(context, recipe, models, agent)?;
        self.session = session;
        let mut events = vec![self.event()];
        events.extend(history(agent.machine().context()));
        events.extend(notices);
        events.push(usage(agent));
        Ok(events)
    }

    /// Gives the agent another context and other models.
    fn take(
        &mut self,
        context: Context,
        recipe: Recipe,
        models: ChatModels,
        agent: &mut Agent,
    ) -> Result<()> {
        agent.machine_mut().replace_context(context)?;
        agent.set_models(models.answers.clone(), models.summarises.clone());
        self.recipe = recipe;
        self.models = models;
        Ok(())
    }

    fn named_models(&self) -> String {
        let answers = self.models.answers.name();
        match self.models.other_summariser() {
            Some(other) => format!("the model is {answers}; {other} writes summaries"),
            None => format!("the model is {answers}"),
        }
    }

    /// The event that names the session.
    pub(crate) fn event(&self) -> Event {
        session_event(&self.session, &self.models, &self.recipe)
    }

    fn recipes(&self) -> Event {
        let known = recipes::all(&self.options.config);
        let names: Vec<String> = known.into_iter().map(|known| known.name).collect();
        notice(format!("the recipe is {}; there are {}", self.recipe.name, names.join(", ")))
    }

    fn sessions(&self) -> Event {
        let newest = newest(&self.options.config, LISTED);
        if newest.is_empty() {
            return notice("there is no session in which something was said".to_owned());
        }
        let here = self.options.config.here.canonicalize();
        let here = here.unwrap_or_else(|_| self.options.config.here.clone());
        let lines = newest.iter().map(|chat| {
            let time = chat.changed.and_then(|time| Timestamp::try_from(time).ok());
            let time = time.map(|time| {
                let local = time.to_zoned(TimeZone::system());
                format!(" · {}", local.strftime("%Y-%m-%d %H:%M"))
            });
            let folder = match &chat.folder {
                Some(folder) if *folder == here => "this folder".to_owned(),
                Some(folder) => below_home(folder, &self.options.config.user),
                None => "folder unknown".to_owned(),
            };
            let first = chat.title.split_whitespace().collect::<Vec<_>>().join(" ");
            let id = &chat.id;
            let time = time.unwrap_or_default();
            format!("{id}{time} · {folder}\n    {}", short(&first, 70))
        });
        let lines: Vec<String> = lines.collect();
        let how = "/resume ID goes on with one, /resume last with the newest of this folder";
        notice(format!("{}\n{how}", lines.join("\n")))
    }

    /// Writes the session into a new file, which is named after the id of the session if `path` is
    /// `None`. The file is HTML if its name ends in `.html`, otherwise Markdown. Secrets are
    /// redacted, unless the settings turn redaction off.
    fn export(&self, path: Option<&Path>) -> Result<Vec<Event>> {
        let named = format!("{}.md", self.session.id());
        let path = path.unwrap_or_else(|| Path::new(&named));
        let ChatOptions { config, settings, .. } = &self.options;
        let is_off = settings.values.redaction.enabled == Some(false);
        let finder = if is_off { None } else { Some(finder(config, settings, &[], &[])?) };
        let reading = RenderSource::open(config, self.session.path(), None)?;
        let archive = config.archive();
        let how = RenderOptions {
            detail: Detail::Steps,
            redact: finder.as_ref(),
            compact: None,
            archive: &archive,
            prices: None,
        };
        let is_page = path.extension().is_some_and(|it| it.eq_ignore_ascii_case("html"));
        let (written, found) = reading.with_stories(
            &how,
            |_| String::new(),
            |stories| {
                let Some(story) = stories.first() else { return String::new() };
                if is_page { Html::single_page(story, Vec::new()).page(0) } else { markdown(story) }
            },
        )?;
        // A relative path is resolved in the folder of the session. For an editor, that need not be
        // the current folder of the program.
        write_new(&config.here.join(path), |to| {
            Spliced::new(&written.as_bytes(), Vec::new())?.copy_to(to)
        })
        .map_err(Error::while_writing)?;
        let taken = match found.len() {
            0 => String::new(),
            n => format!(", {} redacted", plural(n as u64, "secret")),
        };
        Ok(vec![notice(format!("written: {}{taken}", path.display()))])
    }
}

fn provider_of(model: &str) -> Option<&str> {
    model.split_once('/').map(|(provider, _)| provider)
}

fn is_this_session() -> Error {
    Error::new(ErrorKind::Usage, "this is the session")
}

/// The path of a folder, with the home folder at its beginning written as `~`.
fn below_home(folder: &Path, home: &Path) -> String {
    match folder.strip_prefix(home) {
        Ok(rest) => Path::new("~").join(rest).display().to_string(),
        Err(_) => folder.display().to_string(),
    }
}

/// The context of a session with this recipe and these models. The tools of the agent are refreshed
/// first.
fn context_of(
    options: &ChatOptions,
    session: &mut ChatFile,
    recipe: &Recipe,
    models: &ChatModels,
    agent: &mut Agent,
) -> Result<Context> {
    agent.workplace_mut().refresh_tools();
    let place = agent.workplace();
    let models = models.as_models();
    session.context(&options.config, recipe.clone(), models, options.window, place)
}

fn usage(agent: &Agent) -> Event {
    let machine = agent.machine();
    Event::Usage { usage: machine.context().usage(), cost: machine.cost() }
}

fn notice(text: String) -> Event {
    Event::Notice { text }
}

/// The recipe that the options name; if they name none, the recipe that the resumed session names;
/// if there is none either, the recipe of the settings. If the session's recipe cannot be used, the
/// recipe of the settings is returned, with a notice that says so.
pub(crate) fn recipe_of(options: &ChatOptions, session: &ChatFile) -> Result<(Recipe, Vec<Event>)> {
    let ChatOptions { config, settings, recipe, .. } = options;
    let of_session = session.origin().recipe.as_deref().filter(|_| recipe.is_none());
    let Some(name) = of_session else {
        let recipe = recipes::resolve_live(config, settings, recipe.as_deref())?;
        return Ok((recipe, Vec::new()));
    };
    match recipes::resolve_live(config, settings, Some(name)) {
        Ok(recipe) => Ok((recipe, Vec::new())),
        // For example, the recipe no longer exists, or it was read from a file, which cannot be
        // found by the name of the recipe.
        Err(err) => {
            let recipe = recipes::resolve_live(config, settings, None)?;
            let text = format!("the session goes on with the recipe {}: {err}", recipe.name);
            Ok((recipe, vec![notice(text)]))
        }
    }
}

/// Replaces the prompt of a session that is resumed in another folder than `before`, the folder in
/// which it was run until now. Returns events for the user about the new folder, and about the
/// files in the new prompt. Does nothing if the folder is the same, or if `before` is `None`.
pub(crate) fn renewed(
    context: &mut Context,
    before: Option<&str>,
    place: &Workplace,
) -> Result<Vec<Event>> {
    let here = place.root().display().to_string();
    let Some(before) = before.filter(|before| *before != here) else { return Ok(Vec::new()) };
    let prompt = Prompt::new(place);
    context.replace_prompt(&moved_prompt(&prompt.text, before))?;
    let text = format!("this session was held in {before}: it goes on in {here}, with its rules");
    let mut events = vec![notice(text)];
    events.extend(prompt.events());
    Ok(events)
}

/// The event that names a session, its models, its recipe and its log.
fn session_event(session: &ChatFile, models: &ChatModels, recipe: &Recipe) -> Event {
    Event::Session {
        id: session.id().to_owned(),
        // If the recipe has a digest, a model rarely writes summaries, so that model is not named.
        summaries: models.other_summariser().filter(|_| recipe.stages.live.digest.is_none()),
        model: models.answers.name().to_string(),
        recipe: recipe.name.to_string(),
        log: session.path().display().to_string(),
    }
}
