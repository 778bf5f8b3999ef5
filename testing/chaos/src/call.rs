//! Injects kills and errors at each system call, one after the other, with `strace`.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::case::Case;
use crate::machine::{Machine, ended};
use crate::task::Task;

/// System calls that change something. Each fault kills the process at such a call, or lets the
/// call fail.
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
/// System calls that only read. Each fault lets such a call fail.
const READING: &[&str] =
    &["fstat", "getdents64", "lstat", "newfstatat", "openat", "pread64", "read", "stat", "statx"];

/// The maximum number of places in a task at which a call of one name that only reads is disturbed.
const LOOKS: usize = 10;

/// The faults at a call that changes something.
const TO_WRITING: &[&str] = &["signal=KILL", "error=ENOSPC", "error=EIO", "error=EACCES"];
const TO_READING: &[&str] = &["error=EIO", "error=EACCES"];

/// A system call of a task, and the fault that is injected there.
#[derive(Clone, Debug)]
struct Point {
    task: usize,
    call: String,
    /// The number of the call among the calls with this name, from 1.
    nth: usize,
    deed: &'static str,
}

/// The points at which faults are injected: the system calls of all tasks that name the home
/// folder, each with each of its faults. Of the calls that only read, some are left out.
pub(crate) struct Calls<'a> {
    tasks: &'a [Task],
    points: Vec<Point>,
}

/// Whether `strace` is installed and may trace processes here.
pub(crate) fn can_trace() -> bool {
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-e", "trace=write", "true"]);
    strace.stdout(Stdio::null()).stderr(Stdio::null());
    strace.status().is_ok_and(|status| status.success())
}

impl Calls<'_> {
    /// Runs every task once to record the task's calls.
    ///
    /// # Errors
    ///
    /// If a task fails under `strace`, or no call names the home.
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

    /// The number of cases.
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// The case with the number `seed`. The order is such that cases with neighbouring numbers are
    /// far apart in the list of points, and that [`len`](Self::len) cases with successive numbers
    /// come to each point once.
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

/// A step width with which `len` steps around a ring of `len` places reach every place, each far
/// from the place before it.
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

/// The calls of a task that is not disturbed: the name and the number of each.
fn made(task: &Task) -> anyhow::Result<Vec<(String, usize)>> {
    let machine = task.machine()?;
    let names = [WRITING, READING].concat().join(",");
    let mut command = machine.command("strace");
    // With `?`, strace ignores the name of a call that this processor does not have.
    let trace = format!("trace=?{}", names.replace(',', ",?"));
    command.args(["-f", "-y", "-qq", "--seccomp-bpf", "-o"]).arg(log(&machine));
    command.args(["-e", &trace]).arg(machine.program()).args(&task.args);
    let ended = ended(command, None)?;
    ensure!(ended.code() == Some(0), "{} under strace: {}", task.name, ended.beginning_of_output());
    let text = fs::read(log(&machine)).context("what strace wrote")?;
    let text = String::from_utf8_lossy(&text);
    Ok(points(&text, &machine.home.to_string_lossy()))
}

/// The calls in a log of strace that name `home`, without those that [`thinned`] drops. The number
/// of a call counts the calls with the same name in the same thread, also those that do not name
/// `home`. So calls of two threads may have the same number.
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

/// Keeps all calls that change something, and at most about [`LOOKS`] of the reading calls of each
/// name: programs read far more often than they write, mostly in loops.
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
