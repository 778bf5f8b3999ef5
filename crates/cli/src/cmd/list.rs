//! `epitome list`: the sessions of this machine.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args as ClapArgs;
use epitome::agents;
use epitome::list::{Listed, SessionInfo, list};
use epitome::ops::Fitted;
use epitome::recipes;
use epitome::storage::writer;
use epitome_formats::named;
use epitome_model::{Bytes, Tokens};
use epitome_passes::Overlay;
use jiff::Timestamp;
use serde::Serialize;

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::session::{self, Which};
use crate::text::{self, BOLD, DIM, Side, Table, count, one_line, share};

const EXAMPLES: &str = "\
Examples:
  epitome list
  epitome list --agent claude --project .
  epitome list --json | jq -r 'select(.saving_tokens > 50000) | .session'";

/// List the sessions of this machine, sorted by what compacting would save
///
/// Tokens are estimated, and results are cached: only changed sessions are read again.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub which: Which,
}

/// A session in JSON. See `docs/json.md`.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(serialize_with = "crate::text::lossy")]
    session: &'a Path,
    agent: &'a str,
    id: &'a str,
    project: Option<&'a str>,
    title: Option<&'a str>,
    modified: Option<Timestamp>,
    disk_bytes: Bytes,
    turns: Option<u64>,
    context_tokens: Option<Tokens>,
    request_tokens: Option<Tokens>,
    calibration: Option<Fitted>,
    saving_tokens: Option<Tokens>,
    compactions: u64,
    compactions_in_effect: u64,
    restored: bool,
    counter: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let settings = app.settings()?;
    let recipe = recipes::resolve(&app.config, settings, None, &Overlay::default())?;
    let found = session::all(app);
    let mut listed = list(&app.with_rules()?, found.sessions, &recipe);
    listed.retain(|listed| match &listed.seen {
        Ok(seen) => args.which.takes(seen.cwd.as_deref()),
        Err(_) => args.which.project.is_none(),
    });
    // By saving; those that cannot be read last.
    listed.sort_by_key(|listed| {
        std::cmp::Reverse((listed.seen.as_ref().ok().map(|seen| seen.saving), listed.file.modified))
    });
    if listed.is_empty() && !found.unread.is_empty() {
        let what = "no session could be read";
        return Err(Failure::new(Status::Unreadable, "unreadable", what)
            .hint("the messages above say what could not be read"));
    }
    if app.global.json {
        return listed.iter().try_for_each(|listed| app.print_json(&Row::of(listed)));
    }
    if listed.is_empty() {
        return nothing(app, args);
    }
    app.print(&render(app, &listed))
}

impl<'a> Row<'a> {
    fn of(listed: &'a Listed) -> Row<'a> {
        let seen = listed.seen.as_ref().ok();
        Row {
            session: &listed.file.path,
            agent: listed.file.agent,
            id: seen.map_or(&listed.file.id, |seen| &seen.id),
            project: seen.and_then(|seen| seen.cwd.as_deref()),
            title: seen.and_then(|seen| seen.title.as_deref()),
            modified: Timestamp::try_from(listed.file.modified).ok(),
            disk_bytes: listed.size(),
            turns: seen.and_then(|seen| seen.turns),
            context_tokens: seen.and_then(|seen| seen.context),
            request_tokens: seen.and_then(|seen| seen.request),
            calibration: seen.and_then(|seen| seen.calibration).as_ref().map(Fitted::of),
            saving_tokens: seen.map(|seen| seen.saving),
            compactions: listed.compactions,
            compactions_in_effect: seen.map_or(0, |seen| seen.in_effect),
            restored: seen.is_some_and(|seen| seen.restored),
            counter: "estimate",
            error: listed.seen.as_ref().err().map(String::as_str),
        }
    }
}

fn nothing(app: &App, args: &Args) -> Result<()> {
    app.print("no sessions\n")?;
    if args.which.project.is_none() {
        let folders: Vec<String> =
            agents::folders(&app.config.agents).iter().map(|it| text::path(it)).collect();
        app.note(&format!("{DIM}looked in {}{DIM:#}", folders.join(", ")));
    }
    Ok(())
}

fn render(app: &App, listed: &[Listed]) -> String {
    use Side::{Left, Right};
    let heads =
        ["agent", "session", "age", "disk", "messages", "saves", "", "", "project", "title"];
    let sides = [Left, Left, Right, Right, Right, Right, Right, Left, Left, Left];
    let mut table = Table::new(&sides, &heads);
    let now = app.config.now();
    let ids: Vec<&str> = listed.iter().map(|it| &*it.file.id).collect();
    for (it, id) in listed.iter().zip(text::short_ids(&ids)) {
        let modified = Timestamp::try_from(it.file.modified).unwrap_or(now);
        let mut cells = vec![it.file.agent.to_owned(), id];
        cells.extend([text::age(now, modified), it.size().to_string()]);
        match &it.seen {
            Ok(seen) => {
                cells.push(seen.context.map_or("-".to_owned(), |context| format!("~{context}")));
                cells.extend(saves(it, seen));
                cells.push(project(seen.cwd.as_deref()));
                cells.push(one_line(seen.title.as_deref().unwrap_or(""), 48));
                table.row(cells);
            }
            Err(why) => {
                cells.extend(["-", "-", "-", "", "-"].map(str::to_owned));
                cells.push(format!("({})", one_line(why, 60)));
                table.styled(DIM, cells);
            }
        }
    }
    let mut text = table.render();
    let all: Tokens = listed.iter().filter_map(|it| it.seen.as_ref().ok()?.context).sum();
    let saving: Tokens = listed.iter().filter_map(|it| Some(it.seen.as_ref().ok()?.saving)).sum();
    let disk: Bytes = listed.iter().map(Listed::size).sum();
    let _ = writeln!(
        text,
        "\n{BOLD}{}{BOLD:#}, {disk} on disk, ~{all} tokens of messages, of which compacting saves \
         ~{saving} ({})\n{DIM}~ is an estimate: `epitome inspect` counts a session exactly, and \
         says what the provider bills for it{DIM:#}",
        count(listed.len() as u64, "session"),
        share(saving.0, all.0),
    );
    text
}

/// What compacting saves, as tokens and as a share of the context, and whether the session is
/// compacted or read-only.
fn saves(it: &Listed, seen: &SessionInfo) -> [String; 3] {
    if named(it.file.agent).is_some_and(|format| writer(format).is_err()) {
        return ["-", "-", "read-only"].map(str::to_owned);
    }
    let part = share(seen.saving.0, seen.context.map_or(0, |context| context.0));
    let state = if it.is_compacted() { "compacted" } else { "" };
    [format!("~{}", seen.saving), part, state.to_owned()]
}

/// The last two folders of a project's path.
fn project(cwd: Option<&str>) -> String {
    let Some(cwd) = cwd else { return "-".to_owned() };
    let parts: Vec<&str> = cwd.rsplit(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let last: Vec<&str> = parts.into_iter().take(2).collect();
    one_line(&last.into_iter().rev().collect::<Vec<_>>().join("/"), 32)
}
