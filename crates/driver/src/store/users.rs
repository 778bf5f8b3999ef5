//! Who has a file open.

use std::path::Path;

#[cfg(target_os = "linux")]
use crate::regular;

/// A process that has a file open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// Its number.
    pub pid: u32,
    /// Its name, as the system shows it; empty when it does not.
    pub name: String,
}

/// The other processes that have the file at `path` open, by number, as far as we may see them:
/// those of other users are hidden from all but the administrator.
///
/// On Linux it looks into `/proc`, on other unixes it asks `lsof`, elsewhere it finds nobody.
pub fn users_of(path: &Path) -> Vec<User> {
    others(find(path))
}

/// The other processes that still have the file open that stood at `path` before another took
/// its name.
///
/// On Linux alone: elsewhere a file without a name is not found, and there is nobody.
#[cfg(target_os = "linux")]
pub(super) fn users_of_replaced(path: &Path, was: &std::fs::Metadata) -> Vec<User> {
    others(find_file(path, was))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn users_of_replaced(_: &Path, _: &std::fs::Metadata) -> Vec<User> {
    Vec::new()
}

fn others(mut users: Vec<User>) -> Vec<User> {
    users.retain(|user| user.pid != std::process::id());
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
    use std::os::unix::fs::MetadataExt;

    let name = real.file_name().unwrap_or_default().as_bytes();
    let has_open = |process: &Path| {
        let Ok(fds) = fs::read_dir(process.join("fd")) else { return false };
        fds.flatten().any(|fd| {
            // The name is asked first: it is cheap, and the same inside a container. Words stand
            // behind that of a file that has lost it.
            let named = |to: &Path| to.file_name().unwrap_or_default().as_bytes().starts_with(name);
            fs::read_link(fd.path()).is_ok_and(|to| named(&to))
                && fs::metadata(fd.path())
                    .is_ok_and(|it| (it.dev(), it.ino()) == (wanted.dev(), wanted.ino()))
        })
    };
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok()?;
            let name = || regular::read_to_string(&process.path().join("comm")).unwrap_or_default();
            has_open(&process.path()).then(|| User { pid, name: name().trim_end().to_owned() })
        })
        .collect()
}

#[cfg(all(unix, not(target_os = "linux")))]
fn find(path: &Path) -> Vec<User> {
    let asked =
        std::process::Command::new("lsof").args(["-w", "-F", "pc", "--"]).arg(path).output();
    asked.map_or_else(|_| Vec::new(), |answer| said(&String::from_utf8_lossy(&answer.stdout)))
}

#[cfg(not(unix))]
fn find(_: &Path) -> Vec<User> {
    Vec::new()
}

/// What `lsof -F pc` says: a line `p<number>` a process, its fields on the lines that follow.
#[cfg(any(test, all(unix, not(target_os = "linux"))))]
fn said(answer: &str) -> Vec<User> {
    let mut users: Vec<User> = Vec::new();
    for line in answer.lines() {
        if let Some(pid) = line.strip_prefix('p').and_then(|pid| pid.parse().ok()) {
            users.push(User { pid, name: String::new() });
        } else if let (Some(name), Some(user)) = (line.strip_prefix('c'), users.last_mut()) {
            name.clone_into(&mut user.name);
        }
    }
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_lsof_is_read() {
        let users = said("p12\ncnode\nf23\np7\ncclaude code\nfcwd\nf4\n");
        let expect = [(12, "node"), (7, "claude code")];
        assert_eq!(users, expect.map(|(pid, name)| User { pid, name: name.to_owned() }));
        assert_eq!(said(""), []);
    }
}
