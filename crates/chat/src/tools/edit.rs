//! `edit`: replaces a part of a file.

use std::path::Path;

use serde::Deserialize;

use epitome_model::ToolKind;

use super::read::text_of;
use super::write::replace;
use super::{FileChange, Fold, Tool, Workplace, described, parsed, permitted};
use crate::permissions::Access;

pub(super) const TOOL: Tool = Tool {
    name: "edit",
    kind: ToolKind::Edit,
    subject: |it| described(it, &["{path}"]),
    fold: Fold::Beginning,
    description: "Replaces a text in a file by another. The old text must be in the file exactly \
                  once, unless replace_all is true: give enough lines around it.",
    parameters: concat!(
        r#"{"type":"object","properties":{"path":{"type":"string","description":"The file, "#,
        r#"relative to the project"},"old_string":{"type":"string","description":"The text "#,
        r#"to replace, with all its white space"},"new_string":{"type":"string","#,
        r#""description":"What replaces it"},"replace_all":{"type":"boolean","#,
        r#""description":"Replace every occurrence"}},"required":["path","old_string","#,
        r#""new_string"]}"#,
    ),
    access: |place, arguments| {
        let Arguments { path, .. } = parsed(arguments)?;
        place.resolve(&path).map(Access::Write)
    },
    planned: Some(planned),
    run: |place, arguments, access, _| edit(place, &parsed(arguments)?, access),
};

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

/// The changes that a call would make.
fn planned(place: &Workplace, arguments: &str) -> Result<Vec<FileChange>, String> {
    let arguments: Arguments = parsed(arguments)?;
    let path = place.resolve(&arguments.path)?;
    let (before, after) = texts(place, &arguments, &path)?;
    Ok(vec![FileChange { path, before: Some(before), after: Some(after) }])
}

/// The text of the file before and after a call.
fn texts(
    place: &Workplace,
    arguments: &Arguments,
    path: &Path,
) -> Result<(String, String), String> {
    let Arguments { old_string, new_string, replace_all, .. } = arguments;
    if old_string.is_empty() {
        return Err("old_string is empty: use write for a new file".to_owned());
    }
    if old_string == new_string {
        return Err("old_string and new_string are the same".to_owned());
    }
    let before = text_of(place, path)?;
    let name = place.display(path);
    match before.matches(old_string.as_str()).count() {
        0 => Err(format!("old_string is not in {name}: read it again")),
        times if times > 1 && !replace_all => {
            Err(format!("old_string is {times} times in {name}: give more lines around it"))
        }
        _ => {
            let after = before.replace(old_string.as_str(), new_string);
            Ok((before, after))
        }
    }
}

fn edit(place: &Workplace, arguments: &Arguments, access: &Access) -> Result<String, String> {
    let path = permitted(access)?;
    let (before, after) = texts(place, arguments, path)?;
    replace(place, path, &after)?;
    let places: Vec<(usize, &str)> = before.match_indices(arguments.old_string.as_str()).collect();
    let first = places.first().map_or(0, |(at, _)| *at);
    let line = before[..first].matches('\n').count() + 1;
    let times = places.len();
    let times = if times == 1 { String::new() } else { format!(" ({times} places)") };
    Ok(format!("edited {} at line {line}{times}", place.display(path)))
}
