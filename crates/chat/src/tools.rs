//! The tools that the model may call: one file each, and [`TOOLS`] is the only list.
//!
//! A tool first says what a call would access ([`Tool::access`]). It runs only once that is
//! permitted, and on exactly the permitted paths.

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

use epitome_engine::ResponseCall;
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

/// The result of a call: its text, or the error, for the model.
pub type Outcome = Result<String, String>;

/// A tool.
pub struct Tool {
    /// The name of the tool.
    pub name: &'static str,
    /// The kind of the tool, such as one that reads a file.
    pub kind: ToolKind,
    /// A short description of a call from its most important arguments. `None` if the first of them
    /// is missing.
    pub subject: fn(&Value) -> Option<String>,
    /// The part of a result that is shown while it is folded.
    pub fold: Fold,
    /// The description of the tool that the model gets.
    pub description: &'static str,
    /// The JSON Schema of the tool's arguments.
    pub parameters: &'static str,
    /// What a call would access.
    ///
    /// # Errors
    ///
    /// Why the call cannot be run, for the model.
    pub access: fn(&Workplace, &str) -> Result<Access, String>,
    /// The file changes that a call would make if it ran now. `None` for a tool that changes no
    /// files, and for a tool whose changes are only seen when it runs, such as a command.
    pub planned: Option<PlanChanges>,
    /// Runs a call.
    ///
    /// # Errors
    ///
    /// The error, for the model.
    pub run: fn(&Workplace, &str, &Access, &Stop) -> Outcome,
}

/// The changes of a call with these arguments, or why it cannot be run.
pub type PlanChanges = fn(&Workplace, &str) -> Result<Vec<FileChange>, String>;

/// The part of a result that is shown while it is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The first lines of the output.
    Beginning,
    /// The last lines of the output, which say most.
    End,
    /// The number of lines of the output.
    Count,
    /// All lines of the output.
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

/// The built-in tool with this name.
pub fn find_tool(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// The kind of the built-in tool with this name; [`ToolKind::Other`] if there is no such tool.
pub fn kind_of(name: &str) -> ToolKind {
    find_tool(name).map_or(ToolKind::Other, |tool| tool.kind)
}

/// A description of a call: its most important arguments. If these are missing, or the tool is
/// unknown, all arguments as the model wrote them.
pub fn subject(tool: &str, arguments: &str) -> String {
    let parsed = serde_json::from_str(arguments).ok();
    let subject = parsed.and_then(|arguments| (find_tool(tool)?.subject)(&arguments));
    subject.unwrap_or_else(|| arguments.to_owned())
}

/// Fills in parts of a description: `{name}` in each part is replaced by the argument of that name.
/// A part whose argument is missing is left out. `None` if the first part is left out.
fn described(arguments: &Value, parts: &[&str]) -> Option<String> {
    let first = described_part(arguments, parts[0])?;
    let others = parts[1..].iter().filter_map(|part| described_part(arguments, part));
    Some(others.fold(first, |all, part| all + &part))
}

/// Replaces `{name}` by the argument of that name; `None` if the argument is missing, or is neither
/// a string nor a number.
fn described_part(arguments: &Value, part: &str) -> Option<String> {
    let (before, rest) = part.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    let value = match arguments.get(name)? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(format!("{before}{value}{after}"))
}

/// The tools in [`TOOLS`], in the form for a request.
pub fn request_tools() -> Vec<epitome_api::Tool<'static>> {
    let offered = TOOLS.iter().map(|tool| epitome_api::Tool {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
    });
    offered.collect()
}

/// The built-in tools of a sub-agent: it cannot ask the user, and cannot start sub-agents.
pub fn offered_in_tasks() -> Vec<epitome_api::Tool<'static>> {
    request_tools().into_iter().filter(|tool| ![TASK, ASK].contains(&tool.name)).collect()
}

/// A callback for the output of a running tool: the seconds since it began, and the last lines of
/// its output.
pub type OnProgress = Arc<dyn Fn(u64, String) + Send + Sync>;

/// The folder and the environment in which tools work.
#[derive(Clone)]
pub struct Workplace {
    /// The folder of the project: absolute, without symbolic links.
    root: PathBuf,
    /// Environment variables that commands do not get, such as those with API keys.
    hidden: Arc<[String]>,
    /// The user's folders of skills.
    skills: Arc<[PathBuf]>,
    /// The user's home folder. Links in the user's folders of skills may lead to files below it.
    home: Option<PathBuf>,
    /// The source of the tools of MCP servers.
    more: Option<Arc<dyn MoreTools>>,
    /// The tools of MCP servers that are offered in requests.
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
    /// If the folder does not exist.
    pub fn new(root: &std::path::Path) -> std::io::Result<Workplace> {
        let hidden = Arc::from(Vec::new());
        let skills = Arc::from(Vec::new());
        let root = root.canonicalize()?;
        let offered = Arc::from(Vec::new());
        let home = None;
        let more = None;
        let progress = None;
        Ok(Workplace { root, hidden, skills, home, more, offered, progress })
    }

    /// Sets the environment variables that commands do not get.
    #[must_use]
    pub fn without_variables(mut self, names: impl IntoIterator<Item = String>) -> Workplace {
        self.hidden = names.into_iter().collect();
        self
    }

    /// Sets the folders of the user's skills; each skill is a folder in one of them. If one of
    /// `folders` is below `home`, links in it may lead to any file below `home`.
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

    /// Sets the callback for the output of running tools.
    #[must_use]
    pub fn with_progress(mut self, progress: OnProgress) -> Workplace {
        self.progress = Some(progress);
        self
    }

    /// Sets the source of the tools of MCP servers, and offers these tools.
    #[must_use]
    pub fn with_more(mut self, more: Arc<dyn MoreTools>) -> Workplace {
        self.more = Some(more);
        self.refresh_tools();
        self
    }

    /// Updates the offered tools to the tools that servers have now. This is only called where a
    /// context begins or is made again: tools come first in a request, so a provider cannot use its
    /// cache after they have changed.
    pub fn refresh_tools(&mut self) {
        self.offered = self.more.iter().flat_map(|more| more.tools()).collect();
    }

    /// All tools, in the form for a request; `in_task` is whether a sub-agent sends the request.
    pub fn request_tools(&self, in_task: bool) -> Vec<epitome_api::Tool<'_>> {
        let mut all = if in_task { offered_in_tasks() } else { request_tools() };
        all.extend(self.offered.iter().map(|tool| epitome_api::Tool {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
        }));
        all
    }

    /// The offered tool of an MCP server that has this name.
    fn more_tool(&self, name: &str) -> Option<&MoreTool> {
        self.offered.iter().find(|tool| tool.name == name)
    }

    /// The folder of the project.
    pub fn root(&self) -> &std::path::Path {
        &self.root
    }

    /// What a call would access.
    ///
    /// # Errors
    ///
    /// Why the call cannot be run, for the model.
    pub fn access(&self, called: &ResponseCall) -> Result<Access, String> {
        if let Some(tool) = self.more_tool(&called.name) {
            let name = tool.name.splitn(3, "__").nth(2).unwrap_or(&tool.name);
            return Ok(Access::Mcp { server: tool.server.clone(), tool: name.to_owned() });
        }
        (find(called)?.access)(self, &called.arguments)
    }

    /// A path for display: relative to the project's folder if the path is inside it.
    pub fn shown_path(&self, path: &std::path::Path) -> String {
        self.display(path)
    }

    /// Runs a permitted call.
    ///
    /// # Errors
    ///
    /// The error, for the model.
    pub fn run(&self, called: &ResponseCall, access: &Access, stop: &Stop) -> Outcome {
        if let (Some(tool), Some(more)) = (self.more_tool(&called.name), &self.more) {
            return more.call(tool, &called.arguments, stop);
        }
        (find(called)?.run)(self, &called.arguments, access, stop)
    }
}

fn find(called: &ResponseCall) -> Result<&'static Tool, String> {
    find_tool(&called.name).ok_or_else(|| {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        format!("there is no tool `{}`: there are {}", called.name, names.join(", "))
    })
}

/// Parses the arguments of a call.
fn parsed<T: DeserializeOwned>(arguments: &str) -> Result<T, String> {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(arguments).map_err(|err| format!("bad arguments: {err}"))
}

/// The path that was permitted. An error if the access is not to a single path.
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
