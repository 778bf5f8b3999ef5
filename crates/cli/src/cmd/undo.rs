//! `epitome undo`: undoes a run, by default the newest one that is at least partly in effect.

use clap::Args as ClapArgs;
use epitome::ops::What;
use epitome::runs::runs;

use super::restore::find_run;
use super::restore::many::{How, Wanted, give_back};
use crate::app::App;
use crate::failure::Result;
use crate::text::{DIM, age, count};

const EXAMPLES: &str = "\
Examples:
  epitome undo                 undo the last compact or watch
  epitome undo --dry-run       show what that would restore
  epitome undo 3f9a01c4        undo that run; `epitome log` lists them";

/// Undo one run of compact, watch, the viewer or a hook
///
/// Without an id this is the last run that is not completely undone. All its sessions are checked
/// first. A session that another program changed, or that was compacted again since, is left
/// unchanged and named: `epitome restore` can restore the parts that are certain.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The id of a run, or its prefix
    #[arg(value_name = "RUN")]
    pub run: Option<String>,

    /// Change nothing, and print the same report
    #[arg(long)]
    pub dry_run: bool,

    /// Proceed although another program has a session open
    #[arg(long)]
    pub force: bool,

    /// Do not ask before more than one session is written; required without a terminal
    #[arg(long, short)]
    pub yes: bool,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let log = runs(&app.config)?;
    let unread = log.unread.clone();
    let run = match &args.run {
        Some(id) => Some(find_run(log, id)?),
        None => log.last_in_effect()?,
    };
    if let Some(run) = &run {
        let id = &run.id;
        let command = &run.command;
        let when = age(app.config.now(), run.at);
        let sessions = count(run.sessions.len() as u64, "session");
        app.note(&format!("{DIM}run {id}: {command}, {when}, {sessions}{DIM:#}"));
    }
    let sessions = run.as_ref().map(|run| run.sessions.as_slice()).unwrap_or_default();
    let id = run.as_ref().map(|run| run.id.as_str()).unwrap_or_default();
    let wanted = sessions.iter().map(|session| Wanted {
        path: session.path.clone(),
        what: What::Run { id, files: &session.files },
    });
    let wanted: Vec<Wanted<'_>> = wanted.collect();
    let &Args { dry_run, force, yes, .. } = args;
    give_back(
        app,
        &How { done: "undone", verb: "undo", dry_run, force, yes, partial: false },
        &wanted,
        unread,
    )
}
