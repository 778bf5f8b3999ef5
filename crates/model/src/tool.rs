//! Kinds of tools: what a tool does, whatever its agent calls it.

use serde::{Deserialize, Serialize};

use crate::Text;

/// What a tool does. A reader maps the names of an agent's tools to kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolKind {
    /// Reads a file.
    Read,
    /// Writes a whole file.
    Write,
    /// Replaces parts of a file.
    Edit,
    /// Applies a patch.
    Patch,
    /// Runs a command.
    Shell,
    /// Searches the text of files.
    Search,
    /// Lists files.
    List,
    /// Fetches from the web, or searches the web.
    Fetch,
    /// Delegates work to a sub-agent.
    Task,
    /// Maintains a to-do list.
    Todo,
    /// Loads instructions for a kind of work.
    Skill,
    /// Asks the user.
    Ask,
    /// Enters, shows or leaves plan mode.
    Plan,
    /// Requests a compaction.
    Compact,
    /// Anything else, tools of MCP servers included.
    Other,
}

impl ToolKind {
    /// Whether the tool changes files.
    pub fn changes_file(self) -> bool {
        matches!(self, ToolKind::Write | ToolKind::Edit | ToolKind::Patch)
    }
}

/// An argument of a call, or a text inside an argument, that may be bulky.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The path of the text in the arguments, as the agent writes it: `content`,
    /// `edits[2].oldText`.
    pub name: Box<str>,
    /// What the text is for.
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
    /// Text that an edit removes.
    Old,
    /// Text that an edit inserts.
    New,
    /// A patch.
    Patch,
    /// A command line or script.
    Command,
    /// Instructions to a sub-agent.
    Prompt,
    /// Any other text, for example of a tool that epitome does not know.
    Other,
}

impl FieldRole {
    /// All roles.
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
