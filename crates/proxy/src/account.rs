//! What a request cost, and what it would have cost unchanged.

use epitome::wire::ledger::{End, LedgerLine, MadeCut, UsedCut, now};
use epitome_api::Api;
use epitome_llm::Catalogue;
use epitome_model::{TokenUsage, Tokens};
use epitome_store::archive::Hash;

use crate::effect::{Effect, NewCut};

/// The run of the proxy, and the agent whose requests it passes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// The name of this run of the proxy in the ledger, the list of finished requests.
    pub(crate) run: String,
    /// The agent whose requests these are, if it is known.
    pub(crate) agent: Option<String>,
}

/// A request that has ended.
pub(crate) struct Finished<'r> {
    pub(crate) api: &'static Api,
    pub(crate) effect: &'r Effect,
    /// The name by which the client calls itself in its header `user-agent`.
    pub(crate) client: Option<String>,
    pub(crate) status: Option<u16>,
    pub(crate) end: End,
    /// The tokens that the service counted, if it reported them.
    pub(crate) usage: Option<TokenUsage>,
    /// The hashes of the removed texts whose references are in the calls of the model's response.
    pub(crate) recalled: Vec<Hash>,
}

impl Finished<'_> {
    /// Makes the line about the request in the ledger.
    pub(crate) fn line(self, origin: &Origin, prices: &Catalogue) -> LedgerLine {
        let Finished { api, effect, client, status, end, usage, recalled } = self;
        let model = effect.model.as_deref();
        let cost = |usage: TokenUsage| prices.cost(model?, &usage);
        let unchanged = usage.map(|usage| unchanged(effect, usage));
        let saved_by = |cut: &(_, Tokens)| {
            let &(id, tokens) = cut;
            let of_cut = |usage| {
                let without = with_saved(usage, tokens, effect.has_cold_cut());
                Some(cost(without)? - cost(usage)?)
            };
            UsedCut { id, tokens, saved: usage.and_then(of_cut) }
        };
        let made = |cut: NewCut| {
            let NewCut { id, rewritten, is_warm } = cut;
            let price = usage.and_then(|usage| {
                let read = written_again(usage, if is_warm { rewritten } else { Tokens(0) });
                Some(cost(usage)? - cost(read)?)
            });
            MadeCut { id, rewritten, price }
        };
        LedgerLine {
            time: now(),
            run: origin.run.clone(),
            agent: origin.agent.clone().or(client),
            api: api.name.to_owned(),
            model: effect.model.clone(),
            session: effect.session,
            group: effect.group,
            treatment: effect.treatment,
            turn: effect.begins_turn,
            status,
            end,
            usage,
            unchanged,
            cost: usage.and_then(cost),
            unchanged_cost: unchanged.and_then(cost),
            saved: effect.saved_before + effect.saved_now,
            shortened: effect.shortened,
            cut: effect.cut.map(made),
            cuts: effect.cuts.iter().map(saved_by).collect(),
            recalled,
            agent_compaction: effect.has_own_compaction,
            failed: effect.failure.is_some(),
            ..LedgerLine::default()
        }
    }
}

/// Estimates the usage that the request would have had if the proxy had changed nothing:
///
/// - The tokens that it left out of messages that were sent before count as read from the
///   provider's cache. If the request was cut while the cache was cold, or if nothing was read from
///   the cache, they count as written to it.
/// - The tokens that it left out of new messages count as written.
/// - The tokens that the provider had to write again because of a cut count as read, if the cache
///   was warm.
///
/// If the provider reports no written tokens, the numbers are added to `input`, or taken from it.
pub(crate) fn unchanged(effect: &Effect, usage: TokenUsage) -> TokenUsage {
    let is_cold = effect.has_cold_cut();
    let rewritten = effect.cut.filter(|cut| cut.is_warm).map_or(Tokens(0), |cut| cut.rewritten);
    let writes = usage.cache_written > Tokens(0);
    let usage = written_again(usage, rewritten);
    with_new(with_saved(usage, effect.saved_before, is_cold), effect.saved_now, writes)
}

/// The usage if `tokens` tokens had been read from the cache instead of written to it. If the
/// provider reports no written tokens, they are taken from the input.
fn written_again(usage: TokenUsage, tokens: Tokens) -> TokenUsage {
    let TokenUsage { input, cached, cache_written, output } = usage;
    if cache_written > Tokens(0) {
        let tokens = tokens.min(cache_written);
        let cache_written = cache_written - tokens;
        TokenUsage { cached: cached + tokens, cache_written, input, output }
    } else {
        let tokens = tokens.min(input);
        TokenUsage { cached: cached + tokens, input: input - tokens, cache_written, output }
    }
}

/// Adds tokens that were left out of messages that were sent before. They count as read from the
/// cache; if the cache was cold or nothing was read from it, as not in the cache.
fn with_saved(usage: TokenUsage, tokens: Tokens, is_cold: bool) -> TokenUsage {
    if usage.cached == Tokens(0) || is_cold {
        return with_new(usage, tokens, usage.cache_written > Tokens(0));
    }
    TokenUsage { cached: usage.cached + tokens, ..usage }
}

/// Adds tokens that are not in the cache. They count as written to it if the provider reports
/// written tokens (`writes`), and as input otherwise.
fn with_new(usage: TokenUsage, tokens: Tokens, writes: bool) -> TokenUsage {
    if writes {
        return TokenUsage { cache_written: usage.cache_written + tokens, ..usage };
    }
    TokenUsage { input: usage.input + tokens, ..usage }
}

#[cfg(test)]
mod tests {
    use epitome::wire::Chain;
    use epitome_model::MicroDollars;

    use super::*;

    fn usage(input: u64, cached: u64, cache_written: u64) -> TokenUsage {
        TokenUsage {
            input: Tokens(input),
            cached: Tokens(cached),
            cache_written: Tokens(cache_written),
            output: Tokens(10),
        }
    }

    fn cut(rewritten: u64, is_warm: bool) -> NewCut {
        NewCut { id: Chain::from_bytes([7; 16]), rewritten: Tokens(rewritten), is_warm }
    }

    #[test]
    fn an_unchanged_request_would_have_read_and_written_more() {
        let effect = |before, now, cut| Effect {
            saved_before: Tokens(before),
            saved_now: Tokens(now),
            cut,
            ..Effect::default()
        };
        for (effect, sent, expect) in [
            (effect(0, 0, None), usage(5, 100, 20), usage(5, 100, 20)),
            (effect(70, 30, None), usage(5, 100, 20), usage(5, 170, 50)),
            (effect(70, 30, None), usage(500, 0, 0), usage(600, 0, 0)),
            // The provider reports no written tokens: they are part of the input.
            (effect(70, 30, None), usage(20, 100, 0), usage(50, 170, 0)),
            // Nothing was read from the cache, so all tokens would have been written.
            (effect(70, 30, None), usage(5, 0, 120), usage(5, 0, 220)),
            // A cut wrote 80 tokens again that the cache had.
            (effect(70, 0, Some(cut(80, true))), usage(5, 100, 90), usage(5, 250, 10)),
            (effect(70, 0, Some(cut(80, true))), usage(5, 100, 20), usage(5, 190, 0)),
            (effect(70, 0, Some(cut(80, true))), usage(90, 100, 0), usage(10, 250, 0)),
            // With a cold cache, the 80 tokens of the cut had to be written in any case.
            (effect(70, 0, Some(cut(80, false))), usage(5, 100, 90), usage(5, 100, 160)),
        ] {
            assert_eq!(unchanged(&effect, sent), expect, "{effect:?}");
        }
    }

    #[test]
    fn a_line_has_the_price_of_a_cut_and_what_it_saves() {
        let api = epitome_api::find_api("anthropic").expect("an API");
        let line = |model: &str, is_warm| {
            let cut = cut(1_000_000, is_warm);
            let effect = Effect {
                model: Some(model.into()),
                cut: Some(cut),
                cuts: vec![(cut.id, Tokens(2_000_000))],
                saved_before: Tokens(2_000_000),
                ..Effect::default()
            };
            let usage = Some(usage(0, 10, 3_000_000));
            let finished = Finished {
                api,
                effect: &effect,
                client: Some("claude-cli".into()),
                status: Some(200),
                end: End::Complete,
                usage,
                recalled: Vec::new(),
            };
            finished.line(&Origin::default(), &Catalogue::built_in())
        };
        // A million tokens cost $1.00 as input, $1.25 if written to the cache, $0.10 if read from
        // it.
        let warm = line("claude-haiku-4-5", true);
        assert_eq!(warm.agent.as_deref(), Some("claude-cli"));
        assert_eq!(warm.cut.expect("a cut").price, Some(MicroDollars(1_150_000)));
        assert_eq!(warm.cuts[0].saved, Some(MicroDollars(200_000)));
        let costs = warm.cost.zip(warm.unchanged_cost).expect("a price");
        assert_eq!(costs.0 - costs.1, MicroDollars(950_000));
        let cold = line("claude-haiku-4-5", false);
        assert_eq!(cold.cut.expect("a cut").price, Some(MicroDollars(0)));
        assert_eq!(cold.cuts[0].saved, Some(MicroDollars(2_500_000)));
        let unknown = line("a model of tomorrow", true);
        assert_eq!((unknown.cost, unknown.unchanged_cost), (None, None));
        assert_eq!((unknown.cut.expect("a cut").price, unknown.cuts[0].saved), (None, None));
    }
}
