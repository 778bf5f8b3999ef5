//! What requests cost, by what the service itself reports, and what they would have cost
//! unchanged.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use epitome_api::{Api, Stream};
use epitome_llm::Catalogue;
use epitome_model::{MicroDollars, TokenUsage, Tokens};
use hyper::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use serde::Serialize;

use crate::decode::Decoder;
use crate::memo::locked;
use crate::rewrite::{Effect, Rewritten};

/// Maximum bytes of a response that are kept to be read at its end.
const LONGEST: usize = 16 << 20;

/// What was sent, and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests for a response of a model that were read.
    pub requests: u64,
    /// The requests whose responses reported the tokens that the service counted.
    pub metered: u64,
    /// The tokens that services counted.
    pub usage: TokenUsage,
    /// What the tokens cost at list prices.
    pub cost: MicroDollars,
    /// What the same requests would have cost unchanged.
    pub unchanged_cost: MicroDollars,
    /// Metered requests to models without a known price: they are in neither cost.
    pub without_price: u64,
    /// Input tokens that were not sent, counted by the proxy's tokenizer, added up over requests.
    pub saved: Tokens,
    /// Results that were shortened before they were first sent.
    pub shortened: u64,
    /// Cuts between requests.
    pub cuts: u64,
    /// Requests that passed unchanged because of an error of epitome.
    pub failures: u64,
    /// The last such error.
    pub last_failure: Option<String>,
}

/// Adds up what requests cost.
pub(crate) struct Meter {
    prices: Catalogue,
    totals: Mutex<Totals>,
}

impl Meter {
    pub(crate) fn new(prices: Catalogue) -> Meter {
        Meter { prices, totals: Mutex::default() }
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Totals)) {
        change(&mut self.totals.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Counts a request that passes unchanged because of an error.
    pub(crate) fn add_failure(&self, failure: String) {
        self.change(|totals| {
            totals.failures += 1;
            totals.last_failure = Some(failure);
        });
    }

    /// Counts a request that is about to be sent.
    pub(crate) fn begin(self: &Arc<Self>, api: &'static Api, request: Rewritten) -> Observer {
        let effect = &request.effect;
        self.change(|totals| {
            totals.requests += 1;
            totals.shortened += effect.shortened;
            totals.cuts += u64::from(effect.cut > Tokens(0));
        });
        Observer {
            meter: Arc::clone(self),
            api,
            request,
            decoder: Decoder::Plain,
            received: Received::Whole(Vec::new()),
        }
    }

    /// Adds the usage that a response reported.
    fn add(&self, effect: &Effect, usage: TokenUsage) {
        let model = effect.model.as_deref().unwrap_or_default();
        let cost = |usage| self.prices.cost(model, &usage);
        let costs = cost(usage).zip(cost(unchanged(effect, usage)));
        self.change(|totals| {
            totals.metered += 1;
            totals.usage += usage;
            totals.saved += effect.saved_before + effect.saved_now;
            match costs {
                Some((cost, unchanged)) => {
                    totals.cost = MicroDollars(totals.cost.0 + cost.0);
                    totals.unchanged_cost = MicroDollars(totals.unchanged_cost.0 + unchanged.0);
                }
                None => totals.without_price += 1,
            }
        });
    }
}

/// The usage that the unchanged request would have had. What was saved before would have been read
/// from the cache, what is new would have been written to it; a cut also made the provider write
/// again what it would have read. Without a cache all of it would have been input.
fn unchanged(effect: &Effect, usage: TokenUsage) -> TokenUsage {
    let saved = effect.saved_before + effect.saved_now;
    if usage.cached + usage.cache_written == Tokens(0) {
        return TokenUsage { input: usage.input + saved, ..usage };
    }
    let written_again = effect.cut.min(usage.cache_written);
    TokenUsage {
        cached: usage.cached + effect.saved_before + written_again,
        cache_written: usage.cache_written - written_again + effect.saved_now,
        ..usage
    }
}

/// Reads the response to one request.
pub(crate) struct Observer {
    meter: Arc<Meter>,
    api: &'static Api,
    request: Rewritten,
    decoder: Decoder,
    received: Received,
}

/// What was received of a response.
enum Received {
    Whole(Vec<u8>),
    Events(Box<Stream>),
    /// The response cannot be read.
    Nothing,
}

impl Observer {
    /// Prepares for a response with these headers; `None` if it reports no usage.
    pub(crate) fn of_response(
        mut self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Option<Observer> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.contains("event-stream")) {
            let stream = Stream::new(self.api, self.api.endpoint.framing);
            self.received = Received::Events(Box::new(stream));
        }
        self.decoder = Decoder::for_headers(headers)?;
        status.is_success().then_some(self)
    }

    fn push(&mut self, bytes: &[u8]) {
        let Observer { decoder, received, .. } = self;
        let mut is_read = true;
        let mut take = |bytes: &[u8]| match received {
            Received::Whole(whole) => {
                whole.extend_from_slice(bytes);
                is_read &= whole.len() <= LONGEST;
            }
            Received::Events(stream) => is_read &= stream.push(bytes, &mut |_| ()).is_ok(),
            Received::Nothing => {}
        };
        let is_decoded = decoder.push(bytes, &mut take).is_ok();
        if !is_read || !is_decoded {
            self.received = Received::Nothing;
            self.decoder = Decoder::Plain;
        }
    }
}

impl Drop for Observer {
    /// The response is at its end, or its client has gone.
    fn drop(&mut self) {
        let body = match std::mem::replace(&mut self.received, Received::Nothing) {
            Received::Whole(whole) => Some(whole).filter(|whole| !whole.is_empty()),
            Received::Events(stream) => stream.finish(&mut |_| ()).ok().map(String::into_bytes),
            Received::Nothing => None,
        };
        let usage = body.and_then(|body| self.api.response(&body).ok()?.usage);
        if let Some(usage) = usage {
            if let Some(conversation) = &self.request.conversation {
                locked(conversation).input = Some(usage.all_input());
            }
            self.meter.add(&self.request.effect, usage);
        }
    }
}

/// A body whose bytes are read as they pass.
pub(crate) struct Observed<B> {
    pub(crate) body: B,
    pub(crate) observer: Option<Observer>,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Observed<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(observer), Some(data)) = (&mut self.observer, frame.data_ref()) {
                    observer.push(data);
                }
            }
            // Counted before the client sees the end.
            Poll::Ready(None) => drop(self.observer.take()),
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(input: u64, cached: u64, cache_written: u64) -> TokenUsage {
        TokenUsage {
            input: Tokens(input),
            cached: Tokens(cached),
            cache_written: Tokens(cache_written),
            output: Tokens(10),
        }
    }

    #[test]
    fn an_unchanged_request_would_have_read_and_written_more() {
        let effect = |before, now, cut| Effect {
            saved_before: Tokens(before),
            saved_now: Tokens(now),
            cut: Tokens(cut),
            ..Effect::default()
        };
        for (effect, sent, expect) in [
            (effect(0, 0, 0), usage(5, 100, 20), usage(5, 100, 20)),
            (effect(70, 30, 0), usage(5, 100, 20), usage(5, 170, 50)),
            (effect(70, 30, 0), usage(500, 0, 0), usage(600, 0, 0)),
            // A cut wrote 80 tokens again that the cache had.
            (effect(70, 0, 80), usage(5, 100, 90), usage(5, 250, 10)),
            (effect(70, 0, 80), usage(5, 100, 20), usage(5, 190, 0)),
        ] {
            assert_eq!(unchanged(&effect, sent), expect, "{effect:?}");
        }
    }

    #[test]
    fn a_streamed_response_is_read_as_it_passes() {
        let meter = Arc::new(Meter::new(Catalogue::built_in()));
        let effect = Effect { model: Some("claude-haiku-4-5".into()), ..Effect::default() };
        let effect = Effect { saved_before: Tokens(1_000_000), shortened: 2, ..effect };
        let api = epitome_api::named("anthropic").expect("an API");
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "text/event-stream; charset=utf-8".parse().expect("a value"));
        let request = Rewritten { effect, ..Rewritten::default() };
        let observer = meter.begin(api, request).of_response(StatusCode::OK, &headers);
        let mut observer = observer.expect("it is read");
        let usage_at_start = json!({"input_tokens": 3, "cache_read_input_tokens": 40,
            "cache_creation_input_tokens": 5, "output_tokens": 1});
        let events = [
            json!({"type": "message_start", "message": {"model": "m", "usage": usage_at_start}}),
            json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "text", "text": "Hi"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 9}}),
            json!({"type": "message_stop"}),
        ];
        for event in events {
            let event = format!("event: x\ndata: {event}\n\n");
            let (first, second) = event.as_bytes().split_at(event.len() / 2);
            observer.push(first);
            observer.push(second);
        }
        drop(observer);
        let totals = meter.totals();
        let expect = TokenUsage { output: Tokens(9), ..usage(3, 40, 5) };
        assert_eq!((totals.requests, totals.metered, totals.usage), (1, 1, expect));
        assert_eq!((totals.saved, totals.shortened), (Tokens(1_000_000), 2));
        // A tenth of the price of input: it would have been read from the cache.
        assert_eq!(totals.unchanged_cost.0 - totals.cost.0, 100_000);
    }
}
