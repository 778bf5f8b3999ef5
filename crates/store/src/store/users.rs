//! Finds the processes that have a file open.

use std::path::Path;

#[cfg(target_os = "linux")]
use crate::regular;

/// A process that has a file open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// The id of the process.
    pub pid: u32,
    /// The name of the process, as the system shows it; empty if the system does not.
    pub name: String,
    /// Whether the process can write to the file; true if the system does not say.
    pub writes: bool,
}

/// The other processes that have the file at `path` open, by id, as far as they are visible:
/// processes of other users are visible only to an administrator. Other epitome processes that only
/// read are left out, because they write nothing that could be lost.
///
/// Linux uses `/proc`, other unixes `lsof`; on other systems the list is empty.
pub fn users_of(path: &Path) -> Vec<User> {
    others(find(path))
}

/// The other processes that still have the file open that was at `path` before the replacement.
/// `was` are the metadata of that file.
///
/// This works on Linux only. Elsewhere an unlinked file cannot be found, and the list is empty.
#[cfg(target_os = "linux")]
pub(super) fn users_of_replaced(path: &Path, was: &std::fs::Metadata) -> Vec<User> {
    others(find_file(path, was))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn users_of_replaced(_: &Path, _: &std::fs::Metadata) -> Vec<User> {
    Vec::new()
}

fn others(mut users: Vec<User>) -> Vec<User> {
    users.retain(|user| user.pid != std::process::id() && (user.writes || !is_epitome(user)));
    users.sort();
    users.dedup_by_key(|user| user.pid);
    users
}

#[cfg(target_os = "linux")]
fn find(path: &Path) -> Vec<User> {
    let Ok(wanted) = std::fs::metadata(path) else { return Vec::new() };
    let Ok(real) = path.canonicalize() else { return Vec::new() };
    find_file(&real, &wanted)
}

#[cfg(target_os = "linux")]
fn find_file(real: &Path, wanted: &std::fs::Metadata) -> Vec<User> {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    let name = real.file_name().unwrap_or_default().as_bytes();
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok()?;
            let writes = has_open(&process.path(), name, wanted)?;
            let name = regular::read_to_string(&process.path().join("comm")).unwrap_or_default();
            Some(User { pid, name: name.trim_end().to_owned(), writes })
        })
        .collect()
}

/// Whether a process has the file open for writing; `None` if the process does not have the file
/// open, or if its open files cannot be listed.
#[cfg(target_os = "linux")]
fn has_open(process: &Path, name: &[u8], wanted: &std::fs::Metadata) -> Option<bool> {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;

    let fds = std::fs::read_dir(process.join("fd")).ok()?.flatten();
    let ours = fds.filter(|fd| {
        // The link is read first: that is fast, and gives the same name inside a container. For a
        // deleted file, the system adds ` (deleted)` to the name.
        let Ok(to) = std::fs::read_link(fd.path()) else { return false };
        to.file_name().unwrap_or_default().as_bytes().starts_with(name)
            && std::fs::metadata(fd.path())
                .is_ok_and(|it| (it.dev(), it.ino()) == (wanted.dev(), wanted.ino()))
    });
    ours.map(|fd| can_write(&process.join("fdinfo").join(fd.file_name())))
        .reduce(|one, other| one || other)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn find(path: &Path) -> Vec<User> {
    let asked =
        std::process::Command::new("lsof").args(["-w", "-F", "pca", "--"]).arg(path).output();
    asked.map_or_else(|_| Vec::new(), |answer| parse(&String::from_utf8_lossy(&answer.stdout)))
}

#[cfg(not(unix))]
fn find(_: &Path) -> Vec<User> {
    Vec::new()
}

/// Whether an open file is writable, as its file `info` in `/proc` says; true if it does not say.
/// See <https://man7.org/linux/man-pages/man5/proc_pid_fdinfo.5.html>.
#[cfg(target_os = "linux")]
fn can_write(info: &Path) -> bool {
    const ACCESS: u32 = 0o3;
    let text = regular::read_to_string(info).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_none_or(|flags| flags & ACCESS != 0)
}

/// Whether a process runs epitome, by the name of its program.
#[cfg(target_os = "linux")]
fn is_epitome(user: &User) -> bool {
    let program = std::fs::read_link(format!("/proc/{}/exe", user.pid)).unwrap_or_default();
    program.file_name().is_some_and(|name| name == "epitome")
}

#[cfg(not(target_os = "linux"))]
fn is_epitome(user: &User) -> bool {
    user.name == "epitome"
}

/// Parses the output of `lsof -F pca`: a line `p<number>` for each process, then lines with the
/// fields of the process and of its open files, each of these with its access mode (`r`, `w`, `u`).
#[cfg(any(test, all(unix, not(target_os = "linux"))))]
fn parse(answer: &str) -> Vec<User> {
    let mut users: Vec<User> = Vec::new();
    for line in answer.lines() {
        if let Some(pid) = line.strip_prefix('p').and_then(|pid| pid.parse().ok()) {
            users.push(User { pid, name: String::new(), writes: false });
        } else if let (Some(name), Some(user)) = (line.strip_prefix('c'), users.last_mut()) {
            name.clone_into(&mut user.name);
        } else if let (Some(access), Some(user)) = (line.strip_prefix('a'), users.last_mut()) {
            user.writes |= access != "r";
        }
    }
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_lsof_is_read() {
        let users = parse("p12\ncnode\nf23\nar\np7\ncclaude code\nf3\nar\nf4\nau\n");
        let expect = [(12, "node", false), (7, "claude code", true)];
        let user =
            |(pid, name, writes): (u32, &str, bool)| User { pid, name: name.to_owned(), writes };
        assert_eq!(users, expect.map(user));
        assert_eq!(parse(""), []);
    }
}
