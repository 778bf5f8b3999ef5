//! Somebody does not want to wait any longer.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// A way to stop a question from another thread. Clones stop together.
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
    tasks: Notify,
}

impl Stop {
    /// Stops whatever was given this, now and later.
    pub fn stop(&self) {
        *self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.threads.notify_all();
        self.0.tasks.notify_waiters();
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        *self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits so long, or until it is stopped.
    pub(crate) fn wait(&self, time: Duration) {
        let guard = self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        // Whether the time is over or not, whoever waits looks again.
        drop(self.0.threads.wait_timeout_while(guard, time, |stopped| !*stopped));
    }

    /// Is ready once it is stopped.
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
