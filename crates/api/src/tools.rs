//! The tool names of all agents, and which of their arguments are bulky.
//!
//! A request body does not say which agent sent it, so this table has the names of all of them.

use epitome_json::Value;
use epitome_model::{Call, Field, FieldRole, Image, Inner, Span, Text, ToolKind};

use crate::arguments::{self, Known, Roles, Rule};

/// Tools by name, in lower case.
const TOOLS: &[Rule] = &[
    Rule { name: "read", kind: ToolKind::Read, roles: READ },
    Rule { name: "look_at", kind: ToolKind::Read, roles: READ },
    Rule { name: "read_file", kind: ToolKind::Read, roles: READ },
    Rule { name: "read_many_files", kind: ToolKind::Read, roles: READ },
    Rule { name: "view", kind: ToolKind::Read, roles: READ },
    Rule { name: "notebookread", kind: ToolKind::Read, roles: READ },
    Rule { name: "write", kind: ToolKind::Write, roles: WRITE },
    Rule { name: "write_file", kind: ToolKind::Write, roles: WRITE },
    Rule { name: "create", kind: ToolKind::Write, roles: WRITE },
    Rule { name: "create_file", kind: ToolKind::Write, roles: WRITE },
    Rule { name: "edit", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "edit_file", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "multiedit", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "notebookedit", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "replace", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "search_replace", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "str_replace_based_edit_tool", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "apply_patch", kind: ToolKind::Patch, roles: PATCH },
    Rule { name: "patch", kind: ToolKind::Patch, roles: PATCH },
    Rule { name: "bash", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "shell", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "shell_command", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "exec_command", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "local_shell", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "run_shell_command", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "run_terminal_cmd", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "powershell", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "grep", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "grep_search", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "search_file_content", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "codebase_search", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "glob", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "find", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "ls", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "list", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "list_dir", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "list_directory", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "webfetch", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "web_fetch", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "websearch", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "web_search", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "read_web_page", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "google_web_search", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "task", kind: ToolKind::Task, roles: TASK },
    Rule { name: "agent", kind: ToolKind::Task, roles: TASK },
    Rule { name: "oracle", kind: ToolKind::Task, roles: TASK },
    Rule { name: "todowrite", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "todoread", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "todo_read", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "save_memory", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "write_todos", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "todo_write", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "update_plan", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "todo", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "taskcreate", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "taskupdate", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "tasklist", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "skill", kind: ToolKind::Skill, roles: SKILL },
    Rule { name: "loadskill", kind: ToolKind::Skill, roles: SKILL },
    Rule { name: "load_skill", kind: ToolKind::Skill, roles: SKILL },
    Rule { name: "activate_skill", kind: ToolKind::Skill, roles: SKILL },
    Rule { name: "askuserquestion", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "ask_user", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "ask_user_question", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "ask", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "request_user_input", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "question", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "enterplanmode", kind: ToolKind::Plan, roles: NONE },
    Rule { name: "exitplanmode", kind: ToolKind::Plan, roles: NONE },
    Rule { name: "exit_plan_mode", kind: ToolKind::Plan, roles: NONE },
    Rule { name: "compact", kind: ToolKind::Compact, roles: COMPACT },
];

const PATHS: &[&str] =
    &["file_path", "path", "filePath", "absolute_path", "notebook_path", "target_file"];

/// epitome calls it focus; others use other names.
const COMPACT: Roles =
    Roles { target: &["focus", "instructions", "reason"], part: &[], fields: &[] };
const NONE: Roles = Roles { target: &[], part: &[], fields: &[] };
const READ: Roles = Roles {
    target: PATHS,
    part: &["offset", "limit", "view_range", "start_line", "end_line"],
    fields: &[],
};
const WRITE: Roles = Roles {
    target: PATHS,
    part: &[],
    fields: &[
        ("content", FieldRole::Content),
        ("contents", FieldRole::Content),
        ("file_text", FieldRole::Content),
    ],
};
const EDIT: Roles = Roles {
    target: PATHS,
    part: &[],
    fields: &[
        ("old_string", FieldRole::Old),
        ("new_string", FieldRole::New),
        ("oldString", FieldRole::Old),
        ("newString", FieldRole::New),
        ("oldText", FieldRole::Old),
        ("newText", FieldRole::New),
        ("old_str", FieldRole::Old),
        ("new_str", FieldRole::New),
        ("new_source", FieldRole::New),
        ("edits[].old_string", FieldRole::Old),
        ("edits[].new_string", FieldRole::New),
        ("edits[].oldText", FieldRole::Old),
        ("edits[].newText", FieldRole::New),
    ],
};
const PATCH: Roles = Roles {
    target: &[],
    part: &[],
    fields: &[
        ("input", FieldRole::Patch),
        ("patch", FieldRole::Patch),
        ("patchText", FieldRole::Patch),
    ],
};
const SHELL: Roles = Roles {
    target: &["command", "cmd"],
    part: &[],
    fields: &[("command", FieldRole::Command), ("cmd", FieldRole::Command)],
};
const SEARCH: Roles = Roles { target: &["pattern", "query", "path"], part: &[], fields: &[] };
const FETCH: Roles = Roles { target: &["url", "query", "prompt"], part: &[], fields: &[] };
const SKILL: Roles = Roles { target: &["name", "skill"], part: &[], fields: &[] };
const TASK: Roles =
    Roles { target: &["description"], part: &[], fields: &[("prompt", FieldRole::Prompt)] };

/// Parses a call whose arguments are an object, a string with an object, or any other string.
pub fn call(bytes: &[u8], id: &str, name: &str, arguments: &Value<'_>) -> Call {
    call_at(bytes, arguments.document().1, id, name, arguments)
}

/// Like [`call`], for bytes that begin at `base` in their source.
pub fn call_at(bytes: &[u8], base: u64, id: &str, name: &str, arguments: &Value<'_>) -> Call {
    let (kind, target, part, fields) = if arguments.is_text() {
        in_text(name, arguments, base)
    } else {
        arguments::known(TOOLS, name, bytes, arguments.range(), base)
    };
    let arguments = placed(arguments, base);
    Call { id: id.into(), name: name.into(), kind, target, part, fields, arguments }
}

/// A picture in a `data:` URL, and the block that contains it.
pub fn picture(url: &Value<'_>, whole: &Value<'_>) -> Option<Image> {
    let text = url.text()?;
    let (media, _) = text.strip_prefix("data:")?.split_once(";base64,")?;
    (whole.get("cache_control").is_none()).then(|| Image {
        media: media.into(),
        data: url.span(),
        whole: whole.span(),
    })
}

/// Classifies a call by its name and a string: an object as JSON, or the input of a custom tool.
fn in_text(name: &str, literal: &Value<'_>, base: u64) -> Known {
    let place = placed(literal, base);
    let inner = Inner::of(literal.raw(), place.start);
    let text = &inner.text;
    if epitome_json::check(text).is_ok() {
        let whole = 0..text.len();
        return arguments::known_at(TOOLS, name, text, &whole, &|range| inner.span(range));
    }
    let (kind, ..) = arguments::known(TOOLS, name, b"{}", &(0..2), 0);
    let role = if kind == ToolKind::Patch { FieldRole::Patch } else { FieldRole::Other };
    let input = Field { name: "input".into(), role, text: Text::Source(place) };
    (kind, None, None, vec![input])
}

fn placed(value: &Value<'_>, base: u64) -> Span {
    let range = value.range();
    Span { start: base + range.start as u64, end: base + range.end as u64 }
}
