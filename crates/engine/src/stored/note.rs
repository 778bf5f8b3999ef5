//! The parts of a recipe that a plan leaves out.

use std::fmt;

use epitome_model::{Bytes, Tokens};

/// A part of a recipe that is left out, and why. Displayed as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The agent has no record that cuts messages out.
    NoTrim {
        /// The agent's name.
        agent: &'static str,
        /// Why, as a clause.
        why: &'static str,
    },
    /// The session cannot hold a digest.
    NoDigest {
        /// The agent's name.
        agent: &'static str,
        /// Why, as a clause.
        why: String,
    },
    /// The recipe has a share of a window, and the window is unknown.
    NoWindow {
        /// The session's model, if the session names one.
        model: Option<String>,
    },
    /// The recipe has a summary and no edits, and no model is configured.
    OnlyASummary,
    /// The summary lacks some of what sets rules.
    RulesLeftOut {
        /// The rule files, skills and tools whose rules are missing.
        names: Vec<String>,
    },
    /// The digest lacks some of what sets rules, because it exceeds the budget.
    RulesTooLong {
        /// The rule files, skills and tools whose rules are missing.
        names: Vec<String>,
    },
    /// The target is missed because pinned rules stay.
    Pinned {
        /// Tokens of the pinned rules.
        tokens: Tokens,
        /// The target.
        target: Tokens,
    },
    /// Nothing is removed: the context is within the target already.
    WithinTarget {
        /// Tokens of a resume.
        tokens: Tokens,
        /// The target.
        target: Tokens,
    },
    /// Nothing is written: the record that the agent would read in place of the history saves too
    /// few tokens for the bytes it takes on disk.
    DoesNotPay {
        /// Tokens that it would save.
        saved: Tokens,
        /// Tokens of a resume.
        of: Tokens,
        /// The growth of the file.
        bytes: Bytes,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::NoTrim { agent, why } => {
                write!(f, "trim: not possible in sessions of {agent}: {why}")
            }
            Note::NoDigest { agent, why } => {
                write!(f, "digest: not possible in sessions of {agent}: {why}")
            }
            Note::NoWindow { model } => {
                let model = model.as_deref().unwrap_or("the session's model");
                write!(
                    f,
                    "per cent of the window are left out: the window of {model} is not known; \
                     set `live.window`"
                )
            }
            Note::OnlyASummary => f.write_str(
                "the recipe does nothing but ask a model for a summary: it needs `--summarise`",
            ),
            Note::RulesLeftOut { names } => write!(
                f,
                "the summary that was given does not hold what sets rules: {}",
                names.join(", ")
            ),
            Note::RulesTooLong { names } => write!(
                f,
                "what sets rules is more than the budget; the digest is without the oldest: {}",
                names.join(", ")
            ),
            Note::Pinned { tokens, target } => write!(
                f,
                "the target of {target} tokens is not reached: {tokens} tokens of rule files, \
                 skills, plans and lists stay"
            ),
            Note::WithinTarget { tokens, target } => {
                write!(f, "the context has {tokens} tokens, within the target of {target}")
            }
            Note::DoesNotPay { saved, of, bytes } => write!(
                f,
                "only {saved} of {of} tokens would go, less than a twentieth: not worth the \
                 {bytes} that the record would add to the file"
            ),
        }
    }
}
