//! `epitome search`: full-text search in sessions.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use epitome::agents::{self, SessionFile};
use epitome_search::{Hit, Hits, Progress, Query, Run, Scope, Update, search_in};
use jiff::Timestamp;
use unicode_width::UnicodeWidthChar as _;

use crate::app::App;
use crate::cmd::share;
use crate::failure::{Failure, Result};
use crate::redaction::MoreRules;
use crate::session::Which;
use crate::text::{self, BOLD, DIM, count, one_line};

const EXAMPLES: &str = "\
Examples:
  epitome search borrow checker
  epitome search '\"borrow checker\" pars* role:user'
  epitome search --agent claude --project . -- timeout -retry
  epitome search --team timeout
  epitome search --json timeout | jq -r .session | sort -u";

/// The minimum number of columns for a title or a snippet, even on a narrow terminal.
const ROOM: usize = 20;
/// The time after which an update of the index shows its progress.
const PATIENCE: Duration = Duration::from_millis(700);

/// Search all sessions of this machine
///
/// All words must occur in one message. `"several words"` is a phrase, `begin*` matches beginnings
/// of words, `-word` excludes a word; `agent:`, `project:`, `role:` (user, assistant, tool, system)
/// and `session:` filter. New messages are indexed first. Secrets and personal data are not found:
/// they are not in the index.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The words to search for
    #[arg(value_name = "WORDS", required = true)]
    pub words: Vec<String>,

    #[command(flatten)]
    pub which: Which,

    /// Search the sessions that your team has shared (`epitome share`), not those of this machine
    #[arg(long)]
    pub team: bool,

    /// Show at most this many hits
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub limit: u16,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let query = query(app, args)?;
    let folder = if args.team { Some(share::sync(app)?) } else { None };
    let files = match &folder {
        Some(folder) => agents::sessions_below(folder),
        None => agents::sessions(&app.config.agents, None),
    };
    let mut config = app.config.clone();
    config.rules = MoreRules::default().files(app)?;
    let begin = Instant::now();
    let bar = app.bar("indexing {bar:30} {pos}/{len} sessions {elapsed}", 0);
    let tell = |progress: Progress| {
        if begin.elapsed() > PATIENCE {
            bar.set_length(progress.of as u64);
            bar.set_position(progress.done as u64);
        }
    };
    let scope = folder.as_deref().map_or(Scope::Machine, Scope::Below);
    let searched = search_in(&config, scope, &query, &files, args.limit.into(), &tell);
    bar.finish_and_clear();
    let (hits, standing) = searched.map_err(epitome::Error::from)?;
    if standing == Update::Elsewhere {
        let what = "another epitome is building the index: results may be incomplete";
        app.note(&format!("{DIM}{what}{DIM:#}"));
    }
    if app.global.json {
        return hits.hits.iter().try_for_each(|hit| app.print_json(hit));
    }
    if hits.hits.is_empty() {
        app.note("nothing found");
        return Ok(());
    }
    app.page(&render(app, &hits, &files, args.team))
}

fn query(app: &App, args: &Args) -> Result<Query> {
    let mut query = Query::parse(&args.words.join(" ")).map_err(wrong_query)?;
    if let Some(agent) = app.agent() {
        query = query.with_agent(agent).map_err(wrong_query)?;
    }
    let Some(project) = &args.which.project else { return Ok(query) };
    Ok(query.with_project(project))
}

fn wrong_query(err: epitome_search::BadQuery) -> Failure {
    Failure::usage(err.to_string()).hint("`epitome search --help` describes queries")
}

/// The hits of each session under its title, with the command that shows the session. `epitome
/// render` finds the copies of a team's sessions by their paths, not by their ids.
fn render(app: &App, hits: &Hits, files: &[SessionFile], is_of_team: bool) -> String {
    let ids: Vec<&str> = files.iter().map(|file| &*file.id).collect();
    let short: HashMap<&Path, String> =
        files.iter().map(|file| &*file.path).zip(text::short_ids(&ids)).collect();
    let mut shown = String::new();
    for of_session in hits.by_session() {
        let first = of_session[0];
        let id = match short.get(&*first.session) {
            Some(id) if !is_of_team => id.clone(),
            Some(_) | None => one_line(&first.id, 40),
        };
        let path = first.session.display().to_string();
        let name = if is_of_team { &path } else { &id };
        group(app, &mut shown, &id, name, &of_session);
    }
    if hits.all > hits.hits.len() {
        let all = count(hits.all as u64, "place");
        let _ = writeln!(shown, "{DIM}{} of {all}; --limit shows more{DIM:#}", hits.hits.len());
    }
    shown
}

/// Adds one session: its title, its hits, and the command that shows the turn of the first hit that
/// is not in a sub-agent. If all hits are in sub-agents, the command shows the whole session.
/// `name` is the id or path by which the command finds the session.
fn group(app: &App, shown: &mut String, id: &str, name: &str, hits: &[&Hit]) {
    let first = hits[0];
    let agent = text::agent_colour(&first.agent);
    let begin = first.agent.chars().count() + id.chars().count() + 4;
    let title = text::fit_line(&first.title, text::columns().saturating_sub(begin).max(ROOM));
    let _ = writeln!(shown, "{agent}{}{agent:#}  {id}  {BOLD}{title}{BOLD:#}", first.agent);
    let now = app.config.now();
    for line in distinct_lines(hits) {
        let Line { hit, .. } = line;
        let time = hit.time.as_deref().and_then(|time| time.parse::<Timestamp>().ok());
        let age = time.map_or_else(|| "-".to_owned(), |time| text::age(now, time));
        let turn = turn(hit);
        let archived = if hit.archived { "archived  " } else { "" };
        let about = format!("  {turn:<9} {:<9} {age:>4}  {archived}", hit.role);
        let others = line.other_places();
        let around = about.chars().count() + others.chars().count();
        let room = text::columns().saturating_sub(around).max(ROOM);
        let snippet = fit(&hit.snippet, room);
        let _ = writeln!(shown, "{DIM}{about}{DIM:#}{snippet}{DIM}{others}{DIM:#}");
    }
    let turn = hits.iter().find(|hit| hit.sub_agent.is_none());
    let turn = turn.map(|hit| format!(" --turn {}", hit.turn)).unwrap_or_default();
    let why = match hits.iter().any(|hit| hit.archived) {
        true => "  (shows what was archived, too)",
        false => "",
    };
    let name = text::shell_word(name);
    let _ = writeln!(shown, "  {DIM}epitome render {name}{turn}{why}{DIM:#}\n");
}

/// The place of a hit, as it is shown.
fn turn(hit: &Hit) -> String {
    match hit.sub_agent {
        Some(_) => "sub-agent".to_owned(),
        None => format!("turn {}", hit.turn),
    }
}

/// A hit that is shown, and the other hits of its session that would look the same.
struct Line<'h> {
    hit: &'h Hit,
    others: Vec<&'h Hit>,
}

impl Line<'_> {
    /// Says where the other hits are; empty if all are at the same place.
    fn other_places(&self) -> String {
        let shown = turn(self.hit);
        let mut places: Vec<String> = self.others.iter().map(|hit| turn(hit)).collect();
        places.retain(|place| *place != shown);
        places.dedup();
        match places.as_slice() {
            [] => String::new(),
            [place] => format!("  also in {place}"),
            more => format!("  also in {} other places", more.len()),
        }
    }
}

/// The hits of a session without those that look like an earlier one: the same line said again, or
/// a message that the agent stores twice.
fn distinct_lines<'h>(hits: &[&'h Hit]) -> Vec<Line<'h>> {
    let mut lines: Vec<Line<'h>> = Vec::new();
    for &hit in hits {
        let is_same = |other: &Hit| {
            hit.snippet == other.snippet && hit.role == other.role && hit.archived == other.archived
        };
        match lines.iter_mut().find(|line| is_same(line.hit)) {
            Some(line) => line.others.push(hit),
            None => lines.push(Line { hit, others: Vec::new() }),
        }
    }
    lines
}

/// The part of a snippet around the first match that fits into `room` columns, with the matches in
/// bold.
fn fit(snippet: &[Run], room: usize) -> String {
    let chars: Vec<(char, bool)> =
        snippet.iter().flat_map(|run| run.text.chars().map(|c| (c, run.marked))).collect();
    let first = chars.iter().position(|(_, marked)| *marked).unwrap_or(0);
    let mut start = 0;
    while start < first && width(&chars) > room && width(&chars[start..first]) > room / 3 {
        start += 1;
    }
    let mut end = chars.len();
    loop {
        let dots = usize::from(start > 0) + usize::from(end < chars.len());
        if end == start || width(&chars[start..end]) + dots <= room {
            break;
        }
        end -= 1;
    }
    let mut shown = String::from(if start > 0 { "…" } else { "" });
    let mut marked = false;
    for (c, is_marked) in &chars[start..end] {
        if *is_marked != marked {
            let _ = if marked { write!(shown, "{BOLD:#}") } else { write!(shown, "{BOLD}") };
            marked = *is_marked;
        }
        shown.push(*c);
    }
    if marked {
        let _ = write!(shown, "{BOLD:#}");
    }
    shown.push_str(if end < chars.len() { "…" } else { "" });
    shown
}

fn width(chars: &[(char, bool)]) -> usize {
    chars.iter().map(|(c, _)| c.width().unwrap_or(0)).sum()
}
