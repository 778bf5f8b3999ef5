//! Sessions on disk: each is a log in epitome's own format, which the other commands of epitome
//! read, too.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use epitome::live::{self, first_origin, last_origin};
use epitome::models::summary_writer;
use epitome::storage::{FileLock, Store, regular};
use epitome::{Config, Error, ErrorKind};
use epitome_api::Tool;
use epitome_engine::{Context, Origin, Setup};
use epitome_error::Result;
use epitome_llm::Model;
use epitome_model::{Block, Counter, Role, Tokens};
use epitome_passes::Recipe;
use epitome_tokens::O200k;

use crate::prompt::PROJECT;
use crate::tools::{Workplace, request_tools};

/// The prefix of the ids of chats. The time follows.
const CHAT: &str = "chat-";

/// The number of bytes at the beginning of a log that are searched for the folder of the session.
const HEAD: u64 = 64 << 10;

/// The context window that is assumed for a model whose window is unknown.
pub const WINDOW: Tokens = Tokens(200_000);

/// A session on disk. A new session has no log yet. As soon as the log exists, the session is
/// locked against other processes, until this value is dropped.
pub struct ChatFile {
    id: String,
    path: PathBuf,
    is_new: bool,
    /// The store, which locks the session.
    store: Store,
    hold: Option<FileLock>,
    is_task: bool,
    origin: Origin,
}

impl ChatFile {
    /// A new session, named after the time. The first call of [`ChatFile::context`] creates its
    /// log.
    pub fn create(config: &Config) -> ChatFile {
        let begun = config.now().strftime("chat-%Y%m%d-%H%M%S").to_string();
        let id = free_id(config, &begun, 1);
        ChatFile::new(config, id, false)
    }

    /// A new session for a sub-agent of this session. The new session is named after this one, and
    /// the first call of its [`ChatFile::context`] creates its log.
    pub fn task(&self, config: &Config) -> ChatFile {
        let begun = self.id.strip_prefix(CHAT).unwrap_or(&self.id);
        let id = free_id(config, &format!("task-{begun}-1"), 1);
        ChatFile::new(config, id, true)
    }

    fn new(config: &Config, id: String, is_task: bool) -> ChatFile {
        let path = path_of(config, &id);
        let store = Store::new(&config.home);
        let origin = Origin::default();
        ChatFile { id, path, is_new: true, store, hold: None, is_task, origin }
    }

    /// The session with this id. `last` is the newest chat that began in the current folder.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such session, `Locked` if another process uses it, `NoPermission`
    /// or `Disk` if it cannot be locked.
    pub fn resume(config: &Config, id: &str) -> Result<ChatFile> {
        let ids = ids(config);
        let found = match id {
            "last" => {
                let here = config.here.canonicalize().unwrap_or_else(|_| config.here.clone());
                ids.iter().rev().find(|id| {
                    id.starts_with(CHAT)
                        && began_in(&path_of(config, id)).is_some_and(|it| it == here)
                })
            }
            id => ids.iter().find(|it| *it == id),
        };
        let id = found.ok_or_else(|| {
            let what = match id {
                "last" => "there is no session of this folder".to_owned(),
                id => format!("there is no session {id}"),
            };
            Error::new(ErrorKind::NotFound, what).with_hint(
                "`epitome list --agent epitome` lists all; `last` is the newest of this folder",
            )
        })?;
        let path = path_of(config, id);
        let store = Store::new(&config.home);
        let hold = Some(store.lock_file(&path)?);
        let origin = origin_of(&path);
        Ok(ChatFile { id: id.clone(), path, is_new: false, store, hold, is_task: false, origin })
    }

    /// The folder, the model and the recipe of the session, as far as its log has them. Empty if
    /// the session has no log yet.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The id of the session.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The path of the session's log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this is a new session, and not a resumed one.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The context of the session, with a recipe, for the model that answers and the one that
    /// writes summaries, with the tools of a workplace. The first call for a new session creates
    /// its log. Every other call opens the log, and appends the folder, the model and the recipe if
    /// they have changed.
    ///
    /// # Errors
    ///
    /// The errors of creating or opening the log, and of locking it. Among them are `Disk` if no
    /// log can be written, and `UnknownFormat` if the file is no log.
    pub fn context(
        &mut self,
        config: &Config,
        recipe: Recipe,
        models: Models<'_>,
        window: Option<Tokens>,
        place: &Workplace,
    ) -> Result<Context> {
        let origin = Origin {
            cwd: Some(place.root().display().to_string()),
            model: Some(models.answers.name().to_string()),
            recipe: Some(recipe.name.to_string()),
        };
        let tools = place.request_tools(self.is_task);
        if self.hold.is_some() {
            let setup = setup_with(&tools, recipe, models, window).with_id(&*self.id);
            let mut context = live::open(&self.path, setup)?;
            context.set_origin(origin.clone())?;
            self.origin = origin;
            return Ok(context);
        }
        loop {
            let setup = setup_with(&tools, recipe.clone(), models, window);
            let setup = setup.with_id(&*self.id).with_origin(origin.clone());
            match live::create(&self.path, setup) {
                Ok(context) => {
                    self.hold = Some(self.store.lock_file(&self.path)?);
                    self.origin = origin;
                    return Ok(context);
                }
                // Another chat that began in the same second has this id.
                Err(err) if err.kind() == ErrorKind::Exists => {
                    self.id = free_id(config, &self.id, 2);
                    self.path = path_of(config, &self.id);
                }
                Err(err) => return Err(err),
            }
        }
    }
}

/// The models of a chat.
#[derive(Clone, Copy)]
pub struct Models<'m> {
    /// The model that answers.
    pub answers: &'m dyn Model,
    /// The model that writes summaries.
    pub summarises: &'m dyn Model,
}

impl<'m> Models<'m> {
    /// The same model for answers and for summaries.
    pub fn one(model: &'m dyn Model) -> Models<'m> {
        Models { answers: model, summarises: model }
    }
}

/// The setup of a chat's context. It counts the tokens of the tools as overhead, and the model
/// writes its own summaries.
pub fn setup(recipe: Recipe, model: &dyn Model, window: Option<Tokens>) -> Setup {
    setup_with(&request_tools(), recipe, Models::one(model), window)
}

fn setup_with(
    tools: &[Tool<'_>],
    recipe: Recipe,
    models: Models<'_>,
    window: Option<Tokens>,
) -> Setup {
    let counter = O200k::new();
    let texts = tools.iter().flat_map(|tool| [tool.name, tool.description, tool.parameters]);
    let overhead: Tokens = texts.map(|text| counter.count(text)).sum();
    Setup::new(recipe)
        .with_window(window.or(models.answers.window()).unwrap_or(WINDOW))
        .with_overhead(overhead)
        .with_writer(summary_writer(models.summarises))
}

/// A chat on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chat {
    /// The id of the session.
    pub id: String,
    /// The folder in which the session began, if its log names one.
    pub folder: Option<PathBuf>,
    /// The time of the last change.
    pub changed: Option<SystemTime>,
    /// The user's first message.
    pub title: String,
}

/// Returns the newest chats, the newest first, at most `most`. Chats without a message are left
/// out.
pub fn newest(config: &Config, most: usize) -> Vec<Chat> {
    let chats = ids(config).into_iter().rev().filter(|id| id.starts_with(CHAT));
    let chats = chats.filter_map(|id| {
        let path = path_of(config, &id);
        let title = first_message(&path)?;
        let changed = fs::metadata(&path).and_then(|meta| meta.modified()).ok();
        Some(Chat { id, folder: began_in(&path), changed, title })
    });
    chats.take(most).collect()
}

fn first_message(path: &Path) -> Option<String> {
    let session = epitome::storage::load(path, None).ok()?;
    let mut entries = session.transcript.entries().map(|(_, entry)| entry);
    let first = entries.find(|entry| entry.role == Role::User)?;
    first.blocks.iter().find_map(|block| match block {
        Block::Text(text) => Some(text.read(&session.source).into_owned()),
        _ => None,
    })
}

/// The folder in which a session began.
fn began_in(path: &Path) -> Option<PathBuf> {
    let head = head_of(path)?;
    first_origin(&head)?.cwd.map(PathBuf::from).or_else(|| folder_in_prompt(&head))
}

/// The folder, the model and the recipe that the log of a session states last. Older logs state no
/// folder: it is then taken from the system prompt.
fn origin_of(path: &Path) -> Origin {
    let log = regular::read(path).unwrap_or_default();
    let mut origin = last_origin(&log).unwrap_or_default();
    if origin.cwd.is_none() {
        origin.cwd = folder_in_prompt(&log).map(|folder| folder.display().to_string());
    }
    origin
}

fn head_of(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    regular::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    Some(head)
}

/// The folder that the system prompt names. Older logs name the folder nowhere else.
fn folder_in_prompt(log: &[u8]) -> Option<PathBuf> {
    let line = log.split(|byte| *byte == b'\n').nth(1)?;
    let entry: serde_json::Value = serde_json::from_slice(line).ok()?;
    let is_prompt = entry["role"] == "prompt";
    let prompt = entry["blocks"][0]["text"].as_str().filter(|_| is_prompt)?;
    let line = prompt.lines().find_map(|line| line.strip_prefix(PROJECT))?;
    Some(PathBuf::from(line.strip_suffix('.')?))
}

fn path_of(config: &Config, id: &str) -> PathBuf {
    config.logs().join(format!("{id}.jsonl"))
}

/// Returns an id that no session has.
///
/// For a chat, it is `id` without its number, followed by the first free number from `from` on; the
/// number 1 is left out. For the session of a sub-agent, it is `id` with its own number or, if that
/// is taken, with the next free number.
fn free_id(config: &Config, id: &str, from: u32) -> String {
    let (base, first) = match id.strip_prefix("task-").and_then(|rest| rest.rsplit_once('-')) {
        Some((begun, number)) => (format!("task-{begun}"), number.parse().unwrap_or(1)),
        None => (without_number(id).to_owned(), from),
    };
    let names = (first..).map(|n| match n {
        1 if !id.starts_with("task-") => base.clone(),
        n => format!("{base}-{n}"),
    });
    let mut free = names.filter(|id| !path_of(config, id).exists());
    free.next().expect("one of all numbers is free")
}

/// The id of a chat, `chat-DATE-TIME`, without the number that may follow it.
fn without_number(id: &str) -> &str {
    match id.rsplit_once('-') {
        Some((name, _)) if id.matches('-').count() > 2 => name,
        Some(_) | None => id,
    }
}

/// The ids of all logs. The ids of chats come last, from the oldest to the newest chat.
fn ids(config: &Config) -> Vec<String> {
    let Ok(files) = fs::read_dir(config.logs()) else { return Vec::new() };
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    let mut ids: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".jsonl")?.to_owned())).collect();
    // The name of a chat contains its time.
    ids.sort_by_key(|id| (id.starts_with(CHAT), id.clone()));
    ids
}
