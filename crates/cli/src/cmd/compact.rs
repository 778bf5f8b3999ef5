//! `epitome compact`: make sessions small.

mod many;
mod summary;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use epitome::settings::values as settings;
use epitome::watch::Share;
use epitome::{
    BackupPlace, CompactedFamily, CompactedFile, Compacting, ErrorKind, FileSource, Loaded, Made,
    Place, Planned, Planner, Run, Way, apply_to, compact_family, find, vacuum,
};
use epitome_model::Source;
use epitome_passes::{Recipe, SummaryRule};

use crate::app::App;
use crate::choice::Choice;
use crate::diff;
use crate::failure::{Failure, Result, Status};
use crate::report::{FileReport, Report, UserFound};
use crate::session::{Filter, Input, read_stdin};
use crate::summarise::{Account, Wish};

pub use many::is_excused;
use many::run_all;
use summary::words_of;

const EXAMPLES: &str = "\
Examples:
  epitome compact 0f3c9a52                        the session whose id begins so
  epitome compact --diff 0f3c9a52                 what would become what; nothing is written
  epitome compact --keep-turns 1 session.jsonl    keep only the last turn whole
  epitome compact --all --older-than 7d --larger-than 1MB
  epitome compact - --out small.jsonl < session.jsonl";

/// Make sessions small, so that their agent still resumes them
///
/// Everything that goes is put into the archive first, and it is proved for that very file that it
/// comes back; only then is the file replaced. `epitome restore` gives it back.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, an id, the beginning of an id, or `-` for standard input
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
    /// Write the small session to a new file, and leave the session as it is
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub out: Option<PathBuf>,

    /// Change nothing, and print the same report
    #[arg(long)]
    pub dry_run: bool,

    /// Show what would become what, block by block, and change nothing: implies --dry-run
    #[arg(long, conflicts_with_all = ["json", "out"])]
    pub diff: bool,

    /// Go on although another program has the session open
    #[arg(long)]
    pub force: bool,

    /// Afterwards make the database of the session as small as what is in it: SQLite keeps what
    /// becomes free for later. It takes a while, and nobody can write to it meanwhile
    #[arg(long, conflicts_with_all = ["out", "dry_run", "diff"])]
    pub vacuum: bool,

    /// Shorten as the agent itself does: by a record of its own behind the end, and nothing that
    /// stands there changes; or by its marks on what is not sent any more
    ///
    /// What Codex's sessions get by default, but with --out.
    #[arg(long, conflicts_with = "rewrite")]
    pub native: bool,

    /// Shorten the records themselves, so that the file becomes smaller, too
    #[arg(long)]
    pub rewrite: bool,

    /// Let the summary in FILE stand for all but the end, in a record of the agent's own
    ///
    /// `-` is standard input. Of the recipe only what is kept whole counts: --keep-turns and such.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "native", "rewrite", "diff"])]
    pub summary: Option<PathBuf>,

    /// Have a model write the summary: MODEL, the one that is set, or the cheapest of the session's
    /// provider that will do
    ///
    /// A PROVIDER alone stands for its cheapest model that will do. What the session says goes to
    /// that model's provider. docs/models.md says which models there are, and where their keys are
    /// looked for. With --dry-run nobody is asked: it says who would
    /// be, about how much, at what cost.
    #[arg(
        long, value_name = "MODEL", num_args = 0..=1, require_equals = true,
        default_missing_value = "", alias = "summarize",
        conflicts_with_all = ["all", "native", "rewrite", "diff", "summary"]
    )]
    pub summarise: Option<String>,

    /// Where that model is, if not where its provider is
    #[arg(long, value_name = "URL", requires = "summarise")]
    pub base_url: Option<String>,

    /// A model to ask when that one has no answer; may be given several times
    #[arg(long, value_name = "MODEL", requires = "summarise")]
    pub fallback: Vec<String>,

    /// Keep a whole copy, NAME.uncompressed.jsonl, in the archive folder or beside the session
    #[arg(
        long, value_name = "WHERE", num_args = 0..=1, require_equals = true,
        default_missing_value = "archive", conflicts_with = "out"
    )]
    pub keep_backup: Option<Backup>,
}

#[derive(ClapArgs, Clone, Debug)]
#[command(next_help_heading = "Which of many")]
pub struct Many {
    /// All sessions of this machine (with --agent: of that agent)
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub filter: Filter,

    /// Do not ask before more than one session is compacted. Without a terminal nothing is asked
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backup {
    /// In the folder of the archive
    Archive,
    /// Beside the session: most agents list it there as a session
    Beside,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let Many { all, filter, .. } = &args.many;
    if filter.is_set() && !all {
        return Err(Failure::usage("--project, --older-than and --larger-than need --all"));
    }
    if args.how.out.is_some() && args.sessions.len() > 1 {
        return Err(Failure::usage("--out takes one session"));
    }
    let mut recipe = args.choice.recipe(app)?;
    if args.how.summarise.is_some() && recipe.live.summary.is_none() {
        // Whoever asks for one gets it as it is set, also where the recipe has none.
        let wanted = app.settings()?.changes().summary;
        recipe.live.summary = Some(wanted.of(SummaryRule::default()));
    }
    let summary = args.how.summary.as_deref().map(words_of).transpose()?;
    let filter_if_many = all.then_some(filter);
    let set = app.settings()?.values.compaction.backup.filter(|_| args.how.out.is_none());
    let keep_backup = args.how.keep_backup.or(set.map(Backup::from));
    // A difference is a preview.
    let dry_run = args.how.dry_run || args.how.diff;
    let how = How { keep_backup, dry_run, ..args.how.clone() };
    let wish = match &how.summarise {
        Some(model) => Some(Wish::new(app, model, how.base_url.as_deref(), &how.fallback)?),
        None => None,
    };
    let account = Account::default();
    let filter = filter_if_many;
    let run = &app.config.begin_run("compact");
    let (recipe, how, least) = (&recipe, &how, None);
    let job = Job { app, run, recipe, how, least, summary, wish, account, filter };
    if *all {
        return run_all(&job, &args.many.filter, args.many.yes);
    }
    let inputs: Vec<Input> =
        args.sessions.iter().map(|name| Input::find(app, name)).collect::<Result<_>>()?;
    if let (Some(wish), true) = (&job.wish, how.dry_run) {
        return inputs.iter().try_for_each(|input| job.forecast(wish, input));
    }
    if let [input] = inputs.as_slice() {
        let done = job.compact(input);
        if let (Err(failure), true) = (&done, app.global.json && job.account.has(&input.name())) {
            // What was asked in vain is accounted, too.
            job.tell(input, failure, false)?;
        }
        let Some(report) = done? else { return Ok(()) };
        job.vacuum(&inputs)?;
        return match app.global.json {
            true => app.print_json(&report),
            false => app.print(&report.render()),
        };
    }
    if inputs.contains(&Input::Stdin) {
        return Err(Failure::usage("standard input is a session alone"));
    }
    job.compact_several(inputs, args.many.yes)
}

/// One session, with what its sub-agents did, as `epitome compact` does it by default. With
/// `least`, it is left if less of its context would go.
pub fn one(
    app: &App,
    run: &Run,
    recipe: &Recipe,
    session: &Path,
    least: Option<Share>,
    dry_run: bool,
) -> Result<Report> {
    let how = &How { dry_run, ..How::default() };
    let (summary, wish, account, filter) = (None, None, Account::default(), None);
    let job = Job { app, run, recipe, how, least, summary, wish, account, filter };
    let report = job.compact(&Input::File(session.to_owned()))?;
    Ok(report.expect("without a filter every session is wanted"))
}

struct Job<'a> {
    app: &'a App,
    run: &'a Run,
    recipe: &'a Recipe,
    how: &'a How,
    /// The share of its context that has to go, or the session is left.
    least: Option<Share>,
    /// What stands for the beginning of the history.
    summary: Option<String>,
    /// Who is to write it.
    wish: Option<Wish>,
    /// What was asked of models.
    account: Account,
    /// With `--all`: which sessions are wanted once they are read.
    filter: Option<&'a Filter>,
}

impl Job<'_> {
    /// Makes the databases of the sessions small, each once.
    fn vacuum(&self, inputs: &[Input]) -> Result<()> {
        if !self.how.vacuum {
            return Ok(());
        }
        let places = inputs.iter().filter_map(|input| match input {
            Input::File(path) => Some(Place::of(path)),
            Input::Stdin => None,
        });
        let databases: BTreeSet<PathBuf> = places
            .filter_map(|place| match place {
                Place::Rows(rows) if rows.are_written() => Some(rows.database().to_owned()),
                Place::Rows(_) | Place::File(_) | Place::Spread(_) => None,
            })
            .collect();
        databases.iter().try_for_each(|database| Ok(vacuum(database)?))
    }

    /// One session with its sub-agents. Nothing: it is not of the wanted project.
    fn compact(&self, input: &Input) -> Result<Option<Report>> {
        let mut diff = String::new();
        let (mut files, mut too_little) = (Vec::new(), false);
        let file = match (input, self.how.out.is_some()) {
            (Input::Stdin, false) if !self.how.dry_run => {
                return Err(Failure::usage("a session from standard input needs --out"));
            }
            (Input::Stdin, _) => {
                let session = Loaded::read(read_stdin()?, self.app.agent())?;
                self.aside(input, &session, &mut diff)?
            }
            (Input::File(path), true) => self.aside(input, &self.open(path)?, &mut diff)?,
            (Input::File(path), false) if self.how.dry_run => {
                Place::of(path).check_writable()?;
                let session = self.open(path)?;
                if !self.wants(&session) {
                    return Ok(None);
                }
                let mut report = self.aside(input, &session, &mut diff)?;
                let users = find::users(&self.app.config, path);
                report.in_use = users.iter().map(UserFound::of).collect();
                files = self.companions(path, &mut diff)?;
                report
            }
            (Input::File(path), false) => {
                let by_project = self.filter.is_some_and(|it| it.which.project.is_some());
                if by_project && !self.wants(&self.open(path)?) {
                    return Ok(None);
                }
                let mut done = self.in_place(path)?;
                too_little = done.too_little;
                files = done.files.split_off(1).into_iter().map(reported).collect();
                reported(done.files.swap_remove(0))
            }
        };
        let is_written = std::iter::once(&file).chain(&files).any(|it| it.generation.is_some());
        let mut report = Report {
            models: self.account.of(&input.name()),
            file,
            recipe: self.recipe.name.clone(),
            counter: self.app.counter().name(),
            dry_run: self.how.dry_run,
            out: self.how.out.clone(),
            run: is_written.then(|| self.run.id.clone()),
            too_little,
            files,
            diff,
        };
        if self.how.dry_run {
            let (tokens, ..) = report.total();
            let is_saved = |least: Share| least.is_saved(tokens.before, tokens.after);
            report.too_little = !self.least.is_none_or(is_saved);
        }
        Ok(Some(report))
    }

    /// Plans what belongs to a session, such as the files of its sub-agents.
    fn companions(&self, session: &Path, diff: &mut String) -> Result<Vec<FileReport>> {
        let mut reports = Vec::new();
        let wanted = if self.with_companions() { find::companions(session) } else { Vec::new() };
        for path in wanted {
            let name = Input::File(path.clone());
            match self.open(&path).and_then(|loaded| self.aside(&name, &loaded, diff)) {
                Ok(report) => reports.push(report),
                // A file that is no session stays as it is, as in any other folder.
                Err(failure) if failure.is_of(&[ErrorKind::UnknownFormat]) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(reports)
    }

    /// What sums up a session says nothing of what its sub-agents did.
    fn with_companions(&self) -> bool {
        self.summary.is_none() && self.how.summarise.is_none()
    }

    fn open(&self, path: &Path) -> Result<Loaded> {
        Ok(Loaded::open(path, self.app.agent())?)
    }

    /// Archive, prove, replace.
    fn in_place(&self, path: &Path) -> Result<CompactedFamily<FileReport>> {
        let how = Compacting {
            config: &self.app.config,
            run: self.run,
            counter: self.app.counter(),
            agent: self.app.agent(),
            force: self.how.force,
            companions: self.with_companions(),
            backup: self.how.keep_backup.map(BackupPlace::from),
            least: self.least,
        };
        if how.force {
            self.app.warn_of_writers(path);
        }
        self.app.warn_of_no_parts(path);
        compact_family(&how, path, self).map_err(|failure| failure.about(path))
    }

    /// A plan, or a small copy of the session; the session stays.
    fn aside<S: Source>(
        &self,
        input: &Input,
        session: &Loaded<S>,
        diff: &mut String,
    ) -> Result<FileReport> {
        let config = &self.app.config;
        let name = input.name();
        let path = Path::new(&name);
        let planned = self.sound(path, session)?;
        if self.how.diff {
            diff.push_str(&diff::render(&planned, self.app.counter(), &self.app.screen()?));
        }
        let mut report = FileReport::of(name.clone(), &planned);
        report.billed_by(epitome::calibration(session, config, path, self.app.counter()));
        if let (Some(out), false) = (&self.how.out, self.how.dry_run) {
            if out.symlink_metadata().is_ok() {
                let what = format!("there is something of that name already: {}", out.display());
                return Err(Failure::new(Status::Refused, "exists", what)
                    .hint("choose another name, or remove what is there"));
            }
            let generation =
                apply_to(&planned, out, &config.archive(), self.app.counter(), self.made())
                    .map_err(Failure::writing)?;
            let pack = config.archive().pack_len(&generation.key(), generation.number);
            report.done(&generation, pack?);
        } else {
            report.archive_bytes = planned.pack_len(path, self.app.counter())?;
        }
        Ok(report)
    }

    /// In the way that was asked for; else the agent's own, where it has one and can.
    fn planned<'s, S: Source>(
        &'s self,
        name: &str,
        session: &'s Loaded<S>,
    ) -> Result<Planned<'s, S>> {
        let How { native, rewrite, out, .. } = self.how;
        if let Some(summary) = &self.summary {
            return Ok(Planned::summarised(summary, session, self.recipe, self.app.counter())?);
        }
        if let Some(wish) = &self.wish {
            self.check_holds_a_summary(session)?;
            let text = wish.written(self.app, session, self.recipe, name, &self.account)?;
            return Ok(Planned::summarised(&text, session, self.recipe, self.app.counter())?);
        }
        let plan = |way| Planned::by(way, session, self.recipe, self.app.counter());
        if *native && session.format.native.is_none() {
            let what =
                format!("{} has no way of its own to shorten a session", session.format.name);
            return Err(Failure::usage(what).hint("its sessions are rewritten"));
        }
        let is_default = session.format.native.is_some_and(|native| native.is_default());
        let by_default = is_default && !rewrite && out.is_none();
        if *native {
            return Ok(plan(Way::Native)?);
        }
        match by_default.then(|| plan(Way::Native)) {
            Some(Ok(planned)) if planned.breaches.is_empty() => Ok(planned),
            // A session with something in it that the record cannot hold.
            Some(_) | None => Ok(plan(Way::Rewrite)?),
        }
    }

    /// A plan that breaks no law.
    fn sound<'s, S: Source>(
        &'s self,
        path: &Path,
        session: &'s Loaded<S>,
    ) -> Result<Planned<'s, S>> {
        let name = path.display().to_string();
        let planned = self.planned(&name, session).map_err(|failure| failure.about(path))?;
        if !planned.breaches.is_empty() {
            let what = format!("the session would break a law: {}", path.display());
            let mut failure = Failure::new(Status::Refused, "law", what);
            failure.causes = planned.breaches.iter().take(5).map(ToString::to_string).collect();
            return Err(failure
                .hint("nothing was written; `epitome inspect` says whether it is sound as it is"));
        }
        Ok(planned)
    }

    fn made(&self) -> Made {
        Made { run: Some(self.run.clone()), ..Made::from(self.app.config.now()) }
    }

    fn wants<S>(&self, session: &Loaded<S>) -> bool {
        let cwd = session.transcript.head.cwd.as_deref();
        self.filter.is_none_or(|filter| filter.which.takes(cwd))
    }
}

impl Planner for Job<'_> {
    type Error = Failure;
    type Report = FileReport;

    fn plan<'s>(
        &'s self,
        path: &Path,
        session: &'s Loaded<&'s FileSource>,
    ) -> Result<Planned<'s, &'s FileSource>> {
        self.sound(path, session)
    }

    fn report(&self, path: &Path, planned: &Planned<'_, &FileSource>) -> FileReport {
        let mut report = FileReport::of(path.display().to_string(), planned);
        let (config, counter) = (&self.app.config, self.app.counter());
        report.billed_by(epitome::calibration(planned.session, config, path, counter));
        report
    }

    fn before_writing(&self) -> Result<()> {
        self.app.check_is_read()
    }

    fn writing(err: epitome::Error) -> Failure {
        Failure::writing(err)
    }
}

/// The report of a file, with what was written.
fn reported(file: CompactedFile<FileReport>) -> FileReport {
    let mut report = file.report;
    report.backup = file.backup;
    if let Some(generation) = &file.generation {
        report.done(generation, file.pack);
    }
    report
}

impl From<settings::Backup> for Backup {
    fn from(backup: settings::Backup) -> Backup {
        match backup {
            settings::Backup::Archive => Backup::Archive,
            settings::Backup::Beside => Backup::Beside,
        }
    }
}

impl From<Backup> for BackupPlace {
    fn from(backup: Backup) -> BackupPlace {
        match backup {
            Backup::Archive => BackupPlace::Archive,
            Backup::Beside => BackupPlace::Beside,
        }
    }
}
