//! `epitome list`: the sessions of this machine.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use anstyle::Style;
use clap::Args as ClapArgs;
use epitome::agents;
use epitome::keep::deleted_sessions;
use epitome::list::{ListedSession, SessionInfo, Sort, list};
use epitome::recipes;
use epitome_model::{Bytes, Tokens};
use jiff::Timestamp;

use super::keep::warn_of_damage;
use crate::app::App;
use crate::choice::one_of;
use crate::failure::{Failure, Result, Status};
use crate::session::{self, Which};
use crate::table::{Side, Table};
use crate::text::{self, BOLD, DIM, GREEN, PLAIN, count, one_line, share};

const EXAMPLES: &str = "\
Examples:
  epitome list
  epitome list --agent claude --project .
  epitome list --sort time --limit 10
  epitome list --since 7d --sort size
  epitome list --json | jq -r 'select(.saving_tokens > 50000) | .session'";

/// List the sessions of this machine, sorted by what compacting would save
///
/// Tokens are estimated, and results are cached: only changed sessions are read again.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub which: Which,

    /// Sort by this, largest or newest first
    #[arg(long, value_name = "BY", default_value = "saving", value_parser = one_of::<Sort>())]
    pub sort: Sort,

    /// Show only the first N sessions
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// Only sessions last written at most this long ago: 7d, 12h, 2w
    #[arg(long, value_name = "AGE", value_parser = session::parse_age)]
    pub since: Option<Duration>,

    /// List the sessions that were deleted and that `epitome keep` has kept, the last first
    #[arg(long, conflicts_with_all = ["project", "sort"])]
    pub deleted: bool,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    if args.deleted {
        return list_deleted(app, args);
    }
    let settings = app.settings()?;
    let recipe = recipes::resolve(&app.config, settings, None)?;
    let found = session::all(app);
    let bar = app.bar("reading {bar:30} {pos}/{len} sessions {elapsed}", found.sessions.len());
    let mut listed = list(&app.with_rules()?, found.sessions, &recipe, || bar.inc(1));
    bar.finish_and_clear();
    listed.retain(|listed| match &listed.seen {
        Ok(seen) => args.which.takes(seen.cwd.as_deref()),
        Err(_) => args.which.project.is_none(),
    });
    listed.retain(|listed| args.takes(app, listed));
    args.sort.order(&mut listed, |it| (&it.file, Some(it)));
    let found_sessions = listed.len();
    listed.truncate(args.limit.unwrap_or(usize::MAX));
    if listed.is_empty() && !found.unread.is_empty() {
        let what = "no session could be read";
        return Err(Failure::new(Status::Unreadable, "unreadable", what)
            .hint("the messages above say what could not be read"));
    }
    if app.global.json {
        return listed.iter().try_for_each(|listed| app.print_json(&listed.row()));
    }
    if listed.is_empty() {
        return nothing(app, args);
    }
    app.page(&render(app, &listed, found_sessions))
}

/// Lists the sessions that do not exist any more on this machine, and of which `epitome keep` has
/// versions.
fn list_deleted(app: &App, args: &Args) -> Result<()> {
    let vault = app.config.vault()?;
    warn_of_damage(app, &vault);
    let mut found = deleted_sessions(&app.config, &vault, app.agent());
    let now = app.config.now();
    let since = args.since.map(|age| now.saturating_sub(age)).transpose();
    let since = since.map_err(|err| Failure::usage("--since is too long").because(&err))?;
    found.retain(|it| since.is_none_or(|since| it.deleted >= since));
    found.truncate(args.limit.unwrap_or(usize::MAX));
    if app.global.json {
        return found.iter().try_for_each(|session| app.print_json(session));
    }
    if found.is_empty() {
        return app.print("no deleted sessions\n");
    }
    use Side::{Left, Right};
    let heads = ["agent", "session", "deleted", "size", "version", "path"];
    let mut table = Table::new(&[Left, Left, Right, Right, Right, Left], &heads).shrinks(5, 24);
    let ids: Vec<&str> = found.iter().map(|it| &*it.session).collect();
    for (it, id) in found.iter().zip(text::short_ids(&ids)) {
        table.row(vec![
            it.agent.clone(),
            id,
            text::age(now, it.deleted),
            it.bytes.to_string(),
            it.version.to_string(),
            text::path(&it.path),
        ]);
    }
    let hint = "`epitome restore SESSION --at VERSION` makes one again";
    app.page(&format!("{}{DIM}{hint}{DIM:#}\n", table.render()))
}

impl Args {
    /// Whether a session was written recently enough to be listed.
    fn takes(&self, app: &App, listed: &ListedSession) -> bool {
        let now = SystemTime::from(app.config.now());
        let age = now.duration_since(listed.file.modified).unwrap_or_default();
        self.since.is_none_or(|most| age <= most)
    }
}

fn nothing(app: &App, args: &Args) -> Result<()> {
    app.print("no sessions\n")?;
    if let Some(project) = &args.which.project {
        let project = text::path(project);
        app.note(&format!(
            "{DIM}none was run in {project} or below it; `epitome list` shows where sessions were \
             run{DIM:#}"
        ));
    } else {
        let folders: Vec<String> =
            agents::folders(&app.config.agents).iter().map(|it| text::path(it)).collect();
        app.note(&format!("{DIM}looked in {}{DIM:#}", folders.join(", ")));
    }
    Ok(())
}

fn render(app: &App, listed: &[ListedSession], found: usize) -> String {
    use Side::{Left, Right};
    let heads =
        ["agent", "session", "age", "disk", "messages", "saves", "", "", "project", "title"];
    let sides = [Left, Left, Right, Right, Right, Right, Right, Left, Left, Left];
    // If there is no room, these columns are left out, in this order: the project, the size of the
    // context, the age, the size on disk.
    let table = Table::new(&sides, &heads).shrinks(9, 24).shrinks(8, 12).shrinks(9, 16);
    let mut table = table.leaves_out(&[8, 4, 2, 3]);
    let width = text::width();
    let now = app.config.now();
    let ids: Vec<&str> = listed.iter().map(|it| &*it.file.id).collect();
    for (it, id) in listed.iter().zip(text::short_ids(&ids)) {
        let modified = Timestamp::try_from(it.file.modified).unwrap_or(now);
        let begins =
            [it.file.agent.to_owned(), id, text::age(now, modified), it.size().to_string()];
        match &it.seen {
            Ok(seen) => {
                let context = seen.context.map_or("-".to_owned(), |it| format!("~{it}"));
                let title = one_line(seen.title.as_deref().unwrap_or(""), most_of_title(width));
                let ends = [project(seen.cwd.as_deref()), title];
                let cells = begins.into_iter().chain([context]).chain(saves(it, seen)).chain(ends);
                table.painted(styles(it).into_iter().zip(cells).collect());
            }
            Err(why) => {
                let mut cells = Vec::from(begins);
                cells.extend(["-", "-", "-", "", "-"].map(str::to_owned));
                cells.push(format!("({})", one_line(why, most_of_title(width).max(60))));
                table.styled(DIM, cells);
            }
        }
    }
    let mut text = table.render();
    let all: Tokens = listed.iter().filter_map(|it| it.seen.as_ref().ok()?.context).sum();
    let saving: Tokens = listed.iter().filter_map(|it| Some(it.seen.as_ref().ok()?.saving)).sum();
    let disk: Bytes = listed.iter().map(ListedSession::size).sum();
    let total = format!(
        "{BOLD}{}{BOLD:#}, {disk} on disk, ~{all} tokens of messages, of which compacting saves \
         ~{saving} ({})",
        count_of(listed.len(), found),
        share(saving.0, all.0),
    );
    let estimate = "~ is an estimate: `epitome inspect` counts a session exactly, and says what \
                    the provider bills for it";
    text.push('\n');
    let wrapped = |text| text::wrap_line(text, width.unwrap_or(usize::MAX));
    wrapped(&total).iter().for_each(|line| text.extend([line, "\n"]));
    for line in wrapped(estimate) {
        let _ = writeln!(text, "{DIM}{line}{DIM:#}");
    }
    text
}

/// The number of sessions shown: `43 sessions`, `10 of 43 sessions`.
fn count_of(n: usize, of: usize) -> String {
    let all = count(of as u64, "session");
    if n == of { all } else { format!("{n} of {all}") }
}

/// The maximum number of characters of a title: the number of columns of the terminal, but at least
/// 48. Without a terminal it is 48.
fn most_of_title(width: Option<usize>) -> usize {
    width.map_or(48, |width| width.max(48))
}

/// The styles of a session's cells: the colour of its agent, and green if compacting would save at
/// least half of its context.
fn styles(it: &ListedSession) -> [Style; 10] {
    let mut styles = [PLAIN; 10];
    styles[0] = text::agent_colour(it.file.agent);
    if it.saves_half() {
        styles[5..=6].fill(GREEN);
    }
    styles[2] = DIM;
    styles[7] = DIM;
    styles
}

/// Three cells: the tokens that compacting would save, their share of the context, and whether the
/// session is compacted or read-only.
fn saves(it: &ListedSession, seen: &SessionInfo) -> [String; 3] {
    let Some(saving) = it.saving() else { return ["-", "-", "read-only"].map(str::to_owned) };
    let part = share(saving.0, seen.context.map_or(0, |context| context.0));
    let state = if it.is_compacted() { "compacted" } else { "" };
    [format!("~{saving}"), part, state.to_owned()]
}

/// The last two folders of a project's path.
fn project(cwd: Option<&str>) -> String {
    let Some(cwd) = cwd else { return "-".to_owned() };
    let parts: Vec<&str> = cwd.rsplit(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let last: Vec<&str> = parts.into_iter().take(2).collect();
    one_line(&last.into_iter().rev().collect::<Vec<_>>().join("/"), 32)
}
