//! Finds secrets and personal data in strings, by rules that are data, and replaces them with
//! placeholders that name the rule.
//!
//! A [`Finder`] searches a text and has no state. A [`Redactor`] goes through the strings of a
//! session as JSON decodes them, numbers what it finds, and returns the bytes to replace:
//! `[REDACTED:github-pat-1]` replaces the same secret everywhere.
//!
//! # Absent
//!
//! No files, no environment: the caller passes the name and home directory to look for. No format:
//! strings are found in any JSON, and the caller passes the spans of sealed values.

// Pure crates do no IO: `clippy.toml` names what they must not use.
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
