//! Sessions on disk: each is a log of epitome's own format, which every command reads.

use std::path::{Path, PathBuf};

use epitome::live;
use epitome::models::summary_writer;
use epitome::storage::{Hold, Store};
use epitome::{Config, Error, ErrorKind, Loaded};
use epitome_api::Tool;
use epitome_engine::{Context, Setup};
use epitome_error::Result;
use epitome_llm::Model;
use epitome_model::{Block, Counter, Role, Tokens};
use epitome_passes::Recipe;
use epitome_tokens::O200k;

use crate::tools::{Workplace, offered};

/// What the ids of chats begin with; behind it is a time.
const CHAT: &str = "chat-";

/// The window of a model of which none is known.
pub const WINDOW: Tokens = Tokens(200_000);

/// A session on disk. No other process works on it as long as this is there.
pub struct Session {
    id: String,
    path: PathBuf,
    is_new: bool,
    /// Where it is said who works on it.
    store: Store,
    hold: Option<Hold>,
    is_task: bool,
}

impl Session {
    /// A new session, named by the time. Its log is created with its context.
    pub fn create(config: &Config) -> Session {
        let begun = config.now().strftime("chat-%Y%m%d-%H%M%S").to_string();
        let number = |n: u32| if n == 1 { begun.clone() } else { format!("{begun}-{n}") };
        let ids = (1..).map(number);
        let mut free = ids.filter(|id| !path_of(config, id).exists());
        let id = free.next().expect("one of all numbers is free");
        let (path, store) = (path_of(config, &id), Store::new(&config.home));
        Session { id, path, is_new: true, store, hold: None, is_task: false }
    }

    /// A new session of a task of this one, named by it. Its log is created with its context.
    pub fn task(&self, config: &Config) -> Session {
        let begun = self.id.strip_prefix(CHAT).unwrap_or(&self.id);
        let mut ids = (1..).map(|n: u32| format!("task-{begun}-{n}"));
        let free = ids.find(|id| !path_of(config, id).exists());
        let id = free.expect("one of all numbers is free");
        let (path, store) = (path_of(config, &id), Store::new(&config.home));
        Session { id, path, is_new: true, store, hold: None, is_task: true }
    }

    /// The session with this id, or the newest if the id is `last`.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none, `Locked` if another process has it.
    pub fn resume(config: &Config, id: &str) -> Result<Session> {
        let ids = ids(config);
        let found = match id {
            "last" => ids.last(),
            id => ids.iter().find(|it| *it == id),
        };
        let id = found.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no session {id}"))
                .with_hint("`epitome list --agent epitome` lists them; `last` is the newest chat")
        })?;
        let (path, store) = (path_of(config, id), Store::new(&config.home));
        let hold = Some(store.hold(&path)?);
        Ok(Session { id: id.clone(), path, is_new: false, store, hold, is_task: false })
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether nothing was said yet.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Its context, under a recipe, for a model, with the tools of a workplace. A new log is
    /// created the first time.
    ///
    /// # Errors
    ///
    /// `Disk` if no log can be written; `UnknownFormat` if the file is none.
    pub fn context(
        &mut self,
        recipe: Recipe,
        model: &dyn Model,
        window: Option<Tokens>,
        place: &Workplace,
    ) -> Result<Context> {
        let setup =
            setup_with(&place.offered(self.is_task), recipe, model, window).with_id(&*self.id);
        if self.hold.is_none() {
            let context = live::create(&self.path, setup)?;
            self.hold = Some(self.store.hold(&self.path)?);
            return Ok(context);
        }
        live::open(&self.path, setup)
    }
}

/// How a context is used for a chat: the tools count, and the model writes its own summaries.
pub fn setup(recipe: Recipe, model: &dyn Model, window: Option<Tokens>) -> Setup {
    setup_with(&offered(), recipe, model, window)
}

fn setup_with(
    tools: &[Tool<'_>],
    recipe: Recipe,
    model: &dyn Model,
    window: Option<Tokens>,
) -> Setup {
    let counter = O200k::new();
    let texts = tools.iter().flat_map(|tool| [tool.name, tool.description, tool.parameters]);
    let overhead: Tokens = texts.map(|text| counter.count(text)).sum();
    Setup::new(recipe)
        .with_window(window.or(model.window()).unwrap_or(WINDOW))
        .with_overhead(overhead)
        .with_writer(summary_writer(model))
}

/// The newest chats, newest first: the id of each, and what the user said first.
pub fn newest(config: &Config, most: usize) -> Vec<(String, String)> {
    let chats = ids(config).into_iter().rev().filter(|id| id.starts_with(CHAT));
    let with_title = |id: String| {
        let title = first_message(&path_of(config, &id)).unwrap_or_default();
        (id, title)
    };
    chats.take(most).map(with_title).collect()
}

fn first_message(path: &Path) -> Option<String> {
    let session = Loaded::open(path, None).ok()?;
    let mut entries = session.transcript.entries().map(|(_, entry)| entry);
    let first = entries.find(|entry| entry.role == Role::User)?;
    first.blocks.iter().find_map(|block| match block {
        Block::Text(text) => Some(text.read(&session.source).into_owned()),
        _ => None,
    })
}

fn path_of(config: &Config, id: &str) -> PathBuf {
    config.logs().join(format!("{id}.jsonl"))
}

/// The ids of all logs, oldest first as far as their names tell.
fn ids(config: &Config) -> Vec<String> {
    let Ok(files) = std::fs::read_dir(config.logs()) else { return Vec::new() };
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    let mut ids: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".jsonl")?.to_owned())).collect();
    // Chats last: their names are times.
    ids.sort_by_key(|id| (id.starts_with(CHAT), id.clone()));
    ids
}
