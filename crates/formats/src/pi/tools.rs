//! pi's tools by name, and which of their arguments are bulky.

use std::ops::Range;

use epitome_model::{Field, FieldRole, Text, ToolKind};

use crate::arguments::{self, Roles, Rule};

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

/// What a call is, by its name and arguments.
pub fn known(
    name: &str,
    line: &[u8],
    arguments: &Range<usize>,
    base: u64,
) -> (ToolKind, Option<Text>, Option<Box<str>>, Vec<Field>) {
    arguments::known(TOOLS, name, line, arguments, base)
}
