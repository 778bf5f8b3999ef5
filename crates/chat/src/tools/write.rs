//! `write`: writes a whole file.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use epitome_model::ToolKind;

use super::read::text_of;
use super::{FileChange, Fold, Tool, Workplace, described, parsed, permitted};
use crate::permissions::Access;

pub(super) const TOOL: Tool = Tool {
    name: "write",
    kind: ToolKind::Write,
    subject: |it| described(it, &["{path}"]),
    fold: Fold::Beginning,
    description: "Writes a whole file. Creates it and its folder if needed; replaces what was in \
                  it. Use edit to change a part of a file.",
    parameters: concat!(
        r#"{"type":"object","properties":{"path":{"type":"string","description":"The file, "#,
        r#"relative to the project"},"content":{"type":"string","description":"All of its "#,
        r#"text"}},"required":["path","content"]}"#,
    ),
    access: |place, arguments| {
        let Arguments { path, .. } = parsed(arguments)?;
        place.resolve(&path).map(Access::Write)
    },
    planned: Some(planned),
    run: |place, arguments, access, _| {
        let Arguments { content, .. } = parsed(arguments)?;
        let path = permitted(access)?;
        let is_new = !path.exists();
        replace(place, path, &content)?;
        let name = place.display(path);
        let lines = content.lines().count();
        let what = if is_new { "created" } else { "replaced" };
        Ok(format!("{what} {name}: {lines} lines, {} bytes", content.len()))
    },
};

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

/// The changes that a call would make.
fn planned(place: &Workplace, arguments: &str) -> Result<Vec<FileChange>, String> {
    let Arguments { path, content } = parsed(arguments)?;
    let path = place.resolve(&path)?;
    let is_new = path.symlink_metadata().is_err();
    let before = if is_new { None } else { Some(text_of(place, &path)?) };
    Ok(vec![FileChange { path, before, after: Some(content) }])
}

/// Writes a file, and creates the folders that it is in. An error if the path exists and is not a
/// regular file, or if the file cannot be written.
pub(super) fn replace(place: &Workplace, path: &Path, text: &str) -> Result<(), String> {
    let failed = |err: std::io::Error| format!("{}: {err}", place.display(path));
    if let Ok(about) = path.symlink_metadata()
        && !about.is_file()
    {
        return Err(format!("{} is not a file", place.display(path)));
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}
