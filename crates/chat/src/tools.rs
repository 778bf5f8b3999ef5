//! The tools that the model may call: one file each, and [`TOOLS`] is the only list.
//!
//! A tool first says what a call would touch ([`Tool::access`]), and is run only once that is
//! permitted, with exactly the paths that were permitted.

mod ask;
mod change;
mod compact;
mod edit;
mod external;
mod glob;
mod grep;
mod patch;
mod place;
mod read;
mod recall;
mod shell;
mod skill;
mod task;
mod todo;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use epitome_engine::Called;
use epitome_llm::Stop;
use epitome_model::ToolKind;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::permissions::Access;

pub use ask::{ASK, Question, question};
pub use change::FileChange;
pub use external::{MoreTool, MoreTools};
pub use recall::RECALL;
pub use skill::Skill;
pub(crate) use skill::not_read;
pub use task::{TASK, Task, task};
pub use todo::{TODO, Todo, TodoState, todo};

/// The result of a call: its text, or what failed, for the model.
pub type Outcome = Result<String, String>;

/// A tool.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What kind of tool it is: what shows its calls goes by this.
    pub kind: ToolKind,
    /// What a call is about, by its arguments: those that say most. None if they say nothing.
    pub subject: fn(&Value) -> Option<String>,
    /// What of a result is shown while it is folded.
    pub fold: Fold,
    /// What it does and when to call it, for the model.
    pub description: &'static str,
    /// The JSON Schema of its arguments.
    pub parameters: &'static str,
    /// What a call would touch.
    ///
    /// # Errors
    ///
    /// Why the call cannot be run, for the model.
    pub access: fn(&Workplace, &str) -> Result<Access, String>,
    /// What a call would change in files, if they stay as they are until it runs; none of a tool
    /// that changes none.
    pub planned: Option<Planned>,
    /// Runs a call.
    ///
    /// # Errors
    ///
    /// What failed, for the model.
    pub run: fn(&Workplace, &str, &Access, &Stop) -> Outcome,
}

/// What a call with these arguments would change, or why it cannot be run.
pub type Planned = fn(&Workplace, &str) -> Result<Vec<FileChange>, String>;

/// What of a result is shown while it is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Its first lines.
    Beginning,
    /// Its last lines, which say most.
    End,
    /// The number of its lines.
    Count,
    /// All of it.
    All,
}

/// Every tool.
pub static TOOLS: &[Tool] = &[
    read::TOOL,
    write::TOOL,
    edit::TOOL,
    patch::TOOL,
    shell::TOOL,
    glob::TOOL,
    grep::TOOL,
    todo::TOOL,
    skill::TOOL,
    ask::TOOL,
    task::TOOL,
    compact::TOOL,
    recall::TOOL,
];

/// The tool of this name.
pub fn named(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// The kind of the tool of this name.
pub fn kind_of(name: &str) -> ToolKind {
    named(name).map_or(ToolKind::Other, |tool| tool.kind)
}

/// What a call is about: the arguments that say most, or all of them.
pub fn subject(tool: &str, arguments: &str) -> String {
    let parsed = serde_json::from_str(arguments).ok();
    let subject = parsed.and_then(|arguments| (named(tool)?.subject)(&arguments));
    subject.unwrap_or_else(|| arguments.to_owned())
}

/// Arguments in words: `{name}` in a part is that argument, and a part without it is left out. None
/// if the first part is.
fn described(arguments: &Value, parts: &[&str]) -> Option<String> {
    let part = |part: &str| {
        let (before, rest) = part.split_once('{')?;
        let (name, after) = rest.split_once('}')?;
        let value = match arguments.get(name)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        Some(format!("{before}{value}{after}"))
    };
    let first = part(parts[0])?;
    let others = parts[1..].iter().filter_map(|it| part(it));
    Some(others.fold(first, |all, part| all + &part))
}

/// All tools, as a request offers them.
pub fn offered() -> Vec<epitome_api::Tool<'static>> {
    let offer = |tool: &Tool| epitome_api::Tool {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
    };
    TOOLS.iter().map(offer).collect()
}

/// The tools that a task has: there is no user to ask in it, and no task begins others.
pub fn offered_in_tasks() -> Vec<epitome_api::Tool<'static>> {
    offered().into_iter().filter(|tool| ![TASK, ASK].contains(&tool.name)).collect()
}

/// Takes what a tool that runs has printed so far: the seconds since it began, and the last of its
/// output.
pub type OnProgress = Arc<dyn Fn(u64, String) + Send + Sync>;

/// Where tools work.
#[derive(Clone)]
pub struct Workplace {
    /// The folder of the project: absolute and free of symbolic links.
    root: PathBuf,
    /// Environment variables that commands do not get: keys.
    hidden: Arc<[String]>,
    /// Folders with skills of the user.
    skills: Arc<[PathBuf]>,
    /// The home of the user, in which their skills are.
    home: Option<PathBuf>,
    /// MCP servers.
    more: Option<Arc<dyn MoreTools>>,
    /// Their tools, as requests offer them.
    offered: Arc<[MoreTool]>,
    progress: Option<OnProgress>,
}

impl std::fmt::Debug for Workplace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workplace").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Workplace {
    /// The workplace in a folder.
    ///
    /// # Errors
    ///
    /// If there is no such folder.
    pub fn new(root: &std::path::Path) -> std::io::Result<Workplace> {
        let (hidden, skills) = (Arc::from(Vec::new()), Arc::from(Vec::new()));
        let root = root.canonicalize()?;
        let offered = Arc::from(Vec::new());
        let (home, more, progress) = (None, None, None);
        Ok(Workplace { root, hidden, skills, home, more, offered, progress })
    }

    /// Without these environment variables for commands.
    #[must_use]
    pub fn without_variables(mut self, names: impl IntoIterator<Item = String>) -> Workplace {
        self.hidden = names.into_iter().collect();
        self
    }

    /// With folders that hold a folder for each skill of the user. Links in those below `home` may
    /// lead to any file there.
    #[must_use]
    pub fn with_skills(
        mut self,
        folders: impl IntoIterator<Item = PathBuf>,
        home: PathBuf,
    ) -> Workplace {
        self.home = Some(home);
        self.skills = folders.into_iter().collect();
        self
    }

    /// With what takes the output of a tool while it runs.
    #[must_use]
    pub fn with_progress(mut self, progress: OnProgress) -> Workplace {
        self.progress = Some(progress);
        self
    }

    /// With the tools of MCP servers.
    #[must_use]
    pub fn with_more(mut self, more: Arc<dyn MoreTools>) -> Workplace {
        self.more = Some(more);
        self.refresh_tools();
        self
    }

    /// Takes over the tools that servers have now. Tools come first in a request: with others, a
    /// provider reads all of it again. So it is done only where a context begins, or is made again.
    pub fn refresh_tools(&mut self) {
        self.offered = self.more.iter().flat_map(|more| more.tools()).collect();
    }

    /// All tools, as a request offers them, of a task or not.
    pub fn offered(&self, in_task: bool) -> Vec<epitome_api::Tool<'_>> {
        let mut all = if in_task { offered_in_tasks() } else { offered() };
        all.extend(self.offered.iter().map(|tool| epitome_api::Tool {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
        }));
        all
    }

    /// The tool of a server that a call is about.
    fn more_tool(&self, name: &str) -> Option<&MoreTool> {
        self.offered.iter().find(|tool| tool.name == name)
    }

    /// The folder of the project.
    pub fn root(&self) -> &std::path::Path {
        &self.root
    }

    /// What a call would touch.
    ///
    /// # Errors
    ///
    /// Why the call cannot be run, for the model.
    pub fn access(&self, called: &Called) -> Result<Access, String> {
        if let Some(tool) = self.more_tool(&called.name) {
            let name = tool.name.splitn(3, "__").nth(2).unwrap_or(&tool.name);
            return Ok(Access::Mcp { server: tool.server.clone(), tool: name.to_owned() });
        }
        (find(called)?.access)(self, &called.arguments)
    }

    /// A path as it is shown: inside the project without its folder.
    pub fn shown_path(&self, path: &std::path::Path) -> String {
        self.display(path)
    }

    /// Runs a call that is permitted.
    ///
    /// # Errors
    ///
    /// What failed, for the model.
    pub fn run(&self, called: &Called, access: &Access, stop: &Stop) -> Outcome {
        if let (Some(tool), Some(more)) = (self.more_tool(&called.name), &self.more) {
            return more.call(tool, &called.arguments, stop);
        }
        (find(called)?.run)(self, &called.arguments, access, stop)
    }
}

fn find(called: &Called) -> Result<&'static Tool, String> {
    named(&called.name).ok_or_else(|| {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        format!("there is no tool `{}`: there are {}", called.name, names.join(", "))
    })
}

/// The arguments of a call.
fn parsed<T: DeserializeOwned>(arguments: &str) -> Result<T, String> {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(arguments).map_err(|err| format!("bad arguments: {err}"))
}

/// The path that was permitted.
fn permitted(access: &Access) -> Result<&PathBuf, String> {
    match access {
        Access::Read(path) | Access::Write(path) => Ok(path),
        Access::Own | Access::Patch(_) | Access::Shell(_) | Access::Mcp { .. } => {
            Err("no path was permitted".to_owned())
        }
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
