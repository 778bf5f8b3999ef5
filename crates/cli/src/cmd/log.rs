//! `epitome log`: the runs that compacted sessions.

use clap::Args as ClapArgs;
use epitome::runs::{LoggedRun, RunState, runs};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::table::{Side, Table};
use crate::text::{DIM, age, change, count, one_line};

/// List the runs that compacted sessions, the last first
///
/// `epitome undo RUN` undoes one.
#[derive(ClapArgs, Clone, Debug)]
pub struct Args {
    /// Only the last N runs
    #[arg(long, short = 'n', value_name = "N")]
    pub limit: Option<usize>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let mut log = runs(&app.config)?;
    for err in log.unread.drain(..).chain(log.unread_sessions.drain(..)) {
        app.warn(Some(&Failure::from(err).one_line()));
    }
    log.runs.truncate(args.limit.unwrap_or(usize::MAX));
    if app.global.json {
        return log.runs.iter().try_for_each(|run| app.print_json(run));
    }
    let mut text = if log.runs.is_empty() { "no runs\n".to_owned() } else { table(app, &log.runs) };
    if log.without_run > 0 {
        let n = count(log.without_run, "compaction");
        let what = "of older versions, which stored no run: `epitome archive ls` lists them";
        text.push_str(&format!("{DIM}and {n} {what}{DIM:#}\n"));
    }
    app.page(&text)
}

fn table(app: &App, runs: &[LoggedRun]) -> String {
    use Side::{Left, Right};
    let sides =
        [Left, Right, Left, Left, Right, Right, Left, Right, Right, Right, Left, Right, Left];
    let heads = [
        "run", "age", "by", "recipe", "sessions", "messages", "", "after", "", "disk", "", "after",
        "",
    ];
    let table = Table::new(&sides, &heads).shrinks(3, 8);
    let mut table = table.leaves_out(&[9, 10, 11, 3]);
    for run in runs {
        let context = run.context_tokens;
        let disk = run.disk_bytes;
        let recipes: Vec<&str> = run.recipes.iter().map(String::as_str).collect();
        table.row(vec![
            run.id.clone(),
            age(app.config.now(), run.at),
            one_line(&run.command, 10),
            one_line(&recipes.join(", "), 20),
            run.sessions.len().to_string(),
            context.before.to_string(),
            "→".to_owned(),
            context.after.to_string(),
            change(context.before.0, context.after.0),
            disk.before.to_string(),
            "→".to_owned(),
            disk.after.to_string(),
            state(run),
        ]);
    }
    table.render()
}

/// Says what is left of a run. The state of a run is that of those of its sessions that can be
/// read, so the number of the others is named.
fn state(run: &LoggedRun) -> String {
    let gone = run.sessions.iter().filter(|session| session.state == RunState::Gone).count();
    let state = match run.state {
        RunState::InEffect => "",
        RunState::PartlyUndone => "partly undone",
        RunState::Undone => "undone",
        RunState::Gone => return "sessions gone".to_owned(),
    };
    match (state, gone) {
        (_, 0) => state.to_owned(),
        ("", gone) => format!("{gone} gone"),
        (state, gone) => format!("{state}, {gone} gone"),
    }
}
