//! Finds sessions in any folder.

use std::fs;
use std::path::{Path, PathBuf};

use epitome_store::place;
use epitome_store::session::format_of;

use crate::find_agent;
use crate::session_file::{SessionFile, stem};
use crate::unread::UnreadErrors;

/// The endings of the names of files that [`sessions_below`] examines.
const ENDINGS: [&str; 3] = [".jsonl", ".jsonl.zst", ".json"];
/// The maximum depth of the search.
const DEPTH: usize = 16;

/// Returns the sessions in a folder and below it, down to 16 folders deep, ordered by path. A file
/// is taken for a session if its name ends in `.jsonl`, `.jsonl.zst` or `.json`, and its first
/// bytes have a known format. Files of Claude Code's sub-agents, and files that cannot be read, are
/// left out. Links are not followed.
pub fn sessions_below(folder: &Path) -> Vec<SessionFile> {
    let mut files = Vec::new();
    walk(folder, DEPTH, &mut files);
    files.sort();
    let found = files.into_iter().filter_map(|path| {
        let format = format_of(&place::open(&path).ok()?)?;
        if find_agent(format.name).is_some_and(|agent| agent.is_part(&path)) {
            return None;
        }
        let id = stem(&path).into_owned();
        SessionFile::of_file(path, format.name, id, &mut UnreadErrors::default())
    });
    found.collect()
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 0 {
            walk(&path, depth - 1, files);
        }
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if kind.is_file() && ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            files.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_any_agent_are_found_in_any_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        let put = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, bytes).expect("a file");
        };
        let claude = fixtures::get("claude", "pricing").bytes();
        put("b/c/one.jsonl", &claude);
        put("b/c/one/subagents/agent-a.jsonl", &claude);
        put("a.jsonl", &fixtures::get("pi", "pricing").bytes());
        put("package.json", b"{\"name\": \"x\"}");
        put("notes.txt", &claude);
        let found: Vec<(String, &str)> =
            sessions_below(dir.path()).into_iter().map(|it| (it.id, it.agent)).collect();
        assert_eq!(found, [("a".to_owned(), "pi"), ("one".to_owned(), "claude")]);
    }
}
