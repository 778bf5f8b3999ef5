//! pi's tools by name, and which of their arguments are bulky.

use epitome_api::arguments::{Roles, Rule};
use epitome_model::{FieldRole, ToolKind, encode};

use crate::port::{Reach, ToolAction, object};

/// Tools by name: pi's own, and the names that its extensions commonly use.
pub const TOOLS: &[Rule] = &[
    Rule::new("read", ToolKind::Read, READ),
    Rule::new("write", ToolKind::Write, WRITE),
    Rule::new("edit", ToolKind::Edit, EDIT),
    Rule::new("bash", ToolKind::Shell, SHELL),
    Rule::new("grep", ToolKind::Search, SEARCH),
    Rule::new("find", ToolKind::List, SEARCH),
    Rule::new("ls", ToolKind::List, PATH),
    Rule::new("web_fetch web_search", ToolKind::Fetch, PATH),
    Rule::new("task subagent", ToolKind::Task, TASK),
    Rule::new("todo todo_write todo_read", ToolKind::Todo, NONE),
    Rule::new("skill", ToolKind::Skill, NONE),
    Rule::new("ask_user", ToolKind::Ask, NONE),
    Rule::new("compact", ToolKind::Compact, NONE),
];

const NONE: Roles = Roles::NONE;
const READ: Roles = Roles::target("path file_path").part("offset limit");
const WRITE: Roles = Roles::target("path file_path").field(FieldRole::Content, "content");
const EDIT: Roles = Roles::target("path file_path")
    .field(FieldRole::Old, "oldText edits[].oldText")
    .field(FieldRole::New, "newText edits[].newText");
const SHELL: Roles = Roles::target("command").field(FieldRole::Command, "command");
const SEARCH: Roles = Roles::target("pattern path");
const PATH: Roles = Roles::target("path url query");
const TASK: Roles = Roles::target("description agent").field(FieldRole::Prompt, "prompt task");

/// The tool of pi that carries out an action, and its arguments; `None` if no tool of pi does so.
pub fn call(deed: &ToolAction) -> Option<(&'static str, String)> {
    Some(match deed {
        ToolAction::Read { path, part } => {
            let mut members = vec![("path", encode(path))];
            members.extend(part.iter().map(|(key, value)| (&**key, value.clone())));
            ("read", object(&members))
        }
        ToolAction::Write { path, content } => {
            ("write", object(&[("path", encode(path)), ("content", encode(content))]))
        }
        ToolAction::Edit { path, pairs, reach: Reach::One } => {
            let edits = pairs
                .iter()
                .map(|(old, new)| object(&[("oldText", encode(old)), ("newText", encode(new))]));
            let edits = format!("[{}]", edits.collect::<Vec<_>>().join(","));
            ("edit", object(&[("path", encode(path)), ("edits", edits)]))
        }
        ToolAction::Shell { command, why } => {
            let mut members = vec![("command", encode(command))];
            members.extend(why.iter().map(|why| ("description", encode(why))));
            ("bash", object(&members))
        }
        ToolAction::Find { pattern, path } => {
            let mut members = vec![("pattern", encode(pattern))];
            members.extend(path.iter().map(|path| ("path", encode(path))));
            ("find", object(&members))
        }
        ToolAction::Edit { reach: Reach::All, .. } | ToolAction::Patch { .. } => return None,
    })
}
