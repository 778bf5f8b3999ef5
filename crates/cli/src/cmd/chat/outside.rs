//! What slash commands change that needs settings, keys and sessions: model, recipe, session.

use std::path::Path;

use epitome::live::{Context, Said, Speaker};
use epitome::recipes;
use epitome::render::{RenderOptions, RenderSource};
use epitome::storage::{Spliced, write_new};
use epitome_chat::history::history;
use epitome_chat::machine::{Change, Event};
use epitome_chat::prompt::{Prompt, moved_prompt, task_prompt};
use epitome_chat::session::{Chat, Session, newest};
use epitome_chat::{Agent, Changes, Workplace};
use epitome_model::{Role, Tokens, short};
use epitome_passes::Recipe;
use epitome_render::{Detail, Html, markdown};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Args;
use super::models::ChatModels;
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
    pub models: ChatModels,
    /// Sessions of tasks: no other process works on them.
    pub tasks: Vec<Session>,
}

impl Changes for Outside {
    fn begin_task(&mut self, agent: &Agent) -> std::result::Result<(Context, Event), String> {
        let mut session = self.session.task(&self.app.config);
        let window = self.args.window.map(Tokens);
        let mut begin = || {
            let place = agent.workplace();
            let (recipe, models) = (self.recipe.clone(), self.models.borrowed());
            let mut context = session.context(&self.app.config, recipe, models, window, place)?;
            let text = task_prompt(&Prompt::new(place).text);
            let speaker = Speaker { role: Role::System, prompt: true, ..Speaker::default() };
            context.push(&speaker, &[Said::text(&text)])?;
            Ok(context)
        };
        let context = begin().map_err(|err: epitome::Error| err.to_string())?;
        let event = session_event(&session, &self.models, &self.recipe);
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
            Change::Model(None) => Ok(vec![notice(self.named_models())]),
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
        let answers = self.models.answers.name().to_string();
        let (models, notices) = ChatModels::new(&self.app, &self.args, Some(&answers), &recipe)?;
        let mut events = self.replace(recipe, models, agent)?;
        self.args.recipe = Some(name.to_owned());
        events.extend(notices);
        Ok(events)
    }

    fn set_model(&mut self, name: &str, agent: &mut Agent) -> Result<Vec<Event>> {
        let provider = |name: &str| name.split_once('/').map(|(provider, _)| provider.to_owned());
        let mut args = self.args.clone();
        // Another provider is elsewhere.
        if provider(name) != provider(&self.models.answers.name().to_string()) {
            args.base_url = None;
        }
        args.model = Some(name.to_owned());
        let recipe = self.recipe.clone();
        let (models, notices) = ChatModels::new(&self.app, &args, None, &recipe)?;
        let mut events = self.replace(recipe, models, agent)?;
        self.args = args;
        events.extend(notices);
        Ok(events)
    }

    /// The same log under another recipe or for other models.
    fn replace(
        &mut self,
        recipe: Recipe,
        models: ChatModels,
        agent: &mut Agent,
    ) -> Result<Vec<Event>> {
        let window = self.args.window.map(Tokens);
        agent.workplace_mut().refresh_tools();
        let (place, config) = (agent.workplace(), &self.app.config);
        let context =
            self.session.context(config, recipe.clone(), models.borrowed(), window, place)?;
        agent.machine_mut().replace_context(context)?;
        agent.set_models(models.answers.clone(), models.summarises.clone());
        (self.recipe, self.models) = (recipe, models);
        Ok(vec![self.event(), usage(agent)])
    }

    fn resume(&mut self, id: &str, agent: &mut Agent) -> Result<Vec<Event>> {
        if id == self.session.id() {
            return Err(Failure::usage("this is the session"));
        }
        let mut session = Session::resume(&self.app.config, id)?;
        if session.id() == self.session.id() {
            return Err(Failure::usage("this is the session"));
        }
        let (recipe, mut notices) = recipe_of(&self.app, &self.args, &session)?;
        let of_session = session.origin().model.clone();
        let (models, more) =
            ChatModels::new(&self.app, &self.args, of_session.as_deref(), &recipe)?;
        notices.extend(more);
        let window = self.args.window.map(Tokens);
        agent.workplace_mut().refresh_tools();
        let (place, config) = (agent.workplace(), &self.app.config);
        let before = session.origin().cwd.clone();
        let mut context =
            session.context(config, recipe.clone(), models.borrowed(), window, place)?;
        notices.extend(renewed(&mut context, before.as_deref(), place)?);
        agent.machine_mut().replace_context(context)?;
        agent.set_models(models.answers.clone(), models.summarises.clone());
        (self.session, self.recipe, self.models) = (session, recipe, models);
        let mut events = vec![self.event()];
        events.extend(history(agent.machine().context()));
        events.extend(notices);
        events.push(usage(agent));
        Ok(events)
    }

    fn named_models(&self) -> String {
        let answers = self.models.answers.name();
        match self.models.other_summariser() {
            Some(other) => format!("the model is {answers}; {other} writes summaries"),
            None => format!("the model is {answers}"),
        }
    }

    fn event(&self) -> Event {
        session_event(&self.session, &self.models, &self.recipe)
    }

    fn recipes(&self) -> Event {
        let known = recipes::known(&self.app.config);
        let names: Vec<String> = known.into_iter().map(|known| known.name).collect();
        notice(format!("the recipe is {}; there are {}", self.recipe.name, names.join(", ")))
    }

    fn sessions(&self) -> Event {
        let newest = newest(&self.app.config, LISTED);
        if newest.is_empty() {
            return notice("there is no session in which something was said".to_owned());
        }
        let here = self.app.config.here.canonicalize();
        let here = here.unwrap_or_else(|_| self.app.config.here.clone());
        let line = |chat: &Chat| {
            let time = chat.changed.and_then(|time| Timestamp::try_from(time).ok());
            let time = time.map(|time| {
                let local = time.to_zoned(TimeZone::system());
                format!(" · {}", local.strftime("%Y-%m-%d %H:%M"))
            });
            let folder = match &chat.folder {
                Some(folder) if *folder == here => "this folder".to_owned(),
                Some(folder) => below_home(folder, &self.app.config.user),
                None => "folder unknown".to_owned(),
            };
            let first = chat.title.split_whitespace().collect::<Vec<_>>().join(" ");
            let (id, time) = (&chat.id, time.unwrap_or_default());
            format!("{id}{time} · {folder}\n    {}", short(&first, 70))
        };
        let lines: Vec<String> = newest.iter().map(line).collect();
        let how = "/resume ID goes on with one, /resume last with the newest of this folder";
        notice(format!("{}\n{how}", lines.join("\n")))
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

/// A folder, with `~` for the home folder.
fn below_home(folder: &Path, home: &Path) -> String {
    match folder.strip_prefix(home) {
        Ok(rest) => Path::new("~").join(rest).display().to_string(),
        Err(_) => folder.display().to_string(),
    }
}

fn usage(agent: &Agent) -> Event {
    let machine = agent.machine();
    Event::Usage { usage: machine.context().usage(), cost: machine.cost() }
}

fn notice(text: String) -> Event {
    Event::Notice { text }
}

/// The recipe of the options, of a session that goes on, or of the settings, in this order.
pub fn recipe_of(app: &App, args: &Args, session: &Session) -> Result<(Recipe, Vec<Event>)> {
    let settings = app.settings()?;
    let of_session = session.origin().recipe.as_deref().filter(|_| args.recipe.is_none());
    let Some(name) = of_session else {
        let recipe = recipes::resolve_live(&app.config, settings, args.recipe.as_deref())?;
        return Ok((recipe, Vec::new()));
    };
    match recipes::resolve_live(&app.config, settings, Some(name)) {
        Ok(recipe) => Ok((recipe, Vec::new())),
        // It was a file, or is not there any more.
        Err(err) => {
            let recipe = recipes::resolve_live(&app.config, settings, None)?;
            let text = format!("the session goes on with the recipe {}: {err}", recipe.name);
            Ok((recipe, vec![notice(text)]))
        }
    }
}

/// Makes the prompt of a session again that was held in another folder. Returns what the user is
/// told.
pub fn renewed(
    context: &mut Context,
    before: Option<&str>,
    place: &Workplace,
) -> epitome::Result<Vec<Event>> {
    let here = place.root().display().to_string();
    let Some(before) = before.filter(|before| *before != here) else { return Ok(Vec::new()) };
    let prompt = Prompt::new(place);
    context.replace_prompt(&moved_prompt(&prompt.text, before))?;
    let text = format!("this session was held in {before}: it goes on in {here}, with its rules");
    let mut events = vec![notice(text)];
    events.extend(prompt.events());
    Ok(events)
}

/// What a front shows first of a session.
pub fn session_event(session: &Session, models: &ChatModels, recipe: &Recipe) -> Event {
    Event::Session {
        id: session.id().to_owned(),
        // A recipe with a digest asks for a summary only where that is not enough.
        summaries: models.other_summariser().filter(|_| recipe.stages.live.digest.is_none()),
        model: models.answers.name().to_string(),
        recipe: recipe.name.to_string(),
        log: session.path().display().to_string(),
    }
}
