//! The circuit breaker, which stops automatic compactions that gain nothing.

use epitome_model::Tokens;

/// Gains below this are poor, in per cent.
const POOR: u64 = 5;
/// Number of consecutive poor gains that opens the breaker.
const POOR_GAINS: u32 = 2;
/// Number of consecutive failures of one kind that opens the breaker.
const FAILURES: u32 = 3;

/// The result of one attempt, passes and summary together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptResult {
    /// The attempt saved `saved` of `of` tokens.
    Gained { of: Tokens, saved: Tokens },
    /// A summary was asked for, and there is none.
    Unwritten,
    /// The passes failed.
    Refused,
}

/// Whether automatic compactions are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaker {
    /// They are allowed.
    Closed(Streaks),
    /// They are not, until the context has grown by 5 per cent from this size. Then one attempt is
    /// let through, with all of its steps.
    Open { at: Tokens },
}

/// Consecutive bad results of each kind.
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

    /// Judges an attempt after which the context has this size. Returns why, if it opens the
    /// breaker.
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
    /// Counts an attempt. Returns why, if it opens the breaker.
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

/// Whether a size has grown by as much as a good gain.
pub(super) fn has_grown(from: Tokens, to: Tokens) -> bool {
    to.0 * 100 >= from.0 * (100 + POOR)
}
