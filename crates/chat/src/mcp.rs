//! MCP servers: their tools are further tools of the agent.
//!
//! A server is a program that is started, or a URL. [`Servers`] runs all servers of a session on
//! one thread; `configured` reads the settings, `connection` talks to one server with the
//! protocol's own library, `handler` answers the server's requests, `process` starts and ends a
//! program, `tool` is a tool as it is offered to the model, `content` converts a result to text.
//! Names and descriptions of tools come from the servers and are not trusted.
//!
//! # Absent
//!
//! Resources, prompts, sampling, and questions of servers to the user.

mod configured;
mod connection;
mod content;
mod handler;
mod process;
mod tool;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use epitome_llm::Stop;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

pub(crate) use configured::with_servers;
use connection::{Call, serve};
use tool::named;

use crate::tools::{MoreTool, MoreTools, Outcome};

/// The interval between two checks of whether a call must be stopped.
const LOOK: Duration = Duration::from_millis(20);

/// The default time limit of a call.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// A server as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The name of the server: at most 32 ASCII letters, digits, `-` and single `_`, with no `_` at
    /// either end.
    pub name: String,
    /// Where the server is: a program or a URL.
    pub place: ServerAddress,
    /// The time limit of a call.
    pub timeout: Duration,
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A program, which is started.
    Program {
        /// The name or path of the program.
        command: String,
        /// The arguments of the program.
        args: Vec<String>,
        /// Environment variables that the server's program gets in addition to the variables of
        /// this process.
        env: Vec<(String, String)>,
        /// The folder in which the program is started; empty if it is not chosen yet.
        folder: PathBuf,
    },
    /// A server that is reached over HTTP: with `https`, or with `http` on this machine.
    Address {
        /// The URL.
        url: String,
        /// Headers that are sent with each request.
        headers: Vec<(String, String)>,
    },
}

/// Whether a text can be the name of a server. The name is a part of the names of the server's
/// tools, `mcp__SERVER__TOOL`.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 32
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        && !name.contains("__")
        && !name.starts_with('_')
        && !name.ends_with('_')
}

/// The servers of a session. The programs of servers are ended when this value is dropped.
pub struct Servers {
    links: Vec<Link>,
    thread: Option<JoinHandle<()>>,
}

/// The state of a server.
struct Link {
    server: Server,
    /// The sender of calls to the connection; `None` once the server must end.
    calls: Option<UnboundedSender<Call>>,
    /// The tools that the server listed last, or why there are none.
    found: Found,
}

/// The tools of a server, or the reason why it has none.
type ListedTools = Result<Vec<rmcp::model::Tool>, String>;

/// The tools that a server listed last. The connection to the server sets them.
type Found = Arc<Mutex<ListedTools>>;

fn set(found: &Found, listed: ListedTools) {
    *found.lock().unwrap_or_else(PoisonError::into_inner) = listed;
}

impl Servers {
    /// Starts servers for a project, and waits until each has listed its tools or failed. Programs
    /// do not inherit the environment variables in `hidden`.
    ///
    /// # Errors
    ///
    /// If the thread of the servers, or its runtime, cannot be started.
    pub fn start(servers: Vec<Server>, root: &Path, hidden: &[String]) -> std::io::Result<Servers> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut links = Vec::new();
        let mut begun = Vec::new();
        let mut listed = Vec::new();
        for server in servers {
            let (calls, to_answer) = unbounded_channel();
            let (tell, told) = channel::<()>();
            let found: Found = Arc::new(Mutex::new(Err("it has not answered yet".to_owned())));
            begun.push((server.clone(), to_answer, found.clone(), tell));
            listed.push(told);
            links.push(Link { server, calls: Some(calls), found });
        }
        let root = root.to_owned();
        let hidden = hidden.to_vec();
        let thread = thread::Builder::new().name("mcp".to_owned()).spawn(move || {
            runtime.block_on(async {
                let mut all = tokio::task::JoinSet::new();
                for (server, calls, found, tell) in begun {
                    all.spawn(serve(server, root.clone(), hidden.clone(), calls, found, tell));
                }
                // If the tokio task of one server panics, `join_next` returns an error; the other
                // servers go on.
                while all.join_next().await.is_some() {}
            });
        })?;
        for told in listed {
            // No message is ever sent: `recv` returns when the channel is closed, once the server
            // has listed its tools or failed.
            let _listed = told.recv();
        }
        Ok(Servers { links, thread: Some(thread) })
    }

    /// The names of the servers whose tools could not be listed, each with the reason.
    pub fn failed(&self) -> Vec<(String, String)> {
        let failed = self
            .links
            .iter()
            .filter_map(|link| Some((link.server.name.clone(), link.listed().err()?)));
        failed.collect()
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.links.iter().map(|link| &link.server.name)).finish()
    }
}

impl MoreTools for Servers {
    fn tools(&self) -> Vec<MoreTool> {
        let found = self.links.iter().map(|link| (link.server.name.as_str(), link.listed()));
        named(found.filter_map(|(server, listed)| Some((server, listed.ok()?))))
    }

    fn call(&self, tool: &MoreTool, arguments: &str, stop: &Stop) -> Outcome {
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        let arguments =
            serde_json::from_str(arguments).map_err(|err| format!("bad arguments: {err}"))?;
        let link = self.links.iter().find(|link| link.server.name == tool.server);
        let gone = || format!("the MCP server {} has ended", tool.server);
        let link = link.ok_or_else(gone)?;
        let (tell, told) = channel();
        let (stopper, stopped) = oneshot::channel();
        let call = Call { tool: tool.tool.clone(), arguments, tell, stopped };
        let sent = link.calls.as_ref().is_some_and(|calls| calls.send(call).is_ok());
        if !sent {
            return Err(gone());
        }
        loop {
            match told.recv_timeout(LOOK) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                Err(RecvTimeoutError::Timeout) if stop.is_stopped() => {
                    // Dropping `stopper` makes the connection notify the server.
                    drop(stopper);
                    return Err("[stopped]".to_owned());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Link {
    fn listed(&self) -> ListedTools {
        let found: MutexGuard<'_, ListedTools> =
            self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.clone()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for link in &mut self.links {
            link.calls = None;
        }
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, the panic was reported already.
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
#[path = "mcp_tests.rs"]
mod tests;
