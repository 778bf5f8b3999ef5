//! Counting tokens: exactly, roughly, and as a provider bills them.
//!
//! - [`O200k`] counts as OpenAI's `o200k_base` does, exactly, at 100 to 130 MB/s.
//! - [`Estimate`] guesses the same number without a vocabulary, three times as fast.
//! - [`calibrate`] fits what a session's provider really counted against what we count.
//!
//! ```
//! use epitome_model::{Counter, Tokens};
//! use epitome_tokens::{Estimate, O200k};
//!
//! assert_eq!(O200k::new().count("hello world"), Tokens(2));
//! assert!(Estimate::new().count("hello world") > Tokens(0));
//! ```
//!
//! # Absent
//!
//! - Chat templates and special tokens: `<|endoftext|>` is text. What a wire adds around a block
//!   is not counted.
//! - Pictures and audio: providers count pixels and seconds, see [`IMAGE`](epitome_model::IMAGE).
//! - Vocabularies of Claude and Gemini: none is public. [`Calibration`] scales instead.
//! - Prices.

// Floors 1 and 2 do no IO: `clippy.toml` names what they do without.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod bpe;
mod calibrate;
mod estimate;
mod weights;

pub use bpe::O200k;
pub use calibrate::{Calibration, Family, calibrate, family};
pub use estimate::Estimate;
