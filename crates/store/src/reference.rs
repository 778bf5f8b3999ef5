//! Files that hold the same text as a piece of a session: who wants it back may have it already.

use std::path::{Path, PathBuf};

use epitome_model::Source;
use memchr::{memchr_iter, memmem};
use serde::{Deserialize, Serialize};

use crate::archive::Hash;
use crate::regular;
use crate::source::{FileSource, exactly};

/// Longest file that is looked into, in bytes.
const LONGEST: u64 = 64 << 20;

/// A file, or whole lines of it, that held the same text as a removed piece.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reference {
    /// The file.
    pub path: String,
    /// The id that git gives to the whole file, in hexadecimal digits. Whether a repository holds
    /// it is another question: [`GitObjects::hold`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// The first line of the text in the file, from 1; `None` when it is the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// How many lines; `None` when it is the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// The hash of the whole file at that time.
    pub blake3: Hash,
}

/// How a file stands to a [`Reference`] made earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is what it was.
    Same,
    /// It is there, and another.
    Changed,
    /// It is not there, or cannot be read.
    Gone,
}

impl Reference {
    /// Whether the file at `path` is `text`, or holds it as a run of whole lines. A run may lack
    /// its last line feed. Of several places the first counts.
    ///
    /// Returns `None` when it does not, cannot be read, is longer than 64 MiB, or has a path that
    /// is no text; and for empty text, which every file holds.
    ///
    /// ```no_run
    /// use epitome::Reference;
    ///
    /// let text = "fn main() {}\n";
    /// let same = Reference::find(text, "src/main.rs".as_ref());
    /// ```
    pub fn find(text: &str, path: &Path) -> Option<Reference> {
        let bytes = read(path)?;
        let (first_line, lines) = match place_of(text.as_bytes(), &bytes)? {
            Place::Whole => (None, None),
            Place::Lines { first, count } => (Some(first), Some(count)),
        };
        Some(Reference {
            path: path.to_str()?.to_owned(),
            blob: Some(blob_id(&bytes)),
            first_line,
            lines,
            blake3: Hash::of(&bytes),
        })
    }

    /// Whether the file is still what it was.
    pub fn standing(&self) -> Standing {
        match read(Path::new(&self.path)) {
            Some(bytes) if Hash::of(&bytes) == self.blake3 => Standing::Same,
            Some(_) => Standing::Changed,
            None => Standing::Gone,
        }
    }
}

/// The id that git gives to a file of these bytes, in hexadecimal digits (SHA-1, as `git
/// hash-object --no-filters` prints it). Empty for bytes made to collide, which git refuses too.
///
/// ```
/// assert_eq!(epitome::blob_id(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
/// ```
pub fn blob_id(bytes: &[u8]) -> String {
    gix_object::compute_hash(gix_hash::Kind::Sha1, gix_object::Kind::Blob, bytes)
        .map_or_else(|_| String::new(), |id| id.to_string())
}

/// The objects of a git repository.
pub struct GitObjects(gix_odb::Handle);

impl GitObjects {
    /// Those of the repository that the file at `path` lies in; `None` when it lies in none or its
    /// objects cannot be opened. Worktrees and submodules are followed to where their objects are.
    pub fn around(path: &Path) -> Option<GitObjects> {
        let folder = path.ancestors().skip(1).map(|it| it.join(".git")).find_map(|it| git(&it))?;
        // A worktree shares the objects of the repository that it belongs to.
        let shared = match regular::read_to_string(&folder.join("commondir")) {
            Ok(common) => folder.join(common.trim_end()),
            Err(_) => folder,
        };
        gix_odb::at(shared.join("objects"), gix_hash::Kind::Sha1).ok().map(GitObjects)
    }

    /// Whether the repository holds the object of this id, loose or packed, its own or an
    /// alternate's.
    pub fn hold(&self, id: &str) -> bool {
        gix_hash::ObjectId::from_hex(id.as_bytes())
            .is_ok_and(|id| gix_object::Exists::exists(&self.0, &id))
    }
}

/// The folder of a repository, if `dot_git` is it or says where it is.
fn git(dot_git: &Path) -> Option<PathBuf> {
    if dot_git.is_dir() {
        return Some(dot_git.to_owned());
    }
    let text = regular::read_to_string(dot_git).ok()?;
    let folder = text.strip_prefix("gitdir:")?.trim();
    Some(dot_git.parent()?.join(folder)).filter(|folder| folder.is_dir())
}

enum Place {
    Whole,
    Lines { first: u64, count: u64 },
}

fn place_of(text: &[u8], file: &[u8]) -> Option<Place> {
    if text.is_empty() {
        return None;
    }
    if text == file {
        return Some(Place::Whole);
    }
    let starts_line = |at: usize| at == 0 || file[at - 1] == b'\n';
    let ends_line = |end: usize| text.ends_with(b"\n") || file.get(end).is_none_or(|&b| b == b'\n');
    let at =
        memmem::find_iter(file, text).find(|&at| starts_line(at) && ends_line(at + text.len()))?;
    let feeds = memchr_iter(b'\n', text).count() as u64;
    let count = feeds + u64::from(!text.ends_with(b"\n"));
    Some(Place::Lines { first: memchr_iter(b'\n', &file[..at]).count() as u64 + 1, count })
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
                blake3: Hash::of(file.as_bytes()),
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
        assert_eq!(reference.standing(), Standing::Same);
        fs::write(&path, "two\n").expect("a file");
        assert_eq!(reference.standing(), Standing::Changed);
        fs::remove_file(&path).expect("a file");
        assert_eq!(reference.standing(), Standing::Gone);
    }

    #[test]
    fn a_repository_says_what_it_holds() {
        let dir = tempfile::tempdir().expect("a folder");
        let project = dir.path().join("project");
        let git = |args: &[&str]| {
            let done = std::process::Command::new("git")
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env_remove("GIT_DIR")
                .args(["-c", "user.name=n", "-c", "user.email=e", "-C"])
                .arg(&project)
                .args(args)
                .output();
            assert!(done.expect("git is there").status.success(), "git {args:?}");
        };
        fs::create_dir_all(project.join("src")).expect("a folder");
        let file = project.join("src/a.rs");
        fs::write(&file, "hello\n").expect("a file");
        assert!(GitObjects::around(&file).is_none());
        git(&["init", "-q"]);
        let id = blob_id(b"hello\n");
        assert!(!GitObjects::around(&file).expect("a repository").hold(&id));
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "m"]);
        assert!(GitObjects::around(&file).expect("a repository").hold(&id));
        git(&["gc", "-q"]);
        git(&["worktree", "add", "-q", "../tree"]);
        for file in [file, dir.path().join("tree/src/a.rs")] {
            let objects = GitObjects::around(&file).expect("a repository");
            assert!(objects.hold(&id), "{}", file.display());
            assert!(!objects.hold(&blob_id(b"other\n")));
            assert!(!objects.hold("no id"));
        }
    }
}
