//! `epitome uninstall`: reverts `epitome install`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use epitome::additions::{AdditionKind, Remove};
use epitome::hooks::{FileChange, Purge, Rule, Uninstall};
use epitome::service::ServiceRemoval;
use serde::Serialize;

use super::install::{chosen_addition, describe_rule};
use crate::app::App;
use crate::confirm::ask_to_continue;
use crate::diff;
use crate::failure::{Failure, Result};
use crate::text::{self, BOLD, DIM, count};

const EXAMPLES: &str = "\
Examples:
  epitome uninstall                          for every agent
  epitome uninstall --agent claude --purge   and remove the transcripts";

/// Revert what `epitome install` did
///
/// Agents' settings become what they were, to the byte, except for changes you made since.
/// Transcripts stay unless --purge is given.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Also remove the kept transcripts, and their branch if it was created for them
    #[arg(long)]
    pub purge: bool,

    /// Only what was installed for this folder
    #[arg(long, short, value_name = "DIR")]
    pub project: Option<PathBuf>,

    /// Only what is kept in this folder
    #[arg(long, short, value_name = "DIR", conflicts_with = "project")]
    pub out: Option<PathBuf>,

    /// Only the server of `epitome mcp`
    #[arg(long, conflicts_with_all = ["purge", "project", "out"])]
    pub mcp: bool,

    /// Only the status line
    #[arg(long, conflicts_with_all = ["mcp", "purge", "project", "out"])]
    pub statusline: bool,

    /// Only the command `/epitome`
    #[arg(long, conflicts_with_all = ["mcp", "statusline", "purge", "project", "out"])]
    pub command: bool,

    /// Only the service that keeps every version of sessions
    #[arg(long, conflicts_with_all = ["mcp", "statusline", "command", "purge", "project", "out"])]
    pub keep: bool,

    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// The report. See `docs/json.md`.
#[derive(Serialize)]
struct Done<'a> {
    agent: &'a str,
    rules: &'a [Rule],
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<String>,
}

/// The report on an addition that was removed. See `docs/json.md`.
#[derive(Serialize)]
struct Removed<'a> {
    agent: &'a str,
    removed: AdditionKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<String>,
}

/// The report on the service that was removed. See `docs/json.md`.
#[derive(Serialize)]
struct RemovedService {
    removed: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<String>,
}

impl Args {
    /// The addition whose option was given: the MCP server, the status line or the command. Then
    /// nothing else is removed. `None` if no such option was given.
    fn addition(&self) -> Option<AdditionKind> {
        chosen_addition(self.mcp, self.statusline, self.command)
    }
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let kind = args.addition();
    // Options for a project or a folder are about kept transcripts, so nothing else is removed
    // then.
    let project = args.project.as_deref();
    let out = args.out.as_deref();
    let is_about_folders = project.is_some() || out.is_some();
    let additions = match is_about_folders || args.keep {
        true => Vec::new(),
        false => Remove::plan(&app.config, app.agent(), kind)?,
    };
    let plans = match kind.is_some() || args.keep {
        true => Vec::new(),
        false => Uninstall::plan(&app.config, app.agent(), project, out)?,
    };
    // The service belongs to no agent, so an option that names an agent leaves it installed.
    let is_for_all = kind.is_none() && app.agent().is_none() && !is_about_folders;
    let service = if is_for_all { ServiceRemoval::plan(&app.config)? } else { None };
    if plans.is_empty() && additions.is_empty() && service.is_none() {
        let none = "nothing is installed\n";
        return if app.global.json { Ok(()) } else { app.print(none) };
    }
    let rules: Vec<Rule> = plans.iter().flat_map(|plan| plan.rules.clone()).collect();
    let purges = if args.purge { Purge::plan(&app.config, &rules)? } else { Vec::new() };
    let mut changes = String::new();
    for Remove { settings, .. } in &additions {
        file_change(&mut changes, settings);
    }
    changes.push_str(&describe_changes(&plans, &purges));
    if let Some(ServiceRemoval { change, stop, .. }) = &service {
        let _ = writeln!(changes, "{BOLD}first runs:{BOLD:#} {}", stop.line());
        file_change(&mut changes, change);
    }
    app.note(changes.trim_end());
    ask_to_continue(app, args.yes, "Uninstall this?")?;
    if let Some(service) = &service {
        remove_service(app, service)?;
    }
    for Remove { agent, kind, .. } in &additions {
        remove(app, agent, *kind)?;
    }
    for purge in &purges {
        purge.carry_out().map_err(Failure::writing)?;
    }
    let is_kept = !plans.is_empty();
    for plan in plans {
        // The removal of the additions may have changed the same file, so a new plan is needed.
        let plan = match additions.is_empty() {
            true => plan,
            false => replanned(app, plan, args)?,
        };
        plan.carry_out(&app.config).map_err(Failure::writing)?;
        if app.global.json {
            let left = plan.settings.as_ref().and_then(reason_for_leaving);
            app.print_json(&Done { agent: &plan.agent, rules: &plan.rules, left })?;
        } else {
            app.print(&format!("uninstalled for {}\n", plan.agent))?;
        }
    }
    if is_kept && !args.purge && !app.global.json {
        app.note(&format!("{DIM}transcripts are not removed{DIM:#}"));
    }
    Ok(())
}

/// Stops the service that keeps every version, and removes it. If it cannot be stopped, for example
/// because it does not run, it is removed all the same.
fn remove_service(app: &App, service: &ServiceRemoval) -> Result<()> {
    let stopped = service.stop.run(std::env::var_os("PATH").as_deref());
    service.carry_out(&app.config).map_err(Failure::writing)?;
    if app.global.json {
        let left = reason_for_leaving(&service.change);
        return app.print_json(&RemovedService { removed: "keep", left });
    }
    app.print("uninstalled: the service that keeps versions; the versions stay\n")?;
    if let Err(err) = stopped {
        let why = Failure::from(err).one_line();
        app.note(&format!("{DIM}it was not stopped: {}{DIM:#}", text::field(&why)));
    }
    Ok(())
}

/// Removes an addition. Plans the removal again, because the removal of another addition may have
/// changed the file.
fn remove(app: &App, agent: &str, kind: AdditionKind) -> Result<()> {
    for plan in Remove::plan(&app.config, Some(agent), Some(kind))? {
        plan.carry_out(&app.config).map_err(Failure::writing)?;
        if app.global.json {
            let left = reason_for_leaving(&plan.settings);
            app.print_json(&Removed { agent, removed: kind, left })?;
        } else {
            app.print(&format!("uninstalled for {agent}: {}\n", kind.name()))?;
        }
    }
    Ok(())
}

/// Plans the removal for the same agent again.
fn replanned(app: &App, plan: Uninstall, args: &Args) -> Result<Uninstall> {
    let project = args.project.as_deref();
    let out = args.out.as_deref();
    let again = Uninstall::plan(&app.config, Some(&plan.agent), project, out)?;
    Ok(again.into_iter().next().unwrap_or(plan))
}

fn describe_changes(plans: &[Uninstall], purges: &[Purge]) -> String {
    let mut shown = String::new();
    for plan in plans {
        if let Some(settings) = &plan.settings {
            file_change(&mut shown, settings);
        }
        for rule in &plan.rules {
            let _ = writeln!(shown, "{BOLD}not kept any more:{BOLD:#} {}", describe_rule(rule));
        }
    }
    for Purge { rule, files } in purges {
        let out = text::path(&rule.out);
        match &rule.branch {
            Some(branch) => {
                let name = text::field(&branch.name);
                let goes = if branch.made { "removed" } else { "kept: it existed before" };
                let _ = writeln!(
                    shown,
                    "{BOLD}removed:{BOLD:#} the working tree {out}; the branch {name} is {goes}"
                );
            }
            None => {
                let n = count(files.len() as u64, "file");
                let _ = writeln!(shown, "{BOLD}removed:{BOLD:#} {n} in {out}");
            }
        }
    }
    shown
}

fn file_change(shown: &mut String, change: &FileChange) {
    match change {
        FileChange::Text { file, before, after } => {
            let _ = writeln!(shown, "{BOLD}{}{BOLD:#} changes:", text::path(file));
            diff::lines(shown, before, after);
        }
        FileChange::Gone { file, .. } => {
            let _ = writeln!(shown, "{BOLD}{}{BOLD:#} will be removed", text::path(file));
        }
        FileChange::Kept { .. } | FileChange::Nothing { .. } => {
            let _ = writeln!(shown, "{}", reason_for_leaving(change).unwrap_or_default());
        }
    }
}

/// Why a settings file is left as it is; `None` if it is changed or removed.
fn reason_for_leaving(change: &FileChange) -> Option<String> {
    match change {
        FileChange::Kept { file } => {
            let file = text::path(file);
            Some(format!("{file} is kept: epitome's entry was changed since"))
        }
        FileChange::Nothing { file } => {
            Some(format!("{} is kept: it has no entry of epitome any more", text::path(file)))
        }
        FileChange::Text { .. } | FileChange::Gone { .. } => None,
    }
}
