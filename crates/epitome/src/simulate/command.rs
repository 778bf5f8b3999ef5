//! A policy command: a program that decides what is sent. It answers some of the requests that
//! `epitome engine` answers, and the simulation is its client.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use epitome_model::short;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::{Error, ErrorKind, Result};

/// The maximum number of characters of a command or an answer that an error quotes.
const QUOTED: usize = 80;

/// A command that keeps the context of an agent small: `python my_policy.py`.
///
/// The simulation starts it once for each session, writes one request a line to its standard input,
/// and reads one answer a line from its standard output: `hello`, `reset`, `call` and `force` of
/// `docs/engine.md`, with messages of Anthropic's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyCommand {
    /// The command line, for the shell of the platform. It is also the command's name in the
    /// report.
    pub line: String,
    /// How long an answer may take.
    pub timeout: Duration,
}

/// A policy command that runs.
pub struct Process {
    line: String,
    timeout: Duration,
    child: Child,
    /// Sends requests to the program. `None` after the last request: then the program's input ends.
    requests: Option<Sender<String>>,
    answers: Receiver<io::Result<String>>,
}

/// The answer of a policy: the list of messages to send, and the names by which removed results can
/// be recalled.
pub struct PolicyAnswer {
    text: String,
}

/// The members of an answer that are read. All other members are ignored.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    refs: BTreeMap<String, String>,
    error: Option<Value>,
    ask: Option<Value>,
}

/// The members of the answer to `hello` that are read.
#[derive(Default, Deserialize)]
struct Hello {
    wire: Option<String>,
}

impl PolicyCommand {
    /// The command of this line. Each of its answers may take five minutes.
    pub fn new(line: impl Into<String>) -> PolicyCommand {
        PolicyCommand { line: line.into(), timeout: Duration::from_secs(300) }
    }

    /// Starts the command for a session.
    pub(super) fn start(&self, session: &str, window: u64, overhead: u64) -> Result<Process> {
        let mut command = shell();
        command.arg(&self.line).stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |err: &io::Error| {
            let what = format!("the policy `{}` cannot be started: {err}", self.short());
            Error::new(ErrorKind::Usage, what)
        };
        let mut child = command.spawn().map_err(|err| failed(&err))?;
        let requests = child.stdin.take().map(write_lines);
        let answers = child.stdout.take().map(read_lines);
        let answers = answers.expect("the output is a pipe");
        let PolicyCommand { line, timeout } = self.clone();
        let mut process = Process { line, timeout, child, requests, answers };
        process.begin(session, window, overhead)?;
        Ok(process)
    }

    fn short(&self) -> String {
        short(&self.line, QUOTED)
    }
}

impl Process {
    /// Adds messages to the policy's context, and returns what the policy would send now.
    pub fn call(&mut self, messages: &str) -> Result<PolicyAnswer> {
        let text = self.ask(format!(r#"{{"op":"call","messages":{messages}}}"#))?;
        Ok(PolicyAnswer { text })
    }

    /// Returns what the policy would send if it compacted `messages`, the whole history, now.
    /// `target` is the share of the tokens (0 to 1) that should remain.
    pub fn force(&mut self, messages: &str, target: Option<f64>) -> Result<PolicyAnswer> {
        let target = target.map_or_else(String::new, |it| format!(r#","target_ratio":{it}"#));
        let text = self.ask(format!(r#"{{"op":"force","messages":{messages}{target}}}"#))?;
        Ok(PolicyAnswer { text })
    }

    fn begin(&mut self, session: &str, window: u64, overhead: u64) -> Result<()> {
        let hello = self.ask(json!({ "op": "hello" }).to_string())?;
        // An answer that cannot be parsed is not an error, because a policy need not describe
        // itself.
        let hello: Hello = serde_json::from_str(&hello).unwrap_or_default();
        if let Some(wire) = hello.wire.filter(|wire| wire != "anthropic") {
            let what = format!("the policy `{}` takes messages of {wire}", self.short());
            let hint = "a simulation has messages of anthropic";
            return Err(Error::new(ErrorKind::Usage, what).with_hint(hint));
        }
        let reset = json!({
            "op": "reset",
            "session": session,
            "window": window,
            "overhead": overhead,
        });
        let reset = self.ask(reset.to_string())?;
        let refused = serde_json::from_str::<Members<'_>>(&reset).ok().and_then(|it| it.error);
        let Some(why) = refused else { return Ok(()) };
        let what = format!("the policy `{}` begins no session: {}", self.short(), reason(&why));
        Err(Error::new(ErrorKind::Usage, what))
    }

    /// Sends a request and waits for its answer.
    fn ask(&mut self, request: String) -> Result<String> {
        if let Some(requests) = &self.requests {
            // If the program has ended, sending fails. The error is ignored here, because reading
            // the answer then fails as well.
            let _ = requests.send(request);
        }
        match self.answers.recv_timeout(self.timeout) {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(err)) => Err(self.failure(&format!("cannot be read: {err}"))),
            Err(RecvTimeoutError::Timeout) => {
                let seconds = self.timeout.as_secs();
                Err(self.failure(&format!("has not answered for {seconds} seconds")))
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.requests = None;
                let status = self.child.wait().map(|status| status.to_string());
                let status = status.unwrap_or_else(|err| err.to_string());
                Err(self.failure(&format!("has ended ({status}) and left a request unanswered")))
            }
        }
    }

    fn failure(&self, what: &str) -> Error {
        let what = format!("the policy `{}` {what}", self.short());
        let hint = "one line of JSON answers each line; docs/simulate.md has an example";
        Error::new(ErrorKind::Usage, what).with_hint(hint)
    }

    fn short(&self) -> String {
        short(&self.line, QUOTED)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.requests = None;
        // Errors are ignored: the program may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl PolicyAnswer {
    /// The messages of the answer, and the references by which removed results can be recalled, by
    /// the ids of their calls. An error says why the answer has no messages.
    pub fn messages(
        &self,
    ) -> std::result::Result<(Vec<&RawValue>, BTreeMap<String, String>), String> {
        let quoted = || short(&self.text, QUOTED);
        let members: Members<'_> = serde_json::from_str(&self.text)
            .map_err(|err| format!("the answer cannot be read ({err}): {}", quoted()))?;
        if let Some(why) = members.error {
            return Err(format!("the policy answered with an error: {}", reason(&why)));
        }
        if members.ask.is_some() {
            return Err("the policy asked for a summary: a simulation writes none".to_owned());
        }
        let messages = members.messages;
        let messages = messages.ok_or_else(|| format!("there is no `messages`: {}", quoted()))?;
        Ok((messages, members.refs))
    }
}

/// The message of an error of a policy, which is a text or an object with a `message`.
fn reason(error: &Value) -> String {
    let text = error["message"].as_str().or(error.as_str()).map(str::to_owned);
    short(&text.unwrap_or_else(|| error.to_string()), 2 * QUOTED)
}

fn shell() -> Command {
    if cfg!(windows) {
        let mut command = Command::new("cmd");
        command.arg("/C");
        return command;
    }
    let mut command = Command::new("sh");
    command.arg("-c");
    command
}

/// Writes lines to a program on a separate thread, so that a program which does not read its input
/// blocks only that thread.
fn write_lines(mut to: ChildStdin) -> Sender<String> {
    let (sender, lines) = mpsc::channel::<String>();
    thread::spawn(move || {
        for line in lines {
            let written = to.write_all(line.as_bytes()).and_then(|()| to.write_all(b"\n"));
            if written.and_then(|()| to.flush()).is_err() {
                break;
            }
        }
    });
    sender
}

/// Reads the lines that a program writes, on a thread of its own.
fn read_lines(from: ChildStdout) -> Receiver<io::Result<String>> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n') {
            let line = line.map(|line| String::from_utf8_lossy(&line).into_owned());
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}
