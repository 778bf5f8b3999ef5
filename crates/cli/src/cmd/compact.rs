//! `epitome compact`: compact sessions.
//!
//! `run` makes a [`Job`] of the arguments: how sessions are compacted, and what is printed.
//! `Job::compact` compacts or plans one session, with [`Compact`] of the library. It prints
//! warnings, but no report. `compact_one` calls it for one session and prints the whole report; the
//! module `many` calls it for several sessions and prints a table.

mod many;
mod summary;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use epitome::archive::Run;
use epitome::compaction::{BackupPlace, PreparedCompaction, Way};
use epitome::ops::{
    Compact, CompactReport, CompactionLosses, ModelRequest, OpenSession, SummaryFrom,
    planned_losses, planned_losses_in_short,
};
use epitome::redact::Screen;
use epitome::storage::vacuum;
use epitome::watch::Share;
use epitome::{History, Loaded, Place, Version};
use epitome_model::Source;
use epitome_passes::Recipe;

use crate::app::App;
use crate::choice::{Choice, one_of};
use crate::cmd::archive::remote;
use crate::diff;
use crate::failure::{Failure, Result};
use crate::losses::render_planned;
use crate::report::{self, ReportView};
use crate::session::{Filter, Input, read_stdin};
use crate::summarise::Account;
use crate::text::count;

pub use many::is_excused;
use many::run_all;
use summary::text_of;

const EXAMPLES: &str = "\
Examples:
  epitome compact 0f3c9a52 --dry-run       what would happen; nothing is written
  epitome compact 0f3c9a52                 the session whose id begins with this
  epitome compact --diff 0f3c9a52          each change; nothing is written
  epitome compact --keep-turns 1 s.jsonl   keep only the last turn whole
  epitome compact --all --older-than 7d --larger-than 1MB
  epitome compact - --out small.jsonl < session.jsonl";

/// Compact sessions, so that their agent still resumes them
///
/// Everything that is removed is archived first, and restoring is proved for that very file; only
/// then is the file replaced. `epitome restore` restores it.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, a session id or its prefix, or `-` for standard input
    #[arg(value_name = "SESSION", required_unless_present = "all", conflicts_with = "all")]
    pub sessions: Vec<OsString>,

    #[command(flatten)]
    pub choice: Choice,

    #[command(flatten)]
    pub how: How,

    #[command(flatten)]
    pub many: Many,
}

#[derive(ClapArgs, Clone, Debug, Default)]
#[command(next_help_heading = "How")]
pub struct How {
    /// Write the compacted session to a new file, and leave the session unchanged
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub out: Option<PathBuf>,

    /// Change nothing, and print the same report
    #[arg(long)]
    pub dry_run: bool,

    /// Show each change block by block, and change nothing: implies --dry-run
    #[arg(long, conflicts_with_all = ["json", "out"])]
    pub diff: bool,

    /// Show what would leave the context, and change nothing: implies --dry-run
    ///
    /// `epitome losses` shows the same of compactions that were made.
    #[arg(long, conflicts_with_all = ["all", "out", "diff", "summarise"])]
    pub losses: bool,

    /// Proceed although another program has the session open
    #[arg(long)]
    pub force: bool,

    /// Afterwards shrink the session's database to its contents
    ///
    /// SQLite keeps freed space. This takes a while, and locks the database for writing.
    #[arg(long, conflicts_with_all = ["out", "dry_run", "diff"], hide_short_help = true)]
    pub vacuum: bool,

    /// Do not edit records: append the agent's own record of a shortened history, or mark records
    /// so that the agent does not send them any more
    ///
    /// The default for Codex's sessions, except with --out.
    #[arg(long, conflicts_with = "rewrite", hide_short_help = true)]
    pub native: bool,

    /// Edit the records themselves, so that the file becomes smaller, too
    #[arg(long, hide_short_help = true)]
    pub rewrite: bool,

    /// Replace all but the end of the session by the summary in FILE, written as the agent writes
    /// its own summaries
    ///
    /// `-` is standard input. Only the keep rules of the recipe apply (--keep-turns and the like).
    #[arg(
        long, value_name = "FILE", hide_short_help = true,
        conflicts_with_all = ["all", "native", "rewrite", "diff"]
    )]
    pub summary: Option<PathBuf>,

    /// Have a model write a summary of all but the end of the session
    ///
    /// MODEL, or the model in the settings, or else the cheapest suitable model of the session's
    /// provider; a PROVIDER without a model means its cheapest suitable one. The content of the
    /// session is sent to that model's provider. docs/models.md lists models, and where their keys
    /// are looked for. With --dry-run no model is called: it reports which one would be, with how
    /// many tokens, at what cost.
    #[arg(
        long, value_name = "MODEL", num_args = 0..=1, require_equals = true,
        default_missing_value = "", alias = "summarize",
        conflicts_with_all = ["all", "native", "rewrite", "diff", "summary"]
    )]
    pub summarise: Option<String>,

    /// The base URL of that model, if not its provider's
    #[arg(long, value_name = "URL", requires = "summarise", hide_short_help = true)]
    pub base_url: Option<String>,

    /// A model to call if that one fails; may be given several times
    #[arg(long, value_name = "MODEL", requires = "summarise", hide_short_help = true)]
    pub fallback: Vec<String>,

    /// Keep a whole copy, NAME.uncompressed.jsonl, in the archive folder or next to the session
    #[arg(
        long, value_name = "WHERE", num_args = 0..=1, require_equals = true,
        default_missing_value = "archive", conflicts_with = "out", hide_short_help = true,
        value_parser = one_of::<BackupPlace>()
    )]
    pub keep_backup: Option<BackupPlace>,
}

#[derive(ClapArgs, Clone, Debug)]
#[command(next_help_heading = "Which sessions")]
pub struct Many {
    /// All sessions of this machine (with --agent: of that agent)
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub filter: Filter,

    /// Do not ask before more than one session is compacted (without a terminal there is no
    /// question)
    #[arg(long, short)]
    pub yes: bool,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let Many { all, filter, .. } = &args.many;
    if filter.is_set() && !all {
        return Err(Failure::usage("--project, --older-than and --larger-than need --all"));
    }
    if args.how.out.is_some() && args.sessions.len() > 1 {
        return Err(Failure::usage("--out takes one session"));
    }
    let how = &args.how;
    let recipe = args.choice.recipe(app, how.summarise.is_some())?;
    let text = how.summary.as_deref().map(text_of).transpose()?;
    let request = match &how.summarise {
        Some(model) => {
            let settings = app.settings()?;
            Some(ModelRequest::new(settings, model, how.base_url.as_deref(), &how.fallback))
        }
        None => None,
    };
    let account = Account::default();
    let on = |path: &Path, event| account.take(app, path, event);
    let summary = match (&text, &request) {
        (Some(text), _) => Some(SummaryFrom::Text(text)),
        (None, Some(request)) => Some(SummaryFrom::Model { request, on: &on }),
        (None, None) => None,
    };
    let run = app.config.begin_run("compact");
    let way = match (how.native, how.rewrite) {
        (true, _) => Some(Way::Native),
        (false, true) => Some(Way::Rewrite),
        (false, false) => None,
    };
    let force = how.force;
    let out = how.out.as_deref();
    let usual = Compact::with_settings(app.settings()?, &recipe, app.counter(), &run);
    let backup = how.keep_backup.or(usual.backup);
    let compact = Compact { way, summary, force, backup, out, ..usual };
    let job = Job {
        app,
        compact,
        // A diff and a list of losses are previews.
        dry_run: how.dry_run || how.diff || how.losses,
        diff: how.diff,
        losses: match (how.losses, all) {
            (true, _) => LossesShown::All,
            (false, false) => LossesShown::InShort,
            // A table of sessions has no room for losses.
            (false, true) => LossesShown::No,
        },
        vacuum: how.vacuum,
        account: &account,
        filter: all.then_some(filter),
    };
    let done = job.run(args, request.as_ref());
    // What was archived is pushed even if a later session failed.
    if !job.dry_run {
        remote::push_new(app);
    }
    done
}

/// Compacts one session with its sub-agents, as `epitome compact` does by default, for `epitome
/// watch` and hooks. Prints no report. If less than `least` of the context would be removed, the
/// session is left unchanged.
pub fn one(
    app: &App,
    run: &Run,
    recipe: &Recipe,
    session: &Path,
    least: Option<Share>,
    dry_run: bool,
) -> Result<CompactReport> {
    // No backup is made, whatever the settings say: `watch` would find a backup next to a session
    // and compact it like a session.
    let compact = Compact { least, ..Compact::new(recipe, app.counter(), run) };
    let account = &Account::default();
    let vacuum = false;
    let filter = None;
    let diff = false;
    let losses = LossesShown::No;
    let job = Job { app, compact, dry_run, diff, losses, vacuum, account, filter };
    let done = job.compact(&Input::File(session.to_owned()))?;
    Ok(done.expect("without a filter every session is wanted").report)
}

/// How the sessions of one command are compacted.
struct Job<'a> {
    app: &'a App,
    compact: Compact<'a>,
    dry_run: bool,
    /// Whether the text before and after each edit is shown.
    diff: bool,
    losses: LossesShown,
    /// Whether the databases that contain the sessions are shrunk afterwards.
    vacuum: bool,
    /// Shows and records the requests to models that write summaries.
    account: &'a Account,
    /// With `--all`, the filter for the sessions. Its condition on the project is checked when a
    /// session is read.
    filter: Option<&'a Filter>,
}

/// How losses are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LossesShown {
    No,
    /// The losses that may matter, each in a few words. JSON and a diff do not show them.
    InShort,
    All,
}

/// The losses that a plan would cause, as far as they are shown.
enum PlanLosses {
    NotShown,
    /// The losses that may matter, each in a few words.
    InShort(Vec<String>),
    All(Box<CompactionLosses>),
}

impl PlanLosses {
    fn into_view(self, report: CompactReport, diff: String) -> ReportView {
        match self {
            PlanLosses::NotShown => ReportView { report, may_matter: None, diff },
            PlanLosses::InShort(may_matter) => {
                ReportView { report, may_matter: Some(may_matter), diff }
            }
            PlanLosses::All(losses) => {
                let may_matter = Some(losses.relevant_losses());
                let report = CompactReport { losses: Some(*losses), ..report };
                ReportView { report, may_matter, diff }
            }
        }
    }
}

impl Job<'_> {
    /// Compacts the sessions that the arguments name or select, or plans that in a dry run.
    fn run(&self, args: &Args, request: Option<&ModelRequest>) -> Result<()> {
        let Many { all, filter, yes } = &args.many;
        if *all {
            return run_all(self, filter, *yes);
        }
        let inputs = Input::find_all(self.app, &args.sessions)?;
        if let (Some(request), true) = (request, self.dry_run) {
            return inputs.iter().try_for_each(|input| self.forecast(request, input));
        }
        match inputs.as_slice() {
            [input] => self.compact_one(input),
            _ if inputs.contains(&Input::Stdin) => {
                Err(Failure::usage("`-` cannot be combined with other sessions"))
            }
            _ => self.compact_several(inputs, *yes),
        }
    }

    /// Compacts one session, or plans that in a dry run, and prints the whole report.
    fn compact_one(&self, input: &Input) -> Result<()> {
        let is_json = self.app.global.json;
        let done = self.compact(input);
        if let (Err(failure), true) = (&done, is_json && self.account.has(&input.name())) {
            // The JSON report of what the model cost is printed even if the session was not
            // compacted.
            self.report_failure(input, failure, false)?;
        }
        let Some(ReportView { report, may_matter, diff }) = done? else { return Ok(()) };
        self.vacuum(std::slice::from_ref(input))?;
        let printed = if is_json {
            self.app.print_json(&report)
        } else {
            let text = report::render(&report, may_matter.as_deref());
            let losses = report.losses.as_ref().map(render_planned).unwrap_or_default();
            self.app.page_folded(&format!("{diff}{text}{losses}"))
        };
        printed.map_err(|failure| self.with_work_done(failure, u64::from(report.run.is_some())))
    }

    /// The failure to print a report, with a hint that says what was written before, and how to
    /// undo it. `written` is the number of sessions.
    fn with_work_done(&self, failure: Failure, written: u64) -> Failure {
        if written == 0 {
            return failure;
        }
        if let Some(out) = self.compact.out {
            return failure.hint(format!("the copy was written before: {}", out.display()));
        }
        let verb = if written == 1 { "was" } else { "were" };
        let undo = format!("`epitome undo {}` undoes that", self.compact.run.id);
        failure.hint(format!("{} {verb} compacted before; {undo}", count(written, "session")))
    }

    /// With `--vacuum`, shrinks the databases that contain the sessions, each once.
    fn vacuum(&self, inputs: &[Input]) -> Result<()> {
        if !self.vacuum {
            return Ok(());
        }
        let places = inputs.iter().filter_map(|input| match input {
            Input::File(path) => Some(Place::parse(path)),
            Input::Stdin => None,
        });
        let databases: BTreeSet<PathBuf> = places
            .filter_map(|place| match place {
                Place::Rows(rows) if rows.is_writable() => Some(rows.database().to_owned()),
                Place::Rows(_) | Place::File(_) | Place::Spread(_) => None,
            })
            .collect();
        databases.iter().try_for_each(|database| Ok(vacuum(database)?))
    }

    /// Compacts one session with its sub-agents or, in a dry run, plans that. Prints no report.
    /// `None` if the session was not run in the project of the filter.
    fn compact(&self, input: &Input) -> Result<Option<ReportView>> {
        let path = match input {
            Input::Stdin => return self.compact_stdin().map(Some),
            Input::File(path) => path,
        };
        let session = OpenSession::with_agent(&self.app.config, path, self.app.agent());
        if !self.wants(&session)? {
            return Ok(None);
        }
        if self.dry_run {
            let mut diff = Difference::from_job(self)?;
            let mut losses = Ok(PlanLosses::NotShown);
            let report = self.compact.plan(&session, |file, planned| {
                diff.add(self, file, planned);
                if file == path.as_path() {
                    losses = self.losses(file, planned);
                }
            })?;
            report.check()?;
            return Ok(Some(losses?.into_view(report, diff.text)));
        }
        Ok(Some(PlanLosses::NotShown.into_view(self.write(&session)?, String::new())))
    }

    /// Plans the session on standard input, or writes a compacted copy of it.
    fn compact_stdin(&self) -> Result<ReportView> {
        if self.compact.out.is_none() && !self.dry_run {
            return Err(Failure::usage("a session from standard input needs --out"));
        }
        let session = Loaded::read(read_stdin()?, self.app.agent())?;
        let config = &self.app.config;
        let path = Path::new("-");
        if let (Some(out), false) = (self.compact.out, self.dry_run) {
            let report = self.compact.copy_loaded(config, path, &session, out)?;
            return Ok(PlanLosses::NotShown.into_view(report, String::new()));
        }
        let mut diff = Difference::from_job(self)?;
        let mut losses = Ok(PlanLosses::NotShown);
        let report = self.compact.plan_loaded(config, path, &session, |_, planned| {
            diff.add(self, path, planned);
            losses = self.losses(path, planned);
        });
        let report = report?;
        report.check()?;
        Ok(losses?.into_view(report, diff.text))
    }

    /// The losses of a plan, as far as they are shown.
    fn losses<S: Source>(
        &self,
        path: &Path,
        planned: &PreparedCompaction<'_, S>,
    ) -> Result<PlanLosses> {
        let is_for_people = !self.app.global.json && !self.diff;
        let counter = self.app.counter();
        match self.losses {
            LossesShown::All => {
                let settings = self.app.settings()?;
                let losses = planned_losses(&self.app.config, settings, path, planned, counter)?;
                Ok(PlanLosses::All(Box::new(losses)))
            }
            LossesShown::InShort if is_for_people && !planned.is_empty() => {
                Ok(PlanLosses::InShort(planned_losses_in_short(planned, counter)?))
            }
            LossesShown::No | LossesShown::InShort => Ok(PlanLosses::NotShown),
        }
    }

    /// Compacts a session, or writes a compacted copy of it.
    fn write(&self, session: &OpenSession<'_>) -> Result<CompactReport> {
        let is_copy = self.compact.out.is_some();
        if !is_copy {
            if self.compact.force {
                self.app.warn_of_writers(session);
            }
            self.app.warn_of_no_parts(session);
        }
        let done = self.compact.run_after(session, || self.app.check_output_has_reader());
        if is_copy {
            done
        } else {
            done.map_err(|failure: Failure| failure.with_path(session.path()))
        }
    }

    /// Whether a session passes the filter for projects, which needs the content of the session.
    fn wants(&self, session: &OpenSession<'_>) -> Result<bool> {
        let project = self.filter.and_then(|filter| filter.which.project.as_deref());
        project.map_or(Ok(true), |project| Ok(session.is_run_in(project)?))
    }
}

/// The diff of the edits as text. It stays empty if no diff was requested.
struct Difference {
    screen: Option<Screen>,
    text: String,
}

impl Difference {
    fn from_job(job: &Job<'_>) -> Result<Difference> {
        let screen = if job.diff { Some(job.app.screen()?) } else { None };
        Ok(Difference { screen, text: String::new() })
    }

    /// Adds the edits of one file.
    fn add<S: Source>(&mut self, job: &Job<'_>, path: &Path, planned: &PreparedCompaction<'_, S>) {
        if let Some(screen) = &self.screen {
            let format = Some(planned.session.format.name);
            let history = History::open(&job.app.config, path, format, Version::AsItWas);
            let screen = match &history {
                Ok(history) => history.screen(screen),
                Err(_) => screen.session_screen(&planned.session.source),
            };
            self.text.push_str(&diff::render(planned, job.app.counter(), screen));
        }
    }
}
