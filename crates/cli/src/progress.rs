//! The progress of a command over many sessions, and requests to stop it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The progress of a command, shared by its threads, the screen and the handler of Ctrl-C.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicUsize,
    of: AtomicUsize,
    stops: AtomicBool,
}

impl Progress {
    /// Begins to count `of` steps.
    pub fn begin(&self, of: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.of.store(of, Ordering::Relaxed);
    }

    /// Counts one step as done.
    pub fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of steps done, and of all steps. `None` if there is only one step, or none.
    pub fn so_far(&self) -> Option<(usize, usize)> {
        let done = self.done.load(Ordering::Relaxed);
        let of = self.of.load(Ordering::Relaxed);
        (of > 1).then_some((done.min(of), of))
    }

    /// Requests a stop: steps in progress are finished, and no further step is begun.
    pub fn stop(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    /// The number of steps done.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
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
