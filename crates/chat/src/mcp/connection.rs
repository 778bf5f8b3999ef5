//! The connection to one server: opening it, listing its tools, calling them, and closing it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;

use epitome_error::sentence;
use rmcp::ServiceExt;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::content::text;
use super::handler::Handler;
use super::process::Process;
use super::tool::clean;
use super::{Found, Server, ServerAddress, set};

/// The time limit for connecting to a server and listing its tools.
const START: Duration = Duration::from_secs(30);
/// The time limit for closing the connection. Afterwards, the program gets as long again to end.
const END: Duration = Duration::from_millis(500);

/// A call of a tool.
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: serde_json::Map<String, serde_json::Value>,
    pub(super) tell: Sender<Result<String, String>>,
    /// The call is cancelled when the sender of this channel is dropped, which happens if the user
    /// interrupts.
    pub(super) stopped: oneshot::Receiver<()>,
}

/// Connects to a server, and serves calls until the channel of calls is closed. `listed` is dropped
/// once `found` has the tools, or the reason why there are none.
pub(super) async fn serve(
    server: Server,
    root: PathBuf,
    hidden: Vec<String>,
    mut calls: UnboundedReceiver<Call>,
    found: Found,
    listed: Sender<()>,
) {
    let opened = timeout(START, open(&server, &root, &hidden, &found)).await;
    let opened =
        opened.unwrap_or_else(|_| Err(format!("it did not answer in {} s", START.as_secs())));
    let (running, process) = match opened {
        Ok(opened) => opened,
        Err(why) => {
            set(&found, Err(why));
            return;
        }
    };
    drop(listed);
    while let Some(call) = calls.recv().await {
        let peer = running.peer().clone();
        let name = server.name.clone();
        let limit = server.timeout;
        tokio::spawn(async move {
            let Call { tool, arguments, tell, stopped } = call;
            let params = CallToolRequestParams::new(tool).with_arguments(arguments);
            let result = answer(&peer, params, stopped, limit).await;
            // Errors are ignored: a call that was interrupted has no receiver any more.
            let _gone = tell.send(result.map_err(|why| format!("MCP server {name}: {why}")));
        });
    }
    // Closing the connection asks the program to end. If it does not end in time, it is killed.
    let _ended = timeout(END, running.cancel()).await;
    if let Some(process) = process {
        process.end(END).await;
    }
}

type Opened = (RunningService<RoleClient, Handler>, Option<Process>);

/// Connects to a server, and lists its tools.
async fn open(
    server: &Server,
    root: &Path,
    hidden: &[String],
    found: &Found,
) -> Result<Opened, String> {
    let handler = Handler::new(root, found.clone());
    let (running, process) = match &server.place {
        ServerAddress::Program { .. } => {
            let (mut process, pipes) = Process::start(&server.place, hidden)?;
            match handler.serve(pipes).await {
                Ok(running) => (running, Some(process)),
                Err(err) => return Err(process.last_words(&err.to_string()).await),
            }
        }
        ServerAddress::Address { url, headers } => {
            let transport = address(url, headers)?;
            let running = handler.serve(transport).await.map_err(|err| one_line(&err))?;
            (running, None)
        }
    };
    let tools = running.peer().list_all_tools().await.map_err(|err| one_line(&err))?;
    set(found, Ok(tools));
    Ok((running, process))
}

/// Connects to a server over HTTP. Redirects are not followed, because they would send headers
/// elsewhere.
fn address(
    url: &str,
    headers: &[(String, String)],
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let parsed = reqwest::Url::parse(url).map_err(|err| format!("{url}: {err}"))?;
    let is_here = matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if parsed.scheme() != "https" && !(is_here && parsed.scheme() == "http") {
        return Err(format!("{url} is neither https nor on this machine"));
    }
    epitome_llm::prepare_tls();
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let client = client.build().map_err(|err| one_line(&err))?;
    let mut all = std::collections::HashMap::new();
    for (name, value) in headers {
        let header = |_| format!("`{name}` is no header, or has no value that can be sent");
        let key =
            reqwest::header::HeaderName::try_from(name).map_err(|err| header(err.to_string()))?;
        let value =
            reqwest::header::HeaderValue::try_from(value).map_err(|err| header(err.to_string()))?;
        all.insert(key, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(all);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Calls a tool, and returns its result. An error if the user interrupts the call or its time is
/// up; the server is then notified.
async fn answer(
    peer: &Peer<RoleClient>,
    params: CallToolRequestParams,
    stopped: oneshot::Receiver<()>,
    limit: Duration,
) -> Result<String, String> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let handle = sent.map_err(|err| failure(&err))?;
    let id = handle.id.clone();
    let why = tokio::select! {
        answer = handle.await_response() => return match answer.map_err(|err| failure(&err))? {
            ServerResult::CallToolResult(result) => text(&result),
            _ => Err("it answered with something that is no result".to_owned()),
        },
        // No message is ever sent: the sender is dropped to stop the call.
        _ = stopped => "stopped by the user".to_owned(),
        () = tokio::time::sleep(limit) => format!("time-out after {} s", limit.as_secs()),
    };
    let cancelled = CancelledNotificationParam::new(Some(id), Some(why.clone()));
    // Errors are ignored: the server may have ended.
    let _told = peer.notify_cancelled(cancelled).await;
    Err(format!("[{why}]"))
}

fn failure(err: &ServiceError) -> String {
    match err {
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            "it has ended; it is started again with the next session".to_owned()
        }
        other => one_line(other),
    }
}

/// Describes an error of another library on one line.
pub(super) fn one_line(err: &(dyn std::error::Error + 'static)) -> String {
    clean(&sentence(err).replace('\n', " "), 500)
}
