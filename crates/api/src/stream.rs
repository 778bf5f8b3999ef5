//! Converts a streamed response (server-sent events, or lines of JSON) into the body that the same
//! response would have had without streaming.
//!
//! There is no IO here: the caller pushes bytes as they arrive, in pieces of any length.

use std::time::Duration;

use epitome_json::{Document, Value};

use super::response::wrong;
use super::{Api, BadResponse};

/// What is reported while a response arrives: its next piece, that the pieces so far are void, or
/// that the request will be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// The next piece of text.
    Text(&'a str),
    /// The next piece of reasoning that a person can read.
    Thinking(&'a str),
    /// A call of the tool with this name begins; its arguments are not reported.
    Call(&'a str),
    /// All deltas so far are void: the response broke off.
    Restart,
    /// There is no response. The request will be sent again after a pause.
    Retry(Retry<'a>),
}

/// Why and when a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry<'a> {
    /// Why there is no response, in a few words.
    pub reason: &'a str,
    /// The minimum pause before the request is sent again; the sender may add jitter to it.
    pub wait: Duration,
    /// The number of the next attempt, from 2.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub tries: u32,
}

/// The function that receives each [`Delta`] as it arrives.
pub type OnDelta<'a> = &'a mut dyn FnMut(Delta<'_>);

/// How a streamed response is divided into events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events: <https://html.spec.whatwg.org/multipage/server-sent-events.html>.
    Events,
    /// One JSON object per line.
    Lines,
}

/// Assembles the events of a streamed response of one API.
pub(crate) trait Assembler: Send {
    /// Adds the next event. Events of unknown types are ignored. It is an error if an event cannot
    /// be added to the events before it.
    fn event(&mut self, event: &Value<'_>, on: OnDelta<'_>) -> Result<(), BadResponse>;

    /// The body of the whole response, as JSON.
    ///
    /// # Errors
    ///
    /// `Cut` if the event that ends each complete response is missing; `Unreadable` if the events
    /// do not make a valid response.
    fn finish(self: Box<Self>) -> Result<String, BadResponse>;
}

/// A response that is being received.
///
/// ```
/// use epitome_api::{Delta, Stream, find_api};
///
/// let api = find_api("gemini-api").expect("an API");
/// let mut stream = Stream::new(api, api.endpoint.framing);
/// let mut seen = String::new();
/// let mut on = |delta: Delta<'_>| match delta {
///     Delta::Text(text) => seen.push_str(text),
///     Delta::Thinking(_) | Delta::Call(_) | Delta::Restart | Delta::Retry(_) => {}
/// };
/// let event = r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#;
/// stream.push(b"da", &mut on).expect("a piece of a line");
/// stream.push(format!("ta: {event}\r\n\r\n").as_bytes(), &mut on).expect("the rest");
/// let body = stream.finish(&mut on).expect("a whole response");
/// assert_eq!(seen, "Hi");
/// assert_eq!(api.response(body.as_bytes()).expect("a response").text(), "Hi");
/// ```
pub struct Stream {
    framing: Framing,
    /// The current line, which has not ended yet.
    line: Vec<u8>,
    /// Whether the last byte was a carriage return: a line feed right after it belongs to the same
    /// line end.
    returned: bool,
    /// The data of the current event, which has not ended yet.
    data: Vec<u8>,
    events: u64,
    ended: bool,
    assembler: Box<dyn Assembler>,
}

impl Stream {
    /// A stream for one response of an API; `framing` is the framing of the endpoint that is
    /// called.
    pub fn new(api: &Api, framing: Framing) -> Stream {
        Stream {
            framing,
            line: Vec::new(),
            returned: false,
            data: Vec::new(),
            events: 0,
            ended: false,
            assembler: (api.assembler)(),
        }
    }

    /// Adds the next bytes.
    ///
    /// # Errors
    ///
    /// [`BadResponse`] if an event reports an error, is not JSON, or does not fit the events before
    /// it.
    pub fn push(&mut self, mut bytes: &[u8], on: OnDelta<'_>) -> Result<(), BadResponse> {
        if self.returned && bytes.first() == Some(&b'\n') {
            bytes = &bytes[1..];
        }
        self.returned = bytes.last() == Some(&b'\r');
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            self.line.extend_from_slice(&bytes[..end]);
            let pair = bytes[end..].starts_with(b"\r\n");
            bytes = &bytes[end + if pair { 2 } else { 1 }..];
            self.end_line(on)?;
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// The body of the whole response, after all bytes were pushed. [`Api::response`] parses it.
    ///
    /// # Errors
    ///
    /// [`BadResponse::Cut`] if the stream ended before the response was complete; another
    /// [`BadResponse`] if the last event is an error, or if the events do not make a valid
    /// response.
    pub fn finish(mut self, on: OnDelta<'_>) -> Result<String, BadResponse> {
        // Some services leave out the line feeds at the end.
        self.end_line(on).and_then(|()| self.end_event(on)).map_err(cut)?;
        if self.events == 0 {
            return Err(BadResponse::Cut("it has no event".into()));
        }
        self.assembler.finish()
    }

    fn end_line(&mut self, on: OnDelta<'_>) -> Result<(), BadResponse> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        if self.framing == Framing::Lines {
            self.data.extend_from_slice(line);
            return self.end_event(on);
        }
        if line.is_empty() {
            return self.end_event(on);
        }
        // Other lines are ignored: the name of an event is in its data, too, and comments and ids
        // are not needed.
        if let Some(data) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
        Ok(())
    }

    fn end_event(&mut self, on: OnDelta<'_>) -> Result<(), BadResponse> {
        let data = std::mem::take(&mut self.data);
        let text = String::from_utf8_lossy(data.trim_ascii());
        if self.ended || text.is_empty() {
            return Ok(());
        }
        self.events += 1;
        if text == "[DONE]" {
            self.ended = true;
            return Ok(());
        }
        let document =
            Document::parse(text.as_bytes()).map_err(|_| wrong("an event in it is not JSON"))?;
        let event = &document.root;
        if event.any(&["error"]).is_some() || event.is("type", "error") {
            return Err(BadResponse::Error(text.into_owned()));
        }
        self.assembler.event(event, on)
    }
}

/// Turns the error of the last event into the error for the stream. A last event that cannot be
/// read is assumed to be cut off.
fn cut(bad: BadResponse) -> BadResponse {
    match bad {
        BadResponse::Unreadable(why) => BadResponse::Cut(why),
        BadResponse::Cut(_) | BadResponse::Error(_) => bad,
    }
}

/// The error for a stream that ended too early.
pub(super) fn unfinished() -> BadResponse {
    BadResponse::Cut("the stream ends before the response does".into())
}

#[cfg(test)]
mod tests;
