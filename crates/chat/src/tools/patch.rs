//! `patch`: several changes to one or more files, in one transaction.
//!
//! The format is Codex's (`*** Begin Patch`). Models know it, it has no line numbers that could be
//! wrong, and the engine recognises the rule files that a patch changes.

mod apply;
mod parse;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use epitome_model::ToolKind;
use serde_json::Value;

use super::read::text_of;
use super::write::replace;
use super::{FileChange, Fold, Tool, Workplace, parsed};
use crate::permissions::Access;

use apply::apply;
use parse::{FilePatch, Operation, parse};

pub(super) const TOOL: Tool = Tool {
    name: "patch",
    kind: ToolKind::Patch,
    subject: paths,
    fold: Fold::Beginning,
    description: "Makes several changes in one or more files at once: all of them, or none. Lines \
                  of an update begin with a blank (stays), - (goes) or + (comes); give about 3 \
                  lines around each change, and @@ with a line above it if they are not unique.",
    parameters: concat!(
        r#"{"type":"object","properties":{"patch":{"type":"string","description":"*** Begin "#,
        r#"Patch\n*** Update File: src/a.rs\n@@ fn one() {\n context\n-old\n+new\n context\n"#,
        r#"*** Add File: b.txt\n+text\n*** Delete File: c.txt\n*** End Patch; an update may "#,
        r#"begin with *** Move to: PATH"}},"required":["patch"]}"#,
    ),
    access: |place, arguments| {
        let files = files(arguments)?;
        let paths: Vec<&str> = files.iter().flat_map(FilePatch::paths).collect();
        let resolved = paths.into_iter().map(|path| place.resolve(path));
        let paths: Vec<PathBuf> = resolved.collect::<Result<_, _>>()?;
        // The user is not asked about a patch that does not apply. This is not checked if the patch
        // names a file outside of the project, because that file must not be read without the
        // user's permission.
        if paths.iter().all(|path| path.starts_with(place.root())) {
            changes(place, &files, &paths)?;
        }
        Ok(Access::Patch(paths))
    },
    planned: Some(planned),
    run: |place, arguments, access, _| {
        let Access::Patch(paths) = access else { return Err("no path was permitted".to_owned()) };
        let changes = changes(place, &files(arguments)?, paths)?;
        write(place, &changes)?;
        Ok(changes.iter().map(|change| line(change, place)).collect::<Vec<_>>().join("\n"))
    },
};

/// The paths that a patch names.
fn paths(arguments: &Value) -> Option<String> {
    let patch = arguments.get("patch")?.as_str()?;
    let files = patch.lines().filter_map(|line| line.strip_prefix("*** ")?.split_once(": "));
    Some(files.map(|(_, path)| path.trim()).collect::<Vec<_>>().join(", "))
}

#[derive(Deserialize)]
struct Arguments {
    patch: String,
}

/// One line about a change that was made.
fn line(change: &FileChange, place: &Workplace) -> String {
    let name = place.display(&change.path);
    match (&change.before, &change.after) {
        (None, _) => format!("created {name}"),
        (Some(_), None) => format!("deleted {name}"),
        (Some(_), Some(_)) => format!("changed {name}"),
    }
}

fn files(arguments: &str) -> Result<Vec<FilePatch>, String> {
    let Arguments { patch } = parsed(arguments)?;
    parse(&patch)
}

/// The changes that a call would make if it ran now.
fn planned(place: &Workplace, arguments: &str) -> Result<Vec<FileChange>, String> {
    let Access::Patch(paths) = (TOOL.access)(place, arguments)? else { return Ok(Vec::new()) };
    changes(place, &files(arguments)?, &paths)
}

/// The changes of the files: one for each, and two for a file that is renamed. `paths` are the
/// resolved paths of the patch, in its order.
fn changes(
    place: &Workplace,
    files: &[FilePatch],
    paths: &[PathBuf],
) -> Result<Vec<FileChange>, String> {
    let mut paths = paths.iter();
    let mut next = || paths.next().cloned().ok_or("no path was permitted".to_owned());
    let mut changes: Vec<FileChange> = Vec::new();
    for file in files {
        let path = next()?;
        match &file.operation {
            Operation::Add(text) => {
                if path.symlink_metadata().is_ok() {
                    return Err(format!("{} is there already: update it", place.display(&path)));
                }
                changes.push(FileChange { path, before: None, after: Some(text.clone()) });
            }
            Operation::Delete => {
                let before = Some(text_of(place, &path)?);
                changes.push(FileChange { path, before, after: None });
            }
            Operation::Update { to, hunks } => {
                let text = text_of(place, &path)?;
                let name = place.display(&path);
                let after = Some(apply(&text, hunks).map_err(|why| format!("{name}: {why}"))?);
                let Some(_) = to else {
                    changes.push(FileChange { path, before: Some(text), after });
                    continue;
                };
                let to = next()?;
                if to.symlink_metadata().is_ok() {
                    return Err(format!("{} is there already", place.display(&to)));
                }
                changes.push(FileChange { path, before: Some(text), after: None });
                changes.push(FileChange { path: to, before: None, after });
            }
        }
    }
    let mut all = changes.iter().enumerate();
    let twice = all
        .position(|(at, change)| changes[..at].iter().any(|earlier| earlier.path == change.path));
    match twice {
        Some(at) => {
            let name = place.display(&changes[at].path);
            Err(format!("{name} is changed twice: put its changes together"))
        }
        None => Ok(changes),
    }
}

/// Makes all changes. If one fails, tries to undo the changes before it; the error says whether
/// that succeeded.
fn write(place: &Workplace, changes: &[FileChange]) -> Result<(), String> {
    for (at, change) in changes.iter().enumerate() {
        let Err(why) = put(place, &change.path, change.after.as_deref()) else { continue };
        let undone: Result<Vec<()>, String> = changes[..at]
            .iter()
            .rev()
            .map(|change| put(place, &change.path, change.before.as_deref()))
            .collect();
        return Err(match undone {
            Ok(_) => format!("{why}; nothing is changed"),
            Err(also) => format!("{why}; and it cannot be taken back: {also}"),
        });
    }
    Ok(())
}

/// Writes a file with this text, or deletes the file if `text` is `None`.
fn put(place: &Workplace, path: &Path, text: Option<&str>) -> Result<(), String> {
    match text {
        Some(text) => replace(place, path, text),
        None => fs::remove_file(path).map_err(|err| format!("{}: {err}", place.display(path))),
    }
}
