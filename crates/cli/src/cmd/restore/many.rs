//! Several sessions given back: first what it comes to, then a question, then one after the other.

use std::path::{Path, PathBuf};

use epitome::{Damage, GivenBack, GivingBack, Restored, What};
use epitome_model::Bytes;
use serde::Serialize;

use super::{Report, imported};
use crate::app::App;
use crate::confirm::agreed;
use crate::failure::{Failure, Result};
use crate::text::{self, BOLD, DIM, bytes_change, count, field};

/// A session that is to be given back.
pub struct Wanted<'a> {
    pub path: PathBuf,
    pub what: What<'a>,
}

/// How several are given back.
pub struct How<'a> {
    /// `restored`, `undone`.
    pub done: &'a str,
    /// `restore`, `undo`.
    pub verb: &'a str,
    pub dry_run: bool,
    pub force: bool,
    pub yes: bool,
    pub partial: bool,
}

/// A session that was left as it is.
#[derive(Serialize)]
struct Left<'a> {
    #[serde(serialize_with = "crate::text::lossy")]
    session: &'a Path,
    dry_run: bool,
    error: &'a Failure,
}

/// Gives several sessions back. All are planned and proved first. Before more than one is written,
/// a person is asked. A session that cannot be given back is left and reported; the others are not.
pub fn give_back(app: &App, how: &How<'_>, wanted: &[Wanted<'_>]) -> Result<()> {
    let mut many = Many { app, how, left: 0, worst: None };
    let mut planned = Vec::new();
    for wanted in wanted {
        many.name_what_is_gone(wanted);
        match many.giving(wanted).plan(&wanted.path).map_err(Failure::from) {
            Ok(plan) if plan.iter().all(GivenBack::is_nothing) => {}
            Ok(plan) => planned.push((wanted, plan)),
            Err(failure) => many.leave(&wanted.path, failure)?,
        }
    }
    if how.dry_run {
        for (wanted, plan) in &planned {
            many.report(&wanted.path, plan)?;
        }
        return many.end(planned.len(), sum_of(planned.iter().flat_map(|(_, plan)| plan)));
    }
    if planned.len() > 1 {
        let sessions = count(planned.len() as u64, "session");
        let (before, after) = sum_of(planned.iter().flat_map(|(_, plan)| plan));
        let disk = bytes_change(before, after);
        app.note(&format!("{sessions} would be {}: disk {disk}", how.done));
        agreed(app, how.yes, "Go on?")?;
    }
    // Once the first is written all are, whoever reads of it.
    app.check_is_read()?;
    let (mut written, mut all, mut unread) = (0, Vec::new(), None);
    for (wanted, _) in planned {
        let giving = many.giving(wanted);
        if how.force {
            app.warn_of_writers(&wanted.path);
        }
        let asked = |done: &[GivenBack]| imported(app, done, how.yes);
        match giving.give_back(&wanted.path, asked, Failure::writing) {
            Ok(done) => {
                unread = unread.or(many.report(&wanted.path, &done).err());
                written += 1;
                all.extend(done);
            }
            Err(failure) => unread = unread.or(many.leave(&wanted.path, failure).err()),
        }
    }
    match unread {
        Some(failure) => Err(failure),
        None => many.end(written, sum_of(&all)),
    }
}

/// What came of those so far.
struct Many<'a> {
    app: &'a App,
    how: &'a How<'a>,
    left: u64,
    worst: Option<Failure>,
}

impl<'a> Many<'a> {
    fn giving(&self, wanted: &Wanted<'a>) -> GivingBack<'a> {
        let (what, force) = (wanted.what, self.how.force);
        let damage = if self.how.partial { Damage::LeaveOut } else { Damage::Refuse };
        GivingBack { config: &self.app.config, what, agent: self.app.agent(), force, damage }
    }

    /// Names what is no part of the session, or is not there any more.
    fn name_what_is_gone(&self, wanted: &Wanted<'_>) {
        self.app.warn_of_no_parts(&wanted.path);
        let What::Run { files, .. } = wanted.what else { return };
        for path in files.iter().filter(|path| files.len() > 1 && !epitome::exists(path)) {
            self.app.warn(Some(&format!("{}: it is gone; the rest is undone", path.display())));
        }
    }

    fn report(&self, path: &Path, done: &[GivenBack]) -> Result<()> {
        if self.app.global.json {
            // The session itself may be gone.
            let path = match done.first() {
                Some(first) if !epitome::exists(path) => &first.path,
                Some(_) | None => path,
            };
            return self.app.print_json(&Report::of(self.app, done, path, self.how.dry_run)?);
        }
        let would = if self.how.dry_run { "would be " } else { "" };
        let (before, after) = sum_of(done);
        let disk = bytes_change(before, after);
        let damaged = done.iter().any(|it| !it.damaged.is_empty());
        let note = match done.iter().any(|it| matches!(it.outcome, Restored::ByRecord { .. })) {
            true => "  record by record: other programs changed it since",
            false if damaged => "  another part of its archive is damaged",
            false => "",
        };
        let done = self.how.done;
        self.app
            .print(&format!("{would}{BOLD}{done}{BOLD:#}  {}  {disk}{note}\n", text::path(path)))
    }

    /// Reports a session that stays as it is.
    fn leave(&mut self, path: &Path, failure: Failure) -> Result<()> {
        let failure = failure.about(path);
        self.left += 1;
        if self.app.global.json {
            let dry_run = self.how.dry_run;
            self.app.print_json(&Left { session: path, dry_run, error: &failure })?;
        } else {
            self.app.note(&format!("{DIM}left:{DIM:#} {}", field(&failure.told())));
        }
        if self.worst.as_ref().is_none_or(|it| it.status < failure.status) {
            self.worst = Some(failure);
        }
        Ok(())
    }

    fn end(self, written: usize, (before, after): (Bytes, Bytes)) -> Result<()> {
        let How { done, verb, dry_run, .. } = self.how;
        if !self.app.global.json {
            let sessions = count(written as u64, "session");
            let disk = bytes_change(before, after);
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
                Err(Failure::new(worst.status, worst.kind, what))
            }
        }
    }
}

fn sum_of<'b>(files: impl IntoIterator<Item = &'b GivenBack>) -> (Bytes, Bytes) {
    files.into_iter().fold((Bytes(0), Bytes(0)), |(before, after), file| {
        (before + file.bytes_before, after + file.bytes_after())
    })
}
