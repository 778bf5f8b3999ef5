//! `epitome log`: the runs that compacted sessions.

use std::path::Path;

use clap::Args as ClapArgs;
use epitome::ops::Change;
use epitome::runs::{LoggedRun, RunSession, RunState, runs};
use epitome_model::{Bytes, Tokens};
use jiff::Timestamp;
use serde::Serialize;

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

/// A run in JSON. See `docs/json.md`.
#[derive(Serialize)]
struct Row<'a> {
    run: &'a str,
    command: &'a str,
    at: Timestamp,
    recipes: Vec<&'a str>,
    context_tokens: Change<Tokens>,
    disk_bytes: Change<Bytes>,
    state: State,
    sessions: Vec<SessionRow<'a>>,
}

#[derive(Serialize)]
struct SessionRow<'a> {
    #[serde(serialize_with = "crate::text::lossy")]
    session: &'a Path,
    agent: &'a str,
    id: &'a str,
    context_tokens: Change<Tokens>,
    disk_bytes: Change<Bytes>,
    state: State,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    InEffect,
    PartlyUndone,
    Undone,
    Gone,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let mut log = runs(&app.config)?;
    for err in log.unread.drain(..).chain(log.unread_sessions.drain(..)) {
        app.warn(Some(&Failure::from(err).told()));
    }
    log.runs.truncate(args.limit.unwrap_or(usize::MAX));
    if app.global.json {
        return log.runs.iter().try_for_each(|run| app.print_json(&Row::of(run)));
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
        let row = Row::of(run);
        let (context, disk) = (row.context_tokens, row.disk_bytes);
        table.row(vec![
            row.run.to_owned(),
            age(app.config.now(), row.at),
            one_line(row.command, 10),
            one_line(&row.recipes.join(", "), 20),
            row.sessions.len().to_string(),
            context.before.to_string(),
            "→".to_owned(),
            context.after.to_string(),
            change(context.before.0, context.after.0),
            disk.before.to_string(),
            "→".to_owned(),
            disk.after.to_string(),
            row.state.told().to_owned(),
        ]);
    }
    table.render()
}

impl<'a> Row<'a> {
    fn of(run: &'a LoggedRun) -> Row<'a> {
        Row {
            run: &run.run.id,
            command: &run.run.command,
            at: run.at,
            recipes: run.recipes.iter().map(String::as_str).collect(),
            context_tokens: of(run.tokens()),
            disk_bytes: of(run.bytes()),
            state: State::of(run.state),
            sessions: run.sessions.iter().map(SessionRow::of).collect(),
        }
    }
}

impl<'a> SessionRow<'a> {
    fn of(session: &'a RunSession) -> SessionRow<'a> {
        SessionRow {
            session: &session.path,
            agent: &session.key.agent,
            id: &session.key.id,
            context_tokens: of(session.tokens),
            disk_bytes: of(session.bytes),
            state: State::of(session.state),
        }
    }
}

impl State {
    fn of(state: RunState) -> State {
        match state {
            RunState::InEffect => State::InEffect,
            RunState::Partly => State::PartlyUndone,
            RunState::Undone => State::Undone,
            RunState::Gone => State::Gone,
        }
    }

    fn told(self) -> &'static str {
        match self {
            State::InEffect => "",
            State::PartlyUndone => "partly undone",
            State::Undone => "undone",
            State::Gone => "sessions gone",
        }
    }
}

fn of<T>((before, after): (T, T)) -> Change<T> {
    Change { before, after }
}
