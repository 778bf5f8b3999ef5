//! Whether a cut is worth its price.

use std::time::Duration;

use epitome_llm::Price;
use epitome_model::{MicroDollars, Tokens};

/// How long providers keep a prefix in their cache after it was last read, unless they are asked to
/// keep it longer.
pub(crate) const TIME_TO_LIVE: Duration = Duration::from_mins(5);

/// Prices in the proportions that most providers have, for models that are not known.
pub(crate) const USUAL: Price = Price {
    input: MicroDollars(1_000_000),
    cached: MicroDollars(100_000),
    written: MicroDollars(1_250_000),
    output: MicroDollars(5_000_000),
};

/// The saving of a cut must be this many times its price: how long a conversation goes on is a
/// guess.
const MARGIN: u128 = 2;

/// A cut of a request, as it would be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PricedCut {
    /// Tokens that this request and each later one is shorter by.
    pub(crate) saved: Tokens,
    /// Tokens behind the first change, which the provider has to write to its cache again.
    pub(crate) rewritten: Tokens,
    /// Requests of the conversation that are expected after this one.
    pub(crate) requests: u64,
    /// Whether the cache still holds the request as it was.
    pub(crate) is_warm: bool,
}

/// Whether what a cut saves over the expected rest of the conversation is worth what it costs.
///
/// With a warm cache it costs the difference between writing and reading what is behind the first
/// change, and saves the reading of what is cut out, in every request. With a cold cache all of it
/// has to be written in any case, and a cut saves from the first request on.
pub(crate) fn is_worth(cut: PricedCut, price: &Price) -> bool {
    let PricedCut { saved, rewritten, requests, is_warm } = cut;
    let dollars = |tokens: Tokens, price: MicroDollars| u128::from(tokens.0) * u128::from(price.0);
    let later = dollars(saved, price.cached).saturating_mul(u128::from(requests));
    if !is_warm {
        return saved > Tokens(0);
    }
    let cost = dollars(rewritten, price.written.max(price.input) - price.cached);
    later > cost.saturating_mul(MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_worth_it_when_enough_requests_follow() {
        let cut = |saved, rewritten, requests, is_warm| PricedCut {
            saved: Tokens(saved),
            rewritten: Tokens(rewritten),
            requests,
            is_warm,
        };
        for (cut, expect) in [
            // 60,000 tokens read for 0.1 save 6,000 a request; 30,000 written cost 34,500.
            (cut(60_000, 30_000, 11, true), false),
            (cut(60_000, 30_000, 12, true), true),
            (cut(60_000, 90_000, 30, true), false),
            (cut(1_000, 90_000, 500, true), false),
            (cut(1_000, 90_000, 0, false), true),
            (cut(0, 0, 100, true), false),
            (cut(0, 0, 100, false), false),
            (cut(u64::MAX, 0, u64::MAX, true), true),
            (cut(u64::MAX, u64::MAX, 1, true), false),
        ] {
            assert_eq!(is_worth(cut, &USUAL), expect, "{cut:?}");
        }
        // Without a price for the cache every request saves the whole price of input.
        let plain = Price { cached: USUAL.input, written: USUAL.input, ..USUAL };
        assert!(is_worth(cut(1_000, 90_000, 1, true), &plain));
    }
}
