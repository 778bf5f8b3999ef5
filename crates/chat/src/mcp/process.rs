//! The program of a server. On Unix, all processes of its process group end with it.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::ServerAddress;
use super::tool::clean;

/// The maximum number of bytes that are kept of the end of a program's standard error.
const KEPT: usize = 2 << 10;

/// The maximum time to wait for the end of a program that failed. Its last output then gets another
/// quarter of this time to arrive.
const WORDS: Duration = Duration::from_millis(200);

/// A program, and all processes of its process group.
pub(super) struct Process {
    child: Child,
    /// The id of the process group.
    group: Option<u32>,
    stderr_bytes: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    /// Starts a program, and returns it with its pipes.
    pub(super) fn start(
        place: &ServerAddress,
        hidden: &[String],
    ) -> Result<(Process, (ChildStdout, ChildStdin)), String> {
        let ServerAddress::Program { command, args, env, folder } = place else {
            return Err("it is no program".to_owned());
        };
        let mut program = Command::new(command);
        program.args(args).current_dir(folder);
        for name in hidden {
            program.env_remove(name);
        }
        program.envs(env.iter().map(|(name, value)| (name, value)));
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        program.process_group(0);
        program.kill_on_drop(true);
        let mut child =
            program.spawn().map_err(|err| format!("{command} cannot be started: {err}"))?;
        let pipes = (child.stdout.take(), child.stdin.take());
        let (Some(from), Some(to)) = pipes else {
            return Err("it has no pipes".to_owned());
        };
        let stderr_bytes = Arc::new(Mutex::new(Vec::new()));
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(keep(stderr, stderr_bytes.clone()));
        }
        let group = child.id();
        Ok((Process { child, group, stderr_bytes }, (from, to)))
    }

    /// Describes a failure, with the program's exit status and the last line of its standard error,
    /// if there are any.
    pub(super) async fn last_words(&mut self, why: &str) -> String {
        let status = timeout(WORDS, self.child.wait()).await;
        // The last output may not have arrived yet.
        tokio::time::sleep(WORDS / 4).await;
        let stderr_text = self.stderr_bytes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let stderr_text = String::from_utf8_lossy(&stderr_text);
        let last =
            stderr_text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let mut text = why.to_owned();
        if let Ok(Ok(status)) = status {
            text.push_str(&format!("; {status}"));
        }
        if !last.is_empty() {
            text.push_str(&format!("; it said: {last}"));
        }
        clean(&text, 500)
    }

    /// Waits until the program ends, for at most `at_most`. Then kills it if it still runs, and on
    /// Unix all processes of its process group.
    pub(super) async fn end(mut self, at_most: Duration) {
        let _ended = timeout(at_most, self.child.wait()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};

            // Other processes of the group may remain even if the program has ended.
            if let Some(group) = self.group.and_then(|id| Pid::from_raw(id.cast_signed())) {
                let _gone = kill_process_group(group, Signal::KILL);
            }
        }
    }
}

/// Reads standard error all the time, so that the program can always write to it. Keeps the last
/// [`KEPT`] bytes.
async fn keep(mut from: ChildStderr, stderr_bytes: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let mut stderr_bytes = stderr_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        stderr_bytes.extend_from_slice(&buffer[..read]);
        let over = stderr_bytes.len().saturating_sub(KEPT);
        stderr_bytes.drain(..over);
    }
}
