//! What a provider has in its prompt cache, and what a request costs with it, in tokens.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use epitome_model::Tokens;
use epitome_passes::facts::IdHasher;

use crate::block::MeasuredBlock;

/// An odd number with its ones spread: it mixes what it is multiplied with.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// How a provider caches requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheModel {
    /// Any beginning of an earlier request is read from the cache: `OpenAI`, Gemini, `DeepSeek`, or
    /// Anthropic with breakpoints in the right places.
    Prefix,
    /// Only whole earlier requests are: Anthropic with one breakpoint, at the end.
    Requests,
}

/// What a request and its response cost, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    /// Input that was read from the cache.
    pub cached: Tokens,
    /// Input that was written to it.
    pub written: Tokens,
    /// Output.
    pub output: Tokens,
}

/// Hashes of requests: they are hashes already.
type Chains = HashSet<u64, BuildHasherDefault<IdHasher>>;

/// The requests that a provider has cached.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// Every beginning of a request, as a hash of its pieces.
    beginnings: Chains,
    /// Whole requests.
    requests: Chains,
}

impl Cache {
    /// Sends a request. Returns how many of its tokens were cached, by both models, and how many
    /// it has.
    pub fn send<'p>(&mut self, request: impl Iterator<Item = &'p MeasuredBlock>) -> Sent {
        let mut sent = Sent::default();
        let (mut chain, mut is_known) = (0_u64, true);
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

    /// Nothing is cached any more: too much time has passed.
    pub fn expire(&mut self) {
        self.beginnings.clear();
        self.requests.clear();
    }
}

/// The tokens of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Those that any earlier request begins with.
    pub prefix: Tokens,
    /// Those of the longest earlier request that it begins with.
    pub requests: Tokens,
    /// All.
    pub all: Tokens,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::piece;

    #[test]
    fn a_request_is_cached_as_far_as_it_begins_like_an_earlier_one() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|text| piece(text, 10));
        let sent = |prefix, requests, all| Sent {
            prefix: Tokens(prefix),
            requests: Tokens(requests),
            all: Tokens(all),
        };
        let mut cache = Cache::default();
        let cases = [
            (vec![&a, &b], sent(0, 0, 20)),
            (vec![&a, &b, &c], sent(20, 20, 30)),
            // Compacted: what stands before the change is a beginning, and no whole request.
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
