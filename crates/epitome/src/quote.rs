//! Computes what a compaction costs and saves in the requests after it. Providers cache requests,
//! which changes both.
//!
//! If a request begins like an earlier request, the provider reads that beginning from its cache,
//! and writes the rest to the cache. A compaction makes requests smaller, but changes their
//! beginning: more tokens have to be written once, and fewer tokens are read in each request.

use epitome_llm::ListedModel;
use epitome_model::{MicroDollars, TokenUsage, Tokens};
use serde::Serialize;

use crate::ops::Change;

/// The number of seconds for which a provider is assumed to cache a request. The table of models
/// has the price of cache writes for this time.
pub const CACHED_FOR: i64 = 300;

/// Whether the last request of a session is still in the provider's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// The last request was sent at most five minutes ago.
    Warm,
    /// The last request was sent earlier: the whole next request has to be written to the cache.
    Expired,
    /// The session does not record when the last request was sent. The figures assume that it is
    /// cached.
    Unknown,
}

impl CacheState {
    /// The state after a request that was sent this many seconds ago; `None` if that is unknown.
    pub fn after(seconds: Option<i64>) -> CacheState {
        match seconds {
            None => CacheState::Unknown,
            Some(seconds) if seconds > CACHED_FOR => CacheState::Expired,
            Some(_) => CacheState::Warm,
        }
    }
}

/// The tokens of the next request of a session, and how many of them are cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NextRequest {
    /// All input tokens of the request, without the user's next message.
    pub input: Tokens,
    /// The input tokens that are read from the cache, if the cache has not expired.
    pub cached: Tokens,
}

/// What the input of the requests after a compaction costs at list prices, with and without the
/// compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Quote {
    /// The model whose prices are used.
    pub model: String,
    /// Whether the tokens are computed from the usage that the session records. If not, they are
    /// computed from values that are usual for the model.
    pub is_fitted: bool,
    /// Whether the last request is still cached.
    pub cache: CacheState,
    /// The input tokens of the next request, without and with the compaction.
    pub input_tokens: Change<Tokens>,
    /// The input tokens of the next request that are read from the cache.
    pub cached_tokens: Change<Tokens>,
    /// The cost of the next request's input, without and with the compaction.
    pub next_cost: Change<MicroDollars>,
    /// The cost of the same input in each later request, which reads all of it from the cache.
    pub later_cost: Change<MicroDollars>,
    /// The number of requests after which the compaction has saved at least what it cost. 1 if
    /// neither the next request nor later requests cost more than without the compaction; `null` if
    /// the savings never reach the cost, or if later requests cost more than without it.
    pub pays_after: Option<u64>,
}

impl Quote {
    /// The quote for the next request of a session, without and with a compaction, at the prices of
    /// a model. `None` if the compaction changes no cost.
    pub fn new(
        known: &ListedModel,
        is_fitted: bool,
        cache: CacheState,
        request: Change<NextRequest>,
    ) -> Option<Quote> {
        let Change { before, after } = request;
        let input_tokens = Change { before: before.input, after: after.input };
        let cached_tokens = match cache {
            CacheState::Expired => Change { before: Tokens(0), after: Tokens(0) },
            CacheState::Warm | CacheState::Unknown => Change {
                before: Tokens(before.cached.0.min(before.input.0)),
                after: Tokens(after.cached.0.min(after.input.0)),
            },
        };
        let cost = |input: Tokens, cached: Tokens| {
            let cache_written = Tokens(input.0 - cached.0);
            known.cost(&TokenUsage { cached, cache_written, ..TokenUsage::default() })
        };
        let next_cost = Change {
            before: cost(input_tokens.before, cached_tokens.before),
            after: cost(input_tokens.after, cached_tokens.after),
        };
        let later_cost = Change {
            before: cost(input_tokens.before, input_tokens.before),
            after: cost(input_tokens.after, input_tokens.after),
        };
        let is_nothing =
            next_cost.before == next_cost.after && later_cost.before == later_cost.after;
        (!is_nothing).then(|| Quote {
            model: known.name.model.clone(),
            is_fitted,
            cache,
            input_tokens,
            cached_tokens,
            next_cost,
            later_cost,
            pays_after: pays_after(more(next_cost), -more(later_cost)),
        })
    }

    /// What the compaction adds to the cost of the next request, in millionths of a dollar;
    /// negative if it saves.
    pub fn next_request_difference(&self) -> i64 {
        more(self.next_cost)
    }

    /// What the compaction adds to the cost of each later request, in millionths of a dollar;
    /// negative if it saves.
    pub fn later_request_difference(&self) -> i64 {
        more(self.later_cost)
    }
}

/// The increase of a cost, in millionths of a dollar.
fn more(cost: Change<MicroDollars>) -> i64 {
    let before = i64::try_from(cost.before.0).unwrap_or(i64::MAX);
    i64::try_from(cost.after.0).unwrap_or(i64::MAX) - before
}

/// The number of requests, counted from the next one, after which the savings are at least the
/// cost. `once` is what the compaction adds to the cost of the next request; `saved` is what each
/// later request saves. `None` if the savings never reach the cost, or if later requests cost more
/// than without the compaction.
fn pays_after(once: i64, saved: i64) -> Option<u64> {
    if once <= 0 {
        return (saved >= 0).then_some(1);
    }
    let later = (saved > 0).then(|| once.unsigned_abs().div_ceil(saved.unsigned_abs()))?;
    Some(1 + later)
}

impl Quote {
    /// The next request's use of the cache, as text: `next request: reads 12.0k from the cache
    /// instead of 140.0k, writes 30.0k instead of 10.0k`.
    pub fn next_request(&self) -> String {
        let input = self.input_tokens;
        let cached = self.cached_tokens;
        let after = Tokens(input.after.0 - cached.after.0);
        let before = Tokens(input.before.0 - cached.before.0);
        let does = match self.cache {
            CacheState::Expired => {
                return format!(
                    "next request: {after} tokens instead of {before}, none from the cache, which \
                     has expired"
                );
            }
            CacheState::Warm => "next request: reads",
            CacheState::Unknown => "next request, if the last is still cached: reads",
        };
        let read = cached.after;
        let instead = cached.before;
        format!(
            "{does} {read} from the cache instead of {instead}, writes {after} instead of {before}"
        )
    }

    /// The cost and the savings, as text: `+$0.16 once, −$0.03 for each later request: pays after 6
    /// requests`.
    pub fn balance(&self) -> String {
        let once = signed(self.next_request_difference());
        let each = signed(self.later_request_difference());
        let pays = match self.pays_after {
            Some(1) => "pays at once".to_owned(),
            Some(n) => format!("pays after {n} requests"),
            None => "does not pay".to_owned(),
        };
        format!("{once} once, {each} for each later request: {pays}")
    }
}

/// An amount of money with its sign: `+$0.16`, `−$0.03`.
fn signed(amount: i64) -> String {
    let sign = match amount {
        0 => "",
        1.. => "+",
        _ => "−",
    };
    format!("{sign}{}", MicroDollars(amount.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use epitome_llm::Catalogue;

    use super::*;

    fn quote(model: &str, seconds: Option<i64>, requests: [(u64, u64); 2]) -> Option<Quote> {
        let catalogue = Catalogue::built_in();
        let [before, after] = requests
            .map(|(input, cached)| NextRequest { input: Tokens(input), cached: Tokens(cached) });
        let known = catalogue.find(model).expect("it is in the table");
        Quote::new(known, true, CacheState::after(seconds), Change { before, after })
    }

    /// Prices per million tokens: Sonnet $3.75 to write to the cache and $0.30 to read from it,
    /// gpt-5 $1.25 and $0.125.
    #[test]
    fn a_quote_follows_from_prices_and_cache() {
        let cases = [
            // Without the compaction, 140,000 of 150,000 tokens are cached; with it, 12,000 of
            // 42,000.
            (
                "claude-sonnet-4-6",
                Some(60),
                [(150_000, 140_000), (42_000, 12_000)],
                (79_500, 116_100, -32_400, Some(3)),
            ),
            // The same requests when the cache has expired: nothing is read from it in either case.
            (
                "claude-sonnet-4-6",
                Some(301),
                [(150_000, 140_000), (42_000, 12_000)],
                (562_500, 157_500, -32_400, Some(1)),
            ),
            (
                "claude-sonnet-4-6",
                Some(300),
                [(1_000, 1_000), (900, 0)],
                (300, 3_375, -30, Some(104)),
            ),
            // Nothing of either request is cached.
            ("gpt-5", None, [(100_000, 0), (40_000, 0)], (125_000, 50_000, -7_500, Some(1))),
            (
                "gpt-5",
                None,
                [(100_000, 99_000), (40_000, 9_000)],
                (13_625, 39_875, -7_500, Some(5)),
            ),
            // Later requests cost the same.
            ("gpt-5", Some(1), [(1_000, 1_000), (1_000, 0)], (125, 1_250, 0, None)),
        ];
        for (model, seconds, requests, expect) in cases {
            let it = quote(model, seconds, requests).expect("it has a price");
            let Change { before, after } = it.next_cost;
            assert_eq!(
                (before.0, after.0, it.later_request_difference(), it.pays_after),
                expect,
                "{model} {requests:?}"
            );
            assert_eq!(it.next_request_difference(), after.0 as i64 - before.0 as i64);
        }
        assert_eq!(quote("gpt-5", Some(1), [(1_000, 1_000); 2]), None);
    }

    #[test]
    fn a_quote_is_two_lines() {
        let long = [(150_000, 140_000), (42_000, 12_000)];
        let quote_text = |seconds| {
            let it = quote("claude-sonnet-4-6", seconds, long).expect("it has a price");
            [it.next_request(), it.balance()]
        };
        assert_eq!(
            quote_text(Some(60)),
            [
                "next request: reads 12.0k from the cache instead of 140.0k, writes 30.0k instead \
                 of 10.0k",
                "+$0.04 once, −$0.03 for each later request: pays after 3 requests",
            ]
        );
        assert_eq!(
            quote_text(Some(3_600)),
            [
                "next request: 42.0k tokens instead of 150.0k, none from the cache, which has \
                 expired",
                "−$0.41 once, −$0.03 for each later request: pays at once",
            ]
        );
        let unknown = &quote_text(None)[0];
        assert!(unknown.starts_with("next request, if the last is still cached: reads 12.0k"));
        let none = quote("gpt-5", None, [(1_000, 1_000), (1_000, 0)]).expect("it has a price");
        assert_eq!(none.balance(), "+$0.0011 once, $0.00 for each later request: does not pay");
    }
}
