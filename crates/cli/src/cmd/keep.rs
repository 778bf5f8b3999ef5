//! `epitome keep`: keeps every version of sessions, and removes the versions that the settings do
//! not keep.

use std::time::Duration;

use clap::Args as ClapArgs;
use epitome::archive::GcMode;
use epitome::keep::{
    FolderWatch, Keeper, KeptFile, KeptVersion, PruneReport, RetentionRules, ScanReport, Vault,
};

use crate::app::App;
use crate::confirm::ask_to_continue;
use crate::failure::{Failure, Result, Status};
use crate::idle::IdlePages;
use crate::interrupt::Interrupt;
use crate::session::{Which, parse_age};
use crate::text::{self, BOLD, DIM, count};

const EXAMPLES: &str = "\
Examples:
  epitome keep --all                    keep what changes from now on, until Ctrl-C
  epitome keep --all --once             keep what all agents have written until now
  epitome keep --once --agent claude    for a timer: cron, systemd
  epitome keep --all --once --dry-run   what would be kept
  epitome keep --prune --dry-run        what the rules in the settings would remove
  epitome history 0f3c9a52              the versions of a session
  epitome restore 0f3c9a52 --at 3       bring one back, also of a deleted session";

/// Keep every version of sessions: what agents write, overwrite and delete
///
/// Needs a filter (--agent, --project) or --all. Nothing of an agent is changed. A version costs
/// what is new in it; secrets are kept as they are, in a folder that only you can read.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub which: Which,

    /// All sessions of this machine; required if there is no filter
    #[arg(long)]
    pub all: bool,

    /// Scan once, then exit
    #[arg(long)]
    pub once: bool,

    /// Time between two scans of everything; in between, changed files are kept within a second
    /// [default: 10m; 30s where the system does not tell of changes]
    #[arg(long, value_name = "AGE", value_parser = parse_age, conflicts_with = "once")]
    pub every: Option<Duration>,

    /// Keep nothing new, but remove what the settings keep.days, keep.size and keep.projects do not
    /// keep; a keeper that runs does this once a day, except for keep.projects
    #[arg(long, conflicts_with_all = ["every", "all", "once", "project"])]
    pub prune: bool,

    /// With --prune: do not ask before sessions are removed completely
    #[arg(long, requires = "prune", conflicts_with = "dry_run")]
    pub yes: bool,

    /// Keep and remove nothing, and report what would be kept or removed
    #[arg(long)]
    pub dry_run: bool,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let rules = RetentionRules::from_settings(app.settings()?)?;
    if args.prune {
        return prune(app, args, &rules);
    }
    let is_filtered = app.agent().is_some() || args.which.project.is_some();
    if !is_filtered && !args.all {
        return Err(Failure::usage("no sessions selected; keep needs a filter or --all")
            .hint("`epitome keep --all --once` keeps what all agents have written until now"));
    }
    let mut keeper =
        if args.dry_run { Keeper::open_dry(&app.config)? } else { Keeper::open(&app.config)? };
    keeper.agent = app.agent();
    keeper.project = args.which.project.as_deref();
    keeper.rules = rules;
    warn_of_damage(app, keeper.vault());
    if args.once || args.dry_run {
        let report = if args.dry_run { keeper.plan() } else { keeper.scan()? };
        print(app, &report)?;
        print_sum(app, args, &report)?;
        if !args.dry_run {
            note_pruned(app, keeper.prune_if_due()?.as_ref());
        }
        return unread(app, &report);
    }
    watch(app, args, &mut keeper)
}

/// Keeps every version of the selected sessions, until the user presses Ctrl-C.
fn watch(app: &App, args: &Args, keeper: &mut Keeper<'_>) -> Result<()> {
    let mut folders = FolderWatch::new(false);
    let stopper = folders.stopper();
    let _interrupt = Interrupt::calling(move || stopper.stop());
    let idle_pages = IdlePages::new();
    let mut is_first = true;
    keeper.watch(&mut folders, args.every, |folders, report| {
        print(app, report)?;
        if is_first || !report.kept.is_empty() || report.pruned.is_some() {
            idle_pages.note_work();
        }
        if is_first {
            print_sum(app, args, report)?;
            let files = count(report.files, "file");
            app.note(&format!("keeping {files} (Ctrl-C to stop)"));
            if let Some(why) = folders.failure() {
                let how = "the system does not tell of all changes, so everything is scanned";
                app.note(&format!("{DIM}{how} every 30s: {}{DIM:#}", text::field(why)));
            }
            is_first = false;
        }
        note_pruned(app, report.pruned.as_ref());
        unread(app, report)
    })
}

/// Removes what the rules in the settings do not keep, or reports what it would remove.
fn prune(app: &App, args: &Args, rules: &RetentionRules) -> Result<()> {
    if app.agent().is_some() {
        return Err(Failure::usage("--prune takes no --agent: the rules are for all sessions"));
    }
    let mut vault = app.config.vault()?;
    let mode = if args.dry_run { GcMode::Show } else { GcMode::Remove };
    if !args.dry_run && !args.yes {
        let plan = rules.prune(&app.config, &mut vault, GcMode::Show).map_err(Failure::writing)?;
        ask_before_loss(app, &plan)?;
    }
    let report = rules.prune(&app.config, &mut vault, mode).map_err(Failure::writing)?;
    if app.global.json {
        return app.print_json(&report);
    }
    let mut text = list_pruned(&report);
    if rules.is_empty() {
        text.push_str("no rule is set, so nothing is ever removed\n");
        app.print(&text)?;
        app.note("`keep.days`, `keep.size` and `keep.projects` are rules: `epitome config`");
        return Ok(());
    }
    let verb = if args.dry_run { "would be removed" } else { "removed" };
    text.push_str(&format!("{}\n", sum_pruned(&report, verb)));
    app.print(&text)
}

/// Asks before sessions lose all their contents, even the newest, because the vault may have the
/// only copies of the sessions.
fn ask_before_loss(app: &App, plan: &PruneReport) -> Result<()> {
    let lost = plan.sessions_lost();
    if lost == 0 {
        return Ok(());
    }
    app.note(list_pruned(plan).trim_end());
    let sessions = count(lost, "session");
    app.note(&format!("nothing of {sessions} would be kept any more, not even the newest version"));
    ask_to_continue(app, false, "This cannot be undone. Remove them?")
}

/// A line for each file that loses versions.
fn list_pruned(report: &PruneReport) -> String {
    let mut text = String::new();
    for file in &report.files {
        let name = file_name(&file.file.session, file.file.part.as_deref());
        let versions = count(file.removed.len() as u64, "version");
        let kept = if file.kept == 0 { "none".to_owned() } else { file.kept.to_string() };
        text.push_str(&format!("{} {name}  {versions} of it, {kept} kept\n", file.file.agent));
    }
    text
}

/// Describes in a line how much is removed. `verb` is `removed` or `would be removed`.
fn sum_pruned(report: &PruneReport, verb: &str) -> String {
    if report.versions == 0 {
        let size = report.bytes_after;
        return format!("{BOLD}nothing{BOLD:#} {verb}; the vault has {size}");
    }
    let versions = count(report.versions, "version");
    let sessions = count(report.sessions, "session");
    let PruneReport { bytes_before, bytes_after, .. } = report;
    let sizes = format!("the vault: {bytes_before} -> {bytes_after}");
    format!("{BOLD}{versions}{BOLD:#} of {sessions} {verb}; {sizes}")
}

/// Reports how many versions were removed because of the rules in the settings.
pub fn note_pruned(app: &App, report: Option<&PruneReport>) {
    if let Some(report) = report.filter(|report| report.versions > 0) {
        app.note(&format!("{} (keep.… in the settings)", sum_pruned(report, "removed")));
    }
}

/// Prints the versions that a scan kept, or would keep.
fn print(app: &App, report: &ScanReport) -> Result<()> {
    if app.global.json {
        return report.kept.iter().try_for_each(|kept| app.print_json(kept));
    }
    report.kept.iter().try_for_each(|kept| app.print(&line(kept)))
}

fn print_sum(app: &App, args: &Args, report: &ScanReport) -> Result<()> {
    if app.global.json {
        return Ok(());
    }
    let verb = if args.dry_run { "would be kept" } else { "kept" };
    let versions = count(report.kept.len() as u64, "version");
    let files = count(report.files, "file");
    app.print(&format!("{BOLD}{versions}{BOLD:#} {verb}, of {files}\n"))
}

/// Warns of stored versions that cannot be read because packs of the vault are damaged.
pub fn warn_of_damage(app: &App, vault: &Vault) {
    for err in vault.damaged() {
        app.warn(Some(&Failure::from(err.clone()).one_line()));
    }
}

/// Reports what was not kept (files that are being written, and what could not be read), and
/// restores that were interrupted.
pub fn note_unread(app: &App, report: &ScanReport) {
    for path in &report.changing {
        let path = text::path(path);
        app.note(&format!("{DIM}not kept yet, because it is being written: {path}{DIM:#}"));
    }
    for err in &report.unread {
        let why = Failure::from(err.clone()).one_line();
        app.note(&format!("{DIM}not read: {}{DIM:#}", text::field(&why)));
    }
    for restore in &report.completed {
        let KeptFile { agent, session, part, .. } = &restore.file;
        let name = file_name(session, part.as_deref());
        let version = restore.version;
        app.note(&format!("completed an interrupted restore: {agent} {name}, version {version}"));
    }
    for err in &report.unfinished {
        app.warn(Some(&Failure::from(err.clone()).one_line()));
    }
}

/// Reports what was not kept. Fails if no file was scanned and something could not be read.
fn unread(app: &App, report: &ScanReport) -> Result<()> {
    note_unread(app, report);
    if report.files == 0 && !report.unread.is_empty() {
        let what = "no session could be read";
        return Err(Failure::new(Status::Unreadable, "unreadable", what)
            .hint("the messages above say what could not be read"));
    }
    Ok(())
}

fn line(kept: &KeptVersion) -> String {
    let KeptFile { agent, session, part, .. } = &kept.file;
    let name = file_name(session, part.as_deref());
    let what = kept.change.describe(kept.bytes, kept.bytes_before);
    format!("{agent} {name}  {DIM}version{DIM:#} {}  {what}\n", kept.version)
}

/// How a kept file is named in output: by the id of its session and, unless it is the session's
/// main file, by its own name, `part`.
pub fn file_name(session: &str, part: Option<&str>) -> String {
    match part {
        Some(part) => format!("{} / {}", text::field(session), text::field(part)),
        None => text::field(session),
    }
}
