//! Cursor's tools by name, and which of their arguments are bulky.
//!
//! The editor's tools have names of their own (`read_file`, and `read_file_v2` in its third
//! version); those of the CLI and of transcripts are the names that models see (`Read`).

use epitome_api::arguments::{self, Known, Roles, Rule};
use epitome_json::Value;
use epitome_model::{FieldRole, Inner, ToolKind};

use crate::place::Place;

/// Tools by name, in lower case.
const TOOLS: &[Rule] = &[
    Rule { name: "read_file", kind: ToolKind::Read, roles: READ },
    Rule { name: "read_file_v2", kind: ToolKind::Read, roles: READ },
    Rule { name: "read", kind: ToolKind::Read, roles: READ },
    Rule { name: "write", kind: ToolKind::Write, roles: WRITE },
    Rule { name: "write_file", kind: ToolKind::Write, roles: WRITE },
    Rule { name: "edit_file", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "edit_file_v2", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "search_replace", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "strreplace", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "multiedit", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "edit", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "edit_notebook", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "editnotebook", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "delete_file", kind: ToolKind::Edit, roles: PATH },
    Rule { name: "delete", kind: ToolKind::Edit, roles: PATH },
    Rule { name: "apply_patch", kind: ToolKind::Patch, roles: PATCH },
    Rule { name: "applypatch", kind: ToolKind::Patch, roles: PATCH },
    Rule { name: "run_terminal_cmd", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "run_terminal_command", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "run_terminal_command_v2", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "shell", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "bash", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "grep", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "grep_search", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "ripgrep_raw_search", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "codebase_search", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "semantic_search_full", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "semanticsearch", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "list_dir", kind: ToolKind::List, roles: PATH },
    Rule { name: "list_dir_v2", kind: ToolKind::List, roles: PATH },
    Rule { name: "ls", kind: ToolKind::List, roles: PATH },
    Rule { name: "file_search", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "glob_file_search", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "glob", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "web_search", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "websearch", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "web_fetch", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "webfetch", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "task", kind: ToolKind::Task, roles: TASK },
    Rule { name: "task_v2", kind: ToolKind::Task, roles: TASK },
    Rule { name: "todo_write", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "todo_read", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "todowrite", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "fetch_rules", kind: ToolKind::Skill, roles: NONE },
    Rule { name: "ask_question", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "askquestion", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "create_plan", kind: ToolKind::Plan, roles: NONE },
    Rule { name: "createplan", kind: ToolKind::Plan, roles: NONE },
    Rule { name: "switch_mode", kind: ToolKind::Plan, roles: NONE },
    Rule { name: "switchmode", kind: ToolKind::Plan, roles: NONE },
];

const PLACES: &[&str] = &[
    "path",
    "file_path",
    "target_file",
    "targetFile",
    "target_notebook",
    "relative_workspace_path",
    "relativeWorkspacePath",
    "target_directory",
    "targetDirectory",
];

const NONE: Roles = Roles { target: &[], part: &[], fields: &[] };
const PATH: Roles = Roles { target: PLACES, part: &[], fields: &[] };
const READ: Roles = Roles {
    target: PLACES,
    part: &[
        "offset",
        "limit",
        "start_line_one_indexed",
        "end_line_one_indexed_inclusive",
        "startLineOneIndexed",
        "endLineOneIndexedInclusive",
    ],
    fields: &[],
};
const WRITE: Roles = Roles {
    target: PLACES,
    part: &[],
    fields: &[("contents", FieldRole::Content), ("content", FieldRole::Content)],
};
const EDIT: Roles = Roles {
    target: PLACES,
    part: &[],
    fields: &[
        ("old_string", FieldRole::Old),
        ("new_string", FieldRole::New),
        ("edits[].old_string", FieldRole::Old),
        ("edits[].new_string", FieldRole::New),
        ("oldString", FieldRole::Old),
        ("newString", FieldRole::New),
        ("code_edit", FieldRole::New),
        ("streamingContent", FieldRole::New),
    ],
};
const PATCH: Roles = Roles { target: PLACES, part: &[], fields: &[("patch", FieldRole::Patch)] };
const SHELL: Roles =
    Roles { target: &["command"], part: &[], fields: &[("command", FieldRole::Command)] };
const SEARCH: Roles = Roles {
    target: &["pattern", "query", "glob_pattern", "globPattern", "path"],
    part: &[],
    fields: &[],
};
const FETCH: Roles =
    Roles { target: &["url", "search_term", "searchTerm", "query"], part: &[], fields: &[] };
const TASK: Roles =
    Roles { target: &["description"], part: &[], fields: &[("prompt", FieldRole::Prompt)] };

/// Classifies a call by its name and its arguments: an object, or a string with one.
pub fn known(name: &str, at: &Place<'_>, arguments: Option<&Value<'_>>) -> Known {
    match arguments {
        Some(value) if value.is_text() => {
            let inner = Inner::of(value.raw(), at.span(value.range()).start);
            if epitome_json::check(&inner.text).is_err() {
                return arguments::known(TOOLS, name, b"{}", &(0..2), 0);
            }
            let whole = 0..inner.text.len();
            arguments::known_at(TOOLS, name, &inner.text, &whole, &|range| inner.span(range))
        }
        Some(value) => arguments::known(TOOLS, name, at.line, value.range(), at.base),
        None => arguments::known(TOOLS, name, b"{}", &(0..2), 0),
    }
}
