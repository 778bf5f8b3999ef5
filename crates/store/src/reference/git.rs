//! Reads git's object store, as far as this crate needs it: the id of a file, and whether a
//! repository contains an object.
//!
//! Not supported: reading and writing objects, repositories with SHA-256 ids, and alternates whose
//! path is quoted. An object that only such a repository or alternate contains counts as missing.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use epitome_model::Source;

use crate::regular;
use crate::source::{FileSource, exactly};

/// Length in bytes of an object's id.
const ID: usize = 20;
/// The maximum number of object folders that are searched, alternates of alternates included.
const MOST_FOLDERS: usize = 64;
/// The first bytes of a pack's index in version 2. An index in version 1 has no such header.
const MAGIC: &[u8] = b"\xfftOc\0\0\0\x02";
/// Length in bytes of the table that says, for each byte, how many ids begin with it or a lower
/// one.
const FANOUT: u64 = 256 * 4;

/// The id that git gives to a file with these bytes, in hexadecimal digits (SHA-1, as `git
/// hash-object --no-filters` prints it). Empty if the bytes are those of a collision attack on
/// SHA-1, which git refuses, too.
///
/// ```
/// use epitome_store::reference::blob_id;
///
/// assert_eq!(blob_id(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
/// ```
pub fn blob_id(bytes: &[u8]) -> String {
    let mut hasher = sha1dc::Hasher::new();
    hasher.update(format!("blob {}\0", bytes.len()).as_bytes());
    hasher.update(bytes);
    hasher.finalize().map_or_else(|_| String::new(), |id| id.to_string())
}

/// The objects of a git repository.
pub struct GitObjects {
    /// The repository's own folder of objects, then those of its alternates.
    folders: Vec<PathBuf>,
}

impl GitObjects {
    /// The objects of the repository that contains the file at `path`. `None` if no repository
    /// contains the file, or if the repository has no folder of objects. Links of worktrees and
    /// submodules are followed.
    pub fn around(path: &Path) -> Option<GitObjects> {
        let folder = path.ancestors().skip(1).map(|it| it.join(".git")).find_map(|it| git(&it))?;
        // A worktree uses the objects of the repository that it belongs to.
        let shared = match regular::read_to_string(&folder.join("commondir")) {
            Ok(common) => folder.join(common.trim_end()),
            Err(_) => folder,
        };
        let objects = shared.join("objects");
        objects.is_dir().then(|| GitObjects { folders: with_alternates(objects) })
    }

    /// Whether the repository or one of its alternates contains the object with this id, loose or
    /// packed.
    pub fn hold(&self, id: &str) -> bool {
        let Some(id) = parse_id(id) else { return false };
        self.folders.iter().any(|folder| is_loose(folder, &id) || is_packed(folder, &id))
    }
}

/// The folder of a repository: `dot_git` itself, or the folder that the file `dot_git` names.
/// `None` if there is no such folder.
fn git(dot_git: &Path) -> Option<PathBuf> {
    if dot_git.is_dir() {
        return Some(dot_git.to_owned());
    }
    let text = regular::read_to_string(dot_git).ok()?;
    let folder = text.strip_prefix("gitdir:")?.trim();
    Some(dot_git.parent()?.join(folder)).filter(|folder| folder.is_dir())
}

/// A folder of objects and its alternates, at most [`MOST_FOLDERS`] together.
fn with_alternates(objects: PathBuf) -> Vec<PathBuf> {
    let mut folders = vec![objects];
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        next += 1;
        let list = regular::read_to_string(&folder.join("info/alternates")).unwrap_or_default();
        for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '"'])) {
            let alternate = folder.join(line);
            let is_new = !folders.contains(&alternate) && folders.len() < MOST_FOLDERS;
            if is_new && alternate.is_dir() {
                folders.push(alternate);
            }
        }
    }
    folders
}

fn parse_id(id: &str) -> Option<[u8; ID]> {
    if id.len() != 2 * ID || !id.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; ID];
    for (byte, digits) in bytes.iter_mut().zip(id.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn is_loose(folder: &Path, id: &[u8; ID]) -> bool {
    let mut name = String::with_capacity(2 * ID);
    for byte in id {
        let _ = write!(name, "{byte:02x}");
    }
    folder.join(&name[..2]).join(&name[2..]).is_file()
}

fn is_packed(folder: &Path, id: &[u8; ID]) -> bool {
    let files = fs::read_dir(folder.join("pack")).into_iter().flatten().flatten();
    files.map(|file| file.path()).any(|path| {
        path.extension() == Some(OsStr::new("idx"))
            && path.with_extension("pack").is_file()
            && FileSource::open(&path).is_ok_and(|index| lists(&index, id).unwrap_or(false))
    })
}

/// Whether the index of a pack lists an id; `None` if the index is too short.
///
/// The ids are sorted. In version 1 of the format, they follow the table of 256 numbers (see
/// [`FANOUT`]) directly, each after an offset of four bytes. In version 2 there is a header before
/// that table, and nothing between the ids.
fn lists(index: &dyn Source, id: &[u8; ID]) -> Option<bool> {
    let is_version_2 = bytes(index, 0, MAGIC.len() as u64)? == MAGIC;
    let (fanout, step, skip) = if is_version_2 { (8, 20, 0) } else { (0, 24, 4) };
    let first = u64::from(id[0]);
    let mut low = if first == 0 { 0 } else { number(index, fanout + 4 * (first - 1))? };
    let mut high = number(index, fanout + 4 * first)?;
    while low < high {
        let middle = low + (high - low) / 2;
        let at = fanout + FANOUT + middle * step + skip;
        match bytes(index, at, ID as u64)?.as_slice().cmp(id) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Equal => return Some(true),
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    Some(false)
}

fn number(index: &dyn Source, at: u64) -> Option<u64> {
    let bytes = bytes(index, at, 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes).into())
}

fn bytes(index: &dyn Source, at: u64, len: u64) -> Option<Vec<u8>> {
    let end = at.checked_add(len).filter(|end| *end <= index.len())?;
    exactly(index, at..end).ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(folder: &Path, args: &[&str]) {
        let done = Command::new("git")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env_remove("GIT_DIR")
            .args(["-c", "user.name=n", "-c", "user.email=e", "-C"])
            .arg(folder)
            .args(args)
            .output();
        assert!(done.expect("git is there").status.success(), "git {args:?}");
    }

    #[test]
    fn a_repository_says_what_it_holds() {
        let dir = tempfile::tempdir().expect("a folder");
        let project = dir.path().join("project");
        fs::create_dir_all(project.join("src")).expect("a folder");
        let file = project.join("src/a.rs");
        fs::write(&file, "hello\n").expect("a file");
        assert!(GitObjects::around(&file).is_none());
        git(&project, &["init", "-q"]);
        let id = blob_id(b"hello\n");
        assert!(!GitObjects::around(&file).expect("a repository").hold(&id));
        git(&project, &["add", "."]);
        git(&project, &["commit", "-q", "-m", "m"]);
        assert!(GitObjects::around(&file).expect("a repository").hold(&id));
        git(&project, &["gc", "-q"]);
        git(&project, &["worktree", "add", "-q", "../tree"]);
        for file in [file, dir.path().join("tree/src/a.rs")] {
            let objects = GitObjects::around(&file).expect("a repository");
            assert!(objects.hold(&id), "{}", file.display());
            assert!(!objects.hold(&blob_id(b"other\n")));
            assert!(!objects.hold("no id"));
        }
    }

    #[test]
    fn every_object_of_a_pack_is_found_in_its_index_of_either_version() {
        let dir = tempfile::tempdir().expect("a folder");
        git(dir.path(), &["init", "-q"]);
        let texts: Vec<String> = (0..600).map(|n| format!("text {n}\n")).collect();
        for (n, text) in texts.iter().enumerate() {
            fs::write(dir.path().join(format!("{n}.txt")), text).expect("a file");
        }
        git(dir.path(), &["add", "."]);
        git(dir.path(), &["commit", "-q", "-m", "m"]);
        for version in ["1", "2"] {
            let setting = format!("pack.indexVersion={version}");
            git(dir.path(), &["-c", &setting, "repack", "-adfq"]);
            git(dir.path(), &["prune-packed", "-q"]);
            let objects = GitObjects::around(&dir.path().join("0.txt")).expect("a repository");
            let missing: Vec<&String> =
                texts.iter().filter(|text| !objects.hold(&blob_id(text.as_bytes()))).collect();
            assert_eq!(missing, Vec::<&String>::new(), "version {version}");
            let other = (600..1200).map(|n| blob_id(format!("text {n}\n").as_bytes()));
            assert_eq!(other.filter(|id| objects.hold(id)).count(), 0, "version {version}");
        }
    }

    #[test]
    fn objects_of_an_alternate_are_found_and_a_cycle_ends() {
        let dir = tempfile::tempdir().expect("a folder");
        let (base, copy) = (dir.path().join("base"), dir.path().join("copy"));
        fs::create_dir(&base).expect("a folder");
        git(&base, &["init", "-q"]);
        fs::write(base.join("a.txt"), "hello\n").expect("a file");
        git(&base, &["add", "."]);
        git(&base, &["commit", "-q", "-m", "m"]);
        git(dir.path(), &["clone", "-q", "--shared", "base", "copy"]);
        let back = base.join(".git/objects/info/alternates");
        fs::write(back, "# back\n../../../copy/.git/objects\n\"quoted\"\n").expect("a file");
        for file in [base.join("a.txt"), copy.join("a.txt")] {
            let objects = GitObjects::around(&file).expect("a repository");
            assert!(objects.hold(&blob_id(b"hello\n")), "{}", file.display());
            assert!(!objects.hold(&blob_id(b"other\n")));
        }
    }

    #[test]
    fn a_damaged_index_lists_nothing_it_does_not_contain() {
        let id = parse_id(&blob_id(b"hello\n")).expect("an id");
        let huge = [MAGIC, &[0xff; FANOUT as usize]].concat();
        for damaged in [&b""[..], MAGIC, &huge, &[0xff; 3000]] {
            assert_ne!(lists(&damaged, &id), Some(true), "{} bytes", damaged.len());
        }
    }
}
