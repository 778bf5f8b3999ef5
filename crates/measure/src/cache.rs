//! Two models of how a provider caches requests, and what requests cost under each, in tokens.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use epitome_model::Tokens;
use epitome_passes::facts::IdHasher;

use crate::block::MeasuredBlock;

/// An odd number whose one-bits are evenly distributed, to mix hashes by multiplication.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// How a provider caches requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheModel {
    /// Any beginning of an earlier request is cached: `OpenAI`, Gemini, `DeepSeek`, or Anthropic
    /// with cache markers (breakpoints) in the right places.
    Prefix,
    /// Only whole earlier requests are cached: Anthropic with one cache marker, at the end.
    Requests,
}

/// The tokens of a request and its response, by how a provider bills them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    /// Input tokens that were read from the cache.
    pub cached: Tokens,
    /// Input tokens that were written to the cache.
    pub written: Tokens,
    /// Output tokens.
    pub output: Tokens,
}

/// A set of hashes, each of a request or of a beginning of a request.
type Chains = HashSet<u64, BuildHasherDefault<IdHasher>>;

/// The requests that a provider has cached.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// Hashes of all beginnings of the cached requests.
    beginnings: Chains,
    /// Hashes of the whole cached requests.
    requests: Chains,
}

impl Cache {
    /// Sends a request and adds it to the cache. Returns the number of tokens in the request, and
    /// how many of these were in the cache before, for each [`CacheModel`].
    pub fn send<'p>(&mut self, request: impl Iterator<Item = &'p MeasuredBlock>) -> RequestTokens {
        let mut sent = RequestTokens::default();
        let mut chain = 0_u64;
        let mut is_known = true;
        let mut beginnings = Vec::new();
        for piece in request {
            chain = (chain.rotate_left(23) ^ piece.id).wrapping_mul(MIX);
            beginnings.push(chain);
            sent.all += piece.tokens;
            is_known &= self.beginnings.contains(&chain);
            if is_known {
                sent.prefix = sent.all;
            }
            if self.requests.contains(&chain) {
                sent.requests = sent.all;
            }
        }
        self.requests.extend(beginnings.last());
        self.beginnings.extend(beginnings);
        sent
    }

    /// Empties the cache, as a provider does after some time without a request.
    pub fn expire(&mut self) {
        self.beginnings.clear();
        self.requests.clear();
    }
}

/// The tokens of a request that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTokens {
    /// The tokens in the longest beginning that this request has in common with an earlier one.
    pub prefix: Tokens,
    /// The tokens in the longest earlier request with which this request begins.
    pub requests: Tokens,
    /// All tokens of the request.
    pub all: Tokens,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::piece;

    #[test]
    fn a_request_is_cached_as_far_as_it_begins_like_an_earlier_one() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|text| piece(text, 10));
        let sent = |prefix, requests, all| RequestTokens {
            prefix: Tokens(prefix),
            requests: Tokens(requests),
            all: Tokens(all),
        };
        let mut cache = Cache::default();
        let cases = [
            (vec![&a, &b], sent(0, 0, 20)),
            (vec![&a, &b, &c], sent(20, 20, 30)),
            // As after a compaction: only the beginning `a` is known, and it is no whole earlier
            // request.
            (vec![&a, &d], sent(10, 0, 20)),
            (vec![&a, &d, &c], sent(20, 20, 30)),
            (vec![&a, &b, &d], sent(20, 20, 30)),
            (vec![], sent(0, 0, 0)),
        ];
        for (request, expect) in cases {
            assert_eq!(cache.send(request.iter().copied()), expect, "{request:?}");
        }
        cache.expire();
        assert_eq!(cache.send([&a, &b].into_iter()), sent(0, 0, 20));
    }
}
