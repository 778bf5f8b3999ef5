//! A real headless Chromium, for tests of the pages of `epitome serve`.
//!
//! # Absent
//!
//! epitome's code: a test starts the program and opens the address that it prints, as a person
//! would.

mod chromium;
#[cfg(feature = "real-browser")]
mod protocol;
#[cfg(feature = "real-browser")]
mod window;

pub use chromium::{Chromium, chromium};
#[cfg(feature = "real-browser")]
pub use window::Window;
