//! What a model service reports with a response: the tokens that it counted, and why the model
//! stopped.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use crate::Tokens;

/// Tokens that a service counted for one request. Each token is counted in one field only: `input`
/// does not include the cached tokens. (In a [`RecordedUsage`](crate::RecordedUsage), `input`
/// includes them.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Input that was neither read from a cache nor written to one.
    pub input: Tokens,
    /// Input that was read from a cache.
    pub cached: Tokens,
    /// Input that was written to a cache.
    pub cache_written: Tokens,
    /// Output, including reasoning.
    pub output: Tokens,
}

impl TokenUsage {
    /// All input tokens of the request, whether they were read from a cache or not.
    pub fn all_input(&self) -> Tokens {
        self.input + self.cached + self.cache_written
    }
}

impl Add for TokenUsage {
    type Output = TokenUsage;

    fn add(self, other: TokenUsage) -> TokenUsage {
        TokenUsage {
            input: self.input + other.input,
            cached: self.cached + other.cached,
            cache_written: self.cache_written + other.cache_written,
            output: self.output + other.output,
        }
    }
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: TokenUsage) {
        *self = *self + other;
    }
}

/// Why a model ended its response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
    /// The response is complete.
    End,
    /// The response reached the output limit of the request and is cut off.
    Length,
    /// The model calls a tool and waits for the result.
    Call,
    /// The model, or the service, declined to respond.
    Refused,
    /// Another reason, as the service names it.
    Other(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordedUsage;

    #[test]
    fn a_counted_response_is_the_same_in_a_session_and_back() {
        let counted = TokenUsage {
            input: Tokens(5),
            cached: Tokens(40),
            cache_written: Tokens(300),
            output: Tokens(2_000),
        };
        let recorded = RecordedUsage::from(counted);
        assert_eq!((recorded.input, recorded.output), (345, 2_000));
        assert_eq!(recorded.tokens(), Some(counted));
        assert_eq!(RecordedUsage { cache: None, ..recorded }.tokens(), None);
        assert_eq!((counted + counted).all_input(), Tokens(690));
    }
}
