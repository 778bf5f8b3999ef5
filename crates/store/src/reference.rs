//! Finds files that contain the same text as a removed piece, so that the text can be read from
//! such a file.

mod git;

use std::path::Path;

use epitome_model::Source;
use memchr::{memchr_iter, memmem};
use serde::{Deserialize, Serialize};

use crate::archive::Hash;
use crate::source::{FileSource, exactly};

pub use git::{GitObjects, blob_id};

/// The maximum length of a file that is compared with a text.
const LONGEST: u64 = 64 << 20;

/// A file, or a range of whole lines in it, that contained the same text as a removed piece.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reference {
    /// The path of the file.
    pub path: String,
    /// The id that git gives to the whole file, in hexadecimal digits. [`GitObjects::hold`] says
    /// whether a repository contains an object with this id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// The number of the text's first line in the file, from 1; `None` if the text is the whole
    /// file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// Number of lines of the text; `None` if the text is the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// The hash of the whole file at the time of the compaction.
    pub blake3: Hash,
}

/// How a file compares with an earlier [`Reference`] to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// The file is unchanged.
    Same,
    /// The file has changed.
    Changed,
    /// The file does not exist, cannot be read, or is longer than 64 MiB.
    Gone,
}

impl Reference {
    /// Compares a text with the file at `path`. Returns a reference to the file if it consists of
    /// the text, or contains the text as a range of whole lines; the text need not end with the
    /// last line feed of the range. If the text occurs several times, the first position is used.
    ///
    /// Returns `None` if the file does not contain the text in this way, cannot be read, is longer
    /// than 64 MiB, or has a path that is not Unicode; and for an empty text, which every file
    /// contains.
    ///
    /// ```no_run
    /// use epitome_store::reference::Reference;
    ///
    /// let text = "fn main() {}\n";
    /// let same = Reference::find(text, "src/main.rs".as_ref());
    /// ```
    pub fn find(text: &str, path: &Path) -> Option<Reference> {
        let bytes = read(path)?;
        let (first_line, lines) = match place_of(text.as_bytes(), &bytes)? {
            RecordedPlace::Whole => (None, None),
            RecordedPlace::Lines { first, count } => (Some(first), Some(count)),
        };
        Some(Reference {
            path: path.to_str()?.to_owned(),
            blob: Some(blob_id(&bytes)),
            first_line,
            lines,
            blake3: Hash::compute(&bytes),
        })
    }

    /// Compares the file as it is now with the file at the time of the compaction.
    pub fn file_state(&self) -> FileState {
        match read(Path::new(&self.path)) {
            Some(bytes) if Hash::compute(&bytes) == self.blake3 => FileState::Same,
            Some(_) => FileState::Changed,
            None => FileState::Gone,
        }
    }
}

enum RecordedPlace {
    Whole,
    Lines { first: u64, count: u64 },
}

fn place_of(text: &[u8], file: &[u8]) -> Option<RecordedPlace> {
    if text.is_empty() {
        return None;
    }
    if text == file {
        return Some(RecordedPlace::Whole);
    }
    let at = memmem::find_iter(file, text).find(|&at| {
        let starts_line = at == 0 || file[at - 1] == b'\n';
        let end = at + text.len();
        starts_line && (text.ends_with(b"\n") || file.get(end).is_none_or(|&b| b == b'\n'))
    })?;
    let feeds = memchr_iter(b'\n', text).count() as u64;
    let count = feeds + u64::from(!text.ends_with(b"\n"));
    Some(RecordedPlace::Lines { first: memchr_iter(b'\n', &file[..at]).count() as u64 + 1, count })
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let file = FileSource::open(path).ok()?;
    if file.len() > LONGEST {
        return None;
    }
    exactly(&file, 0..file.len()).ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_text_is_found_as_whole_lines_of_a_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a.rs");
        let file = "one\ntwo\nthree\ntwo\n";
        fs::write(&path, file).expect("a file");
        type Place = (Option<u64>, Option<u64>);
        let cases: &[(&str, Option<Place>)] = &[
            (file, Some((None, None))),
            ("one\ntwo\nthree\ntwo", Some((Some(1), Some(4)))),
            ("two\nthree", Some((Some(2), Some(2)))),
            ("two\nthree\n", Some((Some(2), Some(2)))),
            ("two\n", Some((Some(2), Some(1)))),
            ("wo\nthree", None),
            ("two\nthr", None),
            ("four", None),
            ("", None),
        ];
        for (text, expect) in cases {
            let expect = expect.map(|(first_line, lines)| Reference {
                path: path.to_str().expect("text").to_owned(),
                blob: Some(blob_id(file.as_bytes())),
                first_line,
                lines,
                blake3: Hash::compute(file.as_bytes()),
            });
            assert_eq!(Reference::find(text, &path), expect, "{text:?}");
        }
        assert_eq!(Reference::find("one", dir.path()), None);
        assert_eq!(Reference::find("one", &dir.path().join("b.rs")), None);
    }

    #[test]
    fn a_reference_knows_when_its_file_changed() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a.rs");
        fs::write(&path, "one\n").expect("a file");
        let reference = Reference::find("one\n", &path).expect("the same text");
        assert_eq!(reference.file_state(), FileState::Same);
        fs::write(&path, "two\n").expect("a file");
        assert_eq!(reference.file_state(), FileState::Changed);
        fs::remove_file(&path).expect("a file");
        assert_eq!(reference.file_state(), FileState::Gone);
    }
}
