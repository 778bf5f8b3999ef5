//! Handles the requests of an editor, and keeps its open sessions.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::connection::{Client, Incoming, Responder, Stopper, lines};
use super::session::{Line, PreparedSession, Waiting};
use super::update::Abilities;
use super::wire::{
    Error, Initialize, METHOD_NOT_FOUND, McpServer, Message, OfSession, OpenSession, PARSE_ERROR,
    Pair, Prompt, SetOption, VERSION, text, update,
};
use super::{Sessions, choice, prompt};
use crate::commands::{SlashOutcome, offered_to_editors, parse};
use crate::machine::{Input, OutsideChange};
use crate::mcp::{Server, ServerAddress, TIMEOUT, is_name};

/// Speaks the protocol until the editor closes its stream, the stream cannot be read, or a
/// [`Stopper`] stops the connection. The [`Stopper`] is passed to `stoppable` first, and may be
/// used on another thread. When this function returns, all agents have ended.
pub fn serve(
    sessions: impl Sessions,
    from: impl BufRead + Send + 'static,
    to: impl Write + Send + 'static,
    stoppable: impl FnOnce(Stopper),
) {
    let (lines, stopper) = lines(from);
    stoppable(stopper);
    let client = Client::new(to);
    let host = Arc::new(Host { sessions, client: client.clone(), state: Mutex::default() });
    while let Ok(Incoming::Line(line)) = lines.recv() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Message>(&line) {
            Ok(message) => host.take(message),
            Err(err) => client.refuse(PARSE_ERROR, &format!("no message: {err}")),
        }
    }
    host.close_all();
}

/// The sessions of one editor.
struct Host<S> {
    sessions: S,
    client: Client,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    abilities: Abilities,
    open: HashMap<String, Open>,
    /// Whether the connection has ended, so that no session may begin.
    is_over: bool,
    /// Tells when the threads of all sessions have ended. Each thread has a clone of the sender, on
    /// which nothing is sent, so the channel closes with the last thread, once this sender is
    /// dropped too. `None` until the first session begins.
    threads: Option<(Sender<()>, Receiver<()>)>,
}

/// An open session.
struct Open {
    line: Line,
    /// The channel closes when the agent of the session has ended.
    ended: Receiver<()>,
}

/// A request to open a session.
struct SessionRequest {
    folder: PathBuf,
    /// The id of an existing session; `None` for a new one.
    id: Option<String>,
    servers: Vec<Server>,
    /// Whether the earlier messages are sent to the editor.
    replay: bool,
}

impl<S: Sessions> Host<S> {
    fn take(self: &Arc<Self>, message: Message) {
        let Message { id, method, params, .. } = &message;
        let params = params.clone().unwrap_or_default();
        match (id.clone(), method.as_deref()) {
            (Some(id), Some(method)) => {
                let responder = self.client.responder(id);
                self.request(method, params, responder);
            }
            (None, Some("session/cancel")) => {
                let line = parsed(params).and_then(|it: OfSession| self.line(&it.session_id));
                if let Ok(line) = line {
                    line.send(Input::Cancel);
                }
            }
            // Unknown notifications are ignored.
            (None, _) => {}
            (Some(id), None) => self.client.answered(&id, message),
        }
    }

    fn request(self: &Arc<Self>, method: &str, params: Value, responder: Responder) {
        match method {
            "initialize" => responder.respond(self.initialize(params)),
            "session/new" => self.begin(params, false, responder),
            "session/load" => self.begin(params, true, responder),
            "session/resume" => self.begin(params, false, responder),
            "session/prompt" => self.prompt(params, responder),
            "session/set_config_option" => self.choose(params, responder),
            "session/close" => {
                let host = self.clone();
                thread::spawn(move || responder.respond(host.close_known(params)));
            }
            other => {
                let message = format!("there is no method {other}");
                responder.respond(Err(Error { code: METHOD_NOT_FOUND, message }));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn initialize(&self, params: Value) -> Result<Value, Error> {
        let request: Initialize = parsed(params)?;
        self.state().abilities = Abilities::from_client(&request.client_capabilities);
        Ok(json!({
            "protocolVersion": VERSION,
            "agentInfo": {
                "name": "epitome", "title": "epitome", "version": env!("CARGO_PKG_VERSION"),
            },
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"embeddedContext": true},
                "mcpCapabilities": {"http": true},
                "sessionCapabilities": {"resume": {}, "close": {}},
            },
            "authMethods": [],
        }))
    }

    /// Passes a message or a slash command of the user to the agent. Answers `/help`, `/quit`,
    /// `/resume` and invalid commands itself, with a message of the agent.
    fn prompt(&self, params: Value, responder: Responder) {
        let read = parsed(params).and_then(|request: Prompt| {
            let line = self.line(&request.session_id)?;
            let text = prompt::text(&request.prompt).map_err(Error::wrong)?;
            Ok((request.session_id, line, text))
        });
        let (session, line, said) = match read {
            Ok(read) => read,
            Err(err) => return responder.respond(Err(err)),
        };
        let refusal = match parse(&said) {
            None => return line.ask(Input::User(said), Waiting::Prompt(responder)),
            Some(SlashOutcome::Input(Input::Change(OutsideChange::Resume(_)))) => {
                "an editor opens sessions by itself".to_owned()
            }
            Some(SlashOutcome::Input(input)) => return line.ask(input, Waiting::Prompt(responder)),
            Some(SlashOutcome::Help) => {
                let lines = offered_to_editors()
                    .map(|it| format!("- {} {}: {}", it.name, it.arguments, it.about));
                lines.collect::<Vec<_>>().join("\n")
            }
            Some(SlashOutcome::Quit) => "close the session in the editor".to_owned(),
            Some(SlashOutcome::Wrong(why)) => why,
        };
        let refusal = update("agent_message_chunk", json!({"content": text(&refusal)}));
        self.client.notify("session/update", json!({"sessionId": session, "update": refusal}));
        responder.respond(Ok(json!({"stopReason": "end_turn"})));
    }

    fn choose(&self, params: Value, responder: Responder) {
        let read = parsed(params).and_then(|request: SetOption| {
            let line = self.line(&request.session_id)?;
            Ok((line, choice::change(&request).map_err(Error::wrong)?))
        });
        match read {
            Ok((line, change)) => line.ask(Input::Change(change), Waiting::Options(responder)),
            Err(err) => responder.respond(Err(err)),
        }
    }

    fn line(&self, id: &str) -> Result<Line, Error> {
        let state = self.state();
        let open = state.open.get(id);
        let open = open.ok_or_else(|| Error::wrong(format!("no session {id} is open")))?;
        Ok(open.line.clone())
    }

    /// Starts a thread that opens a session, answers the request, and then runs the agent.
    fn begin(self: &Arc<Self>, params: Value, replay: bool, responder: Responder) {
        let wanted = match parsed(params) {
            Ok(OpenSession { cwd: folder, session_id: id, mcp_servers }) => {
                let servers = mcp_servers.into_iter().filter_map(server).collect();
                SessionRequest { folder, id, servers, replay }
            }
            Err(err) => return responder.respond(Err(err)),
        };
        let host = self.clone();
        let all = self.state().threads.get_or_insert_with(channel).0.clone();
        thread::spawn(move || {
            // `ended` closes when `running` is dropped, which happens after the session has ended.
            // `_all` keeps the channel of all threads open until the end of this thread.
            let _all = all;
            let (running, ended) = channel::<()>();
            let mut session = match host.open(&wanted, ended) {
                Ok(session) => session,
                Err(err) => return responder.respond(Err(err)),
            };
            if wanted.replay {
                session.replay();
            }
            let id = session.id.clone();
            let options = session.choices().options();
            let mut begun = json!({"configOptions": options});
            if wanted.id.is_none() {
                begun["sessionId"] = id.as_str().into();
            }
            responder.respond(Ok(begun));
            session.run();
            drop(running);
            host.forget(&id);
        });
    }

    /// Makes a session, and adds it to the open ones. First closes the open session with the same
    /// id, if there is one. An error if the folder is not the absolute path of a folder that
    /// exists, if the session cannot be started, or if the connection has ended.
    fn open(&self, wanted: &SessionRequest, ended: Receiver<()>) -> Result<PreparedSession, Error> {
        check(&wanted.folder)?;
        if let Some(id) = &wanted.id {
            self.close(id);
        }
        let SessionRequest { folder, id, servers, .. } = wanted;
        let started = self.sessions.start(folder, id.as_deref(), servers);
        let started = started.map_err(Error::failed)?;
        let mut state = self.state();
        if state.is_over {
            return Err(Error::failed("the connection has ended"));
        }
        let session = PreparedSession::new(started, self.client.clone(), state.abilities);
        state.open.insert(session.id.clone(), Open { line: session.line(), ended });
        Ok(session)
    }

    fn forget(&self, id: &str) {
        let mut state = self.state();
        // Another session with this id may have been opened since. It must stay.
        let open = state.open.get(id);
        if open.is_some_and(|open| open.ended.try_recv() != Err(TryRecvError::Empty)) {
            state.open.remove(id);
        }
    }

    fn close_known(&self, params: Value) -> Result<Value, Error> {
        let OfSession { session_id } = parsed(params)?;
        self.line(&session_id)?;
        self.close(&session_id);
        Ok(json!({}))
    }

    /// Closes a session, if it is open, and waits until its agent has ended.
    fn close(&self, id: &str) {
        let Some(open) = self.state().open.remove(id) else { return };
        open.line.send(Input::Leave);
        // No message is ever sent: `recv` returns when the channel closes, once the agent has
        // ended.
        let _ended = open.ended.recv();
    }

    /// Closes all sessions, and waits for the end of their threads.
    fn close_all(&self) {
        let (open, threads) = {
            let mut state = self.state();
            state.is_over = true;
            (std::mem::take(&mut state.open), state.threads.take())
        };
        for open in open.into_values() {
            open.line.send(Input::Leave);
        }
        if let Some((all, ended)) = threads {
            drop(all);
            let _ended = ended.recv();
        }
    }
}

/// Parses the parameters of a request.
fn parsed<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params).map_err(|err| Error::wrong(err.to_string()))
}

/// Converts an MCP server of the editor. Its name is cut to 32 characters, and each character other
/// than an ASCII letter or digit becomes `-`. `None` if the result is not a valid name, or if the
/// server is neither a program for `stdio` nor a URL for `http`.
fn server(named: McpServer) -> Option<Server> {
    let name = named.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let name: String = name.take(32).collect();
    let place = match (named.command, named.url, named.kind.as_deref()) {
        (Some(command), None, None | Some("stdio")) => {
            let args = named.args;
            let env = pairs(named.env);
            let folder = PathBuf::new();
            ServerAddress::Program { command, args, env, folder }
        }
        (None, Some(url), Some("http")) => {
            ServerAddress::Address { url, headers: pairs(named.headers) }
        }
        _ => return None,
    };
    is_name(&name).then_some(Server { name, place, timeout: TIMEOUT })
}

fn pairs(all: Vec<Pair>) -> Vec<(String, String)> {
    all.into_iter().map(|it| (it.name, it.value)).collect()
}

/// Checks that the folder of a session is the absolute path of a folder that exists.
fn check(folder: &Path) -> Result<(), Error> {
    if !folder.is_absolute() || !folder.is_dir() {
        let what = format!("{} is no absolute path of a folder", folder.display());
        return Err(Error::wrong(what));
    }
    Ok(())
}
