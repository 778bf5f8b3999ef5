//! What a call would change in files, for those who show it before it runs.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::patch::{self, FileChange};
use super::{Workplace, named};
use crate::permissions::Access;

/// Bytes of a text that is shown.
const LONGEST: u64 = 1 << 20;

impl Workplace {
    /// What a call would change in files if it ran now; none if it changes no files, would fail, or
    /// is too long to be shown.
    pub fn planned_changes(&self, tool: &str, arguments: &str) -> Option<Vec<FileChange>> {
        let changes = if tool == "patch" {
            patch::planned(self, arguments).ok()?
        } else {
            match (named(tool)?.access)(self, arguments) {
                Ok(Access::Write(path)) => vec![of_one_file(tool, arguments, path)?],
                Ok(
                    Access::Own
                    | Access::Read(_)
                    | Access::Patch(_)
                    | Access::Shell(_)
                    | Access::Mcp { .. },
                )
                | Err(_) => return None,
            }
        };
        changes.iter().all(is_short).then_some(changes)
    }
}

/// Whether a change is short enough to be shown.
fn is_short(change: &FileChange) -> bool {
    let texts = [&change.before, &change.after];
    texts.into_iter().flatten().all(|text| text.len() as u64 <= LONGEST)
}

fn of_one_file(tool: &str, arguments: &str, path: PathBuf) -> Option<FileChange> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let text = |name: &str| arguments.get(name)?.as_str();
    let before = text_now(&path)?;
    let after = match tool {
        "write" => text("content")?.to_owned(),
        "edit" => {
            let (old, new) = (text("old_string")?, text("new_string")?);
            let before = before.as_deref().filter(|it| !old.is_empty() && it.contains(old))?;
            let all = arguments.get("replace_all").and_then(Value::as_bool).unwrap_or(false);
            if all { before.replace(old, new) } else { before.replacen(old, new, 1) }
        }
        _ => return None,
    };
    Some(FileChange { path, before, after: Some(after) })
}

/// The text of a file, and none of one that is not there.
fn text_now(path: &Path) -> Option<Option<String>> {
    match path.metadata() {
        Ok(about) if about.is_file() && about.len() <= LONGEST => {
            fs::read_to_string(path).ok().map(Some)
        }
        Ok(_) => None,
        Err(_) => Some(None),
    }
}
