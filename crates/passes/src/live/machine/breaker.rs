//! The circuit breaker: stops automatic compactions after some that failed or saved too little.

use epitome_model::Tokens;

/// A compaction that saves less than this many per cent of the tokens is poor.
const POOR: u64 = 5;
/// Number of poor compactions in [`Streaks`] that opens the breaker.
const POOR_GAINS: u32 = 2;
/// Number of failures of one kind in [`Streaks`] that opens the breaker.
const FAILURES: u32 = 3;

/// The result of one attempt, passes and summary together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptResult {
    /// The attempt saved `saved` of `of` tokens.
    Gained { of: Tokens, saved: Tokens },
    /// A summary was requested, but none was written.
    Unwritten,
    /// The passes, or the digest after them, failed.
    Refused,
}

/// Whether automatic compactions are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaker {
    /// Automatic compactions are allowed.
    Closed(Streaks),
    /// Automatic compactions are not allowed until the context has grown by 5 per cent from this
    /// size. Then one attempt, with all its steps, is allowed.
    Open { at: Tokens },
}

/// How many bad results of each kind there were since the number for that kind was last set to
/// zero. A saving that is not poor sets all three numbers to zero; a poor saving, `unwritten` and
/// `refused`; a summary that was not written, `refused`.
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
    /// Whether an attempt may begin when the context has this size.
    pub(super) fn allows(&self, tokens: Tokens) -> bool {
        match self {
            Breaker::Closed(_) => true,
            Breaker::Open { at } => has_grown(*at, tokens),
        }
    }

    /// Judges an attempt. `now` is the size of the context after the attempt. Returns the reason if
    /// the breaker opens; `None` if the breaker stays closed, or was open before.
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
    /// Counts the result of an attempt. Returns the reason if the breaker has to open; otherwise
    /// `None`.
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

/// Whether a size has grown by at least [`POOR`] per cent.
pub(super) fn has_grown(from: Tokens, to: Tokens) -> bool {
    to.0 * 100 >= from.0 * (100 + POOR)
}
