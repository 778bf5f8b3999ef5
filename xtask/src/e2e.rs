//! `cargo xtask e2e`: sessions of the real agents, compacted by the real program.

use agents::Agent;
use agents::e2e::{Report, Way};
use anyhow::ensure;

use crate::{cargo, print, say};

/// Builds `epitome` and takes a session of each named agent the whole way: record, compact,
/// resume, restore, resume. All agents when none is named; then also what the recorded sessions
/// and the model server promise is tried with the real agents.
///
/// # Errors
///
/// When the program does not build, an agent cannot be installed, or the way breaks off.
pub(crate) fn run(names: &[&str]) -> anyhow::Result<()> {
    let epitome = cargo::epitome("dev")?;
    let chosen = match names {
        [] => Agent::ALL.to_vec(),
        names => names.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
    };
    let mut failed = Vec::new();
    let mut rows = Vec::new();
    let ways = |agent| Way::of(agent).iter().map(move |way| (agent, *way));
    for (agent, way) in chosen.into_iter().flat_map(ways) {
        match agents::e2e::run(agent, way, &epitome) {
            Ok(report) => rows.push(row(&report)),
            Err(err) => {
                say(&format!("{}: {err:#}", agent.name()));
                failed.push(agent.name());
            }
        }
    }
    print(
        "| agent | way | file before | after | sent before | after | stubs sent | appended \
         | seconds |",
    );
    print("|---|---|---|---|---|---|---|---|---|");
    rows.iter().for_each(|row| print(row));
    ensure!(failed.is_empty(), "failed with: {}", failed.join(", "));
    if names.is_empty() {
        let test = ["--features", "real-agents", "--test", "real_agents"];
        cargo::run(&[&["cargo", "test", "--quiet", "-p", "agents"], &test[..]].concat(), &[])?;
    }
    Ok(())
}

fn row(report: &Report) -> String {
    let Report { agent, way, original, compacted, appended, seconds, .. } = report;
    let way = match way {
        Way::Rewrite => "rewrite",
        Way::Native => "native",
    };
    format!(
        "| {agent} | {way} | {} | {} | {} | {} | {} | {appended} | {seconds:.1} |",
        original.file_bytes,
        compacted.file_bytes,
        original.history_bytes,
        compacted.history_bytes,
        compacted.stubs,
    )
}
