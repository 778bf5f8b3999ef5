//! Stops a running request.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

#[cfg(feature = "client")]
use tokio::sync::Notify;

/// Stops a request from another thread. All clones stop together.
///
/// ```
/// let stop = epitome_llm::Stop::default();
/// stop.clone().stop();
/// assert!(stop.is_stopped());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    stopped: Mutex<bool>,
    threads: Condvar,
    #[cfg(feature = "client")]
    tasks: Notify,
}

impl Stop {
    /// Stops every request that was given this value or a clone of it. A request that is given one
    /// later stops at once.
    pub fn stop(&self) {
        *self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.threads.notify_all();
        #[cfg(feature = "client")]
        self.0.tasks.notify_waiters();
    }

    /// Whether [`stop`](Stop::stop) was called.
    pub fn is_stopped(&self) -> bool {
        *self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `time`, or until [`stop`](Stop::stop) is called.
    pub(crate) fn wait(&self, time: Duration) {
        let guard = self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        // The caller checks whether the request was stopped, so it does not need the result.
        drop(self.0.threads.wait_timeout_while(guard, time, |stopped| !*stopped));
    }

    /// Completes once [`stop`](Stop::stop) is called.
    #[cfg(feature = "client")]
    pub(crate) async fn stopped(&self) {
        let notified = self.0.tasks.notified();
        tokio::pin!(notified);
        // From here on no call of `stop` is missed.
        notified.as_mut().enable();
        if !self.is_stopped() {
            notified.await;
        }
    }
}
