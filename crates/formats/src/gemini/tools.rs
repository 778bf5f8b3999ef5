//! Gemini CLI's tools by name, and which of their arguments are bulky.
//!
//! The names are those of version 0.61.0, and those of older versions that are found in sessions.

use epitome_api::arguments::{Roles, Rule};
use epitome_model::{FieldRole, ToolKind};

/// Tools by name, in lower case.
pub const TOOLS: &[Rule] = &[
    Rule { name: "read_file", kind: ToolKind::Read, roles: READ },
    Rule { name: "read_many_files", kind: ToolKind::Read, roles: READ_MANY },
    Rule { name: "get_internal_docs", kind: ToolKind::Read, roles: READ },
    Rule { name: "read_mcp_resource", kind: ToolKind::Read, roles: RESOURCE },
    Rule { name: "write_file", kind: ToolKind::Write, roles: WRITE },
    Rule { name: "replace", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "run_shell_command", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "read_background_output", kind: ToolKind::Shell, roles: NONE },
    Rule { name: "list_background_processes", kind: ToolKind::Shell, roles: NONE },
    Rule { name: "grep_search", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "grep_search_ripgrep", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "search_file_content", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "codebase_investigator", kind: ToolKind::Task, roles: TASK },
    Rule { name: "glob", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "list_directory", kind: ToolKind::List, roles: LIST },
    Rule { name: "list_mcp_resources", kind: ToolKind::List, roles: LIST },
    Rule { name: "web_fetch", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "google_web_search", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "invoke_agent", kind: ToolKind::Task, roles: TASK },
    Rule { name: "delegate_to_agent", kind: ToolKind::Task, roles: TASK },
    Rule { name: "generalist", kind: ToolKind::Task, roles: TASK },
    Rule { name: "cli_help", kind: ToolKind::Task, roles: TASK },
    Rule { name: "browser_agent", kind: ToolKind::Task, roles: TASK },
    Rule { name: "complete_task", kind: ToolKind::Plan, roles: NONE },
    Rule { name: "save_memory", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "write_todos", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "write_todos_list", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "tracker_create_task", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "tracker_update_task", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "tracker_get_task", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "tracker_list_tasks", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "tracker_add_dependency", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "tracker_visualize", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "update_topic", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "activate_skill", kind: ToolKind::Skill, roles: NONE },
    Rule { name: "ask_user", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "enter_plan_mode", kind: ToolKind::Plan, roles: NONE },
    Rule { name: "exit_plan_mode", kind: ToolKind::Plan, roles: NONE },
];

const NONE: Roles = Roles { target: &[], part: &[], fields: &[] };
const READ: Roles = Roles {
    target: &["file_path", "absolute_path", "path"],
    part: &["start_line", "end_line", "offset", "limit"],
    fields: &[],
};
const READ_MANY: Roles =
    Roles { target: &["include", "paths"], part: &["include", "paths", "exclude"], fields: &[] };
const RESOURCE: Roles = Roles { target: &["uri"], part: &[], fields: &[] };
const WRITE: Roles =
    Roles { target: &["file_path"], part: &[], fields: &[("content", FieldRole::Content)] };
const EDIT: Roles = Roles {
    target: &["file_path"],
    part: &[],
    fields: &[
        ("old_string", FieldRole::Old),
        ("new_string", FieldRole::New),
        ("instruction", FieldRole::Prompt),
    ],
};
const SHELL: Roles =
    Roles { target: &["command"], part: &[], fields: &[("command", FieldRole::Command)] };
const SEARCH: Roles = Roles { target: &["pattern", "dir_path", "path"], part: &[], fields: &[] };
const LIST: Roles = Roles { target: &["dir_path", "path"], part: &[], fields: &[] };
const FETCH: Roles = Roles { target: &["prompt", "query", "url"], part: &[], fields: &[] };
const TASK: Roles = Roles {
    target: &["agent_name", "objective", "query"],
    part: &[],
    fields: &[("prompt", FieldRole::Prompt), ("objective", FieldRole::Prompt)],
};

/// Whether the results of a tool are text of the user.
pub fn is_answered_by_user(name: &str) -> bool {
    matches!(name, "ask_user" | "exit_plan_mode")
}
