//! Copilot CLI's tools by name, and which of their arguments are bulky.

use epitome_api::arguments::{Roles, Rule};
use epitome_model::{FieldRole, ToolKind};

/// Tools by name, as written in its logs.
pub const TOOLS: &[Rule] = &[
    Rule::new("view", ToolKind::Read, VIEW),
    Rule::new("create", ToolKind::Write, CREATE),
    Rule::new("edit", ToolKind::Edit, EDIT),
    Rule::new("apply_patch", ToolKind::Patch, PATCH),
    Rule::new("bash powershell", ToolKind::Shell, SHELL),
    Rule::new("write_bash read_bash stop_bash", ToolKind::Shell, INPUT),
    Rule::new("grep rg", ToolKind::Search, SEARCH),
    Rule::new("glob", ToolKind::List, SEARCH),
    Rule::new("web_fetch web_search", ToolKind::Fetch, FETCH),
    Rule::new("task", ToolKind::Task, TASK),
    Rule::new("read_agent", ToolKind::Task, NONE),
    Rule::new("update_todo sql report_intent", ToolKind::Todo, NONE),
    Rule::new("skill", ToolKind::Skill, NONE),
    Rule::new("ask_user", ToolKind::Ask, NONE),
    Rule::new("exit_plan_mode", ToolKind::Plan, NONE),
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
