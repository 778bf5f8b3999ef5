//! `epitome watch`: compacts sessions when they have ended.

use std::path::Path;
use std::time::Duration;

use clap::Args as ClapArgs;
use epitome::archive::Run;
use epitome::keep::{Keeper, RetentionRules, hold_running};
use epitome::ops::CompactReport;
use epitome::watch::{Share, Trigger, Watch};
use epitome_model::{Bytes, Turns};
use epitome_passes::Recipe;

use super::{compact, keep};
use crate::app::App;
use crate::choice::Choice;
use crate::cmd::archive::remote;
use crate::confirm::{ask_to_continue, can_ask};
use crate::failure::{Failure, Result, Status};
use crate::idle::IdlePages;
use crate::interrupt::Interrupt;
use crate::report::Sum;
use crate::session::{Which, parse_age, parse_size};
use crate::text::{self, BOLD, DIM, change, count};

/// The default idle time after which a session is treated as ended.
const OVER: Duration = Duration::from_mins(10);

const EXAMPLES: &str = "\
Examples:
  epitome watch --above 1MB              sessions of 1 MB that end from now on
  epitome watch --all --once --dry-run   what it would do to those that ended
  epitome watch --once --older-than 7d   for a timer: cron, systemd
  epitome watch --once --agent pi --above 100KB --after-turns 5 --older-than 0s";

/// Compact sessions when they have ended, between the runs of their agent
///
/// Scans repeatedly until it is stopped, for sessions that end after it started. It needs a filter
/// (--agent, --project, --above, --after-turns, --older-than) or --all; a session must match all
/// filters. A session in use is never touched. On a terminal it says what it is about to do, and
/// asks.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only sessions of at least N turns
    #[arg(long, value_name = "N", default_value = "0")]
    pub after_turns: u64,

    /// Only sessions of at least this size: 100KB, 1MB
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0")]
    pub above: u64,

    /// Only sessions last written at least this long ago: 10m, 2h, 7d [default: 10m]
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub older_than: Option<Duration>,

    #[command(flatten)]
    pub which: Which,

    /// All sessions of this machine; required if there is no filter
    #[arg(long)]
    pub all: bool,

    /// Also compact sessions that have already ended; --once always does. Without a terminal this
    /// needs --yes or --dry-run
    #[arg(long)]
    pub existing: bool,

    /// Skip sessions whose context would shrink by less than this share
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "10%")]
    pub min_saving: Share,

    /// Scan once for ended sessions, then exit
    #[arg(long)]
    pub once: bool,

    /// Time between two scans
    #[arg(long, value_name = "AGE", value_parser = parse_age, default_value = "30s",
          conflicts_with = "once")]
    pub every: Duration,

    /// Also keep every version of the sessions, as `epitome keep` does, before one is compacted
    #[arg(long, conflicts_with = "dry_run")]
    pub keep: bool,

    /// Change nothing, and report what would be compacted
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,

    #[command(flatten)]
    pub choice: Choice,
}

/// Parses a percentage, with or without the sign: `10%`. It is rounded to a tenth of a per cent.
fn parse_share(text: &str) -> std::result::Result<Share, String> {
    let wrong = || format!("`{text}` is not a percentage; write it like 10% or 2.5%");
    let percent: f64 = text.strip_suffix('%').unwrap_or(text).parse().map_err(|_| wrong())?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
    if (0.0..=100.0).contains(&percent) {
        Ok(Share((percent * 10.0).round() as u16))
    } else {
        Err(wrong())
    }
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let is_filtered = app.agent().is_some()
        || args.which.project.is_some()
        || args.after_turns > 0
        || args.above > 0
        || args.older_than.is_some();
    if !is_filtered && !args.all {
        return Err(Failure::usage("no sessions selected; watch needs a filter or --all")
            .hint("`epitome watch --above 1MB` compacts those of at least 1 MB when they end")
            .hint("`epitome watch --all --once --dry-run` says what it would do to all"));
    }
    let recipe = args.choice.recipe(app, false)?;
    let trigger = Trigger {
        after_turns: Turns(args.after_turns),
        above: Bytes(args.above),
        older_than: args.older_than.unwrap_or(OVER),
    };
    let mut watch = Watch::new(&app.config, trigger, args.min_saving);
    watch.agent = app.agent();
    watch.project = args.which.project.as_deref();
    let run = app.config.begin_run("watch");
    let sum = Sum::default();
    let keeper = if args.keep { Some(keeper(app, args)?) } else { None };
    let idle_pages = IdlePages::new();
    let mut reports = Reports { app, run, args, recipe: &recipe, sum, keeper, idle_pages };
    if args.once {
        reports.ask(&watch)?;
        let worst = reports.look(&mut watch, args.dry_run)?;
        reports.print_end()?;
        return worst.map_or(Ok(()), Err);
    }
    if !args.existing {
        // The first scan only notes the sessions that have already ended, so that later scans skip
        // them until they change.
        watch.look(true, |_, _| Ok::<(), Failure>(()))?;
    }
    reports.ask(&watch)?;
    // Until this function ends, `epitome doctor` sees that versions are kept.
    let _running = args.keep.then(|| hold_running(&app.config));
    let interrupt = Interrupt::new();
    let sessions = count(watch.sessions().len() as u64, "session");
    app.note(&format!("watching {sessions} every {} (Ctrl-C to stop)", seconds(args.every)));
    reports.look(&mut watch, args.dry_run)?;
    reports.idle_pages.note_work();
    while !interrupt.wait(args.every.max(Duration::from_secs(1))) {
        reports.look(&mut watch, args.dry_run)?;
    }
    reports.print_end()
}

/// Makes the keeper, which keeps versions with `--keep`. It selects sessions by the agent and the
/// project only.
fn keeper<'a>(app: &'a App, args: &'a Args) -> Result<Keeper<'a>> {
    let mut keeper = Keeper::open(&app.config)?;
    keeper.agent = app.agent();
    keeper.project = args.which.project.as_deref();
    keeper.rules = RetentionRules::from_settings(app.settings()?)?;
    Ok(keeper)
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds >= 60 && seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{}s", seconds.max(1)),
    }
}

/// Compacts the sessions that a watch finds, and reports the results.
struct Reports<'a> {
    app: &'a App,
    run: Run,
    args: &'a Args,
    recipe: &'a Recipe,
    sum: Sum,
    /// With `--keep`: keeps every version of the sessions.
    keeper: Option<Keeper<'a>>,
    idle_pages: IdlePages,
}

impl Reports<'_> {
    /// Says what will happen, and asks for confirmation.
    fn ask(&mut self, watch: &Watch<'_>) -> Result<()> {
        let Args { once, existing, dry_run, yes, .. } = self.args;
        let begins_at_once = *once || *existing;
        // Without a terminal the user cannot be asked. Timers run `--once`, so a single scan needs
        // no confirmation. Neither does a watch that skips sessions which have already ended.
        if *dry_run || *yes || (!can_ask() && (*once || !begins_at_once)) {
            return Ok(());
        }
        if !begins_at_once {
            let over = "sessions that end from now on are compacted when they have been idle for";
            self.app.note(&format!("{over} {}", seconds(watch.trigger.older_than)));
        } else if can_ask() {
            self.look(&mut watch.clone(), true)?;
            let sum = std::mem::take(&mut self.sum);
            self.app.note(sum.message("would be compacted").trim_end());
        }
        ask_to_continue(self.app, false, "Go on?")
    }

    /// Scans the sessions once. If a session cannot be compacted, the scan goes on, and the worst
    /// of these failures is returned, apart from expected ones ([`compact::is_excused`]).
    fn look(&mut self, watch: &mut Watch<'_>, dry_run: bool) -> Result<Option<Failure>> {
        let mut worst = None;
        if let Some(keeper) = self.keeper.as_mut().filter(|_| !dry_run) {
            let report = keeper.scan()?;
            if !report.kept.is_empty() {
                self.idle_pages.note_work();
            }
            keep::note_unread(self.app, &report);
            keep::note_pruned(self.app, keeper.prune_if_due()?.as_ref());
        }
        watch.look(dry_run, |path, least| self.compact(path, least, dry_run, &mut worst))?;
        if !dry_run {
            remote::push_new(self.app);
        }
        Ok(worst)
    }

    /// Compacts a session and reports it.
    fn compact(
        &mut self,
        path: &Path,
        least: Option<Share>,
        dry_run: bool,
        worst: &mut Option<Failure>,
    ) -> Result<()> {
        let report = compact::one(self.app, &self.run, self.recipe, path, least, dry_run);
        self.idle_pages.note_work();
        match report {
            Ok(report) if report.is_nothing() => {}
            Ok(report) if report.is_below_minimum => self.sum.too_little += 1,
            Ok(report) => {
                self.sum.add(&report);
                // The results of a scan that only prepares the question are not printed one by one.
                if dry_run == self.args.dry_run {
                    if self.app.global.json {
                        self.app.print_json(&report)?
                    } else {
                        self.app.print(&message(&report))?
                    }
                }
            }
            // The reader of the reports has gone, so nothing more is written.
            Err(failure) if failure.status == Status::Quiet => return Err(failure),
            Err(failure) => {
                let failure = failure.with_path(path);
                let why = text::field(&failure.one_line());
                self.app.note(&format!("{DIM}skipped:{DIM:#} {why}"));
                if !compact::is_excused(&failure) {
                    failure.add_to(worst);
                }
            }
        }
        Ok(())
    }

    /// Prints the totals.
    fn print_end(&self) -> Result<()> {
        if self.app.global.json {
            return Ok(());
        }
        let verb = if self.args.dry_run { "would be compacted" } else { "compacted" };
        self.app.print(&self.sum.message(verb))?;
        if self.sum.sessions > 0 && !self.args.dry_run {
            let undo = format!("{DIM}undo{DIM:#}  epitome undo {}\n", self.run.id);
            self.app.print(&undo)?;
        }
        Ok(())
    }
}

fn message(report: &CompactReport) -> String {
    let verb = if report.dry_run { "would compact" } else { "compacted" };
    let tokens = report.tokens();
    let bytes = report.disk_bytes();
    format!(
        "{verb} {BOLD}{} {}{BOLD:#}  context {} → {} tokens ({})  disk {}\n",
        report.file.agent,
        text::field(report.file.id.as_deref().unwrap_or(&report.file.session)),
        tokens.before,
        tokens.after,
        change(tokens.before.0, tokens.after.0),
        text::bytes_change(bytes.before, bytes.after),
    )
}
