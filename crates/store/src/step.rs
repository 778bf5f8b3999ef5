//! The steps of disk operations. Tests can make each of them fail.

/// A step of a disk operation that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskStep {
    /// Opening a file.
    Open,
    /// Reading from a file.
    Read,
    /// Making a folder.
    Folder,
    /// Making a temporary file.
    Create,
    /// Writing to a file.
    Write,
    /// Setting the permissions of a file.
    Mode,
    /// Flushing a file to the disk.
    Flush,
    /// Renaming or removing a file.
    Name,
    /// Flushing the names in a folder to the disk.
    FlushFolder,
    /// Looking for processes that still write to a replaced file.
    Look,
}

impl DiskStep {
    /// Whether the step only reads.
    pub fn is_reading(self) -> bool {
        matches!(self, DiskStep::Open | DiskStep::Read)
    }
}

#[cfg(not(any(test, feature = "faults")))]
/// Does nothing: only tests make steps fail.
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

    /// Calls the hook of the current thread, if there is one.
    ///
    /// # Errors
    ///
    /// The error of the hook.
    pub fn step(step: DiskStep) -> io::Result<()> {
        // The hook is removed while it runs, so that it may use the disk itself.
        let Some(mut hook) = HOOK.with_borrow_mut(Option::take) else { return Ok(()) };
        let done = hook(step);
        HOOK.set(Some(hook));
        done
    }

    /// Runs `work`. Before every step of this thread, `hook` is called; if it returns an error, the
    /// step fails with this error.
    pub fn with<T>(
        hook: impl FnMut(DiskStep) -> io::Result<()> + 'static,
        work: impl FnOnce() -> T,
    ) -> T {
        HOOK.set(Some(Box::new(hook)));
        let done = work();
        HOOK.set(None);
        done
    }

    /// A hook that fails the `n`th step, from 0, with the error of a full disk. Steps that only
    /// read are not counted.
    pub fn full_at(n: usize) -> impl FnMut(DiskStep) -> io::Result<()> + 'static {
        failing_at(n, |step| !step.is_reading(), io::ErrorKind::StorageFull)
    }

    /// A hook that fails the `n`th step, from 0, of those that only read.
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
