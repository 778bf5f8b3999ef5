//! A window of the browser, which records all requests and dialogs.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::Chromium;
use crate::protocol::Page;

/// Options: no requests of the browser itself, and no sandbox, which does not work if tests run as
/// root in a container.
const QUIET: [&str; 9] = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
];
/// Maximum time to wait for a condition, in milliseconds.
const PATIENCE: u64 = 60_000;
/// How often a click is tried.
const TRIES: usize = 20;
/// How often a wait is begun again, at most, because a navigation ended it.
const LEFT: usize = 1_000;

/// A window that records the requests and the dialogs of its page.
pub struct Window {
    page: Page,
    requests: Vec<String>,
    dialogs: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Window {
    /// Opens a window of this size in pixels.
    ///
    /// # Errors
    ///
    /// If the browser does not start.
    pub fn open(chromium: &Chromium, size: (u32, u32)) -> anyhow::Result<Window> {
        let profile = tempfile::tempdir()?;
        let mut args: Vec<String> = QUIET.iter().map(|it| (*it).to_owned()).collect();
        args.push(format!("--user-data-dir={}", profile.path().display()));
        let page = Page::open(chromium, &args)?;
        let (requests, dialogs) = (Vec::new(), Vec::new());
        let mut window = Window { page, requests, dialogs, _profile: profile };
        window.call("Network.enable", &json!({}))?;
        window.call("Page.enable", &json!({}))?;
        window.resize(size)?;
        Ok(window)
    }

    /// Goes to an address.
    ///
    /// # Errors
    ///
    /// If the address cannot be loaded, or the page is not complete in time.
    pub fn go(&mut self, address: &str) -> anyhow::Result<()> {
        let went = self.call("Page.navigate", &json!({ "url": address }))?;
        ensure!(went.get("errorText").is_none(), "{}", went["errorText"]);
        self.until("document.readyState === 'complete' && location.protocol !== 'about:'")
    }

    /// Evaluates a JavaScript expression.
    ///
    /// # Errors
    ///
    /// If the expression throws, or the browser reports an error.
    pub fn value(&mut self, expression: &str) -> anyhow::Result<Value> {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut reply = self.call("Runtime.evaluate", &asked)?;
        if let Some(thrown) = reply.get("exceptionDetails") {
            bail!("{expression}: {thrown}");
        }
        Ok(reply["result"]["value"].take())
    }

    /// Waits until an expression is true, also if the window navigates meanwhile.
    ///
    /// # Errors
    ///
    /// If the expression does not become true in time.
    pub fn until(&mut self, expression: &str) -> anyhow::Result<()> {
        let promise = format!(
            "new Promise((answer) => {{
               const holds = () => {{
                 try {{ return Boolean({expression}); }} catch {{ return false; }}
               }};
               const look = () => {{ if (holds()) answer('yes'); }};
               new MutationObserver(look).observe(document,
                 {{ subtree: true, childList: true, attributes: true, characterData: true }});
               for (const event of ['scroll', 'hashchange', 'load', 'readystatechange', 'resize'])
                 addEventListener(event, look, true);
               setTimeout(() => answer('never'), {PATIENCE});
               look();
             }})"
        );
        // A navigation cancels the promises of the old page.
        for _ in 0..LEFT {
            match self.value(&promise) {
                Ok(said) if said == "yes" => return Ok(()),
                Ok(said) if said == "never" => break,
                Ok(_) | Err(_) => {}
            }
        }
        let shown = "`${location.pathname}${location.hash}\\n${document.body.innerText}`";
        let shown = self.value(&format!("{shown}.slice(0, 4000)")).unwrap_or_default();
        bail!("never: {expression}\n{}", shown.as_str().unwrap_or_default())
    }

    /// Clicks on an element with the mouse. If the element moves meanwhile, the click is repeated.
    ///
    /// # Errors
    ///
    /// If no such element appears in time, or none of the clicks hits it.
    pub fn click(&mut self, selector: &str) -> anyhow::Result<()> {
        for _ in 0..TRIES {
            self.until(&format!("document.querySelector({selector:?})"))?;
            let at = self.value(&format!(
                "(() => {{
                   const it = document.querySelector({selector:?});
                   globalThis.isHit = false;
                   it.addEventListener('click', () => {{ globalThis.isHit = true; }}, true);
                   it.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                   const {{ x, y, width, height }} = it.getBoundingClientRect();
                   return [x + Math.min(width / 2, 20), y + Math.min(height / 2, 10)];
                 }})()"
            ));
            // The element may just have been replaced.
            let Ok(at) = at else { continue };
            for kind in ["mousePressed", "mouseReleased"] {
                let event = json!({
                    "type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1,
                });
                self.call("Input.dispatchMouseEvent", &event)?;
            }
            // After a navigation this variable is not defined.
            match self.value("globalThis.isHit") {
                Ok(missed) if missed == false => {}
                Ok(_) | Err(_) => return Ok(()),
            }
        }
        bail!("{selector} cannot be clicked on")
    }

    /// Clicks on an element and types into it.
    ///
    /// # Errors
    ///
    /// As for [`click`](Window::click), or if the browser reports an error.
    pub fn write(&mut self, selector: &str, text: &str) -> anyhow::Result<()> {
        self.click(selector)?;
        self.call("Input.insertText", &json!({ "text": text }))?;
        Ok(())
    }

    /// Presses a key: one that writes a character, `Enter` or `Escape`.
    ///
    /// # Errors
    ///
    /// If the browser reports an error.
    pub fn press(&mut self, key: &str) -> anyhow::Result<()> {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            _ => (0, key),
        };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({
                "type": kind, "key": key, "text": if kind == "keyDown" { text } else { "" },
                "windowsVirtualKeyCode": code,
            });
            self.call("Input.dispatchKeyEvent", &event)?;
        }
        Ok(())
    }

    /// Resizes the window.
    ///
    /// # Errors
    ///
    /// If the browser reports an error.
    pub fn resize(&mut self, (width, height): (u32, u32)) -> anyhow::Result<()> {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size)?;
        Ok(())
    }

    /// Writes a screenshot of the visible part of the page to a file as PNG, and returns its bytes.
    ///
    /// # Errors
    ///
    /// If the screenshot cannot be made or written.
    pub fn picture(&mut self, file: &Path) -> anyhow::Result<Vec<u8>> {
        let made = self.call("Page.captureScreenshot", &json!({ "format": "png" }))?;
        let bytes = STANDARD.decode(made["data"].as_str().context("a picture")?)?;
        std::fs::write(file, &bytes).with_context(|| file.display().to_string())?;
        Ok(bytes)
    }

    /// The addresses of all requests in order, also of web sockets.
    pub fn requests(&self) -> &[String] {
        &self.requests
    }

    /// The texts of dialogs that scripts have opened.
    pub fn dialogs(&self) -> &[String] {
        &self.dialogs
    }

    fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let reply = self.page.call(method, params);
        for event in self.page.events() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let params = &event["params"];
            match event["method"].as_str() {
                Some("Network.requestWillBeSent") => {
                    self.requests.push(text(&params["request"]["url"]));
                }
                Some("Network.webSocketCreated") => self.requests.push(text(&params["url"])),
                Some("Page.javascriptDialogOpening") => self.dialogs.push(text(&params["message"])),
                _ => {}
            }
        }
        reply
    }
}
