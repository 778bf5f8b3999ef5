//! The parts of a call, prepared for display.

use std::ops::Range;

use epitome_model::{
    Call, Field, FieldRole, Lines, Output, Part, Source, ToolKind, decode, is_left_by_recipe,
    line_count,
};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::reminder::without_reminders;
use crate::visible::one_line;

/// The maximum length of arguments that are parsed, in bytes. Longer ones are displayed as the
/// call's fields, or if it has none, as plain text.
const ARGUMENTS: u64 = 64 << 10;
/// The maximum length in bytes of an old and a new text together, if they are compared line by
/// line.
const COMPARED: usize = 128 << 10;

/// A change that a call makes to a file.
pub(crate) enum FileChange {
    /// The lines of a diff: removed and added ones, and up to three unchanged ones around them.
    Lines(Vec<Line>),
    /// The text of a patch.
    Patch(String),
    /// The old and the new text, if they are too long to compare, or if a recipe replaced one of
    /// them by a shorter text.
    Becomes(String, String),
    /// The content of a whole file.
    Content(String),
    /// Another argument: its name and its text.
    Named(String, String),
}

/// A line of a diff.
pub(crate) enum Line {
    Same(String),
    Added(String),
    Removed(String),
    /// A place where unchanged lines are left out.
    Gap,
}

/// The target of a call on one line. A path below `cwd` is shown relative to it.
pub(crate) fn target(call: &Call, cwd: Option<&str>, source: &dyn Source) -> Option<String> {
    let target = call.target.as_ref()?.read(source);
    let below = cwd
        .and_then(|cwd| target.strip_prefix(cwd))
        .and_then(|rest| rest.strip_prefix(['/', '\\']));
    Some(one_line(below.unwrap_or(&target)))
}

/// The arguments of a call as JSON, if they are an object, a list, or a string with an object in
/// it, and are not too long.
pub(crate) fn arguments(call: &Call, source: &dyn Source) -> Option<Value> {
    if call.arguments.is_empty() || call.arguments.len() > ARGUMENTS {
        return None;
    }
    let bytes = source.at(call.arguments);
    match serde_json::from_slice(&bytes).ok()? {
        // Some agents store JSON as a string.
        Value::String(text) => serde_json::from_str(&text).ok().filter(Value::is_object),
        value @ (Value::Object(_) | Value::Array(_)) => Some(value),
        _ => None,
    }
}

/// The arguments that are neither fields nor the target, each with its name.
pub(crate) fn rest(
    call: &Call,
    arguments: Option<&Value>,
    source: &dyn Source,
) -> Vec<(String, String)> {
    let target = call.target.as_ref().map(|it| it.read(source));
    let members = arguments.and_then(Value::as_object).into_iter().flatten();
    members
        .filter(|(key, value)| {
            !is_field(call, key) && value.as_str().is_none_or(|it| Some(it) != target.as_deref())
        })
        .map(|(key, value)| match value {
            Value::String(text) => (key.clone(), text.clone()),
            other => (key.clone(), other.to_string()),
        })
        .collect()
}

/// Whether an argument is a field of the call, or contains one.
fn is_field(call: &Call, key: &str) -> bool {
    call.fields.iter().any(|field| {
        let rest = field.name.strip_prefix(key);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
    })
}

/// Like [`rest`], but without arguments that say little: flags of file and shell tools that are
/// `false`, and, if the result shows the line numbers `lines`, numbers that only say which lines
/// were read.
pub(crate) fn telling(
    call: &Call,
    arguments: Option<&Value>,
    lines: Option<&Range<u64>>,
    source: &dyn Source,
) -> Vec<(String, String)> {
    let Some(Value::Object(members)) = arguments else { return rest(call, arguments, source) };
    let kinds = [ToolKind::Read, ToolKind::Write, ToolKind::Edit, ToolKind::Shell];
    let members = members.iter().filter(|(_, value)| match (value, lines) {
        (Value::Bool(false), _) => !kinds.contains(&call.kind),
        (value, Some(lines)) => !value.as_u64().is_some_and(|number| {
            let first = lines.start;
            let last = lines.end - 1;
            // Some tools count lines from 0.
            [first, first.saturating_sub(1), last, lines.end - first].contains(&number)
        }),
        (_, None) => true,
    });
    let members = members.map(|(key, value)| (key.clone(), value.clone()));
    rest(call, Some(&Value::Object(members.collect())), source)
}

/// The arguments as plain text, if they could not be parsed ([`arguments`]) and the call has no
/// fields.
pub(crate) fn unknown(
    call: &Call,
    arguments: Option<&Value>,
    source: &dyn Source,
) -> Option<String> {
    let is_unknown = arguments.is_none() && call.fields.is_empty() && !call.arguments.is_empty();
    is_unknown.then(|| decode(&source.at(call.arguments)).into_owned())
}

/// The number of lines that a call adds to and removes from files, as in the displayed diff. A text
/// that a recipe left in place of a longer one is not counted.
pub(crate) fn counts(call: &Call, source: &dyn Source) -> (u64, u64) {
    if !call.kind.changes_file() {
        return (0, 0);
    }
    let mut added = 0;
    let mut removed = 0;
    for change in changes(&call.fields, source) {
        let (more, less) = match change {
            FileChange::Lines(lines) => (
                lines.iter().filter(|line| matches!(line, Line::Added(_))).count() as u64,
                lines.iter().filter(|line| matches!(line, Line::Removed(_))).count() as u64,
            ),
            FileChange::Becomes(old, new) => (lines_of(&new), lines_of(&old)),
            FileChange::Content(text) => (lines_of(&text), 0),
            FileChange::Patch(patch) if call.kind == ToolKind::Patch => patched(&patch),
            FileChange::Patch(_) | FileChange::Named(..) => (0, 0),
        };
        added += more;
        removed += less;
    }
    (added, removed)
}

fn lines_of(text: &str) -> u64 {
    if is_left_by_recipe(text) { 0 } else { line_count(text).0 }
}

/// The number of lines that a patch adds and removes.
fn patched(patch: &str) -> (u64, u64) {
    let mut added = 0;
    let mut removed = 0;
    for line in patch.lines() {
        match line.as_bytes() {
            [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => {}
            [b'+', ..] => added += 1,
            [b'-', ..] => removed += 1,
            _ => {}
        }
    }
    (added, removed)
}

/// The changes that a call makes to files, in the order of its arguments. An old and a new text
/// belong together if they are members of the same object; either may come first.
pub(crate) fn changes(fields: &[Field], source: &dyn Source) -> Vec<FileChange> {
    let read = |field: &Field| field.text.read(source).into_owned();
    let mut taken = vec![false; fields.len()];
    let mut changes = Vec::new();
    for (idx, field) in fields.iter().enumerate() {
        if taken[idx] {
            continue;
        }
        let mut other = |role: FieldRole| {
            let mut rest = fields.iter().enumerate().skip(idx + 1);
            let found = rest.find(|(_, it)| it.role == role && object(it) == object(field));
            found.map(|(at, it)| {
                taken[at] = true;
                read(it)
            })
        };
        changes.push(match field.role {
            FieldRole::Old => {
                let new = other(FieldRole::New).unwrap_or_default();
                difference(read(field), new)
            }
            FieldRole::New => {
                let old = other(FieldRole::Old).unwrap_or_default();
                difference(old, read(field))
            }
            FieldRole::Patch => FileChange::Patch(read(field)),
            FieldRole::Content => FileChange::Content(read(field)),
            _ => FileChange::Named(field.name.to_string(), read(field)),
        });
    }
    changes
}

/// The object that contains an argument: `edits[2]` for `edits[2].oldText`.
fn object(field: &Field) -> &str {
    field.name.rsplit_once('.').map_or("", |(object, _)| object)
}

fn difference(old: String, new: String) -> FileChange {
    let left = is_left_by_recipe(&old) || is_left_by_recipe(&new);
    if left || old.len() + new.len() > COMPARED {
        return FileChange::Becomes(old, new);
    }
    // A last line with and without a line feed counts as the same.
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let diff = TextDiff::from_slices(&old, &new);
    let mut lines = Vec::new();
    for (idx, group) in diff.grouped_ops(3).iter().enumerate() {
        if idx > 0 {
            lines.push(Line::Gap);
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = change.value().to_owned();
            lines.push(match change.tag() {
                ChangeTag::Equal => Line::Same(line),
                ChangeTag::Insert => Line::Added(line),
                ChangeTag::Delete => Line::Removed(line),
            });
        }
    }
    FileChange::Lines(lines)
}

/// The outcome of a call, for a short display.
pub(crate) enum Outcome {
    /// The text that a recipe left in place of the result.
    Left(String),
    Failed,
    /// The result has no text, but this many images.
    Pictures(usize),
    Lines(Lines),
}

pub(crate) fn outcome(output: &Output, source: &dyn Source) -> Outcome {
    let texts = output.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.read(source)),
        Part::Image(_) | Part::Opaque(_) => None,
    });
    let mut lines = Lines(0);
    for (idx, text) in texts.enumerate() {
        if idx == 0 && text.len() < 80 && is_left_by_recipe(&text) {
            return Outcome::Left(text.into_owned());
        }
        lines += line_count(&without_reminders(&text).0);
    }
    let pictures = output.parts.iter().filter(|part| matches!(part, Part::Image(_))).count();
    match (output.error, pictures) {
        (true, _) => Outcome::Failed,
        (false, 1..) if lines == Lines(0) => Outcome::Pictures(pictures),
        (false, _) => Outcome::Lines(lines),
    }
}

/// The range of lines in the result of a read, according to the line numbers that the agent put
/// before them. `None` for other calls, for failed ones, and if there are no line numbers.
pub(crate) fn line_numbers(
    call: &Call,
    output: &Output,
    source: &dyn Source,
) -> Option<Range<u64>> {
    if call.kind != ToolKind::Read || !output.numbered || output.error {
        return None;
    }
    let text = output.parts.iter().find_map(|part| match part {
        Part::Text(text) => Some(text.read(source)),
        Part::Image(_) | Part::Opaque(_) => None,
    })?;
    let mut numbers = text.lines().filter_map(|line| Some(numbered(line)?.0));
    let first = numbers.next()?;
    let last = numbers.next_back().unwrap_or(first);
    (first <= last).then_some(first..last.checked_add(1)?)
}

/// A file's text without the line numbers that an agent put before its lines.
pub(crate) fn without_numbers(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    for line in text.lines() {
        bare.push_str(numbered(line).map_or(line, |(_, rest)| rest));
        bare.push('\n');
    }
    bare
}

/// Parses a line that begins with a line number: the number, and the rest of the line.
fn numbered(line: &str) -> Option<(u64, &str)> {
    let trimmed = line.trim_start();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let rest = trimmed[digits..].strip_prefix(['→', '\t'])?;
    Some((trimmed[..digits].parse().ok()?, rest))
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
