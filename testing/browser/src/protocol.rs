//! The parts of Chromium's DevTools protocol that a window needs: calls, answers and events.
//! <https://chromedevtools.github.io/devtools-protocol/>

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket, client};

use crate::Chromium;

/// How long to wait for a message of the browser.
const SILENCE: Duration = Duration::from_mins(2);

/// A running browser with one page.
pub(crate) struct Page {
    browser: Child,
    socket: WebSocket<TcpStream>,
    /// The id of the page's session, to which calls are sent. `None` before the page is open: then
    /// calls are sent to the browser itself.
    session: Option<String>,
    calls: u64,
    /// Events that were received and not read yet.
    events: Vec<Value>,
}

impl Page {
    /// Starts a browser and opens an empty page.
    pub(crate) fn open(chromium: &Chromium, args: &[String]) -> anyhow::Result<Page> {
        let mut browser = Command::new(&chromium.program)
            .args(args)
            .args(["--headless", "--remote-debugging-port=0", "about:blank"])
            .envs(chromium.variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| chromium.program.display().to_string())?;
        let stderr = browser.stderr.take().context("it is piped")?;
        let mut lines = BufReader::new(stderr).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_prefix("DevTools listening on ")?.to_owned()));
        // Read the browser's further output, so that it never blocks on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.context("the browser does not listen")?;
        let host = address.split('/').nth(2).context("an address has a host")?;
        let stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(SILENCE))?;
        let (socket, _) =
            client(address.as_str(), stream).context("the browser does not answer")?;
        let mut page = Page { browser, socket, session: None, calls: 0, events: Vec::new() };
        let made = page.call("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let to = json!({ "targetId": made["targetId"], "flatten": true });
        let session = page.call("Target.attachToTarget", &to)?;
        page.session = session["sessionId"].as_str().map(str::to_owned);
        ensure!(page.session.is_some(), "the browser opens no page");
        Ok(page)
    }

    /// Calls a method and waits for its answer. Events that arrive meanwhile are kept, and dialogs
    /// are closed without a confirmation.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let call = self.send(method, params)?;
        loop {
            let Message::Text(text) = self.socket.read().with_context(|| method.to_owned())? else {
                continue;
            };
            let mut reply: Value = serde_json::from_str(&text)?;
            if reply["id"] == call {
                if let Some(error) = reply.get("error") {
                    bail!("{method}: {error}");
                }
                return Ok(reply["result"].take());
            }
            if reply["method"] == "Page.javascriptDialogOpening" {
                // A dialog blocks the page until it is closed.
                self.send("Page.handleJavaScriptDialog", &json!({ "accept": false }))?;
            }
            if reply.get("method").is_some() {
                self.events.push(reply);
            }
        }
    }

    /// Removes and returns the events since the last call.
    pub(crate) fn events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    fn send(&mut self, method: &str, params: &Value) -> anyhow::Result<u64> {
        self.calls += 1;
        let mut call = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            call["sessionId"] = session.as_str().into();
        }
        self.socket.send(Message::text(call.to_string()))?;
        Ok(self.calls)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.browser.kill().ok();
        self.browser.wait().ok();
    }
}
