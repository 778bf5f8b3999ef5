//! Notes: why a plan leaves out a part of its recipe, or does less than the recipe asks for.

use std::fmt;

use epitome_model::{Bytes, Tokens};

/// Why a part of a recipe was left out, or why a compaction did less than its recipe asks for.
/// `Display` prints the note as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Messages are not removed from the middle: the agent has no record for that, or this
    /// compaction does not append records.
    NoTrim {
        /// The name of the agent.
        agent: &'static str,
        /// The reason, as a clause.
        why: &'static str,
    },
    /// There is no digest, for example because the session cannot hold one.
    NoDigest {
        /// The name of the agent.
        agent: &'static str,
        /// The reason, as a clause.
        why: String,
    },
    /// A percentage in the recipe is ignored: the window of the model is unknown.
    NoWindow {
        /// The session's model, if the session names one.
        model: Option<String>,
    },
    /// Nothing was done: a summary is all that the recipe has, and no summary by a model was
    /// requested.
    OnlyASummary,
    /// The summary lacks some of the pinned rules: of those that should stay in the context after
    /// every compaction.
    RulesLeftOut {
        /// Names of the rule files, skills and tools whose rules are missing.
        names: Vec<String>,
    },
    /// The digest lacks some of the pinned rules, because together they have more tokens than the
    /// digest may use for rules.
    RulesTooLong {
        /// Names of the rule files, skills and tools whose rules are missing.
        names: Vec<String>,
    },
    /// The target was missed because pinned rules stay.
    Pinned {
        /// Tokens of the pinned rules.
        tokens: Tokens,
        /// The target in tokens.
        target: Tokens,
    },
    /// Nothing was removed: the context is within the target already.
    WithinTarget {
        /// Tokens that a resume sends.
        tokens: Tokens,
        /// The target in tokens.
        target: Tokens,
    },
    /// Nothing was written: the records that would be appended save too few tokens for the bytes
    /// that they take on disk.
    DoesNotPay {
        /// Tokens that the records would save.
        saved: Tokens,
        /// Tokens that a resume sends.
        of: Tokens,
        /// The size of the records.
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
