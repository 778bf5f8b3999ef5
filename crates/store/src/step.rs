//! The steps of disk operations: tests can make each of them fail.

/// A step that may fail. Tests inject a failure into each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskStep {
    /// Opening a file.
    Open,
    /// Reading from it.
    Read,
    /// Making a folder.
    Folder,
    /// Making a temporary file.
    Create,
    /// Writing to it.
    Write,
    /// Setting its permissions.
    Mode,
    /// Flushing it to the disk.
    Flush,
    /// Renaming it.
    Name,
    /// Flushing the folder's names.
    FlushFolder,
    /// Looking for processes that still write to a replaced file.
    Look,
}

impl DiskStep {
    /// Whether it only reads.
    pub fn is_reading(self) -> bool {
        matches!(self, DiskStep::Open | DiskStep::Read)
    }
}

#[cfg(not(any(test, feature = "faults")))]
/// Outside of tests no step fails.
#[inline]
pub fn step(_: DiskStep) -> std::io::Result<()> {
    Ok(())
}

#[cfg(any(test, feature = "faults"))]
pub use fault::step;

/// Failures injected by tests.
#[cfg(any(test, feature = "faults"))]
pub mod fault {
    use std::cell::RefCell;
    use std::io;

    use super::DiskStep;

    type Hook = Box<dyn FnMut(DiskStep) -> io::Result<()>>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    /// Calls the hook of this thread.
    ///
    /// # Errors
    ///
    /// The error of the hook.
    pub fn step(step: DiskStep) -> io::Result<()> {
        // Taken out while it runs, so that the hook may use the disk itself.
        let Some(mut hook) = HOOK.with_borrow_mut(Option::take) else { return Ok(()) };
        let done = hook(step);
        HOOK.set(Some(hook));
        done
    }

    /// Runs `work` with `hook` called before every step of this thread.
    pub fn with<T>(
        hook: impl FnMut(DiskStep) -> io::Result<()> + 'static,
        work: impl FnOnce() -> T,
    ) -> T {
        HOOK.set(Some(Box::new(hook)));
        let done = work();
        HOOK.set(None);
        done
    }

    /// Fails the step number `n`, from 0, of those that write, with a full disk.
    pub fn full_at(n: usize) -> impl FnMut(DiskStep) -> io::Result<()> + 'static {
        failing_at(n, |step| !step.is_reading(), io::ErrorKind::StorageFull)
    }

    /// Fails the step number `n`, from 0, of those that read.
    pub fn unreadable_at(n: usize) -> impl FnMut(DiskStep) -> io::Result<()> + 'static {
        failing_at(n, DiskStep::is_reading, io::ErrorKind::Other)
    }

    fn failing_at(
        n: usize,
        counts: fn(DiskStep) -> bool,
        kind: io::ErrorKind,
    ) -> impl FnMut(DiskStep) -> io::Result<()> + 'static {
        let mut seen = 0;
        move |step| {
            seen += usize::from(counts(step));
            if counts(step) && seen == n + 1 { Err(kind.into()) } else { Ok(()) }
        }
    }
}
