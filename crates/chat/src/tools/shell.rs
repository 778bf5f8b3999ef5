//! `shell`: runs a command line, on Unix in a terminal of its own, with limits on its time and its
//! output. At the end, the processes that the command has left are killed, as far as they can be
//! found.

#[cfg(not(unix))]
mod pipe;
mod plain;
#[cfg(unix)]
mod terminal;

use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use epitome_llm::Stop;
use serde::Deserialize;

use epitome_model::ToolKind;

use super::{Fold, Tool, Workplace, described, parsed};
use crate::permissions::Access;

#[cfg(not(unix))]
use pipe::Running;
use plain::Plain;
#[cfg(unix)]
use terminal::Running;

pub(super) const TOOL: Tool = Tool {
    name: "shell",
    kind: ToolKind::Shell,
    subject: |it| described(it, &["{command}"]),
    fold: Fold::End,
    description: "Runs a command line with sh in the folder of the project, in a terminal without \
                  colours, pagers or input. It ends after timeout seconds (120 by default, at \
                  most 600); processes it leaves behind are ended with it.",
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
    planned: None,
    run: |place, arguments, access, stop| {
        let Arguments { timeout, .. } = parsed(arguments)?;
        let Access::Shell(command) = access else {
            return Err("no command was permitted".to_owned());
        };
        let timeout = timeout.unwrap_or(TIMEOUT).clamp(1, LONGEST);
        run(place, command, Duration::from_secs(timeout), stop)
    },
};

/// The default time limit in seconds, and the longest.
const TIMEOUT: u64 = 120;
const LONGEST: u64 = 600;
/// The maximum number of bytes of output that are kept at its beginning, and again at its end.
const KEPT: usize = 128 << 10;
/// The interval between two checks of whether the command has ended or must be stopped.
const LOOK: Duration = Duration::from_millis(20);

/// How long to wait for more output after a command has ended.
const SETTLE: Duration = Duration::from_millis(50);
/// The maximum time for reading output after a command has ended: a process that could not be
/// killed may still be writing.
const LEFT: Duration = Duration::from_secs(1);
/// The pause before the next look at a command that has closed its output and has not ended.
const SHORT: Duration = Duration::from_millis(2);
/// The minimum time between two reports of output; and the number of bytes of output in a report,
/// unless the rows that may still change are longer.
const TELL: Duration = Duration::from_millis(200);
const SHOWN: usize = 16 << 10;
/// The size of the read buffer.
const READ: usize = 64 << 10;

/// The environment of commands: no colours, no pagers, and no questions on a terminal that cannot
/// answer.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

#[derive(Deserialize)]
struct Arguments {
    command: String,
    #[serde(default)]
    timeout: Option<u64>,
}

/// The result of reading a command's output.
enum ReadResult {
    /// The number of bytes read.
    Bytes(usize),
    /// There is no output yet.
    Nothing,
    /// All writers have closed the output.
    End,
}

fn run(place: &Workplace, command: &str, timeout: Duration, stop: &Stop) -> Result<String, String> {
    let failed = |err: std::io::Error| format!("cannot run sh: {err}");
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(place.root()).envs(ENVIRONMENT);
    for name in place.hidden.iter() {
        shell.env_remove(name);
    }
    let mut running = Running::start(shell).map_err(failed)?;
    let mut output = Output::default();
    let mut progress = Progress { place, begun: Instant::now(), last_report: None };
    let end = wait(&mut running, &mut output, timeout, stop, &mut progress).map_err(failed)?;
    // No process may remain: it would write to a closed terminal.
    running.kill();
    let ended = Instant::now();
    while ended.elapsed() < LEFT && output.read(&mut running, SETTLE) {}
    let text = output.text();
    match end {
        CommandEnd::Exited(status) if status.success() => Ok(text),
        CommandEnd::Exited(status) => Err(format!("{text}[{status}]")),
        CommandEnd::TimedOut => {
            Err(format!("{text}[ended after {} s: time-out]", timeout.as_secs()))
        }
        CommandEnd::Stopped => Err(format!("{text}[stopped]")),
    }
}

/// How a command ended.
enum CommandEnd {
    Exited(ExitStatus),
    TimedOut,
    Stopped,
}

fn wait(
    running: &mut Running,
    output: &mut Output,
    timeout: Duration,
    stop: &Stop,
    progress: &mut Progress<'_>,
) -> std::io::Result<CommandEnd> {
    let begun = Instant::now();
    loop {
        output.read(running, LOOK);
        progress.report(output);
        if let Some(status) = running.child.try_wait()? {
            return Ok(CommandEnd::Exited(status));
        }
        if stop.is_stopped() {
            return Ok(CommandEnd::Stopped);
        }
        if begun.elapsed() >= timeout {
            return Ok(CommandEnd::TimedOut);
        }
    }
}

/// Shows the output of a running command.
struct Progress<'p> {
    place: &'p Workplace,
    begun: Instant,
    /// The time of the last report, and the seconds that it showed. `None` before the first report.
    last_report: Option<(Instant, u64)>,
}

impl Progress<'_> {
    /// Reports new output, at most once per [`TELL`]. Without new output, reports the time once a
    /// second.
    fn report(&mut self, output: &mut Output) {
        let Some(on_progress) = &self.place.progress else { return };
        let (last, second) = self.last_report.unwrap_or((self.begun, 0));
        let seconds = self.begun.elapsed().as_secs();
        if last.elapsed() < TELL || (!output.is_new && seconds == second) {
            return;
        }
        self.last_report = Some((Instant::now(), seconds));
        output.is_new = false;
        on_progress(seconds, output.so_far());
    }
}

/// The output of a command, without its middle if it is too long.
struct Output {
    plain: Plain,
    buffer: Vec<u8>,
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: usize,
    /// Whether there is output that was not shown yet.
    is_new: bool,
}

impl Default for Output {
    fn default() -> Output {
        let plain = Plain::new();
        let buffer = vec![0; READ];
        Output { plain, buffer, head: Vec::new(), tail: Vec::new(), dropped: 0, is_new: false }
    }
}

impl Output {
    /// Reads the next output of a command, and waits up to `wait` for it. Returns whether output
    /// was read.
    fn read(&mut self, running: &mut Running, wait: Duration) -> bool {
        match running.read(wait, &mut self.buffer) {
            ReadResult::Bytes(read) => {
                let text = self.plain.push(&self.buffer[..read]);
                self.push(text.as_bytes());
                self.is_new = true;
                true
            }
            ReadResult::Nothing => false,
            // The command is about to end, or has closed its output.
            ReadResult::End => {
                std::thread::sleep(SHORT);
                false
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = KEPT - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        // `tail` may grow to twice the size before it is cut, so that each byte is moved at most
        // once.
        if self.tail.len() > 2 * KEPT {
            let over = self.tail.len() - KEPT;
            self.tail.drain(..over);
            self.dropped += over;
        }
    }

    /// The end of the output, including the rows that may still change. A first line says if
    /// earlier output is left out.
    fn so_far(&self) -> String {
        let screen = self.plain.rows();
        let room = SHOWN.saturating_sub(screen.len());
        let done = if self.tail.is_empty() { &self.head } else { &self.tail };
        let begin = done.len().saturating_sub(room);
        let mut text = String::from_utf8_lossy(&done[begin..]).into_owned();
        text.push_str(&screen);
        if begin > 0 || !self.tail.is_empty() {
            let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
            text = format!("[earlier output is left out]\n{rest}");
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// The whole text, without its middle if it is too long. It is empty, or ends with a line feed.
    fn text(mut self) -> String {
        let rest = std::mem::replace(&mut self.plain, Plain::new()).end();
        self.push(rest.as_bytes());
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
