//! Gemini CLI: `tmp/<project>/chats/session-<minute>-<short id>.jsonl`, or `.json` in older
//! versions, and the files of sub-agents in `chats/<session id>/<id>.jsonl`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use epitome_formats::{Format, gemini};

use crate::agent::{AdditionTarget, AddressTarget, Agent, HookTarget};
use crate::environment::Environment;
use crate::model_address::{self, ModelAddress};
use crate::session_file::{SessionFile, is_jsonl, stem};
use crate::unread::UnreadErrors;

/// The length of the beginning of an id that is in the name of a session's file.
const SHORT: usize = 8;

/// Gemini CLI, as an [`Agent`].
pub(crate) struct Gemini;

impl Agent for Gemini {
    fn format(&self) -> &'static Format {
        &gemini::FORMAT
    }

    fn variables(&self) -> &'static [&'static str] {
        &["GEMINI_CLI_HOME"]
    }

    fn model_address(&self) -> Option<ModelAddress> {
        Some(model_address::GEMINI)
    }

    fn address_settings(&self) -> Option<AddressTarget> {
        Some(AddressTarget { settings: &gemini::ADDRESS, folder: home })
    }

    fn folder(&self, environment: &Environment) -> PathBuf {
        home(environment).join("tmp")
    }

    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let found = files(&self.folder(environment), unread);
        SessionFile::of_files(found, self.name(), short_id, unread)
    }

    fn matches(&self, id: &str, text: &str) -> bool {
        id.starts_with(text) || is_short_for(id, text)
    }

    fn sub_agents(&self, session: &Path, unread: &mut UnreadErrors) -> Vec<PathBuf> {
        let name = stem(session);
        let Some(chats) = session.parent().filter(|_| name.starts_with("session-")) else {
            return Vec::new();
        };
        let short = short_id(&name);
        let mut folders = unread.files_in(chats);
        folders.retain(|path| {
            is_short_for(short, &path.file_name().unwrap_or_default().to_string_lossy())
        });
        // `folders` may contain a file whose name begins with the id. `files_in` returns nothing
        // for it, and records no error.
        let mut found: Vec<PathBuf> =
            folders.iter().flat_map(|folder| unread.files_in(folder)).collect();
        found.retain(|path| is_jsonl(path));
        found.sort();
        found
    }

    fn hook(&self) -> Option<HookTarget> {
        Some(HookTarget { hook: &gemini::HOOK, settings: home })
    }

    fn mcp(&self) -> Option<AdditionTarget> {
        Some(AdditionTarget { addition: &gemini::MCP, settings: home })
    }

    fn command(&self) -> Option<AdditionTarget> {
        Some(AdditionTarget { addition: &gemini::COMMAND, settings: home })
    }

    fn resume_command(&self) -> Option<&'static [&'static str]> {
        Some(&["gemini", "--resume"])
    }
}

fn home(environment: &Environment) -> PathBuf {
    environment.folder("GEMINI_CLI_HOME", environment.home.clone()).join(".gemini")
}

/// The session files. Of the files in a project whose names have the same id, only the largest is
/// returned, and no `.json` file that is continued in a `.jsonl` file: resuming a session leaves an
/// empty file, and continues a `.json` file in a `.jsonl` file next to it.
fn files(root: &Path, unread: &mut UnreadErrors) -> Vec<PathBuf> {
    let projects = unread.files_in(root);
    projects.iter().flat_map(|project| of_chats(&project.join("chats"), unread)).collect()
}

fn of_chats(chats: &Path, unread: &mut UnreadErrors) -> Vec<PathBuf> {
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

/// The beginning of the session's id, from the name of its file.
fn short_id(stem: &str) -> &str {
    stem.rsplit('-').next().unwrap_or(stem)
}

/// Whether `short`, from the name of a file, is the beginning of the full id `id`.
fn is_short_for(short: &str, id: &str) -> bool {
    short.len() == SHORT && id.len() > SHORT && id.starts_with(short)
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
        let mut found = files(&root.path().join("tmp"), &mut UnreadErrors::default());
        found.sort();
        assert_eq!(found, [newer, old, real]);
    }

    #[test]
    fn files_of_sub_agents_are_in_a_folder_named_by_the_whole_id() {
        let root = tempfile::tempdir().expect("a folder");
        let session = write(root.path(), "session-2026-11-20T23-12-123ae7f3.jsonl", 1);
        let sub_agent = write(root.path(), &format!("{ID}/946d99ab.jsonl"), 1);
        write(root.path(), "99999999-0000-0000-0000-000000000000/1.jsonl", 1);
        assert_eq!(Gemini.sub_agents(&session, &mut UnreadErrors::default()), [sub_agent]);
        for (short, id, expect) in
            [("123ae7f3", ID, true), ("99999999", ID, false), ("123ae7f3", "123ae7f3", false)]
        {
            assert_eq!(is_short_for(short, id), expect, "{short} {id}");
        }
    }
}
