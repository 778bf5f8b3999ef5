//! Copilot CLI's tools by name, and which of their arguments are bulky.

use epitome_api::arguments::{Roles, Rule};
use epitome_model::{FieldRole, ToolKind};

/// Tools by name, as written in the logs of Copilot CLI.
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

const NONE: Roles = Roles::NONE;
const VIEW: Roles = Roles::target("path").part("view_range");
const CREATE: Roles = Roles::target("path").field(FieldRole::Content, "file_text");
const EDIT: Roles =
    Roles::target("path").field(FieldRole::Old, "old_str").field(FieldRole::New, "new_str");
const PATCH: Roles = Roles::NONE.field(FieldRole::Patch, "input patch");
const SHELL: Roles = Roles::target("command").field(FieldRole::Command, "command");
const INPUT: Roles = Roles::target("input shellId");
const SEARCH: Roles = Roles::target("pattern path");
const FETCH: Roles = Roles::target("url query");
const TASK: Roles = Roles::target("description").field(FieldRole::Prompt, "prompt");
