//! Restores several sessions: first the totals, then a question, then one session after the other.

use std::path::{Path, PathBuf};

use epitome::ops::{Change, OpenSession, Restore, RestoreReport, What};
use epitome::storage::{Damage, RestoreOutcome};
use epitome::{Error, ErrorKind};
use epitome_model::Bytes;
use serde::Serialize;

use super::imported;
use crate::app::App;
use crate::confirm::ask_to_continue;
use crate::failure::{Failure, Result};
use crate::steps::Steps;
use crate::text::{self, BOLD, DIM, bytes_change, count, field};

/// A session to restore.
pub struct Wanted<'a> {
    pub path: PathBuf,
    pub what: What<'a>,
}

/// The options of `restore` or `undo`, and the words that their messages use.
pub struct How<'a> {
    /// The word for what is done to a session: `restored` or `undone`.
    pub done: &'a str,
    /// The command: `restore`, `undo`.
    pub verb: &'a str,
    pub dry_run: bool,
    pub force: bool,
    pub yes: bool,
    pub partial: bool,
}

/// A session that was not restored.
#[derive(Serialize)]
struct Left<'a> {
    #[serde(serialize_with = "epitome_model::lossy_path")]
    session: &'a Path,
    dry_run: bool,
    error: &'a Failure,
}

/// Restores several sessions: plans each, asks before more than one is written (unless `--yes` is
/// given), and restores one after the other. A session that cannot be restored is reported and left
/// unchanged. `unread` has the errors of those parts of the archive that cannot be read and may
/// belong to further sessions.
pub fn give_back(
    app: &App,
    how: &How<'_>,
    wanted: &[Wanted<'_>],
    unread: Vec<Error>,
) -> Result<()> {
    let mut many = Many { app, how, left: 0, worst: None, listed: 0 };
    for err in unread {
        many.leave_unread(err)?;
    }
    let mut planned = Vec::new();
    for wanted in wanted {
        let session = many.session(wanted);
        many.name_what_is_gone(wanted, &session);
        match many.restore(wanted).plan(&session).map_err(Failure::from) {
            Ok(plan) if plan.is_nothing() => {}
            Ok(plan) => planned.push((wanted, plan)),
            Err(failure) => many.leave(&wanted.path, failure)?,
        }
    }
    if how.dry_run {
        for (wanted, plan) in &planned {
            many.report(&wanted.path, plan)?;
        }
        return many.end(planned.len(), sum_of(planned.iter().map(|(_, plan)| plan)));
    }
    if planned.len() > 1 {
        let sessions = count(planned.len() as u64, "session");
        let Change { before, after } = sum_of(planned.iter().map(|(_, plan)| plan));
        let disk = bytes_change(before, after);
        app.note(&format!("{sessions} would be {}: disk {disk}", how.done));
        ask_to_continue(app, how.yes, "Go on?")?;
    }
    // This is checked only before the first write. Later, the run goes on even if the reader of the
    // output has gone.
    app.check_output_has_reader()?;
    let mut written = 0;
    let mut all = Vec::new();
    let mut unread = None;
    let steps = Steps::writing(app, "{bar:30} {pos}/{len} sessions {elapsed}", planned.len());
    for (wanted, _) in planned {
        if steps.is_stopped() {
            break;
        }
        let session = many.session(wanted);
        if how.force {
            app.warn_of_writers(&session);
        }
        let done = many.restore(wanted).run_after(&session, |done| imported(app, done, how.yes));
        match done {
            Ok(done) => {
                unread = unread.or(steps.print(|| many.report(&wanted.path, &done)).err());
                written += 1;
                all.push(done);
            }
            Err(failure) => {
                unread = unread.or(steps.print(|| many.leave(&wanted.path, failure)).err());
            }
        }
        steps.step();
    }
    steps.clear();
    let hint = "the same command goes on with the rest";
    match (unread, steps.stop_failure(written, how.done, hint)) {
        (Some(failure), _) => Err(failure),
        (None, Some(stopped)) => Err(stopped),
        (None, None) => many.end(written, sum_of(&all)),
    }
}

/// The results so far.
struct Many<'a> {
    app: &'a App,
    how: &'a How<'a>,
    left: u64,
    worst: Option<Failure>,
    /// The number of sessions that were listed on a line of their own so far.
    listed: usize,
}

/// The number of listed sessions after which only those with something unusual are listed.
const LISTED: usize = 20;

impl<'a> Many<'a> {
    fn session(&self, wanted: &Wanted<'_>) -> OpenSession<'a> {
        OpenSession::with_agent(&self.app.config, &wanted.path, self.app.agent())
    }

    fn restore(&self, wanted: &Wanted<'a>) -> Restore<'a> {
        let damage = if self.how.partial { Damage::LeaveOut } else { Damage::Refuse };
        Restore { what: wanted.what, force: self.how.force, damage }
    }

    /// Warns of files that should belong to the session and are no files, and of files of a run
    /// that no longer exist.
    fn name_what_is_gone(&self, wanted: &Wanted<'_>, session: &OpenSession<'_>) {
        self.app.warn_of_no_parts(session);
        let What::Run { files, .. } = wanted.what else { return };
        for path in files.iter().filter(|path| files.len() > 1 && !epitome::storage::exists(path)) {
            self.app.warn(Some(&format!("{}: it is gone; the rest is undone", path.display())));
        }
    }

    fn report(&mut self, path: &Path, report: &RestoreReport) -> Result<()> {
        if self.app.global.json {
            return self.app.print_json(report);
        }
        let done = &report.done;
        let is_plain = done.iter().all(|it| {
            it.damaged.is_empty() && !matches!(it.outcome, RestoreOutcome::ByRecord { .. })
        });
        // After the first [`LISTED`] sessions, a session is listed only if a part of its archive is
        // damaged, or if it was restored record by record.
        if is_plain && self.listed >= LISTED {
            return Ok(());
        }
        self.listed += 1;
        let would = if self.how.dry_run { "would be " } else { "" };
        let Change { before, after } = report.disk_bytes();
        let disk = bytes_change(before, after);
        let damaged = done.iter().any(|it| !it.damaged.is_empty());
        let note = if done.iter().any(|it| matches!(it.outcome, RestoreOutcome::ByRecord { .. })) {
            "  record by record: other programs changed it since"
        } else if damaged {
            "  another part of its archive is damaged"
        } else {
            ""
        };
        let done = self.how.done;
        self.app
            .print(&format!("{would}{BOLD}{done}{BOLD:#}  {}  {disk}{note}\n", text::path(path)))
    }

    /// Reports an error of the archive, which may concern one of the sessions. Damage in the
    /// archive is only a warning, because it is permanent and most often concerns another session.
    /// Any other error is reported as the reason why a session is left unchanged.
    fn leave_unread(&mut self, err: Error) -> Result<()> {
        if err.kind() == ErrorKind::Archive {
            self.app.warn(Some(&Failure::from(err).one_line()));
            return Ok(());
        }
        let path = err.path().map(Path::to_owned).unwrap_or_default();
        self.leave(&path, Failure::writing(err))
    }

    /// Reports why a session is left unchanged.
    fn leave(&mut self, path: &Path, failure: Failure) -> Result<()> {
        let failure = failure.with_path(path);
        self.left += 1;
        if self.app.global.json {
            let dry_run = self.how.dry_run;
            self.app.print_json(&Left { session: path, dry_run, error: &failure })?;
        } else {
            self.app.note(&format!("{DIM}skipped:{DIM:#} {}", field(&failure.one_line())));
        }
        failure.add_to(&mut self.worst);
        Ok(())
    }

    fn end(self, written: usize, Change { before, after }: Change<Bytes>) -> Result<()> {
        let How { done, verb, dry_run, .. } = self.how;
        if !self.app.global.json {
            let sessions = count(written as u64, "session");
            let disk = bytes_change(before, after);
            if written > self.listed {
                let more = written - self.listed;
                self.app.print(&format!("{DIM}and {more} more (--json lists all){DIM:#}\n"))?;
            }
            self.app.print(&match (written, dry_run) {
                (0, _) => format!("nothing to {verb}\n"),
                (_, true) => {
                    format!("{sessions} would be {done}, disk {disk}; nothing was written\n")
                }
                (_, false) => format!("{sessions} {done}, disk {disk}\n"),
            })?;
        }
        match self.worst {
            None => Ok(()),
            Some(worst) => {
                let what = format!("{} could not be {done}", count(self.left, "session"));
                let failure = Failure::new(worst.status, worst.kind, what);
                // Other sessions may have been changed.
                let hints = worst.hints.iter();
                let hints = hints.map(|hint| hint.trim_end_matches("; nothing was changed"));
                Err(hints.fold(failure, Failure::hint))
            }
        }
    }
}

fn sum_of<'b>(reports: impl IntoIterator<Item = &'b RestoreReport>) -> Change<Bytes> {
    reports.into_iter().map(RestoreReport::disk_bytes).sum()
}
