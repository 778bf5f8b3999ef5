//! Records the sessions of `testing/fixtures` again: `record AGENT OUT`.

use agents::Agent;
use agents::scenario::Scenario;
use anyhow::Context;
use clap::Parser;
use std::fs;
use std::path::PathBuf;

/// Plays the scenario in a real agent and writes its session to OUT.
#[derive(Debug, Parser)]
struct Args {
    /// The name of an agent: pi, claude, codex …
    #[arg(value_parser = agents::find_agent)]
    agent: &'static dyn Agent,
    /// The session file to write; files of sub-agents are written to a folder next to it.
    out: PathBuf,
    /// Record a shorter session that the agent itself compacts.
    #[arg(long)]
    own_compaction: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let scenario = if args.own_compaction {
        Scenario::own_compaction(args.agent)
    } else {
        Scenario::full(args.agent)
    };
    let recording = agents::record::record(args.agent, &scenario)?;
    let folder_of_session = args.out.with_extension("");
    if folder_of_session.is_dir() {
        // Sub-agents have new names in every recording.
        fs::remove_dir_all(&folder_of_session)
            .with_context(|| folder_of_session.display().to_string())?;
    }
    for (index, file) in recording.scrubbed()?.into_iter().enumerate() {
        let path = match index {
            0 => args.out.clone(),
            _ => folder_of_session.join(&file.name),
        };
        let folder = path.parent().context("a file has a folder")?;
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        fs::write(&path, file.text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
