//! Copilot CLI's tools by name, and which of their arguments are bulky.

use epitome_api::arguments::{Roles, Rule};
use epitome_model::{FieldRole, ToolKind};

/// Tools by name, as written in its logs.
pub const TOOLS: &[Rule] = &[
    Rule { name: "view", kind: ToolKind::Read, roles: VIEW },
    Rule { name: "create", kind: ToolKind::Write, roles: CREATE },
    Rule { name: "edit", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "apply_patch", kind: ToolKind::Patch, roles: PATCH },
    Rule { name: "bash", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "powershell", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "write_bash", kind: ToolKind::Shell, roles: INPUT },
    Rule { name: "read_bash", kind: ToolKind::Shell, roles: INPUT },
    Rule { name: "stop_bash", kind: ToolKind::Shell, roles: INPUT },
    Rule { name: "grep", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "rg", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "glob", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "web_fetch", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "web_search", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "task", kind: ToolKind::Task, roles: TASK },
    Rule { name: "read_agent", kind: ToolKind::Task, roles: NONE },
    Rule { name: "update_todo", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "sql", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "report_intent", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "skill", kind: ToolKind::Skill, roles: NONE },
    Rule { name: "ask_user", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "exit_plan_mode", kind: ToolKind::Plan, roles: NONE },
];

const NONE: Roles = Roles { target: &[], part: &[], fields: &[] };
const VIEW: Roles = Roles { target: &["path"], part: &["view_range"], fields: &[] };
const CREATE: Roles =
    Roles { target: &["path"], part: &[], fields: &[("file_text", FieldRole::Content)] };
const EDIT: Roles = Roles {
    target: &["path"],
    part: &[],
    fields: &[("old_str", FieldRole::Old), ("new_str", FieldRole::New)],
};
const PATCH: Roles = Roles {
    target: &[],
    part: &[],
    fields: &[("input", FieldRole::Patch), ("patch", FieldRole::Patch)],
};
const SHELL: Roles =
    Roles { target: &["command"], part: &[], fields: &[("command", FieldRole::Command)] };
const INPUT: Roles = Roles { target: &["input", "shellId"], part: &[], fields: &[] };
const SEARCH: Roles = Roles { target: &["pattern", "path"], part: &[], fields: &[] };
const FETCH: Roles = Roles { target: &["url", "query"], part: &[], fields: &[] };
const TASK: Roles =
    Roles { target: &["description"], part: &[], fields: &[("prompt", FieldRole::Prompt)] };
