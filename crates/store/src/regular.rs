//! Regular files: how this crate opens files that it has not created itself. Only databases are
//! opened in another way: by SQLite, after the same check.
//!
//! Opening a FIFO waits for its writer, and opening a device can have any effect. An agent's folder
//! may contain either. So a path is checked before it is opened, opened without waiting, and
//! checked again once it is open. `clippy.toml` of this crate forbids other ways of opening files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::step::{DiskStep, step};
use epitome_error::{Error, ErrorKind};

/// Opens a regular file for reading.
///
/// # Errors
///
/// The errors of the operating system. For a folder, a FIFO, a socket or a device, an error that
/// contains an [`Error`] of the kind `NotAFile`.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// All bytes of a regular file.
///
/// # Errors
///
/// The errors of [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    step(DiskStep::Read)?;
    let mut bytes = Vec::with_capacity(file.metadata().map_or(0, |meta| room(meta.len())));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a regular file.
///
/// # Errors
///
/// The errors of [`open`]; `InvalidData` if the file is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let bytes = read(path)?;
    String::from_utf8(bytes).map_err(|err| io::Error::new(io::ErrorKind::InvalidData, err))
}

/// The beginning of a file that was found in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// The path of the file, absolute and without symbolic links.
    pub path: PathBuf,
    /// The first bytes of the file.
    pub bytes: Vec<u8>,
    /// Whether `bytes` are the whole file.
    pub is_whole: bool,
}

/// Resolves a path to a regular file in `folder`. A link may lead to another file in the folder,
/// but nowhere else. Files that the operating system generates, such as those in `/proc`, are
/// refused.
///
/// # Errors
///
/// The errors of the operating system; an [`Error`] of the kind `NotAFile` if the path leads out of
/// `folder` or not to a regular file.
pub fn find_in(folder: &Path, path: &Path) -> io::Result<PathBuf> {
    let found = path.canonicalize()?;
    if !found.starts_with(folder.canonicalize()?) || is_of_system(&found) {
        let what = format!("a link out of {}, to {}", folder.display(), found.display());
        return Err(Error::new(ErrorKind::NotAFile, what).into());
    }
    check(&fs::metadata(&found)?, &found)?;
    Ok(found)
}

/// The first bytes, at most `most`, of the file that [`find_in`] finds.
///
/// # Errors
///
/// The errors of [`find_in`] and [`open`].
pub fn read_in(folder: &Path, path: &Path, most: u64) -> io::Result<FoundFile> {
    let path = find_in(folder, path)?;
    let mut bytes = Vec::new();
    open(&path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    let is_whole = bytes.len() as u64 <= most;
    if !is_whole {
        bytes.pop();
    }
    Ok(FoundFile { path, bytes, is_whole })
}

/// Whether a path is in `/proc`, `/sys` or `/dev`: such files are not on a disk, but made by the
/// operating system. `path` must not contain symbolic links.
pub fn is_of_system(path: &Path) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|folder| path.starts_with(folder))
}

/// Opens a regular file with the given options, which may create it.
pub fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    step(DiskStep::Open)?;
    // The file is checked first, because some devices act as soon as they are opened.
    if let Ok(meta) = fs::metadata(path) {
        check(&meta, path)?;
    }
    let file = open_at_once(options, path)?;
    check(&file.metadata()?, path)?;
    wait_as_usual(&file)?;
    Ok(file)
}

/// Returns an error if the metadata are not those of a regular file.
///
/// # Errors
///
/// `NotAFile`, with `path`.
pub fn check(meta: &fs::Metadata, path: &Path) -> Result<(), Error> {
    if meta.is_file() {
        return Ok(());
    }
    let what = if meta.is_dir() { "this is a folder" } else { "not a regular file" };
    Err(Error::new(ErrorKind::NotAFile, what).at(path))
}

#[cfg_attr(
    not(test),
    expect(clippy::disallowed_methods, reason = "this is the one place that opens files")
)]
fn open_at_once(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(NONBLOCK.bits().cast_signed());
    }
    options.open(path)
}

#[cfg(unix)]
const NONBLOCK: rustix::fs::OFlags = rustix::fs::OFlags::NONBLOCK.union(rustix::fs::OFlags::NOCTTY);

/// Makes reading from the open file wait for data again, as is usual.
#[cfg(unix)]
fn wait_as_usual(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    rustix::fs::fcntl_setfl(file, flags - rustix::fs::OFlags::NONBLOCK)?;
    Ok(())
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as elsewhere")]
fn wait_as_usual(_: &File) -> io::Result<()> {
    Ok(())
}

/// The number of bytes to allocate for a file whose metadata state this length: at most 64 MiB.
fn room(len: u64) -> usize {
    const MOST: u64 = 64 << 20;
    usize::try_from(len.min(MOST)).unwrap_or(0)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_found_in_a_folder_wherever_its_links_lead_inside_of_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let (project, outside) = (dir.path().join("project"), dir.path().join("outside"));
        fs::create_dir_all(project.join("docs")).expect("a folder");
        fs::write(&outside, "secret").expect("a file");
        fs::write(project.join("docs/rules.md"), "0123456789").expect("a file");
        symlink("docs/rules.md", project.join("inside")).expect("a link");
        symlink(&outside, project.join("out")).expect("a link");
        symlink("/proc/self/environ", project.join("environ")).expect("a link");
        symlink("/dev/zero", project.join("device")).expect("a link");
        symlink("nothing", project.join("dangling")).expect("a link");
        let found = |name: &str| read_in(&project, &project.join(name), 4);
        let file = found("inside").expect("a file");
        assert_eq!((&*file.bytes, file.is_whole), (&b"0123"[..], false));
        assert!(file.path.ends_with("project/docs/rules.md"), "{file:?}");
        assert!(read_in(&project, &project.join("inside"), 10).expect("a file").is_whole);
        for name in ["out", "environ", "device", "dangling", "docs", "none"] {
            assert!(found(name).is_err(), "{name}");
        }
        // Even for the folder `/`, generated files are refused.
        assert!(read_in(Path::new("/"), Path::new("/proc/self/environ"), 4).is_err());
    }

    #[test]
    fn what_is_no_regular_file_is_refused_and_nothing_waits() {
        let dir = tempfile::tempdir().expect("a folder");
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a FIFO");
        let socket = dir.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        let link = dir.path().join("link");
        symlink(&fifo, &link).expect("a link");
        for path in [&*fifo, &*socket, &*link, dir.path(), Path::new("/dev/zero")] {
            let kind = |err: io::Error| Error::reading(err, "it", path).kind();
            assert_eq!(open(path).map_err(kind).err(), Some(ErrorKind::NotAFile), "{path:?}");
            assert_eq!(read(path).map_err(kind).err(), Some(ErrorKind::NotAFile), "{path:?}");
            let append = open_with(OpenOptions::new().append(true), path).map_err(kind);
            assert_eq!(append.err(), Some(ErrorKind::NotAFile), "{path:?}");
        }
        let file = dir.path().join("file");
        fs::write(&file, "text").expect("a file");
        assert_eq!(read_to_string(&file).expect("it is read"), "text");
        let open = open(&file).expect("a file");
        let flags = rustix::fs::fcntl_getfl(&open).expect("its flags");
        assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK), "it waits as any file does");
    }
}
