//! A server with faults: it gives the answer that a test sets, even half an answer or none.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use serde_json::Value;

use crate::routes;
use crate::script::{Script, Step};
use crate::stage::{Exchange, Outcome, Stage};

/// How a request is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// As a healthy service would, in the API of the requested path.
    Says(Step),
    /// With a status, headers and a body.
    Status(u16, Vec<(String, String)>, String),
    /// With the first half of an answer; then the connection ends.
    Half(Step),
    /// As a healthy service would, except for a fault in the stream of events.
    Broken(Step, Break),
    /// With nothing, until the client closes the connection.
    Silence,
}

/// How a stream of events is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Only the first half of the events, and a regular end.
    Half,
    /// Only the first half of the events, then an event that reports an overloaded service.
    Error,
    /// No event at all.
    Empty,
    /// All events, from the last to the first.
    Backwards,
    /// All events, and between the two halves an event that is not JSON.
    Garbled,
    /// No fault: all events, but before each one a ping (a comment, for Anthropic also an event
    /// `ping`), and no line feeds at the end of the stream. Ollama's stream has no pings.
    Pings,
}

impl Break {
    /// The stream `body` with this fault, for the API of `path`.
    fn stream(self, path: &str, body: &str) -> String {
        let end = if path == "/api/chat" { "\n" } else { "\n\n" };
        let events: Vec<&str> = body.split_terminator(end).collect();
        let (first, second) = events.split_at(events.len() / 2);
        let sent: Vec<String> = match self {
            Self::Half => first.iter().map(|it| it.to_string()).collect(),
            Self::Error => {
                let error = overloaded(path);
                first.iter().map(|it| it.to_string()).chain([error]).collect()
            }
            Self::Empty => Vec::new(),
            Self::Backwards => events.iter().rev().map(|it| it.to_string()).collect(),
            Self::Garbled => {
                let events = first.iter().chain(&["data: {\"type\":"]).chain(second);
                events.map(|it| it.to_string()).collect()
            }
            Self::Pings => {
                let pinged = match path {
                    "/api/chat" => return body.trim_end().to_owned(),
                    "/v1/messages" => ": ping\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n",
                    _ => ": ping\n\n",
                };
                let events = events.iter().map(|it| format!("{pinged}{it}"));
                return events.collect::<Vec<_>>().join(end);
            }
        };
        sent.iter().map(|event| format!("{event}{end}")).collect()
    }
}

/// The event that reports an overloaded service.
fn overloaded(path: &str) -> String {
    let error = match path {
        "/v1/messages" => {
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#
        }
        "/v1/responses" => {
            r#"{"type":"error","code":"server_error","message":"Overloaded","param":null}"#
        }
        "/api/chat" => return r#"{"error":"Overloaded"}"#.to_owned(),
        _ => r#"{"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}"#,
    };
    format!("data: {error}")
}

impl Answer {
    /// An answer with a status and a body.
    pub fn status(status: u16, body: impl Into<String>) -> Self {
        Self::Status(status, Vec::new(), body.into())
    }

    /// Adds a header to a [`Status`](Answer::Status); other answers stay as they are.
    #[must_use]
    pub fn with_header(self, name: &str, value: &str) -> Self {
        match self {
            Self::Status(status, mut headers, body) => {
                headers.push((name.to_owned(), value.to_owned()));
                Self::Status(status, headers, body)
            }
            other => other,
        }
    }
}

/// A server that gives its answers one after the other, one for each request, and repeats the last
/// one. Without answers it sends nothing.
///
/// ```
/// use model_server::{Answer, Rough, Step};
/// let server = Rough::start([Answer::status(529, "busy"), Answer::Says(Step::text("Done."))])?;
/// assert!(server.url().starts_with("http://127.0.0.1:"));
/// # anyhow::Ok(())
/// ```
#[derive(Debug)]
pub struct Rough {
    port: u16,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    answers: Mutex<Vec<Answer>>,
    stage: Stage,
    headers: Mutex<Vec<String>>,
}

impl Rough {
    /// Starts on any free port; it ends with the process.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub fn start(answers: impl IntoIterator<Item = Answer>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot listen")?;
        let port = listener.local_addr()?.port();
        let mut answers: Vec<Answer> = answers.into_iter().collect();
        answers.reverse();
        let (answers, headers) = (Mutex::new(answers), Mutex::default());
        let state = Arc::new(State { answers, stage: Stage::new(Script::default()), headers });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // Errors are ignored: they mean that the client has closed the connection.
                std::thread::spawn(move || drop(answer(stream, &shared)));
            }
        });
        Ok(Self { port, state })
    }

    /// The base URL, without a final slash.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All requests so far.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.state.stage.exchanges()
    }

    /// The header lines of all requests so far; the names of the headers are in lower case.
    pub fn headers(&self) -> Vec<String> {
        self.state.headers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn answer(mut stream: TcpStream, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (line, headers) = head(&mut reader)?;
    let length = headers.iter().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|it| it.trim().parse().ok()).unwrap_or(0);
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    state.headers.lock().unwrap_or_else(PoisonError::into_inner).extend(headers);
    let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let path = line.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let says = |step: Step| {
        state.stage.play_always(step);
        let (reply, outcome) = routes::route(path, line.starts_with("POST"), &body, &state.stage);
        let headers = vec![("content-type".to_owned(), reply.content_type.to_owned())];
        (reply.status, headers, reply.body, outcome)
    };
    let next = {
        let mut answers = state.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() > 1 { answers.pop() } else { answers.last().cloned() }
    };
    let (status, headers, text, outcome, half) = match next {
        Some(Answer::Says(step)) => {
            let (status, headers, text, outcome) = says(step);
            (status, headers, text, outcome, false)
        }
        Some(Answer::Half(step)) => {
            let (status, headers, text, outcome) = says(step);
            (status, headers, text, outcome, true)
        }
        Some(Answer::Broken(step, broken)) => {
            let (status, headers, text, outcome) = says(step);
            (status, headers, broken.stream(path, &text), outcome, false)
        }
        Some(Answer::Status(status, headers, text)) => {
            (status, headers, text, Outcome::Refused(status.to_string()), false)
        }
        Some(Answer::Silence) | None => {
            state.stage.record(path, body.clone(), &bytes, Outcome::Other);
            // Waits until the client closes the connection.
            std::io::copy(&mut reader, &mut std::io::sink())?;
            return Ok(());
        }
    };
    state.stage.record(path, body.clone(), &bytes, outcome);
    let mut out = format!("HTTP/1.1 {status} As Told\r\nContent-Length: {}\r\n", text.len());
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        out.push_str("Content-Type: application/json\r\n");
    }
    for (name, value) in &headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    out.push_str("Connection: close\r\n\r\n");
    let mut out = out.into_bytes();
    let end = if half { text.len() / 2 } else { text.len() };
    out.extend_from_slice(&text.as_bytes()[..end]);
    stream.write_all(&out)?;
    stream.shutdown(Shutdown::Both)
}

/// The first line of a request, and its headers.
fn head(reader: &mut impl BufRead) -> std::io::Result<(String, Vec<String>)> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        lines.push(if lines.is_empty() {
            line.to_owned()
        } else {
            format!("{}:{value}", name.to_ascii_lowercase())
        });
    }
    let first = if lines.is_empty() { String::new() } else { lines.remove(0) };
    Ok((first, lines))
}
