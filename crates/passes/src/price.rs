//! Whether a compaction is worth what it costs at the provider's cache.

use epitome_model::{MicroDollars, Tokens};

/// A compaction must save more than this many times what it costs. With a larger number,
/// compactions are made later and are fewer, but the requests until then are longer. With 2, a long
/// conversation costs least in total.
const MARGIN: u128 = 2;

/// The prices of tokens at a provider's prompt cache, for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePrices {
    /// The price of tokens that are read from the cache.
    pub read: MicroDollars,
    /// The price of tokens that are not in the cache, and are written to it.
    pub written: MicroDollars,
}

impl CachePrices {
    /// Prices in the proportion that most providers have: reading a token from the cache costs a
    /// tenth of an input token, and writing it 1.25 input tokens.
    pub const USUAL: CachePrices =
        CachePrices { read: MicroDollars(100_000), written: MicroDollars(1_250_000) };
}

/// A compaction that may be made before the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PricedCut {
    /// The number of tokens by which this request and each later one becomes shorter.
    pub saved: Tokens,
    /// Tokens after the first change, which the provider has to write to its cache again.
    pub rewritten: Tokens,
    /// Number of requests that are expected until the context has grown back to its length before
    /// the compaction.
    pub requests: u64,
    /// Whether the provider's cache still has the context from before the compaction.
    pub is_warm: bool,
}

/// Whether what a compaction saves is worth what it costs.
///
/// With a warm cache, a compaction costs the difference between writing and reading all tokens
/// after the first change, and saves in each later request the price of reading the removed tokens.
/// The savings must be more than twice the cost. With a cold cache, the whole context has to be
/// written in any case: every compaction that removes tokens is worth it.
///
/// ```
/// use epitome_model::Tokens;
/// use epitome_passes::{CachePrices, PricedCut, is_worth};
///
/// let cut = PricedCut {
///     saved: Tokens(60_000),
///     rewritten: Tokens(30_000),
///     requests: 12,
///     is_warm: true,
/// };
/// assert!(is_worth(cut, CachePrices::USUAL));
/// assert!(!is_worth(PricedCut { requests: 11, ..cut }, CachePrices::USUAL));
/// ```
pub fn is_worth(cut: PricedCut, prices: CachePrices) -> bool {
    let PricedCut { saved, rewritten, requests, is_warm } = cut;
    if !is_warm {
        return saved > Tokens(0);
    }
    let later = dollars(saved, prices.read).saturating_mul(u128::from(requests));
    let cost = dollars(rewritten, prices.written - prices.read);
    later > cost.saturating_mul(MARGIN)
}

/// The price of tokens, in millionths of a micro-dollar.
fn dollars(tokens: Tokens, price: MicroDollars) -> u128 {
    u128::from(tokens.0) * u128::from(price.0)
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
            // To read 60,000 tokens for 0.1 each costs 6,000 in every request; to write 30,000
            // tokens again costs 34,500 more than to read them.
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
            assert_eq!(is_worth(cut, CachePrices::USUAL), expect, "{cut:?}");
        }
        // If reading from the cache costs as much as writing to it, every request saves the whole
        // price of the removed tokens, and the compaction costs nothing.
        let plain = CachePrices { read: MicroDollars(9), written: MicroDollars(9) };
        assert!(is_worth(cut(1_000, 90_000, 1, true), plain));
    }
}
