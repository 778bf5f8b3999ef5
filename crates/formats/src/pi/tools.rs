//! pi's tools by name, and which of their arguments are bulky.

use epitome_api::arguments::{Roles, Rule};
use epitome_model::{FieldRole, ToolKind, encode};

use crate::port::{Reach, ToolAction, object};

/// Tools by name: pi's own, and the names that its extensions commonly use.
pub const TOOLS: &[Rule] = &[
    Rule { name: "read", kind: ToolKind::Read, roles: READ },
    Rule { name: "write", kind: ToolKind::Write, roles: WRITE },
    Rule { name: "edit", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "bash", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "grep", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "find", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "ls", kind: ToolKind::List, roles: PATH },
    Rule { name: "web_fetch", kind: ToolKind::Fetch, roles: PATH },
    Rule { name: "web_search", kind: ToolKind::Fetch, roles: PATH },
    Rule { name: "task", kind: ToolKind::Task, roles: TASK },
    Rule { name: "subagent", kind: ToolKind::Task, roles: TASK },
    Rule { name: "todo", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "todo_write", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "todo_read", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "skill", kind: ToolKind::Skill, roles: NONE },
    Rule { name: "ask_user", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "compact", kind: ToolKind::Compact, roles: NONE },
];

const NONE: Roles = Roles { target: &[], part: &[], fields: &[] };
const READ: Roles =
    Roles { target: &["path", "file_path"], part: &["offset", "limit"], fields: &[] };
const WRITE: Roles =
    Roles { target: &["path", "file_path"], part: &[], fields: &[("content", FieldRole::Content)] };
const EDIT: Roles = Roles {
    target: &["path", "file_path"],
    part: &[],
    fields: &[
        ("oldText", FieldRole::Old),
        ("newText", FieldRole::New),
        ("edits[].oldText", FieldRole::Old),
        ("edits[].newText", FieldRole::New),
    ],
};
const SHELL: Roles =
    Roles { target: &["command"], part: &[], fields: &[("command", FieldRole::Command)] };
const SEARCH: Roles = Roles { target: &["pattern", "path"], part: &[], fields: &[] };
const PATH: Roles = Roles { target: &["path", "url", "query"], part: &[], fields: &[] };
const TASK: Roles = Roles {
    target: &["description", "agent"],
    part: &[],
    fields: &[("prompt", FieldRole::Prompt), ("task", FieldRole::Prompt)],
};

/// The tool of pi for an action, and its arguments.
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
