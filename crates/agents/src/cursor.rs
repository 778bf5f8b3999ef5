//! Cursor. The editor keeps all conversations in one database, and the CLI keeps each chat in a
//! database of its own. Both also write transcripts, which contain less.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use epitome_formats::{Format, cursor};

use crate::agent::Agent;
use crate::environment::Environment;
use crate::session_file::{SessionFile, is_jsonl, stem};
use crate::unread::UnreadErrors;

/// Cursor, the editor and the CLI, as one [`Agent`].
pub(crate) struct Cursor;

impl Agent for Cursor {
    fn format(&self) -> &'static Format {
        &cursor::FORMAT
    }

    fn folder(&self, environment: &Environment) -> PathBuf {
        environment.home.join(".cursor")
    }

    /// Conversations of the editor, chats of the CLI, and transcripts of conversations that are in
    /// no database.
    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let home = self.folder(environment);
        let editor = editor(environment).join("User/globalStorage/state.vscdb");
        let mut found = SessionFile::roots(&editor, unread);
        let chats = below(below(vec![home.join("chats")], unread), unread);
        found.extend(chats.iter().flat_map(|it| SessionFile::roots(&it.join("store.db"), unread)));
        let mut known: HashSet<String> = found.iter().map(|it| it.id.clone()).collect();
        for path in transcripts(&home, unread) {
            let id = stem(&path).into_owned();
            if known.insert(id.clone()) {
                found.extend(SessionFile::of_file(path, self.name(), id, unread));
            }
        }
        found
    }
}

/// The editor's folder.
fn editor(environment: &Environment) -> PathBuf {
    if cfg!(target_os = "macos") {
        environment.home.join("Library/Application Support/Cursor")
    } else {
        environment.config.join("Cursor")
    }
}

/// Transcripts in `projects/<folder>/agent-transcripts/<id>/<id>.jsonl`. Older versions write them
/// directly into `agent-transcripts`, some as text. The JSON files come first: of several files
/// with one id, the first is used.
fn transcripts(root: &Path, unread: &mut UnreadErrors) -> Vec<PathBuf> {
    let folders = below(vec![root.join("projects")], unread);
    let folders: Vec<PathBuf> =
        folders.iter().map(|folder| folder.join("agent-transcripts")).collect();
    let mut found = below(folders, unread);
    let nested: Vec<PathBuf> = found
        .iter()
        .flat_map(|path| {
            ["jsonl", "txt"].map(|end| path.join(stem(path).as_ref()).with_extension(end))
        })
        .filter(|path| path.is_file())
        .collect();
    found.retain(|path| is_jsonl(path) || path.extension().is_some_and(|it| it == "txt"));
    found.extend(nested);
    found.sort_by_key(|path| (!is_jsonl(path), path.clone()));
    found
}

fn below(folders: Vec<PathBuf>, unread: &mut UnreadErrors) -> Vec<PathBuf> {
    folders.iter().flat_map(|folder| unread.files_in(folder)).collect()
}
