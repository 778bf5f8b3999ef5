//! Kills and errors at each system call, one after the other, with `strace`.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::case::Case;
use crate::machine::{Machine, ended};
use crate::task::Task;

/// System calls that change something. A process is killed at them, and they fail.
const WRITING: &[&str] = &[
    "chmod",
    "copy_file_range",
    "fallocate",
    "fchmod",
    "fchmodat",
    "fdatasync",
    "flock",
    "fsync",
    "ftruncate",
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "pwrite64",
    "pwritev",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sendfile",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "utimensat",
    "write",
    "writev",
];
/// System calls that look at something. They fail.
const READING: &[&str] =
    &["fstat", "getdents64", "lstat", "newfstatat", "openat", "pread64", "read", "stat", "statx"];

/// Of each call that only looks, at most so many are disturbed in a task.
const LOOKS: usize = 10;

/// What is done to a call.
const TO_WRITING: &[&str] = &["signal=KILL", "error=ENOSPC", "error=EIO", "error=EACCES"];
const TO_READING: &[&str] = &["error=EIO", "error=EACCES"];

/// A system call of a task, and what is done to it.
#[derive(Clone, Debug)]
struct Point {
    task: usize,
    call: String,
    /// The how many-th call of this name, from 1.
    nth: usize,
    deed: &'static str,
}

/// Every system call of every task that has to do with the home folder.
pub(crate) struct Calls<'a> {
    tasks: &'a [Task],
    points: Vec<Point>,
}

/// Whether `strace` is installed and may look at processes here.
pub(crate) fn can_trace() -> bool {
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-e", "trace=write", "true"]);
    strace.stdout(Stdio::null()).stderr(Stdio::null());
    strace.status().is_ok_and(|status| status.success())
}

impl Calls<'_> {
    /// Runs every task once to see which calls it makes.
    ///
    /// # Errors
    ///
    /// When a task does not work under `strace`.
    pub(crate) fn new(tasks: &[Task]) -> anyhow::Result<Calls<'_>> {
        let mut points = Vec::new();
        for (idx, task) in tasks.iter().enumerate() {
            for (call, nth) in made(task)? {
                let deeds = if WRITING.contains(&&*call) { TO_WRITING } else { TO_READING };
                let point = |deed| Point { task: idx, call: call.clone(), nth, deed };
                points.extend(deeds.iter().copied().map(point));
            }
        }
        ensure!(!points.is_empty(), "no system calls were seen");
        Ok(Calls { tasks, points })
    }

    /// How many cases there are.
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// Case number `seed`, in an order in which neighbours are of different tasks; after
    /// [`len`](Self::len) cases each point was hit once.
    pub(crate) fn case(&self, seed: u64) -> anyhow::Result<Case> {
        let len = self.points.len();
        let at = (seed as u128 * stride(len) as u128 % len as u128) as usize;
        let Point { task, call, nth, deed } = &self.points[at];
        let task = &self.tasks[*task];
        let machine = task.machine()?;
        let inject = format!("inject={call}:{deed}:when={nth}");
        let mut command = machine.command("strace");
        command.args(["-f", "-qq", "--seccomp-bpf", "-o"]).arg(log(&machine));
        command.args(["-e", &format!("trace={call}"), "-e", &inject]);
        command.arg(machine.program()).args(&task.args);
        let ended = ended(command, None)?;
        let seen = fs::read_to_string(log(&machine)).unwrap_or_default();
        Ok(Case {
            what: format!("{}: {call} number {nth}: {deed}", task.name),
            hit: seen.contains("(INJECTED)") || seen.contains("killed by SIGKILL"),
            violations: task.check(&machine, &ended)?,
        })
    }
}

/// A step that comes to each of `len` places, and far from the place before.
fn stride(len: usize) -> usize {
    let divides = |one: usize, mut other: usize| {
        let mut one = one;
        while other != 0 {
            (one, other) = (other, one % other);
        }
        one == 1
    };
    (len * 618 / 1_000..).find(|step| *step > 0 && divides(len, *step)).unwrap_or(1)
}

fn log(machine: &Machine) -> std::path::PathBuf {
    machine.home.with_file_name("calls")
}

/// The calls that a task makes when nothing happens: their names, and each its number.
fn made(task: &Task) -> anyhow::Result<Vec<(String, usize)>> {
    let machine = task.machine()?;
    let names = [WRITING, READING].concat().join(",");
    let mut command = machine.command("strace");
    // Names that this processor does not have are none of the system's.
    let trace = format!("trace=?{}", names.replace(',', ",?"));
    command.args(["-f", "-y", "-qq", "--seccomp-bpf", "-o"]).arg(log(&machine));
    command.args(["-e", &trace]).arg(machine.program()).args(&task.args);
    let ended = ended(command, None)?;
    ensure!(ended.code() == Some(0), "{} under strace: {}", task.name, ended.beginning_of_output());
    let text = fs::read(log(&machine)).context("what strace wrote")?;
    let text = String::from_utf8_lossy(&text);
    Ok(points(&text, &machine.home.to_string_lossy()))
}

/// The calls in a log of strace that name `home`. Each thread has numbers of its own.
fn points(log: &str, home: &str) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut found = Vec::new();
    for line in log.lines() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        let Some((call, arguments)) = rest.trim_start().split_once('(') else { continue };
        if !call.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            continue;
        }
        let count = counts.entry((process, call)).or_default();
        *count += 1;
        if arguments.contains(home) {
            found.push((call.to_owned(), *count));
        }
    }
    found.sort();
    found.dedup();
    thinned(found)
}

/// Programs look far more often than they write, and mostly in loops: of each call that only looks,
/// some are enough. Calls that write stay all.
fn thinned(found: Vec<(String, usize)>) -> Vec<(String, usize)> {
    let mut kept = Vec::new();
    for group in found.chunk_by(|one, other| one.0 == other.0) {
        let step = if READING.contains(&&*group[0].0) { group.len().div_ceil(LOOKS) } else { 1 };
        kept.extend(group.iter().step_by(step).cloned());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_name_the_home_have_the_number_among_all() {
        let log = "\
            7 openat(AT_FDCWD, \"/etc/x\", O_RDONLY) = 3\n\
            7 openat(AT_FDCWD, \"/h/a\", O_RDONLY) = 3</h/a>\n\
            8 openat(AT_FDCWD, \"/h/b\" <unfinished ...>\n\
            7 write(4</h/.x.tmp>, \"a\", 1) = 1\n\
            8 <... openat resumed>) = 5\n\
            7 write(1</dev/null>, \"a\", 1) = 1\n";
        let found = points(log, "/h");
        let expect = [("openat", 1), ("openat", 2), ("write", 1)];
        assert_eq!(found, expect.map(|(call, nth)| (call.to_owned(), nth)));
    }

    #[test]
    fn every_place_is_come_to() {
        for len in [1, 2, 6, 97, 1_000] {
            let mut places: Vec<usize> = (0..len).map(|n| n * stride(len) % len).collect();
            places.sort_unstable();
            assert_eq!(places, (0..len).collect::<Vec<_>>());
        }
    }
}
