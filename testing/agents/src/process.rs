//! Runs a program with a timeout.

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long [`collect`] waits, after a program has ended, for processes that it started and that
/// still hold its output open. After these have been killed, it waits for the same time again.
const LINGER: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// The result of a program.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The exit status of the program; `None` if a signal or the timeout ended the program.
    pub status: Option<i32>,
    /// Whether the timeout ended the program.
    pub timed_out: bool,
    /// What the program wrote to standard output.
    pub stdout: String,
    /// What the program wrote to standard error.
    pub stderr: String,
}

impl Finished {
    /// Whether the program ended by itself with status 0.
    pub fn success(&self) -> bool {
        self.status == Some(0)
    }
}

/// Runs `command` to its end, for an hour at most, and returns what it wrote to standard output.
///
/// # Errors
///
/// If `command` cannot be run, or does not succeed; the error then has all that it wrote.
pub(crate) fn checked(command: &mut Command) -> anyhow::Result<String> {
    let finished = run(command, Duration::from_secs(3_600))?;
    let program = command.get_program().to_string_lossy().into_owned();
    anyhow::ensure!(finished.success(), "{program}: {}{}", finished.stdout, finished.stderr);
    Ok(finished.stdout)
}

/// Runs `command` in a process group of its own, and kills the whole group after `timeout`.
pub(crate) fn run(command: &mut Command, timeout: Duration) -> anyhow::Result<Finished> {
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let group = Pid::from_child(&child);
    let stdout = drain(child.stdout.take().expect("standard output is piped"));
    let stderr = drain(child.stderr.take().expect("standard error is piped"));
    let end = Instant::now() + timeout;
    let mut timed_out = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= end {
            timed_out = true;
            // The group may have ended at this very moment.
            let _ = kill_process_group(group, Signal::KILL);
            break child.wait()?;
        }
        std::thread::sleep(POLL);
    };
    Ok(Finished {
        status: status.code().filter(|_| !timed_out),
        timed_out,
        stdout: collect(&stdout, group),
        stderr: collect(&stderr, group),
    })
}

fn drain(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe ends the output as any other end does.
        let _ = pipe.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

/// Waits for the end of an output and returns it; if a process of the group holds the pipe open for
/// too long, the group is killed. While a process of the group lives, no other group can get the
/// same id, so the kill cannot hit an unrelated process.
fn collect(output: &Receiver<Vec<u8>>, group: Pid) -> String {
    let bytes = output.recv_timeout(LINGER).or_else(|_| {
        let _ = kill_process_group(group, Signal::KILL);
        output.recv_timeout(LINGER)
    });
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, timeout_ms: u64) -> Finished {
        run(Command::new("sh").args(["-c", script]), Duration::from_millis(timeout_ms)).unwrap()
    }

    #[test]
    fn output_and_status_come_back() {
        let done = sh("echo out; echo err >&2; exit 3", 5_000);
        assert_eq!(
            (done.status, done.stdout.as_str(), done.stderr.as_str()),
            (Some(3), "out\n", "err\n")
        );
    }

    #[test]
    fn the_timeout_ends_children_too() {
        let begin = Instant::now();
        let done = sh("sleep 60 & sleep 60", 100);
        assert!(done.timed_out && begin.elapsed() < Duration::from_secs(2), "{done:?}");
    }

    #[test]
    fn what_is_left_behind_does_not_hold_the_output() {
        let begin = Instant::now();
        let done = sh("sleep 60 & echo done", 5_000);
        assert_eq!(done.stdout, "done\n");
        assert!(begin.elapsed() < LINGER * 3);
    }
}
