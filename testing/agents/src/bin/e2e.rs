//! Takes a session of each agent the whole way: `e2e EPITOME [AGENT…]`.

use agents::Agent;
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Records, compacts, resumes, restores and resumes again; prints one JSON report an agent.
#[derive(Debug, Parser)]
struct Args {
    /// The program to compact with.
    epitome: PathBuf,
    /// pi, pi-chat, claude; all of them when none is named.
    agents: Vec<Agent>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let agents = if args.agents.is_empty() { Agent::ALL.to_vec() } else { args.agents };
    let mut failed = false;
    for agent in agents {
        match agents::e2e::run(agent, &args.epitome) {
            Ok(report) => show(&serde_json::to_string_pretty(&report)?),
            Err(error) => {
                failed = true;
                show(&format!("{}: {error:?}", agent.name()));
            }
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[expect(clippy::print_stdout, reason = "the report is what the program is asked for")]
fn show(text: &str) {
    println!("{text}");
}
