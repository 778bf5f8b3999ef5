//! Claude Code's tools by name, and which of their arguments are bulky.

use epitome_api::arguments::{Roles, Rule};
use epitome_model::{FieldRole, ToolKind, encode};

use crate::port::{Reach, ToolAction, object};

/// Tools by name, in lower case.
pub const TOOLS: &[Rule] = &[
    Rule::new("read notebookread", ToolKind::Read, READ),
    Rule::new("write", ToolKind::Write, WRITE),
    Rule::new("edit multiedit notebookedit", ToolKind::Edit, EDIT),
    Rule::new("bash powershell monitor", ToolKind::Shell, SHELL),
    Rule::new("bashoutput killshell killbash", ToolKind::Shell, ID),
    Rule::new("grep lsp", ToolKind::Search, SEARCH),
    Rule::new("toolsearch", ToolKind::Skill, SEARCH),
    Rule::new("glob ls", ToolKind::List, SEARCH),
    Rule::new("webfetch websearch", ToolKind::Fetch, FETCH),
    Rule::new("task agent sendmessage", ToolKind::Task, TASK),
    Rule::new("taskoutput agentoutputtool", ToolKind::Task, ID),
    Rule::new("todowrite todoread taskcreate taskupdate tasklist taskget", ToolKind::Todo, NONE),
    Rule::new("skill slashcommand", ToolKind::Skill, NONE),
    Rule::new("askuserquestion", ToolKind::Ask, NONE),
    Rule::new("enterplanmode exitplanmode", ToolKind::Plan, NONE),
    Rule::new("compact", ToolKind::Compact, NONE),
];

const NONE: Roles = Roles::NONE;
const READ: Roles = Roles::target("file_path notebook_path").part("offset limit pages");
const WRITE: Roles = Roles::target("file_path").field(FieldRole::Content, "content");
const EDIT: Roles = Roles::target("file_path notebook_path")
    .field(FieldRole::Old, "old_string edits[].old_string")
    .field(FieldRole::New, "new_string new_source edits[].new_string");
const SHELL: Roles = Roles::target("command").field(FieldRole::Command, "command");
const ID: Roles = Roles::target("bash_id shell_id task_id agentId");
const SEARCH: Roles = Roles::target("pattern query path");
const FETCH: Roles = Roles::target("url query");
const TASK: Roles = Roles::target("description").field(FieldRole::Prompt, "prompt message");

/// The tool of Claude Code that carries out an action, and its input; `None` if no single call of a
/// tool does so.
pub fn call(action: &ToolAction) -> Option<(&'static str, String)> {
    Some(match action {
        ToolAction::Read { path, part } => {
            let mut members = vec![("file_path", encode(path))];
            members.extend(part.iter().map(|(key, value)| (&**key, value.clone())));
            ("Read", object(&members))
        }
        ToolAction::Write { path, content } => {
            ("Write", object(&[("file_path", encode(path)), ("content", encode(content))]))
        }
        ToolAction::Edit { path, pairs, reach } => {
            // The tool replaces one text per call: several replacements cannot be expressed.
            let [(old, new)] = &pairs[..] else { return None };
            let mut members = vec![
                ("file_path", encode(path)),
                ("old_string", encode(old)),
                ("new_string", encode(new)),
            ];
            members.extend((*reach == Reach::All).then(|| ("replace_all", "true".to_owned())));
            ("Edit", object(&members))
        }
        ToolAction::Shell { command, why } => {
            let mut members = vec![("command", encode(command))];
            members.extend(why.iter().map(|why| ("description", encode(why))));
            ("Bash", object(&members))
        }
        ToolAction::Find { pattern, path } => {
            let mut members = vec![("pattern", encode(pattern))];
            members.extend(path.iter().map(|path| ("path", encode(path))));
            ("Glob", object(&members))
        }
        ToolAction::Patch { .. } => return None,
    })
}
