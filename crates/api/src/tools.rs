//! The names of agents' tools, and the roles of their arguments.
//!
//! A request body does not say which agent sent it, so this table has the names of many agents.

use epitome_json::Value;
use epitome_model::{Call, DecodedLiteral, Field, FieldRole, Image, ToolKind};

use crate::arguments::{self, ClassifiedCall, Roles, Rule};

/// Tools by name, in lower case.
const TOOLS: &[Rule] = &[
    Rule::new("read look_at read_file read_many_files view notebookread", ToolKind::Read, READ),
    Rule::new("write write_file create create_file", ToolKind::Write, WRITE),
    Rule::new("edit edit_file multiedit notebookedit replace", ToolKind::Edit, EDIT),
    Rule::new("search_replace str_replace_based_edit_tool", ToolKind::Edit, EDIT),
    Rule::new("apply_patch patch", ToolKind::Patch, PATCH),
    Rule::new("bash shell shell_command exec_command local_shell", ToolKind::Shell, SHELL),
    Rule::new("run_shell_command run_terminal_cmd powershell", ToolKind::Shell, SHELL),
    Rule::new("grep grep_search search_file_content codebase_search", ToolKind::Search, SEARCH),
    Rule::new("glob find ls list list_dir list_directory", ToolKind::List, SEARCH),
    Rule::new("webfetch web_fetch websearch web_search read_web_page", ToolKind::Fetch, FETCH),
    Rule::new("google_web_search", ToolKind::Fetch, FETCH),
    Rule::new("task agent oracle", ToolKind::Task, TASK),
    Rule::new("todowrite todoread todo_read save_memory write_todos", ToolKind::Todo, NONE),
    Rule::new("todo_write update_plan todo taskcreate taskupdate tasklist", ToolKind::Todo, NONE),
    Rule::new("skill loadskill load_skill activate_skill", ToolKind::Skill, SKILL),
    Rule::new("askuserquestion ask_user ask_user_question ask", ToolKind::Ask, NONE),
    Rule::new("request_user_input question", ToolKind::Ask, NONE),
    Rule::new("enterplanmode exitplanmode exit_plan_mode", ToolKind::Plan, NONE),
    Rule::new("compact", ToolKind::Compact, COMPACT),
];

const PATHS: &str = "file_path path filePath filepath absolute_path notebook_path target_file";

/// The argument that says what the summary should keep. Its name is `focus` in epitome's own tool,
/// and another one in other tools.
const COMPACT: Roles = Roles::target("focus instructions reason");
const NONE: Roles = Roles::NONE;
const READ: Roles = Roles::target(PATHS).part("offset limit view_range start_line end_line");
const WRITE: Roles = Roles::target(PATHS).field(FieldRole::Content, "content contents file_text");
const EDIT: Roles = Roles::target(PATHS)
    .field(
        FieldRole::Old,
        "old_string oldString oldText old_str edits[].old_string edits[].oldText",
    )
    .field(
        FieldRole::New,
        "new_string newString newText new_str new_source edits[].new_string edits[].newText",
    );
const PATCH: Roles = Roles::NONE.field(FieldRole::Patch, "input patch patchText");
const SHELL: Roles = Roles::target("command cmd").field(FieldRole::Command, "command cmd");
const SEARCH: Roles = Roles::target("pattern query path dirpath");
const FETCH: Roles = Roles::target("url query prompt");
const SKILL: Roles = Roles::target("name skill");
const TASK: Roles = Roles::target("description").field(FieldRole::Prompt, "prompt");

/// Makes a call from its id, its name and its arguments: an object, a string with an object, or any
/// other string.
pub fn call(id: &str, name: &str, arguments: &Value<'_>) -> Call {
    let (bytes, base) = arguments.document();
    let classified = if arguments.is_text() {
        in_text(name, arguments)
    } else {
        arguments::classify(TOOLS, name, bytes, arguments.range(), base)
    };
    classified.into_call(id.into(), name.into(), arguments.span())
}

/// The picture in a `data:` URL; `whole` is the block that contains it. `None` for another URL, and
/// for a block with a cache marker.
pub fn picture(url: &Value<'_>, whole: &Value<'_>) -> Option<Image> {
    let text = url.text()?;
    let (media, _) = text.strip_prefix("data:")?.split_once(";base64,")?;
    (whole.get("cache_control").is_none()).then(|| Image {
        media: media.into(),
        data: url.span(),
        whole: whole.span(),
    })
}

/// Classifies a call whose arguments are a string. The string holds JSON, or the input of a custom
/// tool.
fn in_text(name: &str, literal: &Value<'_>) -> ClassifiedCall {
    let inner = DecodedLiteral::decode(literal.raw(), literal.span().start);
    let text = &inner.text;
    if epitome_json::check(text).is_ok() {
        let whole = 0..text.len();
        return arguments::known_at(TOOLS, name, text, &whole, &|range| inner.span(range));
    }
    let kind = arguments::classify(TOOLS, name, b"{}", &(0..2), 0).kind;
    let role = if kind == ToolKind::Patch { FieldRole::Patch } else { FieldRole::Other };
    let fields = vec![Field { name: "input".into(), role, text: literal.to_source_text() }];
    ClassifiedCall { kind, target: None, part: None, fields }
}
