//! Gemini CLI's tools by name, and which of their arguments are bulky.
//!
//! The names are those of version 0.61.0, and those of older versions that are found in sessions.

use epitome_api::arguments::{Roles, Rule};
use epitome_model::{FieldRole, ToolKind};

/// Tools by name, in lower case.
pub const TOOLS: &[Rule] = &[
    Rule::new("read_file get_internal_docs", ToolKind::Read, READ),
    Rule::new("read_many_files", ToolKind::Read, READ_MANY),
    Rule::new("read_mcp_resource", ToolKind::Read, RESOURCE),
    Rule::new("write_file", ToolKind::Write, WRITE),
    Rule::new("replace", ToolKind::Edit, EDIT),
    Rule::new("run_shell_command", ToolKind::Shell, SHELL),
    Rule::new("read_background_output list_background_processes", ToolKind::Shell, NONE),
    Rule::new("grep_search grep_search_ripgrep search_file_content", ToolKind::Search, SEARCH),
    Rule::new("codebase_investigator invoke_agent delegate_to_agent", ToolKind::Task, TASK),
    Rule::new("generalist cli_help browser_agent", ToolKind::Task, TASK),
    Rule::new("glob", ToolKind::List, SEARCH),
    Rule::new("list_directory list_mcp_resources", ToolKind::List, LIST),
    Rule::new("web_fetch google_web_search", ToolKind::Fetch, FETCH),
    Rule::new("complete_task enter_plan_mode exit_plan_mode", ToolKind::Plan, NONE),
    Rule::new("save_memory write_todos write_todos_list", ToolKind::Todo, NONE),
    Rule::new("tracker_create_task tracker_update_task tracker_get_task", ToolKind::Todo, NONE),
    Rule::new("tracker_list_tasks tracker_add_dependency", ToolKind::Todo, NONE),
    Rule::new("tracker_visualize update_topic", ToolKind::Todo, NONE),
    Rule::new("activate_skill", ToolKind::Skill, NONE),
    Rule::new("ask_user", ToolKind::Ask, NONE),
];

const NONE: Roles = Roles::NONE;
const READ: Roles =
    Roles::target("file_path absolute_path path").part("start_line end_line offset limit");
const READ_MANY: Roles = Roles::target("include paths").part("include paths exclude");
const RESOURCE: Roles = Roles::target("uri");
const WRITE: Roles = Roles::target("file_path").field(FieldRole::Content, "content");
const EDIT: Roles = Roles::target("file_path")
    .field(FieldRole::Old, "old_string")
    .field(FieldRole::New, "new_string")
    .field(FieldRole::Prompt, "instruction");
const SHELL: Roles = Roles::target("command").field(FieldRole::Command, "command");
const SEARCH: Roles = Roles::target("pattern dir_path path");
const LIST: Roles = Roles::target("dir_path path");
const FETCH: Roles = Roles::target("prompt query url");
const TASK: Roles =
    Roles::target("agent_name objective query").field(FieldRole::Prompt, "prompt objective");

/// Whether the results of a tool are text of the user.
pub fn is_answered_by_user(name: &str) -> bool {
    matches!(name, "ask_user" | "exit_plan_mode")
}
