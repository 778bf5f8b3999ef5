//! `epitome restore`: give sessions back.

pub mod many;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use epitome::{
    Damage, Digest, Generation, GivenBack, GivingBack, Loaded, LoggedRun, Restored, Target, What,
    archived_sessions, runs,
};
use epitome_model::{Bytes, Ref};
use serde::Serialize;

use many::Wanted;

use crate::app::App;
use crate::confirm::agreed;
use crate::failure::{Failure, Result};
use crate::report::{Change, Lines};
use crate::session::{file, parse_age};
use crate::text::{self, BOLD, DIM, bytes_change, count};

const EXAMPLES: &str = "\
Examples:
  epitome restore 0f3c9a52                      to what the agent wrote
  epitome restore 0f3c9a52 --generation 1       to what the first compaction left
  epitome restore 0f3c9a52 --block k7f3a9c2     one removed piece, all else stays
  epitome restore 0f3c9a52 --out whole.jsonl    the session stays small
  epitome restore --since 1h                    all that was compacted in the last hour";

/// Give sessions back, byte for byte, with what their agents appended since
///
/// A session comes back with its sub-agents, as one. If a file was changed by another program
/// since, each record that is still as it was left is given back, and the others are counted.
/// `epitome undo` takes back one run only.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, an id, or the beginning of an id
    #[arg(value_name = "SESSION", required_unless_present = "many")]
    pub session: Option<OsString>,

    /// Go back to what this compaction left, and not to the original
    #[arg(long, value_name = "N", conflicts_with = "block")]
    pub generation: Option<u64>,

    /// Give one removed piece back, named as its stub names it
    #[arg(long, value_name = "REF", value_parser = parse_ref)]
    pub block: Option<Ref>,

    /// Write the restored session to a new file, and leave the session as it is
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Change nothing, and print the same report
    #[arg(long)]
    pub dry_run: bool,

    /// Go on although another program has the session open
    #[arg(long)]
    pub force: bool,

    /// Restore what can be although a part of the archive is damaged or missing
    #[arg(long)]
    pub partial: bool,

    /// Do not ask: neither before more than one session is written (without a terminal there is no
    /// other way), nor whether imported parts of the archive are used
    #[arg(long, short)]
    pub yes: bool,

    #[command(flatten)]
    pub many: Which,
}

#[derive(ClapArgs, Clone, Debug)]
#[command(next_help_heading = "Which of many")]
#[group(
    id = "many",
    multiple = true,
    conflicts_with_all = ["session", "generation", "block", "out"]
)]
pub struct Which {
    /// All sessions that were compacted (with --agent: of that agent)
    #[arg(long)]
    pub all: bool,

    /// Sessions that were compacted in the last 1h, 2d, 1w
    #[arg(long, value_name = "AGE", value_parser = parse_age, conflicts_with = "all")]
    pub since: Option<Duration>,

    /// Sessions that a run compacted: an id of `epitome log`
    #[arg(long, value_name = "RUN", conflicts_with_all = ["all", "since"])]
    pub run: Option<String>,

    /// Only sessions that were run in this folder or below it
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

/// How a file was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum How {
    /// To the byte, proved by hash.
    Exact,
    /// Record by record: others changed the file since.
    ByRecord,
    /// To the byte, but not to the original: older bytes are not in the archive.
    Short,
    /// There was nothing to undo.
    Nothing,
}

/// What became of one file. See `docs/json.md`.
#[derive(Clone, Debug, Serialize)]
struct FileReport {
    #[serde(serialize_with = "crate::text::lossy")]
    session: PathBuf,
    agent: String,
    outcome: How,
    undone: Vec<u64>,
    restored: u64,
    /// How many of them not by hash.
    #[serde(skip)]
    by_record: u64,
    missing: u64,
    disk_bytes: Change<Bytes>,
    /// The blake3 hash of what was written.
    blake3: String,
    /// The same, if it was proved to be what the archive says was there.
    restored_proof: Option<String>,
    generation: Option<u64>,
    damaged: Vec<String>,
    /// The imported generations that it takes.
    #[serde(skip)]
    imported: Vec<u64>,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    file: FileReport,
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::text::lossy_option")]
    out: Option<PathBuf>,
    files: Vec<FileReport>,
    #[serde(skip)]
    partial: bool,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    match &args.session {
        Some(session) => one(app, args, session),
        None => several(app, args),
    }
}

fn several(app: &App, args: &Args) -> Result<()> {
    let Which { all, since, run, project } = &args.many;
    let run = run.as_deref().map(|id| find_run(app, id)).transpose()?;
    let since = since.map(|age| app.config.now().saturating_sub(age)).transpose();
    let since = since.map_err(|err| Failure::usage("--since is too long").because(&err))?;
    if !all && since.is_none() && run.is_none() {
        return Err(Failure::usage("--project needs --all, --since or --run"));
    }
    let is_meant = |generation: &Generation| {
        since.is_none_or(|since| generation.made >= since)
            && run.as_ref().is_none_or(|run| generation.is_of(&run.run.id))
    };
    let mut paths = archived_sessions(&app.config, app.agent(), is_meant)?;
    let project = crate::session::Which { project: project.clone() };
    if project.project.is_some() {
        paths.retain(|path| {
            let session = Loaded::open(path, app.agent());
            session.is_ok_and(|it| project.takes(it.transcript.head.cwd.as_deref()))
        });
    }
    let what = What::Session(Target::Original);
    let wanted: Vec<Wanted<'_>> = paths.into_iter().map(|path| Wanted { path, what }).collect();
    let (done, verb) = ("restored", "restore");
    let Args { dry_run, force, yes, partial, .. } = *args;
    many::give_back(app, &many::How { done, verb, dry_run, force, yes, partial }, &wanted)
}

/// The run whose id begins so.
pub fn find_run(app: &App, id: &str) -> Result<LoggedRun> {
    let log = runs(&app.config)?;
    let mut found = log.runs.into_iter().filter(|it| it.run.id.starts_with(id));
    match (found.next(), found.next()) {
        (Some(run), None) if !id.is_empty() => Ok(run),
        (None, _) => {
            Err(Failure::usage(format!("no run is called `{id}`"))
                .hint("`epitome log` lists the runs"))
        }
        (Some(_), _) => Err(Failure::usage(format!("`{id}` may be any of several runs"))
            .hint("give more of the id")),
    }
}

fn one(app: &App, args: &Args, session: &OsStr) -> Result<()> {
    let path = file(app, session)?;
    let what = match (&args.block, args.generation) {
        (Some(reference), _) => What::Block(reference),
        (None, Some(number)) => What::Session(Target::Generation(number)),
        (None, None) => What::Session(Target::Original),
    };
    let damage = if args.partial { Damage::LeaveOut } else { Damage::Refuse };
    let (config, agent, force) = (&app.config, app.agent(), args.force);
    let how = GivingBack { config, what, agent, force, damage };
    let asked = |done: &[GivenBack]| {
        app.check_is_read()?;
        imported(app, done, args.yes)
    };
    app.warn_of_no_parts(&path);
    let done = match &args.out {
        Some(out) if !args.dry_run => {
            how.write_copy(&path, out, asked, Failure::writing).map(|one| vec![one])?
        }
        Some(_) | None if args.dry_run => how.plan(&path)?,
        Some(_) | None => {
            if force {
                app.warn_of_writers(&path);
            }
            how.give_back(&path, asked, Failure::writing)?
        }
    };
    let mut report = Report::of(app, &done, &path, args.dry_run)?;
    report.out.clone_from(&args.out);
    report.partial = args.partial;
    match app.global.json {
        true => app.print_json(&report),
        false => app.print(&report.render()),
    }
}

/// Asks whether imported generations may be used.
fn imported(app: &App, done: &[GivenBack], yes: bool) -> Result<()> {
    for back in done.iter().filter(|it| !it.imported.is_empty()) {
        let numbers: Vec<String> = back.imported.iter().map(ToString::to_string).collect();
        let question = format!(
            "Generation {} of {} came from an import, and may put in what was never there. Use \
             them?",
            numbers.join(", "),
            text::field(&back.key.id),
        );
        agreed(app, yes, &question)?;
    }
    Ok(())
}

pub fn parse_ref(text: &str) -> std::result::Result<Ref, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is no reference; it looks like k7f3a9c2, as stubs in a session have it")
    })
}

impl Report {
    /// What was given back, the session first, also when it never was compacted itself.
    fn of(app: &App, done: &[GivenBack], path: &Path, dry_run: bool) -> Result<Report> {
        let is_session = |back: &&GivenBack| back.path == path;
        let file = match done.iter().find(is_session) {
            Some(back) => FileReport::of(back),
            None => FileReport::untouched(app, path)?,
        };
        let files = done.iter().filter(|back| !is_session(back)).map(FileReport::of).collect();
        Ok(Report { file, dry_run, out: None, files, partial: false })
    }

    fn render(&self) -> String {
        let file = &self.file;
        let restored = file.restored + self.files.iter().map(|it| it.restored).sum::<u64>();
        let verb = match self.dry_run {
            _ if restored == 0 => "nothing to do",
            true => "would restore",
            false => "restored",
        };
        let name = text::path(&file.session);
        let mut text = format!("{BOLD}{verb}{BOLD:#}  {name}\n");
        if self.dry_run {
            text.push_str(&format!("{DIM}nothing was written{DIM:#}\n"));
        }
        let mut lines = Lines::default();
        let Change { before, after } = file.disk_bytes;
        lines.add("disk", bytes_change(before, after));
        lines.extend("how", file.how(self.partial));
        if let Some(out) = &self.out {
            lines.add(if self.dry_run { "out" } else { "written" }, text::path(out));
        }
        if let Some(imported) = file.of_import(self.dry_run) {
            lines.add("imported", imported);
        }
        if let Some(number) = file.generation {
            let before = number - 1;
            let how = format!("kept as generation {number}; --generation {before} undoes it");
            lines.add("", how);
        }
        for damaged in &file.damaged {
            lines.add("damaged", text::field(damaged));
        }
        for companion in self.files.iter().filter(|it| it.outcome != How::Nothing) {
            let Change { before, after } = companion.disk_bytes;
            let name = companion.session.file_stem().unwrap_or_default().to_string_lossy();
            let name = text::field(&name);
            lines.add("with", format!("{name}  {}", bytes_change(before, after)));
            lines.extend("", companion.how(self.partial));
            if let Some(imported) = companion.of_import(self.dry_run) {
                lines.add("imported", imported);
            }
            for damaged in &companion.damaged {
                lines.add("damaged", text::field(damaged));
            }
        }
        text.push_str(&lines.render());
        text
    }
}

impl FileReport {
    fn of(back: &GivenBack) -> FileReport {
        let (outcome, by_record, missing) = match &back.outcome {
            Restored::Exact { .. } if back.short_of.is_some() => (How::Short, 0, 0),
            Restored::Exact { .. } if back.is_nothing() => (How::Nothing, 0, 0),
            Restored::Exact { .. } => (How::Exact, 0, 0),
            Restored::ByRecord { restored, missing, .. } => (How::ByRecord, *restored, *missing),
        };
        let blake3 = back.after.blake3.to_string();
        FileReport {
            session: back.path.clone(),
            agent: back.key.agent.clone(),
            outcome,
            undone: back.outcome.undone().to_vec(),
            restored: back.edits + by_record,
            by_record,
            missing,
            disk_bytes: Change { before: back.bytes_before, after: back.bytes_after() },
            restored_proof: matches!(outcome, How::Exact | How::Nothing).then(|| blake3.clone()),
            blake3,
            generation: back.generation,
            damaged: back.damaged.iter().chain(&back.short_of).map(ToString::to_string).collect(),
            imported: back.imported.clone(),
        }
    }

    /// A session that was never compacted; what belongs to it was.
    fn untouched(app: &App, path: &Path) -> Result<FileReport> {
        let session = Loaded::open(path, app.agent())?;
        let Digest { len, blake3 } = Digest::of_source(&session.source)?;
        Ok(FileReport {
            session: path.to_owned(),
            agent: session.format.name.to_owned(),
            outcome: How::Nothing,
            undone: Vec::new(),
            restored: 0,
            by_record: 0,
            missing: 0,
            disk_bytes: Change { before: Bytes(len), after: Bytes(len) },
            blake3: blake3.to_string(),
            restored_proof: None,
            generation: None,
            damaged: Vec::new(),
            imported: Vec::new(),
        })
    }

    /// What it owes to an import.
    fn of_import(&self, dry_run: bool) -> Option<String> {
        let numbers: Vec<String> = self.imported.iter().map(ToString::to_string).collect();
        let (word, verb) = match (numbers.len(), dry_run) {
            (0, _) => return None,
            (1, false) => ("generation", "was used"),
            (1, true) => ("generation", "would be used"),
            (_, false) => ("generations", "were used"),
            (_, true) => ("generations", "would be used"),
        };
        Some(format!("{word} {} {verb}: it may put in what was never there", numbers.join(", ")))
    }

    fn how(&self, partial: bool) -> Vec<String> {
        let numbers: Vec<String> = self.undone.iter().map(ToString::to_string).collect();
        let word = if numbers.len() == 1 { "generation" } else { "generations" };
        let exactly = count(self.restored - self.by_record, "record");
        let exactly = format!("{word} {} undone, {exactly} given back", numbers.join(", "));
        match self.outcome {
            How::Nothing => vec![format!("it is what it was: blake3 {}", self.blake3)],
            How::Exact => {
                vec![
                    format!("exact, to the byte: {exactly}"),
                    format!("proved: blake3 {}", self.blake3),
                ]
            }
            How::Short if numbers.is_empty() => vec!["it is not what it was".to_owned()],
            How::Short => vec![format!("not to the original: {exactly}")],
            How::ByRecord => {
                let restored = count(self.by_record, "edit");
                let mut lines = vec![format!("record by record: {restored} undone")];
                if !numbers.is_empty() {
                    let since = "the file was changed by others before that";
                    lines.insert(0, format!("to the byte: {exactly}; {since}"));
                }
                if self.missing > 0 && partial {
                    lines.push(format!(
                        "{} not given back: changed since, or damaged in the archive",
                        count(self.missing, "edit"),
                    ));
                } else if self.missing > 0 {
                    let verb = if self.missing == 1 { "is" } else { "are" };
                    lines.push(format!(
                        "{} {verb} no longer where epitome left {}: `epitome show` has the bytes",
                        self.missing,
                        if self.missing == 1 { "it" } else { "them" },
                    ));
                }
                lines
            }
        }
    }
}
