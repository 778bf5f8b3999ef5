//! Where Gemini CLI keeps sessions.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::unread::Unread;
use super::{files_in, is_jsonl, stem};

/// Characters of a session's id that the name of its file tells.
const SHORT: usize = 8;

/// `tmp/<project>/chats/session-<minute>-<short id>.jsonl`, or `.json` in older versions.
///
/// A resume leaves a file of the same id with nothing in it, and goes on with a `.json` in a
/// `.jsonl` beside it: of files of one id the one that holds the session counts.
pub(super) fn files(root: &Path, unread: &mut Unread) -> Vec<PathBuf> {
    let projects = unread.files_in(&root.join("tmp"));
    projects.iter().flat_map(|project| of_chats(&project.join("chats"), unread)).collect()
}

fn of_chats(chats: &Path, unread: &mut Unread) -> Vec<PathBuf> {
    let mut newest: HashMap<String, (bool, u64, PathBuf)> = HashMap::new();
    for path in unread.files_in(chats) {
        let name = stem(&path).into_owned();
        let known = is_jsonl(&path) || path.extension().is_some_and(|it| it == "json");
        if !known || !name.starts_with("session-") {
            continue;
        }
        let size = fs::metadata(&path).map_or(0, |meta| meta.len());
        let goes_on = !is_jsonl(&path) && path.with_extension("jsonl").exists();
        let candidate = (!goes_on, size, path);
        let found = newest.entry(short_id(&name).to_owned()).or_insert_with(|| candidate.clone());
        if *found < candidate {
            *found = candidate;
        }
    }
    newest.into_values().map(|(.., path)| path).collect()
}

/// The beginning of a session's id, as the name of its file tells it.
pub(super) fn short_id(stem: &str) -> &str {
    stem.rsplit('-').next().unwrap_or(stem)
}

/// Whether a whole id begins as the name of a file tells.
pub(super) fn names(short: &str, id: &str) -> bool {
    short.len() == SHORT && id.len() > SHORT && id.starts_with(short)
}

/// `chats/<session id>/<id>.jsonl`.
pub(super) fn sub_agents(session: &Path) -> Vec<PathBuf> {
    let name = stem(session);
    let (Some(chats), true) = (session.parent(), name.starts_with("session-")) else {
        return Vec::new();
    };
    let short = short_id(&name);
    let folders = files_in(chats).into_iter().filter(|path| {
        let id = path.file_name().unwrap_or_default().to_string_lossy();
        names(short, &id) && path.is_dir()
    });
    let mut found: Vec<PathBuf> = folders.flat_map(|folder| files_in(&folder)).collect();
    found.retain(|path| is_jsonl(path));
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "123ae7f3-9b4a-4ac1-9a17-d404baffc5a5";

    fn write(root: &Path, name: &str, size: usize) -> PathBuf {
        let path = root.join("tmp/project/chats").join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, "x".repeat(size)).expect("a file");
        path
    }

    #[test]
    fn of_files_of_one_id_the_session_is_found() {
        let root = tempfile::tempdir().expect("a folder");
        let real = write(root.path(), "session-2026-11-20T23-12-123ae7f3.jsonl", 90);
        write(root.path(), "session-2026-11-21T04-22-123ae7f3.jsonl", 10);
        write(root.path(), "session-2026-11-20T10-00-00000001.json", 90);
        let newer = write(root.path(), "session-2026-11-20T10-00-00000001.jsonl", 10);
        let old = write(root.path(), "session-2026-11-20T10-00-00000002.json", 10);
        write(root.path(), "logs.json", 10);
        let mut found = files(root.path(), &mut Unread::default());
        found.sort();
        assert_eq!(found, [newer, old, real]);
    }

    #[test]
    fn sub_agents_stand_in_a_folder_of_the_whole_id() {
        let root = tempfile::tempdir().expect("a folder");
        let session = write(root.path(), "session-2026-11-20T23-12-123ae7f3.jsonl", 1);
        let sub_agent = write(root.path(), &format!("{ID}/946d99ab.jsonl"), 1);
        write(root.path(), "99999999-0000-0000-0000-000000000000/1.jsonl", 1);
        assert_eq!(sub_agents(&session), [sub_agent]);
        assert!(names("123ae7f3", ID) && !names("99999999", ID) && !names("123ae7f3", "123ae7f3"));
    }
}
