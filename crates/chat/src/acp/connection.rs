//! The connection to an editor: JSON-RPC in both directions, one message per line.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

use super::wire::{Error, INTERNAL, Message};

/// A line from the editor, or the end of the connection.
pub(super) enum Incoming {
    Line(Vec<u8>),
    /// No more messages follow: the editor closed the stream, the stream cannot be read, or a
    /// [`Stopper`] ended the connection.
    End,
}

/// Ends the connection from another thread, such as a thread that waits for signals.
#[derive(Clone)]
pub struct Stopper(Sender<Incoming>);

impl Stopper {
    /// Ends the connection. Does nothing if [`serve`](super::serve) has returned already.
    pub fn stop(&self) {
        self.0.send(Incoming::End).ok();
    }
}

/// Reads the lines of a stream on a thread of its own, so that the editor can write a message while
/// this program still handles an earlier one. Returns the receiver of the lines, and a [`Stopper`]
/// for them.
pub(super) fn lines(mut from: impl BufRead + Send + 'static) -> (Receiver<Incoming>, Stopper) {
    let (tell, told) = channel();
    let stopper = Stopper(tell.clone());
    thread::spawn(move || {
        loop {
            let mut line = Vec::new();
            let next = match from.read_until(b'\n', &mut line) {
                Ok(0) => Incoming::End,
                Ok(_) => Incoming::Line(line),
                Err(err) if err.kind() == io::ErrorKind::Interrupted => continue,
                // The stream can no longer be read.
                Err(_) => Incoming::End,
            };
            let is_end = matches!(next, Incoming::End);
            if tell.send(next).is_err() || is_end {
                return;
            }
        }
    });
    (told, stopper)
}

/// The callback for the answer to a request.
type Then = Box<dyn FnOnce(Result<Value, Value>) + Send>;

/// The connection for messages to the editor. Any thread may send on it.
#[derive(Clone)]
pub(super) struct Client(Arc<Inner>);

struct Inner {
    to: Mutex<Box<dyn Write + Send>>,
    asked: Mutex<PendingRequests>,
}

#[derive(Default)]
struct PendingRequests {
    requests: u64,
    open: HashMap<u64, Then>,
}

impl Client {
    pub(super) fn new(to: impl Write + Send + 'static) -> Client {
        Client(Arc::new(Inner { to: Mutex::new(Box::new(to)), asked: Mutex::default() }))
    }

    fn send(&self, message: &Value) {
        let mut to = self.0.to.lock().unwrap_or_else(PoisonError::into_inner);
        // Errors are ignored: an editor that has ended also closes the stream that this program
        // reads, and the end of that stream ends the connection.
        let _gone = writeln!(to, "{message}").and_then(|()| to.flush());
    }

    fn lock_pending(&self) -> MutexGuard<'_, PendingRequests> {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a notification to the editor.
    pub(super) fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request to the editor, and returns its number. When the editor answers, the thread
    /// that runs [`serve`](super::serve) calls `then` with the answer or the error.
    pub(super) fn request(
        &self,
        method: &str,
        params: Value,
        then: impl FnOnce(Result<Value, Value>) + Send + 'static,
    ) -> u64 {
        let id = {
            let mut asked = self.lock_pending();
            asked.requests += 1;
            let id = asked.requests;
            asked.open.insert(id, Box::new(then));
            id
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends the notification that cancels a request to the editor, unless the editor has answered
    /// the request already. The request stays open until the editor answers it.
    pub(super) fn cancel(&self, request: u64) {
        if self.lock_pending().open.contains_key(&request) {
            self.notify("$/cancel_request", json!({"requestId": request}));
        }
    }

    /// Passes the editor's answer to the callback of the request. An answer to no open request is
    /// ignored.
    pub(super) fn answered(&self, id: &Value, answer: Message) {
        let open = id.as_u64().and_then(|id| self.lock_pending().open.remove(&id));
        let Some(then) = open else { return };
        then(match answer.error {
            Some(error) => Err(error),
            None => Ok(answer.result.unwrap_or_default()),
        });
    }

    /// The responder for a request of the editor.
    pub(super) fn responder(&self, id: Value) -> Responder {
        Responder { client: self.clone(), id: Some(id) }
    }

    /// Answers an invalid message with an error.
    pub(super) fn refuse(&self, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
    }
}

/// Answers one request. If it is dropped without an answer, it answers with an error.
pub(super) struct Responder {
    client: Client,
    id: Option<Value>,
}

impl Responder {
    pub(super) fn respond(mut self, result: Result<Value, Error>) {
        self.answer(result);
    }

    fn answer(&mut self, result: Result<Value, Error>) {
        let Some(id) = self.id.take() else { return };
        self.client.send(&match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error.value()}),
        });
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.answer(Err(Error { code: INTERNAL, message: "the session has ended".to_owned() }));
    }
}
