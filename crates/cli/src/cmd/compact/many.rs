//! Compacts many sessions: the result of each, and the totals.

use epitome::ErrorKind;
use epitome::ops::{AskedModels, Compact, CompactReport};
use rayon::prelude::*;
use serde::Serialize;

use super::{Job, LossesShown};
use crate::confirm::{ask_to_continue, can_ask};
use crate::failure::{Failure, Result};
use crate::report::{self, ReportView, Sum};
use crate::session::{Filter, Input};
use crate::steps::Steps;
use crate::text::{DIM, count, visible};

/// The template of the progress bar.
const BAR: &str = "{bar:30} {pos}/{len} sessions {elapsed}";

/// A hint for a run that was stopped: how to undo its compactions.
const UNDO: &str = "`epitome undo` takes them back; the same command goes on with the rest";

/// A session that was not compacted, as JSON.
#[derive(Serialize)]
struct NotCompacted<'a> {
    session: String,
    recipe: &'a str,
    dry_run: bool,
    /// `skipped` if the command succeeds nevertheless, otherwise `failed`.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    models: Option<AskedModels>,
    error: &'a Failure,
}

/// Compacts all sessions of this machine that pass the filter. A session with an expected failure
/// (see [`is_excused`]), for example because it is in use, is skipped and reported.
///
/// Without a terminal the user is not asked, because timers run this command.
pub(super) fn run_all(job: &Job<'_>, filter: &Filter, yes: bool) -> Result<()> {
    let found = filter.sessions(job.app);
    let inputs: Vec<Input> = found.into_iter().map(|file| Input::File(file.path)).collect();
    job.compact_several(inputs, yes)
}

impl Job<'_> {
    /// Compacts several sessions. On a terminal, without `yes`, the user is asked before more than
    /// one session is written.
    pub(super) fn compact_several(&self, inputs: Vec<Input>, yes: bool) -> Result<()> {
        if inputs.len() > 1 && !yes && !self.dry_run && can_ask() {
            self.ask(&inputs)?;
        }
        self.compact_many(inputs)
    }

    /// Shows what compacting the sessions would save. If more than one would be compacted, asks
    /// whether to do it.
    fn ask(&self, inputs: &[Input]) -> Result<()> {
        let Job { app, compact, vacuum, account, filter, .. } = *self;
        let compact = Compact { summary: None, ..compact };
        let dry_run = true;
        let diff = false;
        let losses = LossesShown::No;
        let preview = Job { app, compact, dry_run, diff, losses, vacuum, account, filter };
        let steps = Steps::new(app, BAR, inputs.len());
        let reports = inputs.par_iter().filter_map(|input| {
            steps.step();
            let shown = preview.compact(input).ok().flatten();
            shown.map(|shown| shown.report).filter(|report| !report.is_nothing())
        });
        let reports: Vec<CompactReport> = reports.collect();
        steps.clear();
        let mut sum = Sum::default();
        reports.iter().for_each(|report| sum.add(report));
        app.note(sum.message("would be compacted").trim_end());
        ask_to_continue(app, sum.sessions < 2, "Go on?")
    }

    /// Compacts several sessions on all cores, and reports the results. After Ctrl-C, no further
    /// session is begun.
    fn compact_many(&self, inputs: Vec<Input>) -> Result<()> {
        let named = inputs.clone();
        let steps = match self.dry_run {
            true => Steps::new(self.app, BAR, inputs.len()),
            false => Steps::writing(self.app, BAR, inputs.len()),
        };
        let done: Vec<(Input, Result<Option<ReportView>>)> = inputs
            .into_par_iter()
            .filter_map(|input| {
                if steps.is_stopped() {
                    return None;
                }
                let done = self.compact(&input);
                steps.step();
                Some((input, done))
            })
            .collect();
        steps.clear();
        if !steps.is_stopped() {
            self.vacuum(&named)?;
        }
        let mut reports = Vec::new();
        let mut diffs = String::new();
        let mut worst: Option<Failure> = None;
        let mut left = 0_u64;
        let mut failed = 0_u64;
        let written = done.iter().filter(|(_, done)| is_written(done)).count();
        let unprinted = |failure| self.with_work_done(failure, written as u64);
        for (input, done) in done {
            match done {
                Ok(Some(shown)) => {
                    if self.app.global.json {
                        self.app.print_json(&shown.report).map_err(unprinted)?;
                    } else {
                        diffs.push_str(&shown.diff);
                        reports.push(shown.report);
                    }
                }
                Ok(None) => {}
                Err(failure) => {
                    left += 1;
                    let excused = self.filter.is_some() && is_excused(&failure);
                    self.report_failure(&input, &failure, excused).map_err(unprinted)?;
                    failed += u64::from(!excused);
                    if !excused {
                        failure.add_to(&mut worst);
                    }
                }
            }
        }
        if let Some(stopped) = steps.stop_failure(written, "compacted", UNDO) {
            let mut sum = Sum::default();
            reports.iter().filter(|it| !it.is_nothing()).for_each(|report| sum.add(report));
            if sum.sessions > 0 {
                self.app.print(&sum.message("compacted")).map_err(unprinted)?;
            }
            return Err(stopped);
        }
        if !self.app.global.json {
            self.print_all(&reports, diffs, left).map_err(unprinted)?;
        }
        match worst {
            Some(failure) => {
                let what = format!("{} could not be compacted", count(failed, "session"));
                Err(Failure::new(failure.status, failure.kind, what))
            }
            None => Ok(()),
        }
    }

    /// Reports why a session is unchanged. `excused` says that the command succeeds nevertheless.
    pub(super) fn report_failure(
        &self,
        input: &Input,
        failure: &Failure,
        excused: bool,
    ) -> Result<()> {
        if self.app.global.json {
            let recipe = self.compact.recipe.name.as_str();
            let dry_run = self.dry_run;
            let session = input.name();
            let models = self.account.calls_for(&input.name());
            let outcome = if excused { "skipped" } else { "failed" };
            let not_compacted =
                NotCompacted { session, recipe, dry_run, outcome, models, error: failure };
            return self.app.print_json(&not_compacted);
        }
        if excused {
            self.app.note(&format!("{DIM}skipped:{DIM:#} {}", visible(&failure.one_line())))
        } else {
            self.app.note(failure.render().trim_end())
        }
        Ok(())
    }

    /// Prints a table of the sessions. `left` is the number of sessions that failed or were
    /// skipped.
    fn print_all(&self, reports: &[CompactReport], diffs: String, left: u64) -> Result<()> {
        let mut text = diffs;
        text.push_str(&report::summary(reports));
        if reports.is_empty() {
            text = "no sessions\n".to_owned();
        }
        if self.dry_run {
            text.push_str(&format!("{DIM}nothing was written{DIM:#}\n"));
        }
        if left > 0 {
            let verb = if left == 1 { "is" } else { "are" };
            text.push_str(&format!("{} {verb} left as before\n", count(left, "session")));
        }
        self.app.page(&text)
    }
}

/// Whether a session was compacted, and not only planned.
fn is_written(done: &Result<Option<ReportView>>) -> bool {
    done.as_ref().is_ok_and(|shown| shown.as_ref().is_some_and(|it| it.report.run.is_some()))
}

/// Whether a command for many sessions skips a session with this failure and still succeeds: the
/// session is in use, locked, or changed in the meantime; epitome does not write its format; or its
/// format is unknown.
pub fn is_excused(failure: &Failure) -> bool {
    failure.error.is_some_and(ErrorKind::leaves_one_of_many)
}
