//! How far a command is with many sessions, and whether it is to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;

use crate::app::App;
use crate::failure::{Failure, Status};
use crate::interrupt::Interrupt;
use crate::text::{DIM, count};

/// How far a command is. Its threads, the screen and Ctrl-C share it.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicUsize,
    of: AtomicUsize,
    stops: AtomicBool,
}

impl Progress {
    /// Begins to count steps, of which there are so many.
    pub fn begin(&self, of: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.of.store(of, Ordering::Relaxed);
    }

    /// One step is done.
    pub fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// The steps that are done, and all of them; none if there are not several.
    pub fn so_far(&self) -> Option<(usize, usize)> {
        let (done, of) = (self.done.load(Ordering::Relaxed), self.of.load(Ordering::Relaxed));
        (of > 1).then_some((done.min(of), of))
    }

    /// Requests a stop: what was begun is finished, and no further step begins.
    pub fn stop(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }
}

/// A command at work on many sessions: its bar on standard error, and Ctrl-C.
pub struct Steps {
    bar: ProgressBar,
    progress: Arc<Progress>,
    of: usize,
    /// As long as it is there, the first Ctrl-C only requests a stop.
    _interrupt: Option<Interrupt>,
}

impl Steps {
    /// A bar over so many steps. Ctrl-C ends the program at once, as usual.
    pub fn new(app: &App, template: &str, of: usize) -> Steps {
        app.progress.begin(of);
        let (bar, progress) = (app.bar(template, of), Arc::clone(&app.progress));
        Steps { bar, progress, of, _interrupt: None }
    }

    /// The same for steps that write: after the first Ctrl-C those that were begun are finished.
    /// Where the browser runs the command, Ctrl-C is its matter.
    pub fn writing(app: &App, template: &str, of: usize) -> Steps {
        let mut steps = Steps::new(app, template, of);
        if !app.is_captured() {
            let (app, bar) = (app.clone(), steps.bar.clone());
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

    /// The bar shows the time also while the first step is not done.
    #[must_use]
    pub fn ticking(self) -> Steps {
        self.bar.enable_steady_tick(Duration::from_millis(250));
        self
    }

    /// One step is done.
    pub fn step(&self) {
        self.progress.step();
        self.bar.inc(1);
    }

    /// Whether no further step is to begin.
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

    /// What a stop came to, if there was one: `31 of 146 sessions compacted, stopped`.
    pub fn stopped(&self, n: usize, done: &str, hint: &str) -> Option<Failure> {
        let is_complete = self.progress.done.load(Ordering::Relaxed) >= self.of;
        if !self.is_stopped() || is_complete {
            return None;
        }
        let sessions = count(self.of as u64, "session");
        let what = format!("{n} of {sessions} {done}, stopped");
        let failure = Failure::new(Status::Stopped, "stopped", what);
        Some(if n > 0 { failure.hint(hint) } else { failure })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_step_is_no_progress() {
        let progress = Progress::default();
        progress.begin(1);
        assert_eq!(progress.so_far(), None);
        progress.begin(3);
        progress.step();
        assert_eq!(progress.so_far(), Some((1, 3)));
        assert!(!progress.is_stopped());
        progress.stop();
        assert!(progress.is_stopped());
    }
}
