//! A command that works on many sessions: its progress bar, Ctrl-C, and the message after a stop.

use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;

use crate::app::App;
use crate::failure::{Failure, Status};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::text::{DIM, count};

/// A command in progress, with a bar on standard error. If it writes, the first Ctrl-C only
/// requests a stop.
pub struct Steps {
    bar: ProgressBar,
    progress: Arc<Progress>,
    of: usize,
    /// While this exists, the first Ctrl-C only requests a stop.
    _interrupt: Option<Interrupt>,
}

impl Steps {
    /// A bar over `of` steps. Ctrl-C kills the program at once, as usual.
    pub fn new(app: &App, template: &str, of: usize) -> Steps {
        app.progress.begin(of);
        let bar = app.bar(template, of);
        let progress = Arc::clone(&app.progress);
        Steps { bar, progress, of, _interrupt: None }
    }

    /// A bar for steps that write. After the first Ctrl-C, steps in progress are finished. If the
    /// browser runs the command, the browser handles Ctrl-C.
    pub fn writing(app: &App, template: &str, of: usize) -> Steps {
        let mut steps = Steps::new(app, template, of);
        if !app.is_captured() {
            let app = app.clone();
            let bar = steps.bar.clone();
            let progress = Arc::clone(&steps.progress);
            steps._interrupt = Some(Interrupt::calling(move || {
                progress.stop();
                bar.suspend(|| {
                    app.note(&format!(
                        "{DIM}stopping after the sessions in progress; Ctrl-C ends at once{DIM:#}"
                    ));
                });
            }));
        }
        steps
    }

    /// Shows the elapsed time even before the first step is done.
    #[must_use]
    pub fn ticking(self) -> Steps {
        self.bar.enable_steady_tick(Duration::from_millis(250));
        self
    }

    /// Counts one step as done.
    pub fn step(&self) {
        self.progress.step();
        self.bar.inc(1);
    }

    /// Whether no further step may begin.
    pub fn is_stopped(&self) -> bool {
        self.progress.is_stopped()
    }

    /// Prints something above the bar.
    pub fn print<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// The failure of a command that was stopped before its end: `31 of 146 sessions compacted,
    /// stopped`. `None` if no stop was requested, or all steps were done.
    pub fn stop_failure(&self, n: usize, done: &str, hint: &str) -> Option<Failure> {
        let is_complete = self.progress.done() >= self.of;
        if !self.is_stopped() || is_complete {
            return None;
        }
        let sessions = count(self.of as u64, "session");
        let what = format!("{n} of {sessions} {done}, stopped");
        let failure = Failure::new(Status::Stopped, "stopped", what);
        Some(if n > 0 { failure.hint(hint) } else { failure })
    }
}
