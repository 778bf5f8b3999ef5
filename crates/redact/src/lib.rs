//! Secrets and personal data: found in strings by rules that are data, and replaced by
//! placeholders that say which rule it was.
//!
//! A [`Finder`] looks through a text and is pure. A [`Redactor`] goes through the strings of a
//! session as JSON decodes them, numbers what it finds, and says which bytes take whose place:
//! `[REDACTED:github-pat-1]` stands for the same secret wherever it was.
//!
//! # Absent
//!
//! No files, no environment: whose name and home are looked for is given. No format: strings are
//! found in any JSON, and what a transcript knows of sealed bytes is given as spans.

// Floors 1 and 2 do no IO: `clippy.toml` names what they do without.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod base64;
mod batch;
mod check;
mod code;
mod draft;
mod finder;
mod national;
mod numeric;
mod person;
mod placeholder;
mod reach;
mod redactor;
mod rule;
mod strings;
mod view;

pub use check::Check;
pub use finder::{Finder, Hit};
pub use person::Person;
pub use redactor::{Found, Redactor};
pub use rule::{Kind, Rule, RuleFault, Rules};
