//! OpenCode's tools by name, and which of their arguments are bulky.

use epitome_api::arguments::{Roles, Rule};
use epitome_model::{FieldRole, ToolKind};

/// Tools by name, of 1.18 and before. Those of MCP servers are named `<server>_<tool>`.
pub const TOOLS: &[Rule] = &[
    Rule::new("read", ToolKind::Read, READ),
    Rule::new("write", ToolKind::Write, WRITE),
    Rule::new("edit multiedit", ToolKind::Edit, EDIT),
    Rule::new("patch apply_patch", ToolKind::Patch, PATCH),
    Rule::new("bash shell pwsh powershell", ToolKind::Shell, SHELL),
    Rule::new("grep codesearch", ToolKind::Search, SEARCH),
    Rule::new("lsp lsp_hover lsp_diagnostics", ToolKind::Search, LSP),
    Rule::new("glob", ToolKind::List, SEARCH),
    Rule::new("list", ToolKind::List, PATH),
    Rule::new("webfetch websearch", ToolKind::Fetch, FETCH),
    Rule::new("task", ToolKind::Task, TASK),
    Rule::new("todowrite todoread", ToolKind::Todo, NONE),
    Rule::new("skill", ToolKind::Skill, NONE),
    Rule::new("question", ToolKind::Ask, NONE),
    Rule::new("plan_enter plan_exit", ToolKind::Plan, NONE),
];

const NONE: Roles = Roles { target: &[], part: &[], fields: &[] };
const READ: Roles = Roles { target: &["filePath"], part: &["offset", "limit"], fields: &[] };
const WRITE: Roles =
    Roles { target: &["filePath"], part: &[], fields: &[("content", FieldRole::Content)] };
const EDIT: Roles = Roles {
    target: &["filePath"],
    part: &[],
    fields: &[
        ("oldString", FieldRole::Old),
        ("newString", FieldRole::New),
        ("edits[].oldString", FieldRole::Old),
        ("edits[].newString", FieldRole::New),
    ],
};
const PATCH: Roles = Roles { target: &[], part: &[], fields: &[("patchText", FieldRole::Patch)] };
const SHELL: Roles =
    Roles { target: &["command"], part: &[], fields: &[("command", FieldRole::Command)] };
const SEARCH: Roles = Roles { target: &["pattern", "query", "path"], part: &[], fields: &[] };
const LSP: Roles = Roles { target: &["filePath", "operation"], part: &[], fields: &[] };
const PATH: Roles = Roles { target: &["path"], part: &[], fields: &[] };
const FETCH: Roles = Roles { target: &["url", "query"], part: &[], fields: &[] };
const TASK: Roles =
    Roles { target: &["description"], part: &[], fields: &[("prompt", FieldRole::Prompt)] };
