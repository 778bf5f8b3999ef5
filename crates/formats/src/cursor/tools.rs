//! Cursor's tools by name, and which of their arguments are bulky.
//!
//! The editor's tools have names such as `read_file`, or `read_file_v2` in its third version. In
//! chats of the CLI and in transcripts, tools have the names that models see, such as `Read`.

use epitome_api::arguments::{self, ClassifiedCall, Roles, Rule};
use epitome_json::Value;
use epitome_model::{DecodedLiteral, FieldRole, ToolKind};

/// Tools by name, in lower case.
const TOOLS: &[Rule] = &[
    Rule::new("read_file read_file_v2 read", ToolKind::Read, READ),
    Rule::new("write write_file", ToolKind::Write, WRITE),
    Rule::new("edit_file edit_file_v2 search_replace strreplace multiedit", ToolKind::Edit, EDIT),
    Rule::new("edit edit_notebook editnotebook", ToolKind::Edit, EDIT),
    Rule::new("delete_file delete", ToolKind::Edit, PATH),
    Rule::new("apply_patch applypatch", ToolKind::Patch, PATCH),
    Rule::new("run_terminal_cmd run_terminal_command", ToolKind::Shell, SHELL),
    Rule::new("run_terminal_command_v2 shell bash", ToolKind::Shell, SHELL),
    Rule::new("grep grep_search ripgrep_raw_search codebase_search", ToolKind::Search, SEARCH),
    Rule::new("semantic_search_full semanticsearch", ToolKind::Search, SEARCH),
    Rule::new("list_dir list_dir_v2 ls", ToolKind::List, PATH),
    Rule::new("file_search glob_file_search glob", ToolKind::List, SEARCH),
    Rule::new("web_search websearch web_fetch webfetch", ToolKind::Fetch, FETCH),
    Rule::new("task task_v2", ToolKind::Task, TASK),
    Rule::new("todo_write todo_read todowrite", ToolKind::Todo, NONE),
    Rule::new("fetch_rules", ToolKind::Skill, NONE),
    Rule::new("ask_question askquestion", ToolKind::Ask, NONE),
    Rule::new("create_plan createplan switch_mode switchmode", ToolKind::Plan, NONE),
];

const PLACES: &str = "path file_path target_file targetFile target_notebook \
    relative_workspace_path relativeWorkspacePath target_directory targetDirectory";

const NONE: Roles = Roles::NONE;
const PATH: Roles = Roles::target(PLACES);
const READ: Roles = Roles::target(PLACES).part(
    "offset limit start_line_one_indexed end_line_one_indexed_inclusive startLineOneIndexed \
     endLineOneIndexedInclusive",
);
const WRITE: Roles = Roles::target(PLACES).field(FieldRole::Content, "contents content");
const EDIT: Roles = Roles::target(PLACES)
    .field(FieldRole::Old, "old_string edits[].old_string oldString")
    .field(FieldRole::New, "new_string edits[].new_string newString code_edit streamingContent");
const PATCH: Roles = Roles::target(PLACES).field(FieldRole::Patch, "patch");
const SHELL: Roles = Roles::target("command").field(FieldRole::Command, "command");
const SEARCH: Roles = Roles::target("pattern query glob_pattern globPattern path");
const FETCH: Roles = Roles::target("url search_term searchTerm query");
const TASK: Roles = Roles::target("description").field(FieldRole::Prompt, "prompt");

/// Classifies a call by its name and its arguments: an object, or a string that contains an object.
pub fn classify(name: &str, arguments: Option<&Value<'_>>) -> ClassifiedCall {
    let Some(value) = arguments else { return without_arguments(name) };
    if !value.is_text() {
        let (bytes, base) = value.document();
        return arguments::classify(TOOLS, name, bytes, value.range(), base);
    }
    let inner = DecodedLiteral::decode(value.raw(), value.span().start);
    if epitome_json::check(&inner.text).is_err() {
        return without_arguments(name);
    }
    let whole = 0..inner.text.len();
    arguments::known_at(TOOLS, name, &inner.text, &whole, &|range| inner.span(range))
}

fn without_arguments(name: &str) -> ClassifiedCall {
    arguments::classify(TOOLS, name, b"{}", &(0..2), 0)
}
