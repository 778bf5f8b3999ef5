//! A real Chromium without a screen, which looks at what `epitome serve` shows.
//!
//! # Absent
//!
//! Our code: a test starts the program and opens the address that it prints, as a person would.

mod chromium;
#[cfg(feature = "real-browser")]
mod protocol;
#[cfg(feature = "real-browser")]
mod window;

pub use chromium::{Chromium, chromium};
#[cfg(feature = "real-browser")]
pub use window::Window;
