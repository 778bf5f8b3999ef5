//! OpenCode's tools by name, and which of their arguments are bulky.

use epitome_api::arguments::{Roles, Rule};
use epitome_model::{FieldRole, ToolKind};

/// Tools by name, of 1.18 and before. Those of MCP servers are named `<server>_<tool>`.
pub const TOOLS: &[Rule] = &[
    Rule { name: "read", kind: ToolKind::Read, roles: READ },
    Rule { name: "write", kind: ToolKind::Write, roles: WRITE },
    Rule { name: "edit", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "multiedit", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "patch", kind: ToolKind::Patch, roles: PATCH },
    Rule { name: "apply_patch", kind: ToolKind::Patch, roles: PATCH },
    Rule { name: "bash", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "shell", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "pwsh", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "powershell", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "grep", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "codesearch", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "lsp", kind: ToolKind::Search, roles: LSP },
    Rule { name: "lsp_hover", kind: ToolKind::Search, roles: LSP },
    Rule { name: "lsp_diagnostics", kind: ToolKind::Search, roles: LSP },
    Rule { name: "glob", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "list", kind: ToolKind::List, roles: PATH },
    Rule { name: "webfetch", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "websearch", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "task", kind: ToolKind::Task, roles: TASK },
    Rule { name: "todowrite", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "todoread", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "skill", kind: ToolKind::Skill, roles: NONE },
    Rule { name: "question", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "plan_enter", kind: ToolKind::Plan, roles: NONE },
    Rule { name: "plan_exit", kind: ToolKind::Plan, roles: NONE },
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
