//! A real headless Chromium, for tests of the pages of `epitome serve` and of the npm package in
//! WebAssembly.
//!
//! # Absent
//!
//! epitome's code: a test starts the program and opens the address that it prints, as a person
//! would, or opens a page that imports the package.

mod chromium;
#[cfg(feature = "real-browser")]
mod protocol;
#[cfg(feature = "real-browser")]
mod window;

pub use chromium::{Chromium, chromium};
#[cfg(feature = "real-browser")]
pub use window::Window;
