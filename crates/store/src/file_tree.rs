//! Sessions that consist of many files (see [`epitome_formats::files`]).

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use epitome_formats::files::{Files, value};
use epitome_formats::{find_format, stores};
use epitome_model::Bytes;

use crate::regular;
use crate::source::FileSource;
use epitome_error::{Error, ErrorKind, Result};

/// A session that consists of many files. Its path is that of the main file.
#[derive(Clone, Debug)]
pub struct FileTreeSession {
    session: PathBuf,
    store: PathBuf,
    kind: &'static Files,
}

impl FileTreeSession {
    /// The session whose main file is at this path; `None` if the path is not that of a main file.
    pub fn from_path(session: &Path) -> Option<FileTreeSession> {
        let folder = session.parent()?.parent()?;
        let kind = stores().find(|kind| folder.ends_with(kind.sessions))?;
        let store = folder.parent()?.to_owned();
        let is_one = is_json(session) && session.is_file() && store.join(kind.messages).is_dir();
        is_one.then(|| FileTreeSession { session: session.to_owned(), store, kind })
    }

    /// The sessions in an agent's store that belong to no other session.
    pub fn all(store: &Path, agent: &str) -> Vec<FileTreeSession> {
        let Some(kind) = find_format(agent).and_then(|format| format.files) else {
            return Vec::new();
        };
        let folders = in_order(&store.join(kind.sessions));
        let files = folders.iter().flat_map(|folder| in_order(folder));
        let mut found: Vec<FileTreeSession> =
            files.filter_map(|path| FileTreeSession::from_path(&path)).collect();
        found.retain(|session| session.parent().is_none());
        found
    }

    /// The main file of the session.
    pub fn session(&self) -> &Path {
        &self.session
    }

    /// The id of the session: the name of its main file without the extension.
    pub fn id(&self) -> String {
        self.session.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The total length of the session's files.
    pub fn size(&self) -> Bytes {
        Bytes(self.files().iter().map(|path| file_len(path)).sum())
    }

    /// The files of the session: the main file, and each file of a message, followed by the files
    /// of that message's parts.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.session.clone()];
        for message in self.messages() {
            let parts = self.parts(&message);
            files.push(message);
            files.extend(parts);
        }
        files
    }

    /// The main files of the sessions of this session's sub-agents, of the sub-agents of those
    /// sessions, and so on.
    pub fn companions(&self) -> Vec<PathBuf> {
        let Some(folder) = self.session.parent() else { return Vec::new() };
        let all: Vec<FileTreeSession> =
            in_order(folder).iter().filter_map(|path| FileTreeSession::from_path(path)).collect();
        let parents: Vec<Option<String>> = all.iter().map(FileTreeSession::parent).collect();
        let mut wanted = vec![self.id()];
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(id) = wanted.get(at).cloned() {
            at += 1;
            for (session, parent) in all.iter().zip(&parents) {
                if parent.as_ref() == Some(&id) && !wanted.contains(&session.id()) {
                    wanted.push(session.id());
                    found.push(session.session.clone());
                }
            }
        }
        found
    }

    /// The session's files as one document, in an unnamed temporary file.
    pub fn open(&self) -> Result<FileSource> {
        let failed = |err| Error::writing(err, "the files as one", &self.session);
        let frame = &self.kind.frame;
        let mut out = BufWriter::new(tempfile::tempfile().map_err(failed)?);
        let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(failed);
        put(frame.session.as_bytes())?;
        put(&value(&read_file(&self.session)?))?;
        put(frame.messages.as_bytes())?;
        for (idx, message) in self.messages().iter().enumerate() {
            put(if idx > 0 { b"," } else { b"" })?;
            put(frame.message.as_bytes())?;
            put(&value(&read_file(message)?))?;
            put(frame.parts.as_bytes())?;
            for (idx, part) in self.parts(message).iter().enumerate() {
                put(if idx > 0 { b"," } else { b"" })?;
                put(&value(&read_file(part)?))?;
            }
            put(frame.message_end.as_bytes())?;
        }
        put(frame.end.as_bytes())?;
        let file = out.into_inner().map_err(|err| failed(err.into_error()))?;
        FileSource::new(file, &self.session)
    }

    /// The error for writing such a session, with the reason why its format is read-only.
    pub fn only_read(&self) -> Error {
        let what = format!("files of {} are only read: {}", self.kind.agent, self.kind.read_only);
        Error::new(ErrorKind::ReadOnly, what)
            .at(&self.session)
            .with_hint("--out writes a small copy, in the form of an export")
    }

    fn parent(&self) -> Option<String> {
        (self.kind.parent)(&regular::read(&self.session).ok()?)
    }

    fn messages(&self) -> Vec<PathBuf> {
        let mut found = in_order(&self.store.join(self.kind.messages).join(self.id()));
        found.retain(|path| is_json(path));
        found
    }

    fn parts(&self, message: &Path) -> Vec<PathBuf> {
        let id = message.file_stem().unwrap_or_default();
        let mut found = in_order(&self.store.join(self.kind.parts).join(id));
        found.retain(|path| is_json(path));
        found
    }
}

fn file_len(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

fn read_file(path: &Path) -> Result<Vec<u8>> {
    regular::read(path).map_err(|err| Error::reading(err, "a file of the session", path))
}

fn in_order(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}
