//! Counts tokens: exactly, approximately, and as a provider bills them.
//!
//! [`O200k`] counts exactly as OpenAI's vocabulary `o200k_base` does, at 100 to 130 MB/s.
//! [`Estimate`] approximates the same number without a vocabulary, three times as fast. Both
//! implement [`Counter`](epitome_model::Counter), so that a caller chooses one.
//!
//! Other providers count differently, and the vocabularies of Claude and Gemini are not public.
//! [`calibrate`] compares our counts of a session with what its provider recorded, and returns a
//! [`Calibration`] that converts our counts into the provider's. Without enough records,
//! [`Calibration::for_family`] has assumed values for the maker of a model.
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
//! - Chat templates and special tokens: `<|endoftext|>` is text. What an API format adds around a
//!   block is not counted.
//! - Pictures and audio: providers count pixels and seconds, see
//!   [`IMAGE_TOKENS`](epitome_model::IMAGE_TOKENS).
//! - Vocabularies of Claude and Gemini, which are not public: [`Calibration`] converts the counts
//!   instead.
//! - Prices: they are in `epitome-llm`.

// Pure crates do no IO: `clippy.toml` names what they must not use.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod bpe;
mod calibrate;
mod estimate;
mod weights;

pub use bpe::O200k;
pub use calibrate::{Calibration, Family, calibrate, family};
pub use estimate::Estimate;
