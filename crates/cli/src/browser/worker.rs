//! The tasks that keys start, carried out in the background. Most of them are commands of the
//! program.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use epitome::keep::{DeletedSession, VersionHistory, deleted_sessions};
use epitome::list::{ListedSession, list};
use epitome::recipes;
use epitome_web::{Server, Which};
use tempfile::NamedTempFile;

use crate::app::App;
use crate::cmd::{history, serve};
use crate::failure::{Failure, Result, Status};
use crate::redaction::Redaction;

/// A task that takes time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Reads the sessions.
    List,
    /// Reads the sessions again, without a message, because other programs may have changed them.
    Refresh,
    /// Runs commands, one after the other, and shows what they print.
    Run(Commands),
    /// Writes a session to a new file in the current folder.
    Export { session: PathBuf, short: String, form: Form },
    /// Opens the page of a session in the web browser.
    Open(PathBuf),
    /// Lists the versions of a session, which may have been deleted. `session` is its path, or its
    /// address in a database.
    Versions { session: OsString, agent: String, short: String },
    /// Lists the deleted sessions of which `epitome keep` has versions.
    Deleted,
}

impl Task {
    /// Whether the task must not be killed, because it changes sessions or writes files for the
    /// user.
    pub fn writes(&self) -> bool {
        match self {
            Task::Export { .. } => true,
            Task::Run(commands) => {
                matches!(commands.kind, Kind::Writes | Kind::Restores | Kind::Ports)
            }
            Task::List | Task::Refresh | Task::Open(_) | Task::Versions { .. } | Task::Deleted => {
                false
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commands {
    /// The title under which the screen shows the output of the commands.
    pub title: String,
    /// The arguments of each command.
    pub lines: Vec<Vec<OsString>>,
    pub kind: Kind,
}

/// What is done with the output of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The output is shown.
    Shows,
    /// The output is shown as a plan, and a key carries the plan out.
    Plans,
    /// The output is shown, and the sessions are listed again because they have changed.
    Writes,
    /// Like `Writes`, but no key undoes it.
    Restores,
    /// The output is shown, and its last line can be copied.
    Ports,
}

/// The result of a task.
#[derive(Debug)]
pub enum TaskResult {
    Listed(Vec<ListedSession>),
    Refreshed(Vec<ListedSession>),
    Printed {
        commands: Commands,
        text: String,
        failed: bool,
    },
    /// The versions of a session, and the beginning of its id.
    Versions(VersionHistory, String),
    Deleted(Vec<DeletedSession>),
    Note(String),
    Failed(String),
}

/// The form to export a session in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Html,
    Markdown,
    Json,
    Session,
}

impl Form {
    pub const ALL: [Form; 4] = [Form::Html, Form::Markdown, Form::Json, Form::Session];

    pub fn describe(self) -> &'static str {
        match self {
            Form::Html => "page (HTML)",
            Form::Markdown => "Markdown",
            Form::Json => "JSON for programs",
            Form::Session => "a session of the same agent",
        }
    }

    fn file(self, short: &str) -> String {
        match self {
            Form::Html => format!("{short}.html"),
            Form::Markdown => format!("{short}.md"),
            Form::Json => format!("{short}.json"),
            Form::Session => format!("{short}.redacted.jsonl"),
        }
    }
}

/// Carries out tasks.
pub struct Worker {
    app: App,
    /// The viewer, once the user has opened a session in it.
    viewer: Option<Viewer>,
}

/// The viewer, which runs as long as the program.
struct Viewer {
    root: String,
    /// The files that were opened in web browsers. They contain the viewer's secret token, and are
    /// deleted when this value is dropped.
    opened: Vec<NamedTempFile>,
}

impl Worker {
    pub fn new(app: App) -> Worker {
        Worker { app, viewer: None }
    }

    /// Carries out a task. For [`Task::List`], `looked` is called after each session that is read,
    /// with the number of all sessions.
    pub fn run(&mut self, task: Task, looked: impl Fn(usize) + Sync) -> TaskResult {
        let done = match task {
            Task::List => self.list(looked).map(TaskResult::Listed),
            Task::Refresh => self.list(|_| ()).map(TaskResult::Refreshed),
            Task::Run(commands) => Ok(self.commands(commands)),
            Task::Export { session, short, form } => self.export(&session, &short, form),
            Task::Open(session) => self.open(&session),
            Task::Versions { session, agent, short } => self.versions(&session, &agent, short),
            Task::Deleted => self.deleted().map(TaskResult::Deleted),
        };
        done.unwrap_or_else(|failure| TaskResult::Failed(failure.one_line()))
    }

    fn list(&self, looked: impl Fn(usize) + Sync) -> Result<Vec<ListedSession>> {
        let app = &self.app;
        let recipe = recipes::resolve(&app.config, app.settings()?, None)?;
        let found = epitome::agents::all(&app.config.agents, app.agent());
        let all = found.sessions.len();
        Ok(list(&app.with_rules()?, found.sessions, &recipe, || looked(all)))
    }

    fn commands(&self, commands: Commands) -> TaskResult {
        let mut text = String::new();
        let mut failed = false;
        let progress = &self.app.progress;
        let of = commands.lines.len();
        // If there is only one command, the command itself begins and counts the steps of the
        // progress.
        if of > 1 {
            progress.begin(of);
        }
        for (n, line) in commands.lines.iter().enumerate() {
            if n > 0 && progress.is_stopped() {
                failed = true;
                text.push_str(&format!("\n{n} of {of} sessions done, stopped\n"));
                break;
            }
            let printed = self.app.run_captured(|app| crate::run_line(app, line));
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&printed.all);
            if let Err(failure) = printed.done {
                failed = true;
                text.push_str(&String::from_utf8_lossy(&self.app.styled(&failure.render())));
            }
            if of > 1 {
                progress.step();
            }
        }
        TaskResult::Printed { commands, text, failed }
    }

    fn export(&self, session: &Path, short: &str, form: Form) -> Result<TaskResult> {
        let file = PathBuf::from(form.file(short));
        let words: &[&str] = match form {
            Form::Html => &["render", "--format", "html"],
            Form::Markdown => &["render", "--format", "markdown"],
            Form::Json => &["render", "--format", "json"],
            Form::Session => &["redact", "--out"],
        };
        let mut line: Vec<OsString> = words.iter().map(OsString::from).collect();
        line.extend((form == Form::Session).then(|| file.clone().into()));
        line.push(session.into());
        let printed = self.app.run_captured(|app| crate::run_line(app, &line));
        printed.done?;
        if form != Form::Session {
            write_new(&file, printed.out.as_bytes())?;
        }
        let here = std::env::current_dir().unwrap_or_default().join(&file);
        Ok(TaskResult::Note(format!("written: {}", crate::text::path(&here))))
    }

    fn versions(&self, session: &OsStr, agent: &str, short: String) -> Result<TaskResult> {
        let config = &self.app.config;
        let vault = config.vault()?;
        let file = history::kept_file(&vault, config, session, Some(agent))?;
        let history = VersionHistory::read(config, &vault, &file)?;
        Ok(TaskResult::Versions(history, short))
    }

    fn deleted(&self) -> Result<Vec<DeletedSession>> {
        let vault = self.app.config.vault()?;
        Ok(deleted_sessions(&self.app.config, &vault, self.app.agent()))
    }

    /// Opens a session in the viewer. The first call starts the viewer.
    fn open(&mut self, session: &Path) -> Result<TaskResult> {
        if self.viewer.is_none() {
            let root = start_viewer(&self.app)?;
            self.viewer = Some(Viewer { root, opened: Vec::new() });
        }
        let viewer = self.viewer.as_mut().expect("it was started");
        let address = format!("{}{}", viewer.root, epitome_web::page_of(session));
        Ok(match serve::open_address(&address)? {
            Ok(file) => {
                viewer.opened.push(file);
                TaskResult::Note(format!("opened until you leave: {address}"))
            }
            // No web browser can be opened, for example without a desktop. The address is shown
            // instead.
            Err(_) => TaskResult::Note(format!("no web browser could be opened: {address}")),
        })
    }
}

fn start_viewer(app: &App) -> Result<String> {
    let which = app.agent().map_or(Which::All, |agent| Which::Of(agent.to_owned()));
    let options = serve::options(app, which, &Redaction::default())?;
    let server = Server::bind(options, 0).map_err(|err| {
        Failure::new(Status::Refused, "port", "cannot listen on this machine").because(&err)
    })?;
    let root = server.address();
    std::thread::spawn(move || server.run_until(std::future::pending()));
    Ok(root)
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let made = std::fs::File::create_new(path).and_then(|mut file| file.write_all(bytes));
    made.map_err(|err| match err.kind() {
        std::io::ErrorKind::AlreadyExists => {
            let what = format!("{} exists", crate::text::path(path));
            Failure::new(Status::Refused, "exists", what)
        }
        _ => Failure::writing(epitome::Error::from(err)),
    })
}
