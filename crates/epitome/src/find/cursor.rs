//! Where Cursor keeps conversations: the editor in one database, the CLI in one for each chat, and
//! both as transcripts, which say less.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::unread::Unread;
use super::{SessionFile, file_of, is_jsonl, roots, stem};
use crate::config::Config;

/// Composers, chats, and transcripts of those that stand in neither any more.
pub(super) fn sessions(config: &Config, unread: &mut Unread) -> Vec<SessionFile> {
    let mut found = roots(&config.cursor_editor.join("User/globalStorage/state.vscdb"), unread);
    let chats = below(below(vec![config.cursor.join("chats")], unread), unread);
    found.extend(chats.iter().flat_map(|chat| roots(&chat.join("store.db"), unread)));
    let mut known: HashSet<String> = found.iter().map(|it| it.id.clone()).collect();
    for path in transcripts(&config.cursor, unread) {
        let id = stem(&path).into_owned();
        if known.insert(id.clone()) {
            found.extend(file_of(path, "cursor", id, unread));
        }
    }
    found
}

/// `projects/<folder>/agent-transcripts/<id>/<id>.jsonl`; before, and as text, without the folder
/// of its own. Those of one id that are JSON come first.
fn transcripts(root: &Path, unread: &mut Unread) -> Vec<PathBuf> {
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

fn below(folders: Vec<PathBuf>, unread: &mut Unread) -> Vec<PathBuf> {
    folders.iter().flat_map(|folder| unread.files_in(folder)).collect()
}
