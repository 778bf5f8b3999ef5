//! Claude Code's tools by name, and which of their arguments are bulky.

use epitome_api::arguments::{Roles, Rule};
use epitome_model::{FieldRole, ToolKind, encode};

use crate::port::{Reach, ToolAction, object};

/// Tools by name, in lower case.
pub const TOOLS: &[Rule] = &[
    Rule { name: "read", kind: ToolKind::Read, roles: READ },
    Rule { name: "notebookread", kind: ToolKind::Read, roles: READ },
    Rule { name: "write", kind: ToolKind::Write, roles: WRITE },
    Rule { name: "edit", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "multiedit", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "notebookedit", kind: ToolKind::Edit, roles: EDIT },
    Rule { name: "bash", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "powershell", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "bashoutput", kind: ToolKind::Shell, roles: ID },
    Rule { name: "killshell", kind: ToolKind::Shell, roles: ID },
    Rule { name: "killbash", kind: ToolKind::Shell, roles: ID },
    Rule { name: "monitor", kind: ToolKind::Shell, roles: SHELL },
    Rule { name: "grep", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "lsp", kind: ToolKind::Search, roles: SEARCH },
    Rule { name: "toolsearch", kind: ToolKind::Skill, roles: SEARCH },
    Rule { name: "glob", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "ls", kind: ToolKind::List, roles: SEARCH },
    Rule { name: "webfetch", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "websearch", kind: ToolKind::Fetch, roles: FETCH },
    Rule { name: "task", kind: ToolKind::Task, roles: TASK },
    Rule { name: "agent", kind: ToolKind::Task, roles: TASK },
    Rule { name: "taskoutput", kind: ToolKind::Task, roles: ID },
    Rule { name: "agentoutputtool", kind: ToolKind::Task, roles: ID },
    Rule { name: "sendmessage", kind: ToolKind::Task, roles: TASK },
    Rule { name: "todowrite", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "todoread", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "taskcreate", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "taskupdate", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "tasklist", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "taskget", kind: ToolKind::Todo, roles: NONE },
    Rule { name: "skill", kind: ToolKind::Skill, roles: NONE },
    Rule { name: "slashcommand", kind: ToolKind::Skill, roles: NONE },
    Rule { name: "askuserquestion", kind: ToolKind::Ask, roles: NONE },
    Rule { name: "enterplanmode", kind: ToolKind::Plan, roles: NONE },
    Rule { name: "exitplanmode", kind: ToolKind::Plan, roles: NONE },
    Rule { name: "compact", kind: ToolKind::Compact, roles: NONE },
];

const NONE: Roles = Roles { target: &[], part: &[], fields: &[] };
const READ: Roles = Roles {
    target: &["file_path", "notebook_path"],
    part: &["offset", "limit", "pages"],
    fields: &[],
};
const WRITE: Roles =
    Roles { target: &["file_path"], part: &[], fields: &[("content", FieldRole::Content)] };
const EDIT: Roles = Roles {
    target: &["file_path", "notebook_path"],
    part: &[],
    fields: &[
        ("old_string", FieldRole::Old),
        ("new_string", FieldRole::New),
        ("new_source", FieldRole::New),
        ("edits[].old_string", FieldRole::Old),
        ("edits[].new_string", FieldRole::New),
    ],
};
const SHELL: Roles =
    Roles { target: &["command"], part: &[], fields: &[("command", FieldRole::Command)] };
const ID: Roles =
    Roles { target: &["bash_id", "shell_id", "task_id", "agentId"], part: &[], fields: &[] };
const SEARCH: Roles = Roles { target: &["pattern", "query", "path"], part: &[], fields: &[] };
const FETCH: Roles = Roles { target: &["url", "query"], part: &[], fields: &[] };
const TASK: Roles = Roles {
    target: &["description"],
    part: &[],
    fields: &[("prompt", FieldRole::Prompt), ("message", FieldRole::Prompt)],
};

/// The tool of Claude Code for an action, and its input.
pub fn call(deed: &ToolAction) -> Option<(&'static str, String)> {
    Some(match deed {
        ToolAction::Read { path, part } => {
            let mut members = vec![("file_path", encode(path))];
            members.extend(part.iter().map(|(key, value)| (&**key, value.clone())));
            ("Read", object(&members))
        }
        ToolAction::Write { path, content } => {
            ("Write", object(&[("file_path", encode(path)), ("content", encode(content))]))
        }
        ToolAction::Edit { path, pairs, reach } => {
            // The tool replaces one text per call.
            let [(old, new)] = &pairs[..] else { return None };
            let mut members = vec![
                ("file_path", encode(path)),
                ("old_string", encode(old)),
                ("new_string", encode(new)),
            ];
            members.extend((*reach == Reach::All).then(|| ("replace_all", "true".to_owned())));
            ("Edit", object(&members))
        }
        ToolAction::Shell { command, why } => {
            let mut members = vec![("command", encode(command))];
            members.extend(why.iter().map(|why| ("description", encode(why))));
            ("Bash", object(&members))
        }
        ToolAction::Find { pattern, path } => {
            let mut members = vec![("pattern", encode(pattern))];
            members.extend(path.iter().map(|path| ("path", encode(path))));
            ("Glob", object(&members))
        }
        ToolAction::Patch { .. } => return None,
    })
}
