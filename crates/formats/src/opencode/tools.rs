//! OpenCode's tools by name, and which of their arguments are bulky.

use epitome_api::arguments::{Roles, Rule};
use epitome_model::{FieldRole, ToolKind};

/// Tools by name, of version 1.18 and earlier. Tools of MCP servers are named `<server>_<tool>`.
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

const NONE: Roles = Roles::NONE;
const READ: Roles = Roles::target("filePath").part("offset limit");
const WRITE: Roles = Roles::target("filePath").field(FieldRole::Content, "content");
const EDIT: Roles = Roles::target("filePath")
    .field(FieldRole::Old, "oldString edits[].oldString")
    .field(FieldRole::New, "newString edits[].newString");
const PATCH: Roles = Roles::NONE.field(FieldRole::Patch, "patchText");
const SHELL: Roles = Roles::target("command").field(FieldRole::Command, "command");
const SEARCH: Roles = Roles::target("pattern query path");
const LSP: Roles = Roles::target("filePath operation");
const PATH: Roles = Roles::target("path");
const FETCH: Roles = Roles::target("url query");
const TASK: Roles = Roles::target("description").field(FieldRole::Prompt, "prompt");
