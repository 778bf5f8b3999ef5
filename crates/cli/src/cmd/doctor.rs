//! `epitome doctor`: the agents on this machine, and what deserves attention.

use std::fmt::Write as _;

use clap::Args as ClapArgs;
use epitome::doctor::{AgentState, Checkup, Finding, KeepState, ProxyState, checkup};

use crate::app::App;
use crate::failure::Result;
use crate::text::{self, BOLD, DIM, GREEN, YELLOW, count, field};

const EXAMPLES: &str = "\
Examples:
  epitome doctor
  epitome doctor --json | jq -r '.agents[].findings[].mend'";

/// Show which agents are on this machine, what is installed in their settings, and what to mend
///
/// Runs each agent's program to print its version. Says if an agent is about to delete sessions
/// (Claude Code deletes those that were not used for 30 days). Nothing is changed.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {}

pub fn run(app: &App, _args: &Args) -> Result<()> {
    let checkup = checkup(&app.config)?;
    if app.global.json {
        return app.print_json(&checkup);
    }
    app.page_folded(&render(&checkup))
}

fn render(checkup: &Checkup) -> String {
    let mut shown = String::new();
    if checkup.agents.is_empty() {
        shown.push_str("no agent that epitome knows is on this machine\n");
    }
    for state in &checkup.agents {
        agent(&mut shown, state);
    }
    keep(&mut shown, &checkup.keep);
    for unread in &checkup.unread {
        let _ = writeln!(shown, "{YELLOW}not read:{YELLOW:#} {}", field(unread));
    }
    match checkup.problems() {
        0 => {
            let _ = writeln!(shown, "{GREEN}nothing is broken{GREEN:#}");
        }
        n => {
            let problems = count(n as u64, "thing");
            let _ = writeln!(shown, "{YELLOW}{problems} to mend{YELLOW:#}");
        }
    }
    shown
}

fn agent(shown: &mut String, state: &AgentState) {
    let colour = text::agent_colour(state.agent);
    let version = state.version.as_deref().map_or("program not found".to_owned(), field);
    let _ = writeln!(shown, "{colour}{}{colour:#}  {BOLD}{version}{BOLD:#}", state.agent);
    let sessions = count(state.sessions, "session");
    let _ = writeln!(shown, "  {sessions} in {}", text::path(&state.folder));
    for installed in &state.installed {
        let file = text::path(&installed.file);
        let _ = writeln!(shown, "  installed: {} in {file}", installed.what);
    }
    if let Some(state) = &state.proxy {
        proxy(shown, state);
    }
    state.findings.iter().for_each(|it| finding(shown, it));
    shown.push('\n');
}

/// Adds the state of `epitome keep`. Adds nothing if it does not run, has kept no version, and has
/// no installed service.
fn keep(shown: &mut String, state: &KeepState) {
    let KeepState { is_running, has_versions, service, findings } = state;
    if !is_running && !has_versions && service.is_none() {
        return;
    }
    let does = if *is_running { "runs" } else { "does not run" };
    let _ = writeln!(shown, "{BOLD}epitome keep{BOLD:#}  {does}");
    if let Some(service) = service {
        let _ = writeln!(shown, "  installed: service in {}", text::path(&service.file));
    }
    findings.iter().for_each(|it| finding(shown, it));
    shown.push('\n');
}

fn finding(shown: &mut String, finding: &Finding) {
    let Finding { kind, what, mend } = finding;
    let style = if kind.is_problem() { YELLOW } else { DIM };
    let _ = writeln!(shown, "  {style}{}{style:#}", field(what));
    let _ = writeln!(shown, "    {DIM}→ {}{DIM:#}", field(mend));
}

/// Adds a line that says what the proxy would set for an agent, and which setting of the agent
/// takes precedence, if there is one.
fn proxy(shown: &mut String, state: &ProxyState) {
    let ProxyState { command, sets, overridden_by } = state;
    let sets = sets.join(", ");
    match overridden_by {
        None => {
            let _ = writeln!(shown, "  {DIM}proxy: {command} sets {sets} for that run{DIM:#}");
        }
        Some(other) => {
            let file = text::path(&other.file);
            let setting = field(&other.setting);
            let _ = writeln!(
                shown,
                "  proxy: {command} sets {sets}, {YELLOW}but {setting} in {file} takes \
                 precedence{YELLOW:#}"
            );
        }
    }
}
