//! `shell`: a command line, with a time-out, a limit of output, and an end for all its processes.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use epitome_llm::Stop;
use serde::Deserialize;

use super::{Tool, Workplace, parsed};
use crate::permissions::Access;

pub(super) const TOOL: Tool = Tool {
    name: "shell",
    description: "Runs a command line with sh in the folder of the project, without a terminal or \
                  input. It ends after timeout seconds (120 by default, at most 600); processes it \
                  leaves behind are ended with it.",
    parameters: concat!(
        r#"{"type":"object","properties":{"command":{"type":"string","description":"The "#,
        r#"command line"},"timeout":{"type":"integer","description":"Seconds"}},"#,
        r#""required":["command"]}"#,
    ),
    access: |_, arguments| {
        let Arguments { command, .. } = parsed(arguments)?;
        if command.trim().is_empty() || command.contains('\0') {
            return Err("the command is empty".to_owned());
        }
        Ok(Access::Shell(command))
    },
    run: |place, arguments, access, stop| {
        let Arguments { timeout, .. } = parsed(arguments)?;
        let Access::Shell(command) = access else {
            return Err("no command was permitted".to_owned());
        };
        let timeout = timeout.unwrap_or(TIMEOUT).clamp(1, LONGEST);
        run(place, command, Duration::from_secs(timeout), stop)
    },
};

/// Seconds that a command may take.
const TIMEOUT: u64 = 120;
const LONGEST: u64 = 600;
/// Bytes of output that are kept from the beginning, and as many from the end.
const KEPT: usize = 128 << 10;
/// How often it is looked whether the command ended or is to be stopped.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Deserialize)]
struct Arguments {
    command: String,
    #[serde(default)]
    timeout: Option<u64>,
}

fn run(place: &Workplace, command: &str, timeout: Duration, stop: &Stop) -> Result<String, String> {
    let failed = |err: std::io::Error| format!("cannot run sh: {err}");
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(place.root());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    shell.stdin(Stdio::null());
    shell.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
    for name in place.hidden.iter() {
        shell.env_remove(name);
    }
    let child = shell.spawn().map_err(failed)?;
    // The pipe ends when the last process of the command closes it, and not before we do.
    drop(shell);
    let mut running = Running { child };
    let (tell, told) = channel();
    std::thread::spawn(move || read_all(reader, &tell));
    let mut output = Output::default();
    let end = wait(&mut running, &told, &mut output, timeout, stop).map_err(failed)?;
    // What it left behind would write into nothing.
    running.kill();
    while let Ok(bytes) = told.recv() {
        output.push(&bytes);
    }
    let text = output.text();
    match end {
        End::Exited(status) if status.success() => Ok(text),
        End::Exited(status) => Err(format!("{text}[{status}]")),
        End::TimedOut => Err(format!("{text}[ended after {} s: time-out]", timeout.as_secs())),
        End::Stopped => Err(format!("{text}[stopped]")),
    }
}

/// How a command ended.
enum End {
    Exited(ExitStatus),
    TimedOut,
    Stopped,
}

fn wait(
    running: &mut Running,
    told: &Receiver<Vec<u8>>,
    output: &mut Output,
    timeout: Duration,
    stop: &Stop,
) -> std::io::Result<End> {
    let begun = Instant::now();
    loop {
        match told.recv_timeout(LOOK) {
            Ok(bytes) => output.push(&bytes),
            Err(RecvTimeoutError::Timeout) => {}
            // Nobody writes any more: it is about to end, or has closed its output.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
        }
        if let Some(status) = running.child.try_wait()? {
            return Ok(End::Exited(status));
        }
        if stop.is_stopped() {
            return Ok(End::Stopped);
        }
        if begun.elapsed() >= timeout {
            return Ok(End::TimedOut);
        }
    }
}

fn read_all(mut reader: std::io::PipeReader, tell: &std::sync::mpsc::Sender<Vec<u8>>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read) = reader.read(&mut buffer) {
        if read == 0 || tell.send(buffer[..read].to_vec()).is_err() {
            return;
        }
    }
}

/// A command, and all processes of its group: they end with it.
struct Running {
    child: Child,
}

impl Running {
    fn kill(&mut self) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};

            if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
                // No process is left: that is what is wanted.
                let _gone = kill_process_group(group, Signal::KILL);
            }
        }
        // It has ended already, or ends now.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The beginning and the end of an output.
#[derive(Default)]
struct Output {
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: usize,
}

impl Output {
    fn push(&mut self, bytes: &[u8]) {
        let room = KEPT - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        // Twice as much is kept before it is moved: each byte is moved once.
        if self.tail.len() > 2 * KEPT {
            let over = self.tail.len() - KEPT;
            self.tail.drain(..over);
            self.dropped += over;
        }
    }

    /// The text; empty, or with a line feed at its end.
    fn text(mut self) -> String {
        if self.tail.len() > KEPT {
            let over = self.tail.len() - KEPT;
            self.tail.drain(..over);
            self.dropped += over;
        }
        if self.dropped > 0 {
            self.head.extend(format!("\n[{} bytes left out]\n", self.dropped).bytes());
        }
        self.head.extend(self.tail);
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }
}
