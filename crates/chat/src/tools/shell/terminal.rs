//! A command in a terminal of its own. On Linux, the processes of the command are found by the
//! session, in the sense of `setsid`, that belongs to this terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pty_process::Size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use super::ReadResult;
use super::plain::{HEIGHT, WIDTH};

/// A running command. When this value is dropped, the command and its processes are killed: see
/// [`Running::kill`].
pub(super) struct Running {
    pub(super) child: Child,
    /// The output of the processes.
    written: OwnedFd,
}

impl Running {
    /// Starts a command in a terminal, or with a pipe if no terminal can be opened.
    pub(super) fn start(mut command: Command) -> io::Result<Running> {
        command.stdin(Stdio::null());
        let Ok((terminal, its)) = pty_process::blocking::open() else {
            return Running::with_pipe(command);
        };
        let rows = HEIGHT as u16;
        let columns = WIDTH as u16;
        terminal.resize(Size::new(rows, columns)).map_err(io::Error::other)?;
        let command = pty_process::blocking::Command::from(command).stdin(Stdio::null());
        let child = command.spawn(its).map_err(io::Error::other)?;
        Ok(Running { child, written: terminal.into() })
    }

    fn with_pipe(mut command: Command) -> io::Result<Running> {
        let (reader, writer) = io::pipe()?;
        command.stdout(writer.try_clone()?).stderr(writer);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn()?;
        // The pipe ends when the last process closes it, so this program's own copy must be closed.
        drop(command);
        Ok(Running { child, written: reader.into() })
    }

    /// Reads output. If there is none yet, waits for it, at most as long as `wait`, which must be
    /// less than a second.
    pub(super) fn read(&mut self, wait: Duration, buffer: &mut [u8]) -> ReadResult {
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut all = [PollFd::new(&self.written, PollFlags::IN)];
        match poll(&mut all, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return ReadResult::Nothing,
            Ok(_) => {}
            Err(_) => return ReadResult::End,
        }
        match rustix::io::read(&self.written, buffer) {
            Ok(0) => ReadResult::End,
            Ok(read) => ReadResult::Bytes(read),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => ReadResult::Nothing,
            // On Linux, the error means that no process has the terminal open any more.
            Err(_) => ReadResult::End,
        }
    }

    /// Kills the process group of the command and, on Linux, all process groups in the session of
    /// its terminal. A process that has begun a session of its own continues.
    pub(super) fn kill(&mut self) {
        if let Some(leader) = Pid::from_raw(self.child.id().cast_signed()) {
            // Errors are ignored: the group has no process left, or none that may be killed. The
            // other groups of the terminal are killed below.
            let _gone = kill_process_group(leader, Signal::KILL);
            // A process may have started another one just before it was killed.
            for _ in 0..ROUNDS {
                let groups = groups(leader);
                for group in &groups {
                    let _gone = kill_process_group(*group, Signal::KILL);
                }
                if groups.is_empty() {
                    break;
                }
            }
        }
        // Errors are ignored: the command may have ended already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The maximum number of times that remaining processes are looked for.
const ROUNDS: usize = 8;

/// The process groups that have running processes and belong to the session, in the sense of
/// `setsid`, that the process `session` leads.
#[cfg(target_os = "linux")]
fn groups(session: Pid) -> Vec<Pid> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let stats = all.filter_map(|it| std::fs::read(it.ok()?.path().join("stat")).ok());
    stats.filter_map(|stat| group_in(&String::from_utf8_lossy(&stat), session)).collect()
}

/// Parses a line of `/proc/PID/stat`, `PID (NAME) STATE PARENT GROUP SESSION …`. Returns the
/// process group if the process belongs to `session`. NAME may contain anything. A process that is
/// ending has −1 as GROUP and SESSION.
#[cfg(target_os = "linux")]
fn group_in(stat: &str, session: Pid) -> Option<Pid> {
    let mut rest = stat.rsplit_once(") ")?.1.split(' ');
    let state = rest.next()?;
    let group: i32 = rest.nth(1)?.parse().ok()?;
    let of: i32 = rest.next()?.parse().ok()?;
    let is_meant = of == session.as_raw_nonzero().get() && group > 0 && state != "Z";
    if is_meant { Pid::from_raw(group) } else { None }
}

/// Returns no groups, because systems other than Linux have no `/proc`. So only the process group
/// of the command is killed.
#[cfg(not(target_os = "linux"))]
fn groups(_: Pid) -> Vec<Pid> {
    Vec::new()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_process_is_that_of_one_that_runs_in_the_session() {
        let pid = |raw| Pid::from_raw(raw).expect("a process");
        let group = |stat| group_in(stat, pid(7));
        assert_eq!(group("9 (sh) S 8 9 7 34816 9 0"), Some(pid(9)));
        assert_eq!(group("9 (a) S 1 2 (b) R 8 9 7 0 0"), Some(pid(9)));
        assert_eq!(group("9 (sh) Z 8 9 7 34816 9 0"), None);
        assert_eq!(group("9 (sh) S 8 9 6 34816 9 0"), None);
        assert_eq!(group("9 (sh) X 0 -1 -1 0 -1 0"), None);
        assert_eq!(group("9 (sh) S 8 -1 7 0 -1 0"), None);
        assert_eq!(group("9 (sh"), None);
    }
}
