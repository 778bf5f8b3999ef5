//! `glob`: finds files by name.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use serde::Deserialize;

use epitome_model::ToolKind;

use super::{Fold, Tool, described, parsed, permitted};
use crate::permissions::Access;

pub(super) const TOOL: Tool = Tool {
    name: "glob",
    kind: ToolKind::List,
    subject: |it| described(it, &["{pattern}", " in {path}"]),
    fold: Fold::Beginning,
    description: "Lists files whose path matches a pattern such as **/*.rs, sorted by path, \
                  without those that .gitignore names. At most 500.",
    parameters: concat!(
        r#"{"type":"object","properties":{"pattern":{"type":"string","description":"The "#,
        r#"pattern, relative to the folder"},"path":{"type":"string","description":"The "#,
        r#"folder, relative to the project; the project by default"}},"required":["pattern"]}"#,
    ),
    access: |place, arguments| {
        let Arguments { path, .. } = parsed(arguments)?;
        place.resolve(path.as_deref().unwrap_or(".")).map(Access::Read)
    },
    planned: None,
    run: |place, arguments, access, stop| {
        let Arguments { pattern, .. } = parsed(arguments)?;
        let folder = permitted(access)?;
        let matcher = matcher(&pattern)?;
        let mut found = Vec::new();
        for path in files(folder)? {
            if stop.is_stopped() {
                return Err("stopped".to_owned());
            }
            let inside = path.strip_prefix(folder).unwrap_or(&path);
            if matcher.is_match(inside) {
                found.push(place.display(&path));
            }
        }
        let all = found.len();
        found.truncate(LIMIT);
        let mut text = found.join("\n");
        if all == 0 {
            text = format!("no file matches {pattern}");
        } else if all > LIMIT {
            text.push_str(&format!("\n[the first {LIMIT} of {all}]"));
        }
        Ok(text)
    },
};

/// The maximum number of files that a call lists.
const LIMIT: usize = 500;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
}

/// Compiles a pattern; `*` does not match a `/`.
pub(super) fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    Ok(glob.map_err(|err| format!("bad pattern: {err}"))?.compile_matcher())
}

/// All files below a folder, sorted by path. Hidden files are included; files in `.git`, and files
/// that a `.gitignore` or a similar file excludes, are not. Links are not followed.
pub(super) fn files(folder: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    if !folder.exists() {
        return Err(format!("there is no {}", folder.display()));
    }
    let mut walk = WalkBuilder::new(folder);
    walk.hidden(false).require_git(false).filter_entry(|entry| entry.file_name() != ".git");
    walk.sort_by_file_path(|one, other| one.cmp(other));
    // Folders that cannot be read are left out.
    let entries = walk.build().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_some_and(|it| it.is_file()));
    Ok(files.map(ignore::DirEntry::into_path).collect())
}
