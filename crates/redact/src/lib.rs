//! Finds secrets and personal data in strings, by rules that are data, and replaces them with
//! placeholders that name the rule.
//!
//! [`Rules`] are TOML: patterns with keywords, built in or written by the user. A [`Finder`]
//! searches a text for all of them; it has no state, and returns [`Hit`]s. A [`Redactor`] uses a
//! finder on a whole session: it goes through the strings as JSON decodes them, numbers what it
//! finds, and returns the bytes to replace. The same secret gets the same number everywhere:
//! `[REDACTED:github-pat-1]`.
//!
//! Secrets are also found inside of other encodings, such as JSON within strings, base64,
//! hexadecimal digits and percent codes. A [`Person`] makes rules for the names, the home directory
//! and the host name of a user. `docs/redact.md` describes the rules.
//!
//! ```
//! use epitome_redact::{Finder, Redactor, Rules};
//!
//! let finder = Finder::new(Rules::built_in())?;
//! let mut redactor = Redactor::new(&finder);
//! let text = redactor.text("curl -H 'X-Key: AKIAQ3EGRXLTPN2MWVJD'");
//! assert_eq!(text, "curl -H 'X-Key: [REDACTED:aws-access-key-1]'");
//! # Ok::<(), epitome_redact::RuleFault>(())
//! ```
//!
//! # Absent
//!
//! - Files and the environment: the caller passes in the user's name, home directory and rules.
//! - Formats: strings are found in any JSON, and the caller passes in the spans of signed values,
//!   such as reasoning.
//! - Writing a redacted session: `epitome::redact`.

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
