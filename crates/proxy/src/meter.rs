//! What requests cost, by what the service itself reports, and what they would have cost
//! unchanged.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use epitome::wire::ledger::{End, Ledger, LedgerLine};
use epitome::wire::stats::RequestSum;
use epitome_api::{Api, Stream};
use epitome_error::sentence;
use epitome_llm::Catalogue;
use epitome_model::{MicroDollars, TokenUsage, Tokens};
use hyper::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use serde::Serialize;
use tracing::warn;

use crate::account::{Finished, Origin};
use crate::body::BYTES_PER_TOKEN;
use crate::budget::{OverBudget, Spending, check_price};
use crate::decode::Decoder;
use crate::effect::Effect;
use crate::memo::locked;
use crate::metrics::{self, Labels};
use crate::recall::named_references;
use crate::rewrite::Rewritten;
use crate::span::{RequestHead, Span};
use crate::telemetry::Telemetry;

/// Maximum bytes of a response that is no stream of events, and is read as a whole at its end. A
/// longer one is not read.
const LONGEST: usize = 16 << 20;

/// What was sent, and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests for a response of a model: those whose bodies were read, and those for a WebSocket.
    pub requests: u64,
    /// The requests whose responses reported how many tokens the service counted.
    pub metered: u64,
    /// The tokens that services counted.
    pub usage: TokenUsage,
    /// What the tokens cost at list prices.
    pub cost: MicroDollars,
    /// What the same requests would have cost unchanged.
    pub unchanged_cost: MicroDollars,
    /// Metered requests to models without a known price: they are in neither cost.
    pub without_price: u64,
    /// Input tokens that were not sent, counted by the proxy's tokenizer, added up over metered
    /// requests.
    pub saved: Tokens,
    /// Results that were shortened before they were first sent.
    pub shortened: u64,
    /// Cuts that were made: requests in which old messages were shortened or replaced by a digest.
    pub cuts: u64,
    /// Requests with a summary by which an agent itself compacted its conversation.
    pub own_compactions: u64,
    /// What answered requests without a count cost, estimated by the length of their bodies. It is
    /// in neither of the other costs.
    pub estimated_cost: MicroDollars,
    /// Requests that were refused because of the budget.
    pub refused: u64,
    /// Finished requests that could not be written to the ledger, which lists them.
    pub unwritten: u64,
    /// WebSockets that passed unread. Those of model APIs are also in `requests`; what is sent in
    /// them is not counted.
    pub websockets: u64,
    /// Spans that no collector of OpenTelemetry took.
    pub dropped_spans: u64,
    /// Requests in which something passed unchanged because of an error of epitome.
    pub failures: u64,
    /// The last error of epitome because of which something passed unchanged.
    pub last_failure: Option<String>,
}

/// Adds up what requests cost.
pub(crate) struct Meter {
    prices: Catalogue,
    origin: Origin,
    /// Where finished requests are written; `None` in a dry run.
    ledger: Option<Ledger>,
    totals: Mutex<Totals>,
    /// Sums over the finished requests that have the same labels.
    sums: Mutex<BTreeMap<Labels, RequestSum>>,
    /// What the run may cost.
    budget: Option<MicroDollars>,
    /// Takes the spans of finished requests.
    telemetry: Option<Telemetry>,
}

impl Meter {
    pub(crate) fn new(prices: Catalogue, origin: Origin, ledger: Option<Ledger>) -> Meter {
        let (totals, sums) = (Mutex::default(), Mutex::default());
        Meter { prices, origin, ledger, totals, sums, budget: None, telemetry: None }
    }

    /// Sets the budget, if there is one.
    pub(crate) fn with_budget(self, budget: Option<MicroDollars>) -> Meter {
        Meter { budget, ..self }
    }

    /// Sets where the spans of finished requests go, if there is a collector.
    pub(crate) fn with_telemetry(self, telemetry: Option<Telemetry>) -> Meter {
        Meter { telemetry, ..self }
    }

    /// Makes the exporter of telemetry send the spans that still wait, and then end.
    pub(crate) fn end(&self) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.end();
        }
    }

    /// Checks that the budget is not spent, if there is one.
    ///
    /// # Errors
    ///
    /// [`OverBudget::Spent`], if the budget is spent. The request is then counted as refused.
    pub(crate) fn check_budget(&self) -> Result<(), OverBudget> {
        let Some(budget) = self.budget else { return Ok(()) };
        let Totals { cost: counted, estimated_cost: estimated, .. } = self.totals();
        let checked = Spending { counted, estimated }.check(budget);
        checked.inspect_err(|_| self.change(|totals| totals.refused += 1))
    }

    /// Checks whether the cost of a request will be known, if there is a budget.
    ///
    /// # Errors
    ///
    /// [`OverBudget::NoPrice`], if there is a budget and the model's price is not known. The
    /// request is then counted as refused.
    pub(crate) fn check_price(&self, model: Option<&str>) -> Result<(), OverBudget> {
        let checked = self.budget.map_or(Ok(()), |_| check_price(&self.prices, model));
        checked.inspect_err(|_| self.change(|totals| totals.refused += 1))
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner).clone();
        totals.dropped_spans = self.telemetry.as_ref().map_or(0, Telemetry::dropped);
        totals
    }

    /// The sums of the finished requests, in the text format of Prometheus.
    pub(crate) fn metrics(&self) -> String {
        let sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        metrics::render(sums.iter())
    }

    fn change(&self, change: impl FnOnce(&mut Totals)) {
        change(&mut self.totals.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Adds the estimated cost of a request that was answered without a count of tokens.
    fn add_uncounted(&self, effect: &Effect) {
        let input = Tokens(effect.bytes / BYTES_PER_TOKEN);
        let usage = TokenUsage { input, ..TokenUsage::default() };
        let cost = effect.model.as_deref().and_then(|model| self.prices.cost(model, &usage));
        self.change(|totals| totals.estimated_cost += cost.unwrap_or_default());
    }

    /// Counts an error because of which something passes unchanged.
    pub(crate) fn add_failure(&self, failure: String) {
        self.change(|totals| {
            totals.failures += 1;
            totals.last_failure = Some(failure);
        });
    }

    /// Counts a request that is about to be sent, and returns the observer that reads its response.
    pub(crate) fn begin(
        self: &Arc<Self>,
        api: &'static Api,
        request: Rewritten,
        head: RequestHead,
    ) -> Observer {
        let effect = &request.effect;
        self.change(|totals| {
            totals.requests += 1;
            totals.shortened += effect.shortened;
            totals.cuts += u64::from(effect.cut.is_some());
            totals.own_compactions += u64::from(effect.has_own_compaction);
        });
        Observer {
            meter: Arc::clone(self),
            api,
            request,
            head,
            status: None,
            end: End::Unreachable,
            decoder: Decoder::Plain,
            received: Received::Nothing,
        }
    }

    /// Counts a WebSocket, which passes unread.
    pub(crate) fn add_websocket(&self) {
        self.change(|totals| totals.websockets += 1);
    }

    /// Whether the run has a budget, so that every request has to be counted.
    pub(crate) fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Adds a request that has ended to the totals and sums, and to the ledger.
    fn add(&self, line: &LedgerLine) {
        if let Some(usage) = line.usage {
            self.change(|totals| {
                totals.metered += 1;
                totals.usage += usage;
                totals.saved += line.saved;
                match line.cost.zip(line.unchanged_cost) {
                    Some((cost, unchanged)) => {
                        totals.cost += cost;
                        totals.unchanged_cost += unchanged;
                    }
                    None => totals.without_price += 1,
                }
            });
        }
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.entry(Labels::from_line(line)).or_default().add(line);
        drop(sums);
        let written = self.ledger.as_ref().map_or(Ok(()), |ledger| ledger.append(line));
        if let Err(err) = written {
            let failure = sentence(&err);
            warn!(failure, "a request is not in the ledger");
            self.change(|totals| totals.unwritten += 1);
        }
    }
}

/// Reads the response to one request. When the observer is dropped, it counts the request.
pub(crate) struct Observer {
    meter: Arc<Meter>,
    api: &'static Api,
    request: Rewritten,
    head: RequestHead,
    status: Option<StatusCode>,
    end: End,
    decoder: Decoder,
    received: Received,
}

/// What was received of a response.
enum Received {
    Whole(Vec<u8>),
    Events(Box<Stream>),
    /// The response is not read.
    Nothing,
}

impl Observer {
    /// Prepares for a response with this status and these headers. Two kinds of responses are not
    /// read: those without a status of success, which report no usage, and those of an unknown
    /// encoding.
    pub(crate) fn of_response(mut self, status: StatusCode, headers: &HeaderMap) -> Observer {
        self.status = Some(status);
        self.end = End::Interrupted;
        let Some(decoder) = Decoder::for_headers(headers).filter(|_| status.is_success()) else {
            return self;
        };
        self.decoder = decoder;
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        self.received = match kind.is_some_and(|kind| kind.contains("event-stream")) {
            true => {
                let stream = Stream::new(self.api, self.api.endpoint.framing);
                Received::Events(Box::new(stream))
            }
            false => Received::Whole(Vec::new()),
        };
        self
    }

    /// Marks the response as complete; dropping `self` then counts it.
    pub(crate) fn complete(mut self) {
        self.end = End::Complete;
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
    /// Counts the request. This runs at the end of the response, or when none can come any more,
    /// for example because the client has gone or the service could not be reached.
    fn drop(&mut self) {
        let body = match std::mem::replace(&mut self.received, Received::Nothing) {
            Received::Whole(whole) => Some(whole).filter(|whole| !whole.is_empty()),
            Received::Events(stream) => stream.finish(&mut |_| ()).ok().map(String::into_bytes),
            Received::Nothing => None,
        };
        let response = body.and_then(|body| self.api.response(&body).ok());
        let usage = response.as_ref().and_then(|response| response.usage);
        let mut recalled = Vec::new();
        if let Some(conversation) = &self.request.conversation {
            let mut memo = locked(conversation);
            if let (Some(last), Some(usage)) = (self.request.last, usage) {
                memo.sent.set_input(last, usage.all_input());
            }
            if let Some(response) = response.filter(|_| memo.has_removed()) {
                recalled = memo.named_texts(&named_references(&response));
            }
        }
        let finished = Finished {
            api: self.api,
            effect: &self.request.effect,
            client: self.head.client.take(),
            status: self.status.map(|status| status.as_u16()),
            end: self.end,
            usage,
            recalled,
        };
        let line = finished.line(&self.meter.origin, &self.meter.prices);
        self.meter.add(&line);
        if let Some(telemetry) = &self.meter.telemetry {
            Span::of_request(&line, &self.head).into_iter().for_each(|span| telemetry.add(span));
        }
        if usage.is_none() && self.status.is_some_and(|status| status.is_success()) {
            self.meter.add_uncounted(&self.request.effect);
        }
    }
}

/// A body whose bytes are read as they pass.
pub(crate) struct Observed<B> {
    pub(crate) body: B,
    pub(crate) observer: Option<Observer>,
}

impl<B> Observed<B> {
    /// Counts the request, now that the response is whole. This is before the client sees the end.
    fn finish(&mut self) {
        if let Some(observer) = self.observer.take() {
            observer.complete();
        }
    }
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
                let is_last = self.body.is_end_stream();
                if let (Some(observer), Some(data)) = (&mut self.observer, frame.data_ref()) {
                    observer.push(data);
                }
                if is_last {
                    // A body of a declared length is not polled again after its last frame.
                    self.finish();
                }
            }
            Poll::Ready(None) => self.finish(),
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
    use hyper::Uri;
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
    fn a_streamed_response_is_read_as_it_passes() {
        let meter = Meter::new(Catalogue::built_in(), Origin::default(), None);
        let meter = Arc::new(meter);
        let effect = Effect { model: Some("claude-haiku-4-5".into()), ..Effect::default() };
        let effect = Effect { saved_before: Tokens(1_000_000), shortened: 2, ..effect };
        let api = epitome_api::find_api("anthropic").expect("an API");
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "text/event-stream; charset=utf-8".parse().expect("a value"));
        let request = Rewritten { effect, ..Rewritten::default() };
        let head = RequestHead::new(&HeaderMap::new(), &Uri::default());
        let mut observer = meter.begin(api, request, head).of_response(StatusCode::OK, &headers);
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
        // The saved tokens would have been read from the cache, at a tenth of the price of input.
        assert_eq!(totals.unchanged_cost.0 - totals.cost.0, 100_000);
    }
}
