//! What a tool does, whatever its agent calls it.

use serde::{Deserialize, Serialize};

use crate::Text;

/// What a tool does. A reader maps the raw name and arguments once; nobody else knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolKind {
    /// Reads a file.
    Read,
    /// Writes a whole file.
    Write,
    /// Replaces parts of a file by other text.
    Edit,
    /// Applies a patch.
    Patch,
    /// Runs a command.
    Shell,
    /// Searches the text of files.
    Search,
    /// Lists files.
    List,
    /// Fetches from the web, or searches it.
    Fetch,
    /// Hands work to a sub-agent.
    Task,
    /// Keeps a list of what is to be done.
    Todo,
    /// Loads instructions for a kind of work.
    Skill,
    /// Asks the user.
    Ask,
    /// Enters, shows or leaves a plan.
    Plan,
    /// Asks for a compaction.
    Compact,
    /// Anything else, tools of MCP servers included.
    Other,
}

impl ToolKind {
    /// State that a model goes back to, rather than output it looks at once: never stubbed by
    /// default.
    pub fn is_state(self) -> bool {
        match self {
            ToolKind::Todo
            | ToolKind::Skill
            | ToolKind::Ask
            | ToolKind::Plan
            | ToolKind::Compact => true,
            ToolKind::Read
            | ToolKind::Write
            | ToolKind::Edit
            | ToolKind::Patch
            | ToolKind::Shell
            | ToolKind::Search
            | ToolKind::List
            | ToolKind::Fetch
            | ToolKind::Task
            | ToolKind::Other => false,
        }
    }

    /// Whether it changes the file that it names.
    pub fn changes_file(self) -> bool {
        matches!(self, ToolKind::Write | ToolKind::Edit | ToolKind::Patch)
    }
}

/// A text among the arguments of a call that may be bulky.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its place in the arguments as the agent writes it: `content`, `edits[2].oldText`.
    pub name: Box<str>,
    /// What it is for.
    pub role: FieldRole,
    /// The text.
    pub text: Text,
}

/// What a bulky argument is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FieldRole {
    /// The whole new content of a file.
    Content,
    /// Text that an edit takes away.
    Old,
    /// Text that an edit puts in.
    New,
    /// A patch.
    Patch,
    /// A command line or script.
    Command,
    /// Instructions to a sub-agent.
    Prompt,
    /// Some text of a tool that we do not know.
    Other,
}

impl FieldRole {
    /// All of them.
    pub const ALL: [FieldRole; 7] = [
        FieldRole::Content,
        FieldRole::Old,
        FieldRole::New,
        FieldRole::Patch,
        FieldRole::Command,
        FieldRole::Prompt,
        FieldRole::Other,
    ];
}
