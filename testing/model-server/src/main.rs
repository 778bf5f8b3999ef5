//! Runs the scripted model server on its own: `model-server SCRIPT.json [--port N] [--log FILE]`.

use anyhow::Context;
use clap::Parser;
use model_server::{Options, Script, Server};
use std::path::PathBuf;

/// A scripted model on 127.0.0.1 that refuses what the real services refuse.
#[derive(Debug, Parser)]
struct Args {
    /// The script: `{"steps": [{"thinking"?, "text"?, "calls": [{"name", "input"}]}]}`.
    script: PathBuf,
    /// The port; 0 takes any free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Append every request and its outcome to this file, one JSON object a line.
    #[arg(long)]
    log: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let text = std::fs::read(&args.script).with_context(|| args.script.display().to_string())?;
    let script: Script = serde_json::from_slice(&text).context("the script is not understood")?;
    let server = Server::start_with(script, &Options { port: args.port, log: args.log })?;
    announce(server.port());
    server.join();
    Ok(())
}

/// The port is this program's output: whoever started it waits for this line.
#[expect(clippy::print_stdout, reason = "the port is what the program is asked for")]
fn announce(port: u16) {
    println!("{port}");
}
