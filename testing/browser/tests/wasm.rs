//! Uses the npm package in WebAssembly as a page does: in a real Chromium, from files that a server
//! on 127.0.0.1 sends.
//!
//! `cargo lab e2e node` makes the package first, and reports it if there is no Chromium.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use browser::{Window, chromium};
use serde_json::json;

/// A conversation that is too long for its window, and what the context makes of it.
const TALK: &str = r##"
async (module) => {
  const { Context, load } = await import(module);
  await load();
  const context = new Context({ window: 8_000 });
  context.push({ role: "user", content: "Keep to TOML, and read all of it." });
  for (let n = 0; n < 12; n += 1) {
    const call = { type: "tool_use", id: `c${n}`, name: "Read", input: { path: `${n}.rs` } };
    const content = `line of ${n}\n`.repeat(300);
    const result = { type: "tool_result", tool_use_id: `c${n}`, content };
    context.push({ role: "assistant", content: [call] });
    context.push({ role: "user", content: [result] });
  }
  const sent = JSON.stringify(await context.view());
  const recalled = await context.recall("#1");
  return {
    isShort: sent.length < 24_000,
    keepsRequest: sent.includes("Keep to TOML"),
    recalled: recalled === "line of 0\n".repeat(300),
  };
}
"##;

#[test]
fn a_page_and_a_worker_shorten_a_conversation() -> anyhow::Result<()> {
    let package = std::env::var_os("TEST_PACKAGE")
        .context("TEST_PACKAGE does not name the package: run `cargo lab e2e node`")?;
    let address = serve(PathBuf::from(package))?;
    let mut window = Window::open(&chromium()?, (800, 600))?;
    window.go(&address)?;
    let expected = json!({ "isShort": true, "keepsRequest": true, "recalled": true });
    let module = format!("{address}wasm.js");
    assert_eq!(window.value(&format!("({TALK})({module:?})"))?, expected);
    let in_worker = format!(
        "new Promise((answer, fail) => {{
           const code = `({TALK})({module:?}).then(postMessage, (why) => postMessage(String(why)))`;
           const worker = new Worker(URL.createObjectURL(new Blob([code])));
           worker.onmessage = (message) => answer(message.data);
           worker.onerror = (why) => fail(new Error(why.message));
         }})",
        TALK = TALK.replace('\\', "\\\\").replace('`', "\\`").replace("${", "\\${"),
    );
    assert_eq!(window.value(&in_worker)?, expected);
    Ok(())
}

/// Sends the files of a folder from now on. Returns the address of the folder.
fn serve(folder: PathBuf) -> anyhow::Result<String> {
    ensure!(folder.join("wasm.js").is_file(), "{}: no wasm.js", folder.display());
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = format!("http://{}/", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A browser also opens connections that it does not use.
            send(stream, &folder).ok();
        }
    });
    Ok(address)
}

/// Answers one request.
fn send(mut stream: TcpStream, folder: &Path) -> anyhow::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().context("no request")??;
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let name = request.split(' ').nth(1).context("no path")?.trim_start_matches('/');
    let found = fs::read(folder.join(name)).ok();
    let (status, body) = match (name, found) {
        ("", _) => ("200 OK", b"<!doctype html><title>package</title>".to_vec()),
        (_, Some(bytes)) => ("200 OK", bytes),
        (_, None) => ("404 Not Found", Vec::new()),
    };
    let kind = match Path::new(name).extension().and_then(|end| end.to_str()) {
        Some("js") => "text/javascript",
        Some("wasm") => "application/wasm",
        Some(_) | None => "text/html",
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}");
    stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes())?;
    Ok(stream.write_all(&body)?)
}
