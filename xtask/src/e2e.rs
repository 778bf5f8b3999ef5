//! `cargo xtask e2e`: sessions of the real agents, compacted by the real program.

use std::path::Path;

use agents::Agent;
use agents::carry;
use agents::e2e::{Report, Way};
use anyhow::ensure;

use crate::{cargo, print, say};

/// Builds `epitome` and takes a session of each named agent the whole way: record, compact,
/// resume, restore, resume. All agents when none is named; then sessions are also carried from
/// agent to agent, and what the recorded sessions and the model server promise is tried with the
/// real agents. `port` carries sessions alone.
///
/// # Errors
///
/// When the program does not build, an agent cannot be installed, or the way breaks off.
pub(crate) fn run(names: &[&str]) -> anyhow::Result<()> {
    let epitome = cargo::epitome("dev")?;
    if names == ["port"] {
        return carried(&epitome);
    }
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
        carried(&epitome)?;
        let test = ["--features", "real-agents", "--test", "real_agents"];
        cargo::run(&[&["cargo", "test", "--quiet", "-p", "agents"], &test[..]].concat(), &[])?;
    }
    Ok(())
}

/// Carries a recorded session of each agent to each other.
fn carried(epitome: &Path) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    print("| from | to | calls | results | pictures | texts found | left behind | seconds |");
    print("|---|---|---|---|---|---|---|---|");
    for from in carry::AGENTS {
        let text = String::from_utf8(fixtures::get(from.name(), "pricing").bytes())?;
        for to in carry::AGENTS.into_iter().filter(|to| *to != from) {
            match carry::run(from, &text, to, epitome) {
                Ok(carry::Report { from, to, seconds, sent_again, texts, left_behind, .. }) => {
                    let left = left_behind.to_string().replace('"', "");
                    let left = left.trim_matches(['{', '}']).replace(':', " ").replace(',', ", ");
                    print(&format!(
                        "| {from} | {to} | {} | {} | {} | {texts} | {left} | {seconds:.1} |",
                        sent_again.calls, sent_again.results, sent_again.images,
                    ));
                }
                Err(err) => {
                    let way = format!("{} to {}", from.name(), to.name());
                    say(&format!("{way}: {err:#}"));
                    failed.push(way);
                }
            }
        }
    }
    ensure!(failed.is_empty(), "not carried: {}", failed.join(", "));
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
