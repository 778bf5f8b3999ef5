//! Codex's tools by name, and which of their arguments are bulky.
//!
//! Calls have three forms: arguments as a JSON string (`function_call`), a text in a special
//! grammar (`custom_tool_call`: a patch, or a script that calls other tools), and an object.

use std::borrow::Cow;
use std::ops::Range;

use epitome_api::Arguments;
use epitome_api::arguments::{self, ClassifiedCall, Roles, Rule};
use epitome_model::{DecodedLiteral, Field, FieldRole, Span, Stub, Text, ToolKind, decode, encode};

use super::script::{self, Literal};
use crate::place::RecordBytes;
use crate::port::{ToolAction, object};

/// Tools by name, in lower case.
pub const TOOLS: &[Rule] = &[
    Rule::new("exec_command shell shell_command container.exec", ToolKind::Shell, SHELL),
    Rule::new("local_shell exec js_repl", ToolKind::Shell, SHELL),
    Rule::new("write_stdin", ToolKind::Shell, STDIN),
    Rule::new("wait", ToolKind::Shell, NONE),
    Rule::new("apply_patch", ToolKind::Patch, PATCH),
    Rule::new("update_plan create_goal get_goal update_goal", ToolKind::Todo, NONE),
    Rule::new("view_image read_file", ToolKind::Read, READ),
    Rule::new("list_dir", ToolKind::List, READ),
    Rule::new("grep_files", ToolKind::Search, SEARCH),
    Rule::new("web_search", ToolKind::Fetch, SEARCH),
    Rule::new("tool_search", ToolKind::Skill, SEARCH),
    Rule::new("list_mcp_resources list_mcp_resource_templates", ToolKind::List, RESOURCE),
    Rule::new("read_mcp_resource", ToolKind::Fetch, RESOURCE),
    Rule::new("spawn_agent send_input send_message followup_task", ToolKind::Task, TASK),
    Rule::new("resume_agent wait_agent close_agent interrupt_agent", ToolKind::Task, TASK),
    Rule::new("list_agents", ToolKind::Task, NONE),
    Rule::new("request_user_input request_permissions", ToolKind::Ask, NONE),
];

const NONE: Roles = Roles::NONE;
// A command may be a list: `["bash", "-lc", "…"]`.
const SHELL: Roles = Roles::target("cmd command command[2] command[0]")
    .field(FieldRole::Command, "cmd command command[]");
const STDIN: Roles = Roles::NONE.field(FieldRole::Command, "chars");
const PATCH: Roles = Roles::NONE.field(FieldRole::Patch, "input patch");
const READ: Roles = Roles::target("path file_path dir_path").part("offset limit");
const SEARCH: Roles = Roles::target("pattern query path");
const RESOURCE: Roles = Roles::target("uri server");
const TASK: Roles =
    Roles::target("task_name target agent_id id").field(FieldRole::Prompt, "message");

/// Classifies a call whose arguments are at `place`: JSON, or a string of JSON.
pub fn classify(name: &str, at: &RecordBytes<'_>, place: &Range<usize>) -> ClassifiedCall {
    let raw = &at.line[place.clone()];
    if raw.first() != Some(&b'"') {
        return arguments::classify(TOOLS, name, at.line, place, at.base);
    }
    let inner = DecodedLiteral::decode(raw, at.span(place).start);
    let whole = 0..inner.text.len();
    let mut known = arguments::known_at(TOOLS, name, &inner.text, &whole, &|it| inner.span(it));
    if known.kind == ToolKind::Patch {
        known.target = known.fields.iter().find_map(|field| {
            let Span { start, end } = field.text.span()?;
            patched(&decode(&at.line[(start - at.base) as usize..(end - at.base) as usize]))
        });
    }
    known
}

/// Classifies a call whose only argument is the text at `place`.
pub fn custom(name: &str, at: &RecordBytes<'_>, place: &Range<usize>) -> ClassifiedCall {
    let rule = Rule::find(TOOLS, name);
    let kind = rule.map_or(ToolKind::Other, |rule| rule.kind);
    let literal = &at.line[place.clone()];
    if kind == ToolKind::Patch {
        let fields = vec![input(at, place, FieldRole::Patch)];
        return ClassifiedCall { kind, target: patched(&decode(literal)), part: None, fields };
    }
    // A stub that a recipe left in place of a script is not a script.
    let is_stub = literal.get(1..).is_some_and(|it| it.starts_with(Stub::BEGINNING.as_bytes()));
    if kind == ToolKind::Shell && !is_stub {
        let inner = DecodedLiteral::decode(literal, at.span(place).start);
        let known = scripted(&inner);
        if !known.fields.is_empty() {
            return known;
        }
    }
    let role = if kind == ToolKind::Shell { FieldRole::Command } else { FieldRole::Other };
    ClassifiedCall { kind, target: None, part: None, fields: vec![input(at, place, role)] }
}

fn input(at: &RecordBytes<'_>, place: &Range<usize>, role: FieldRole) -> Field {
    Field { name: "input".into(), role, text: at.source(place) }
}

/// Classifies a call of a script. It has the kind of the tools that the script calls, or is a
/// command if these have several kinds or there are none.
fn scripted(inner: &DecodedLiteral<'_>) -> ClassifiedCall {
    let (literals, calls) = script::literals(&inner.text);
    let kinds = calls.iter().map(|call| {
        let rule = Rule::find(TOOLS, &script_text(inner, call));
        rule.map_or(ToolKind::Other, |rule| rule.kind)
    });
    let mut kinds: Vec<ToolKind> = kinds.collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kind = if let [one] = kinds[..] { one } else { ToolKind::Shell };
    let mut target = None;
    let mut fields = Vec::new();
    for literal in &literals {
        let tool = literal.tool.as_ref().map(|place| script_text(inner, place));
        let member = literal.member.as_ref().map(|member| {
            let name = script_text(inner, member);
            name.trim_matches(['"', '\'']).to_owned()
        });
        let rule = tool.as_deref().and_then(|tool| Rule::find(TOOLS, tool));
        let roles = rule.map(|rule| rule.roles);
        let is_target = matches!((roles, &member), (Some(roles), Some(member))
            if roles.target_rank(member).is_some());
        if target.is_none() && is_target {
            target = Some(Text::Source(inner.span(&literal.place)));
        }
        if let Some(role) = role(inner, literal, roles, member.as_deref()) {
            let name = [tool.as_deref(), member.as_deref()];
            let name: Vec<&str> = name.into_iter().flatten().collect();
            let name = if name.is_empty() { "text".into() } else { name.join(".") };
            if target.is_none() && role == FieldRole::Patch {
                target = patched(&text_of(inner, literal));
            }
            let text = Text::Source(inner.span(&literal.place));
            fields.push(Field { name: name.into(), role, text });
        }
    }
    ClassifiedCall { kind, target, part: None, fields }
}

fn script_text<'t>(inner: &'t DecodedLiteral<'_>, place: &Range<usize>) -> Cow<'t, str> {
    String::from_utf8_lossy(&inner.text[place.clone()])
}

fn role(
    inner: &DecodedLiteral<'_>,
    literal: &Literal,
    roles: Option<Roles>,
    member: Option<&str>,
) -> Option<FieldRole> {
    match (roles, member) {
        // The literal has no key, or is outside of the arguments of a known tool.
        (_, None) | (None, Some(_)) => {
            let is_patch = text_of(inner, literal).starts_with("*** Begin Patch");
            Some(if is_patch { FieldRole::Patch } else { FieldRole::Command })
        }
        (Some(roles), Some(member)) => roles.role(member),
    }
}

/// The decoded text of a literal in a script.
fn text_of(inner: &DecodedLiteral<'_>, literal: &Literal) -> String {
    let raw = &inner.text[literal.place.clone()];
    let like = encode(&String::from_utf8_lossy(raw));
    decode(&like.as_bytes()[1..like.len() - 1]).into_owned()
}

/// The file that a patch changes; `None` if the text is not a patch, or changes several files.
fn patched(patch: &str) -> Option<Text> {
    const HEADS: [&str; 3] = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
    let mut files =
        patch.lines().filter_map(|line| HEADS.iter().find_map(|it| line.strip_prefix(it)));
    match (files.next(), files.next()) {
        (Some(file), None) => Some(Text::Owned(file.trim().into())),
        _ => None,
    }
}

/// The tool of Codex that carries out an action, and its arguments; `None` if there is no such
/// tool. `shows` is whether the result contains a picture: Codex reads pictures with another tool
/// than text.
pub fn call(deed: &ToolAction, shows: bool) -> Option<(&'static str, Arguments)> {
    Some(match deed {
        ToolAction::Shell { command, why } => {
            let mut members = vec![("cmd", encode(command))];
            members.extend(why.iter().map(|why| ("description", encode(why))));
            ("exec_command", Arguments::Object(object(&members)))
        }
        ToolAction::Patch { patch } => ("apply_patch", Arguments::Text(patch.clone())),
        ToolAction::Read { path, part } if shows && part.is_empty() => {
            ("view_image", Arguments::Object(object(&[("path", encode(path))])))
        }
        // Codex has no tools for these actions: it reads files by commands, and changes them by
        // patches.
        ToolAction::Read { .. }
        | ToolAction::Write { .. }
        | ToolAction::Edit { .. }
        | ToolAction::Find { .. } => {
            return None;
        }
    })
}
