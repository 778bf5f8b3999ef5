//! How far a command is with many sessions, and whether it is to stop.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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

    /// The steps that are done.
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
