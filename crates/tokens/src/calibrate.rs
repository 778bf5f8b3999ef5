//! Converts the token counts of this crate into those of a provider.

use std::fmt;

use epitome_model::Tokens;
use serde::{Deserialize, Serialize};

/// How a provider's token counts are computed from the counts of this crate ("ours"):
/// `recorded ≈ factor × ours + fixed`.
///
/// # Examples
///
/// ```
/// use epitome_model::Tokens;
/// use epitome_tokens::{Calibration, calibrate, family};
///
/// let claude = Calibration::for_family(family("claude-opus-4-6"));
/// assert_eq!(claude.scale(Tokens(1_000)), Tokens(1_220));
///
/// let session: Vec<_> = (1..20).map(|n| (Tokens(n * 1_000), n * 1_300 + 15_000)).collect();
/// let fitted = calibrate(&session).expect("enough points");
/// assert_eq!((fitted.factor, fitted.fixed), (1_300, Tokens(15_000)));
/// assert_eq!(fitted.apply(Tokens(10_000)), Tokens(28_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// The provider's tokens per 1,000 of ours, from 500 to 3,000.
    pub factor: u32,
    /// The provider's tokens of the system prompt and the tools, which every request contains and
    /// most sessions do not store. From 0 to 200,000.
    pub fixed: Tokens,
    /// The number of requests that the calibration was fitted to; 0 for the assumed values of a
    /// family.
    pub points: usize,
    /// The error, in thousandths: for nine of ten requests, the result differs from the number that
    /// the provider recorded by at most this share of that number. At most 200 if the calibration
    /// was fitted; an assumption otherwise.
    pub error: u32,
}

impl Calibration {
    /// The assumed values of a family of tokenizers; [`Family`] states where they come from.
    pub const fn for_family(family: Family) -> Calibration {
        let (factor, error) = match family {
            Family::OpenAi => (1_000, 80),
            Family::Anthropic => (1_220, 150),
            Family::Google | Family::Other => (1_000, 300),
        };
        Calibration { factor, fixed: Tokens(0), points: 0, error }
    }

    /// The provider's tokens of a request that we count as `ours`.
    pub fn apply(&self, ours: Tokens) -> Tokens {
        Tokens(self.scale(ours).0.saturating_add(self.fixed.0))
    }

    /// The provider's tokens of a part of a request, without the fixed part.
    pub fn scale(&self, ours: Tokens) -> Tokens {
        let scaled = (u128::from(ours.0) * u128::from(self.factor) + 500) / 1_000;
        Tokens(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Calibration {
    /// The basis and the error of the calibration: `fitted to 65 requests, ±1.8%`, or `assumed of
    /// the model's family, ±15.0%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.error / 10;
        let tenth = self.error % 10;
        match self.points {
            0 => write!(f, "assumed of the model's family, ±{whole}.{tenth}%"),
            points => write!(f, "fitted to {points} requests, ±{whole}.{tenth}%"),
        }
    }
}

/// The maker of a model's tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// GPT, o-series, Codex: o200k itself since GPT-4o, so the factor is 1. Nine recorded sessions
    /// show 1.01 to 1.16, because requests carry reasoning that a session stores only encrypted.
    /// GPT-4 and GPT-3.5 have an older vocabulary, cl100k.
    OpenAi,
    /// Claude. Its vocabulary is not public. The factor is assumed to be 1.22; recorded sessions
    /// show 1.07 to 1.45, depending on model and text (see `docs/tokens.md`).
    Anthropic,
    /// Gemini, Gemma. Not measured: the factor is assumed to be 1, and the error 30 per cent.
    Google,
    /// All other makers. Not measured: the factor is assumed to be 1, and the error 30 per cent.
    Other,
}

/// The family of a model by its name, with or without a provider in front.
///
/// ```
/// use epitome_tokens::{Family, family};
///
/// assert_eq!(family("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), Family::Anthropic);
/// assert_eq!(family("openrouter/openai/gpt-5.5"), Family::OpenAi);
/// ```
pub fn family(model: &str) -> Family {
    let name = model.to_ascii_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    if words.iter().any(|word| word.starts_with("claude") || *word == "anthropic") {
        Family::Anthropic
    } else if words.iter().any(|word| word.starts_with("gemini") || word.starts_with("gemma")) {
        Family::Google
    } else if words.iter().any(|word| is_openai(word)) {
        Family::OpenAi
    } else {
        Family::Other
    }
}

fn is_openai(word: &str) -> bool {
    word.starts_with("gpt")
        || matches!(word, "chatgpt" | "codex" | "o1" | "o3" | "o4" | "omni")
        || word.starts_with("o200k")
}

/// The minimum number of points for a calibration.
const MIN_POINTS: usize = 8;
/// The minimum difference between the largest and the smallest context of a calibration, in tokens
/// as this crate counts them.
const MIN_SPREAD: u64 = 4_000;
/// The difference between the largest and the smallest context must also be at least the largest
/// context divided by this number.
const SPREAD_SHARE: u64 = 4;
/// A line is fitted to at most this many points, because the work grows with the square of their
/// number. Of more points, evenly spaced ones are used.
const MAX_POINTS: usize = 400;
/// The plausible factors, in thousandths.
const FACTORS: std::ops::RangeInclusive<i128> = 500..=3_000;
/// The largest plausible fixed part, in tokens.
const MAX_FIXED: i128 = 200_000;
/// The largest acceptable error, in thousandths.
const MAX_ERROR: i128 = 200;

/// Fits `recorded ≈ factor × ours + fixed` to the requests of one session.
///
/// A point is one request: the tokens that we count in the context it sent, and the input tokens
/// that the provider recorded for it, cached ones included. Order does not matter; points with a
/// zero are left out. The fit is the Theil–Sen estimator: the factor is the median of the slopes
/// between all pairs of points that are far enough apart. Therefore a few wrong points (a request
/// of another model, a compaction in between) change the result little. If `fixed` would be
/// negative, it is 0 and the factor is the median of `recorded / ours`.
///
/// `None` if there are fewer than 8 points without a zero; if the difference between the largest
/// and the smallest context is less than 4,000 tokens or less than a fourth of the largest; or if
/// the result is implausible: a factor outside 0.5 to 3, more than 200,000 fixed tokens, or an
/// error of more than 20% for more than about one point in ten.
pub fn calibrate(points: &[(Tokens, u64)]) -> Option<Calibration> {
    let mut usable: Vec<(i128, i128)> = points
        .iter()
        .filter(|(ours, recorded)| ours.0 > 0 && *recorded > 0)
        .map(|(ours, recorded)| (i128::from(ours.0), i128::from(*recorded)))
        .collect();
    usable.sort_unstable();
    let least = usable.first()?.0;
    let most = usable.last()?.0;
    let spread = i128::from(MIN_SPREAD).max(most / i128::from(SPREAD_SHARE));
    if usable.len() < MIN_POINTS || most - least < spread {
        return None;
    }
    let (factor, fixed) = fit_line(&thin(&usable), spread / 2)?;
    let misses = usable.iter().map(|(ours, recorded)| {
        let expected = factor.saturating_mul(*ours) / 1_000 + fixed;
        (expected - recorded).abs() * 1_000 / recorded
    });
    let error = quantile(misses.collect(), 9, 10)?;
    if !FACTORS.contains(&factor) || fixed > MAX_FIXED || error > MAX_ERROR {
        return None;
    }
    Some(Calibration {
        factor: u32::try_from(factor).ok()?,
        fixed: Tokens(u64::try_from(fixed).ok()?),
        points: usable.len(),
        error: u32::try_from(error).ok()?,
    })
}

/// The factor, in thousandths, and the fixed part of a line through the points. Uses pairs of
/// points that are at least `apart` tokens from each other; `None` if there is no such pair.
fn fit_line(points: &[(i128, i128)], apart: i128) -> Option<(i128, i128)> {
    let mut slopes = Vec::new();
    for (idx, (near, low)) in points.iter().enumerate() {
        for (far, high) in &points[idx + 1..] {
            if far - near >= apart {
                slopes.push((high - low) * 1_000 / (far - near));
            }
        }
    }
    let factor = quantile(slopes, 1, 2)?;
    let rests =
        points.iter().map(|(ours, recorded)| recorded - factor.saturating_mul(*ours) / 1_000);
    let fixed = quantile(rests.collect(), 1, 2)?;
    if fixed >= 0 {
        return Some((factor, fixed));
    }
    let quotients = points.iter().map(|(ours, recorded)| recorded * 1_000 / ours);
    Some((quantile(quotients.collect(), 1, 2)?, 0))
}

/// At most [`MAX_POINTS`] of the points, evenly spaced, including the first and the last.
fn thin(points: &[(i128, i128)]) -> Vec<(i128, i128)> {
    if points.len() <= MAX_POINTS {
        return points.to_vec();
    }
    let last = MAX_POINTS - 1;
    (0..MAX_POINTS).map(|idx| points[idx * (points.len() - 1) / last]).collect()
}

/// The quantile `part` / `whole` of the values: at most this share of them is smaller. `None` if
/// there are no values.
fn quantile(mut values: Vec<i128>, part: usize, whole: usize) -> Option<i128> {
    let place = values.len().checked_sub(1)? * part / whole;
    Some(*values.select_nth_unstable(place).1)
}

#[cfg(test)]
#[path = "calibrate_tests.rs"]
mod tests;
