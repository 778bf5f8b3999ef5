//! `epitome restore`: restores sessions.

pub mod many;
mod version;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use epitome::ErrorKind;
use epitome::ops::{
    Change, FileRestore, How, OpenSession, Restore, RestoreReport, RestoredFile, What, session_text,
};
use epitome::runs::{ArchivedSessions, LoggedRun, RunLog, RunMatch, archived_sessions, runs};
use epitome::storage::{Damage, RestoreTarget};
use epitome_model::Ref;
use epitome_passes::Name;

use many::Wanted;

use crate::app::App;
use crate::cmd::archive::remote;
use crate::confirm::ask_to_continue;
use crate::failure::{Failure, Result};
use crate::report::Lines;
use crate::session::{self, file, parse_age};
use crate::text::{self, BOLD, DIM, bytes_change, count, short_hash};

const EXAMPLES: &str = "\
Examples:
  epitome restore 0f3c9a52                      to what the agent wrote
  epitome restore 0f3c9a52 --generation 1       to what the first compaction left
  epitome restore 0f3c9a52 --block k7f3a9c2     one removed piece, all else stays
  epitome restore 0f3c9a52 --out whole.jsonl    the session stays small
  epitome restore 0f3c9a52 --at 7               to a version that `epitome history` shows
  epitome restore --since 1h                    all that was compacted in the last hour";

/// Restore sessions, byte for byte, with what their agents appended since
///
/// A session is restored together with its sub-agents. If another program changed a file since,
/// each record that is still as epitome left it is restored, and the others are counted. `epitome
/// undo` undoes one run only.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, a session id, or its prefix
    #[arg(value_name = "SESSION", required_unless_present = "many")]
    pub session: Option<OsString>,

    /// Restore the session as this compaction left it, instead of the original
    #[arg(long, value_name = "N", conflicts_with = "block")]
    pub generation: Option<u64>,

    /// Restore only the text with this reference, which its stub shows
    #[arg(long, value_name = "REF", value_parser = parse_ref)]
    pub block: Option<Ref>,

    /// Restore the version with this number, or the last one that `epitome keep` saw by this time:
    /// 7, 2h (ago), 2026-01-31, 2026-01-31T14:00
    #[arg(long, value_name = "VERSION", requires = "session",
          conflicts_with_all = ["generation", "block", "partial"])]
    pub at: Option<String>,

    /// Write the restored session to a new file, and leave the session unchanged
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Change nothing, and print the same report
    #[arg(long)]
    pub dry_run: bool,

    /// Proceed although another program has the session open
    #[arg(long)]
    pub force: bool,

    /// Restore as much as possible although a part of the archive is damaged or missing
    #[arg(long)]
    pub partial: bool,

    /// Do not ask before several sessions are written (required without a terminal), nor before
    /// imported parts of the archive are used
    #[arg(long, short)]
    pub yes: bool,

    #[command(flatten)]
    pub many: Which,
}

#[derive(ClapArgs, Clone, Debug)]
#[command(next_help_heading = "Which sessions")]
#[group(
    id = "many",
    multiple = true,
    conflicts_with_all = ["session", "generation", "block", "at", "out"]
)]
pub struct Which {
    /// All sessions that were compacted (with --agent: of that agent)
    #[arg(long)]
    pub all: bool,

    /// Sessions that were compacted in the last 1h, 2d, 1w
    #[arg(long, value_name = "AGE", value_parser = parse_age, conflicts_with = "all")]
    pub since: Option<Duration>,

    /// Sessions that a run compacted: its id in `epitome log`
    #[arg(long, value_name = "RUN", conflicts_with_all = ["all", "since"])]
    pub run: Option<String>,

    /// Only sessions that were run in this folder or below it
    #[arg(long, value_name = "DIR", allow_hyphen_values = true, value_parser = session::project())]
    pub project: Option<PathBuf>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    match (&args.session, &args.at) {
        (Some(session), Some(at)) => version::run(app, args, session, at),
        (Some(session), None) => one(app, args, session),
        (None, _) => several(app, args),
    }
}

fn several(app: &App, args: &Args) -> Result<()> {
    let Which { all, since, run, project } = &args.many;
    let run = run.as_deref().map(|id| find_run(runs(&app.config)?, id)).transpose()?;
    let since = since.map(|age| app.config.now().saturating_sub(age)).transpose();
    let since = since.map_err(|err| Failure::usage("--since is too long").because(&err))?;
    if !all && since.is_none() && run.is_none() {
        return Err(Failure::usage("--project needs --all, --since or --run"));
    }
    let ArchivedSessions { mut paths, unread } =
        archived_sessions(&app.config, app.agent(), |generation| {
            since.is_none_or(|since| generation.made >= since)
                && run.as_ref().is_none_or(|run| generation.is_of(&run.id))
        })?;
    if let Some(project) = project {
        paths.retain(|path| {
            let session = OpenSession::with_agent(&app.config, path, app.agent());
            // A session that exists but cannot be read is included: restoring it reports the
            // reason.
            session.is_run_in(project).unwrap_or_else(|err| !is_no_session(&err))
        });
    }
    let what = What::Session(RestoreTarget::Original);
    let wanted: Vec<Wanted<'_>> = paths.into_iter().map(|path| Wanted { path, what }).collect();
    let done = "restored";
    let verb = "restore";
    let Args { dry_run, force, yes, partial, .. } = *args;
    let how = many::How { done, verb, dry_run, force, yes, partial };
    many::give_back(app, &how, &wanted, unread)
}

/// Whether an error means that there is no session at a path.
fn is_no_session(err: &epitome::Error) -> bool {
    matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotAFile | ErrorKind::UnknownFormat)
}

/// The only run whose id begins with `id`. An error if there is none, or if there are several.
pub fn find_run(log: RunLog, id: &str) -> Result<LoggedRun> {
    match log.find(id) {
        RunMatch::Run(run) => Ok(*run),
        RunMatch::Nothing => Err(Failure::usage(format!("no run has the id `{id}`"))
            .hint("`epitome log` lists the runs")),
        RunMatch::AnyOf(_) => {
            let what = format!("`{id}` is the beginning of several run ids");
            Err(Failure::usage(what).hint("give more of the id"))
        }
    }
}

fn one(app: &App, args: &Args, session: &OsStr) -> Result<()> {
    let path = file(app, session)?;
    match restore_file(app, args, &path) {
        // What is missing may be in the remote archive.
        Err(failure)
            if failure.is_of(&[ErrorKind::Archive, ErrorKind::NotArchived])
                && remote::try_pull(app, &path) =>
        {
            restore_file(app, args, &path)
        }
        done => done,
    }
}

fn restore_file(app: &App, args: &Args, path: &Path) -> Result<()> {
    let what = match (&args.block, args.generation) {
        (Some(reference), _) => What::Block(reference),
        (None, Some(number)) => What::Session(RestoreTarget::Generation(number)),
        (None, None) => What::Session(RestoreTarget::Original),
    };
    let damage = if args.partial { Damage::LeaveOut } else { Damage::Refuse };
    let restore = Restore { what, force: args.force, damage };
    let session = OpenSession::with_agent(&app.config, path, app.agent());
    let asked = |done: &[FileRestore]| {
        app.check_output_has_reader()?;
        imported(app, done, args.yes)
    };
    app.warn_of_no_parts(&session);
    let done = match &args.out {
        Some(out) if !args.dry_run => restore.write_copy(&session, out, asked),
        Some(_) => restore.plan_copy(&session).map_err(Failure::from),
        None if args.dry_run => restore.plan(&session).map_err(Failure::from),
        None => {
            if args.force {
                app.warn_of_writers(&session);
            }
            restore.run_after(&session, asked)
        }
    };
    let mut report = done.map_err(|failure| match &args.block {
        Some(reference) => in_the_file(failure, &session, reference),
        None => failure,
    })?;
    report.out.clone_from(&args.out);
    if app.global.json {
        app.print_json(&report)
    } else {
        app.page_folded(&render(&report, args.partial))
    }
}

/// Adds a hint to the failure if the text was not archived and the session as it was before all
/// compactions contains it.
fn in_the_file(failure: Failure, session: &OpenSession<'_>, reference: &Ref) -> Failure {
    if !failure.is_of(&[ErrorKind::NotArchived]) {
        return failure;
    }
    match session_text(session, &Name::Text(reference.clone())) {
        Ok(Some(_)) => failure
            .hint(format!(
                "{reference} is still in the file: it was removed from the context by a \
                 compaction that archived nothing, and cannot be put back alone"
            ))
            .hint(format!(
                "`epitome show {reference} --session {}` prints it",
                text::path(session.path())
            )),
        Ok(None) | Err(_) => failure,
    }
}

/// Asks whether imported generations may be used.
fn imported(app: &App, done: &[FileRestore], yes: bool) -> Result<()> {
    for back in done.iter().filter(|it| !it.imported.is_empty()) {
        let numbers: Vec<String> = back.imported.iter().map(ToString::to_string).collect();
        let question = format!(
            "Generation {} of {} came from an import, and may put in what was never there. Use \
             them?",
            numbers.join(", "),
            text::field(&back.key.id),
        );
        ask_to_continue(app, yes, &question)?;
    }
    Ok(())
}

pub fn parse_ref(text: &str) -> std::result::Result<Ref, String> {
    text.parse().map_err(|_| format!("`{text}` is not a reference; a stub shows one like k7f3a9c2"))
}

/// The report for people.
fn render(report: &RestoreReport, partial: bool) -> String {
    let file = &report.file;
    let restored = file.restored + report.files.iter().map(|it| it.restored).sum::<u64>();
    let verb = if restored == 0 {
        "nothing to do"
    } else if report.dry_run {
        "would restore"
    } else {
        "restored"
    };
    let name = text::path(&file.session);
    let mut text = format!("{BOLD}{verb}{BOLD:#}  {name}\n");
    if report.dry_run {
        text.push_str(&format!("{DIM}nothing was written{DIM:#}\n"));
    }
    let mut lines = Lines::default();
    let Change { before, after } = file.disk_bytes;
    lines.add("disk", bytes_change(before, after));
    lines.extend("how", how(file, partial));
    if let Some(out) = &report.out {
        lines.add(if report.dry_run { "out" } else { "written" }, text::path(out));
    }
    if let Some(imported) = of_import(file, report.dry_run) {
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
    for part in report.files.iter().filter(|it| it.outcome != How::Nothing) {
        let Change { before, after } = part.disk_bytes;
        let name = part.session.file_stem().unwrap_or_default().to_string_lossy();
        let name = text::field(&name);
        lines.add("with", format!("{name}  {}", bytes_change(before, after)));
        lines.extend("", how(part, partial));
        if let Some(imported) = of_import(part, report.dry_run) {
            lines.add("imported", imported);
        }
        for damaged in &part.damaged {
            lines.add("damaged", text::field(damaged));
        }
    }
    text.push_str(&lines.render());
    text
}

/// Describes which imported generations were used; `None` if none were.
fn of_import(file: &RestoredFile, dry_run: bool) -> Option<String> {
    let numbers: Vec<String> = file.imported.iter().map(ToString::to_string).collect();
    let (word, verb) = match (numbers.len(), dry_run) {
        (0, _) => return None,
        (1, false) => ("generation", "was used"),
        (1, true) => ("generation", "would be used"),
        (_, false) => ("generations", "were used"),
        (_, true) => ("generations", "would be used"),
    };
    Some(format!(
        "{word} {} {verb}: it may add text that was never in the session",
        numbers.join(", ")
    ))
}

/// Describes in lines how a file was restored.
fn how(file: &RestoredFile, partial: bool) -> Vec<String> {
    let compactions = count(file.undone.len() as u64, "compaction");
    let exactly = count(file.restored - file.by_record, "record");
    let exactly = format!("{compactions} undone, {exactly} restored");
    match file.outcome {
        How::Nothing => vec![format!("unchanged: {}", short_hash(&file.blake3))],
        How::Exact => {
            vec![
                format!("exact, to the byte: {exactly}"),
                format!("verified: {}", short_hash(&file.blake3)),
            ]
        }
        How::Short if file.undone.is_empty() => vec!["not the original".to_owned()],
        How::Short => vec![format!("not to the original: {exactly}")],
        How::ByRecord => {
            let restored = count(file.by_record, "edit");
            let mut lines = vec![format!("record by record: {restored} undone")];
            if !file.undone.is_empty() {
                let since = "the file was changed by others before that";
                lines.insert(0, format!("to the byte: {exactly}; {since}"));
            }
            if file.missing > 0 && partial {
                lines.push(format!(
                    "{} not restored: changed since, forgotten, or damaged in the archive",
                    count(file.missing, "edit"),
                ));
            } else if file.missing > 0 {
                let verb = if file.missing == 1 { "is" } else { "are" };
                lines.push(format!(
                    "{} {verb} no longer where epitome left {}: `epitome show` has the bytes",
                    file.missing,
                    if file.missing == 1 { "it" } else { "them" },
                ));
            }
            lines
        }
    }
}
