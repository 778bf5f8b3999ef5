//! Ctrl-C as a request to stop after the work in progress.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Receives requests to stop: Ctrl-C, or the signal of a service manager.
pub struct Interrupt(Mutex<Receiver<()>>);

impl Interrupt {
    /// Handles Ctrl-C from now on: the first one only requests a stop, the second one kills the
    /// program.
    pub fn new() -> Interrupt {
        Interrupt::calling(|| ())
    }

    /// Like [`new`](Interrupt::new), and calls `first` on the first Ctrl-C. After the returned
    /// value was dropped, Ctrl-C kills the program.
    pub fn calling(first: impl FnOnce() + Send + 'static) -> Interrupt {
        let (tell, told) = channel();
        let (begin, begun) = channel();
        std::thread::spawn(move || listen(&tell, &begin, first));
        // If no handler can be installed, Ctrl-C kills the program at once.
        begun.recv().ok();
        Interrupt(Mutex::new(told))
    }

    /// Waits for `at_most`, or until a stop is requested. Returns whether one was requested.
    pub fn wait(&self, at_most: Duration) -> bool {
        let receiver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match receiver.recv_timeout(at_most) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(at_most);
                false
            }
        }
    }
}

fn listen(tell: &Sender<()>, begin: &Sender<()>, first: impl FnOnce()) {
    let mut first = Some(first);
    let mut request = || {
        let is_heard = tell.send(()).is_ok();
        if let Some(first) = first.take().filter(|_| is_heard) {
            first();
        }
        is_heard
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};

            let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
            let (Ok(mut interrupt), Ok(mut terminate)) = signals else { return };
            begin.send(()).ok();
            for _ in 0..2 {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if !request() {
                    break;
                }
            }
        }
        #[cfg(not(unix))]
        {
            begin.send(()).ok();
            for _ in 0..2 {
                if tokio::signal::ctrl_c().await.is_err() || !request() {
                    return;
                }
            }
        }
        std::process::exit(130);
    });
}
