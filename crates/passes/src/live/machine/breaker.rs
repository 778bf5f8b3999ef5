//! What keeps a context from being made small again and again for nothing.

use epitome_model::Tokens;

/// Gains of less than so many per cent are poor.
const POOR: u64 = 5;
/// So many of them in a streaks open the breaker.
const POOR_GAINS: u32 = 2;
/// So many failures of one kind in a streaks open it.
const FAILURES: u32 = 3;

/// What came of one attempt, passes and summary together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptResult {
    /// It could be carried out: of so many tokens, so many are gone.
    Gained { of: Tokens, saved: Tokens },
    /// A summary was asked for, and there is none.
    Unwritten,
    /// The passes could not be carried out.
    Refused,
}

/// Whether a context is made small by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaker {
    /// It is.
    Closed(Streaks),
    /// It is not until it has grown from this size by as much as would be a gain. Then one attempt
    /// is let through, with all of its steps.
    Open { at: Tokens },
}

/// What went wrong, each kind since it last went well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Streaks {
    poor: u32,
    unwritten: u32,
    refused: u32,
}

impl Default for Breaker {
    fn default() -> Breaker {
        Breaker::Closed(Streaks::default())
    }
}

impl Breaker {
    /// Whether an attempt may begin at this size.
    pub(super) fn allows(&self, tokens: Tokens) -> bool {
        match self {
            Breaker::Closed(_) => true,
            Breaker::Open { at } => has_grown(*at, tokens),
        }
    }

    /// Judges an attempt that has come to this size. Says why, if that opens the breaker.
    pub(super) fn judge(&mut self, result: AttemptResult, now: Tokens) -> Option<String> {
        let streaks = match self {
            Breaker::Closed(streaks) => streaks,
            Breaker::Open { at } => {
                *at = now;
                if result.is_good() {
                    *self = Breaker::default();
                }
                return None;
            }
        };
        let reason = streaks.add(result)?;
        *self = Breaker::Open { at: now };
        Some(reason)
    }
}

impl Streaks {
    /// One more attempt. Says why, if that was one too many.
    fn add(&mut self, result: AttemptResult) -> Option<String> {
        match result {
            AttemptResult::Gained { .. } if result.is_good() => {
                *self = Streaks::default();
                None
            }
            AttemptResult::Gained { .. } => {
                *self = Streaks { poor: self.poor + 1, ..Streaks::default() };
                (self.poor >= POOR_GAINS)
                    .then(|| format!("{} gains of less than {POOR} per cent", self.poor))
            }
            AttemptResult::Unwritten => {
                *self = Streaks { unwritten: self.unwritten + 1, refused: 0, ..*self };
                (self.unwritten >= FAILURES).then(|| format!("{} summaries failed", self.unwritten))
            }
            AttemptResult::Refused => {
                self.refused += 1;
                (self.refused >= FAILURES)
                    .then(|| format!("{} compactions could not be carried out", self.refused))
            }
        }
    }
}

impl AttemptResult {
    fn is_good(self) -> bool {
        match self {
            AttemptResult::Gained { of, saved } => saved.0 * 100 >= of.0 * POOR,
            AttemptResult::Unwritten | AttemptResult::Refused => false,
        }
    }
}

/// By as much as would have been a gain.
pub(super) fn has_grown(from: Tokens, to: Tokens) -> bool {
    to.0 * 100 >= from.0 * (100 + POOR)
}
