//! Spans of requests for a collector of OpenTelemetry: sent in the background in batches, and
//! dropped if the collector does not take them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use percent_encoding::percent_decode_str;
use serde_json::json;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tracing::warn;

use crate::client::{Client, describe};
use crate::span::{Attribute, Span};
use crate::upstream::{Route, Upstream};

/// Maximum number of spans that wait to be sent. Further spans are dropped.
const WAITING: usize = 2048;
/// The most spans in a batch.
const BATCH: usize = 512;
/// How long the first span of a batch waits for others.
const DELAY: Duration = Duration::from_secs(5);
/// How long the collector may take to answer a batch.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the collector may take for the last batch: the end of the proxy waits for it.
const LAST: Duration = Duration::from_secs(1);

/// Where spans are sent, as the standard variables of OpenTelemetry say it.
#[derive(Clone)]
pub struct TelemetrySettings {
    upstream: Upstream,
    url: Uri,
    headers: HeaderMap,
    /// The attributes of this process, which are sent with the spans.
    resource: Vec<(String, String)>,
}

impl TelemetrySettings {
    /// Reads the variables of the environment that begin with `OTEL_`. `None` if none names a
    /// collector, or they switch spans off.
    ///
    /// ```
    /// use epitome_proxy::TelemetrySettings;
    ///
    /// let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    /// let variables = [endpoint].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    /// let settings = TelemetrySettings::from_variables(&variables)?;
    /// assert_eq!(settings.expect("a collector").url(), "http://127.0.0.1:4318/v1/traces");
    /// assert!(TelemetrySettings::from_variables(&[].into())?.is_none());
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A sentence about the variable that cannot be used.
    pub fn from_variables(
        variables: &BTreeMap<String, String>,
    ) -> Result<Option<TelemetrySettings>, String> {
        let get = |name: &str| variables.get(name).map(|it| it.trim()).filter(|it| !it.is_empty());
        let is_disabled =
            get("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"));
        if is_disabled || get("OTEL_TRACES_EXPORTER") == Some("none") {
            return Ok(None);
        }
        let of_traces = |name: &str| {
            let specific = format!("OTEL_EXPORTER_OTLP_TRACES_{name}");
            let general = format!("OTEL_EXPORTER_OTLP_{name}");
            get(&specific).map(|it| (specific, it)).or(get(&general).map(|it| (general, it)))
        };
        let Some((variable, endpoint)) = of_traces("ENDPOINT") else { return Ok(None) };
        if of_traces("PROTOCOL").is_some_and(|(_, protocol)| protocol == "grpc") {
            return Err(
                "OTEL_EXPORTER_OTLP_PROTOCOL is grpc: spans are sent as http/json only".to_owned()
            );
        }
        let upstream = Upstream::parse(endpoint).map_err(|err| format!("{variable}: {err}"))?;
        let path = if variable == "OTEL_EXPORTER_OTLP_ENDPOINT" { "/v1/traces" } else { "" };
        let url = format!("{}{path}", upstream.as_str());
        let url = url.parse().map_err(|_| format!("{variable}: it is not a URL"))?;
        let headers = match of_traces("HEADERS") {
            Some((variable, list)) => read_headers(list).ok_or_else(|| {
                format!("{variable} is not a list of headers: write it like name=value,name=value")
            })?,
            None => HeaderMap::new(),
        };
        let mut resource: BTreeMap<String, String> =
            get("OTEL_RESOURCE_ATTRIBUTES").into_iter().flat_map(pairs).collect();
        if let Some(name) = get("OTEL_SERVICE_NAME") {
            resource.insert("service.name".to_owned(), name.to_owned());
        }
        for (key, value) in [
            ("service.name", env!("CARGO_PKG_NAME")),
            ("service.version", env!("CARGO_PKG_VERSION")),
        ] {
            resource.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        }
        let resource = resource.into_iter().collect();
        Ok(Some(TelemetrySettings { upstream, url, headers, resource }))
    }

    /// The address that spans are sent to.
    pub fn url(&self) -> String {
        self.url.to_string()
    }
}

/// The pairs of a list like `a=b,c=d`, decoded.
fn pairs(list: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = list.split(',').filter_map(|pair| pair.split_once('='));
    let decoded = |text: &str| percent_decode_str(text.trim()).decode_utf8_lossy().into_owned();
    pairs.map(move |(key, value)| (decoded(key), decoded(value)))
}

fn read_headers(list: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs(list) {
        let mut value: HeaderValue = value.parse().ok()?;
        value.set_sensitive(true);
        headers.append(HeaderName::try_from(name).ok()?, value);
    }
    (!headers.is_empty()).then_some(headers)
}

/// The queue of spans that wait to be sent.
pub(crate) struct Telemetry {
    spans: Sender<Message>,
    dropped: Arc<Dropped>,
}

/// What is sent to the exporter.
enum Message {
    Span(Box<Span>),
    /// The proxy ends.
    End,
}

/// The number of spans that no collector took.
#[derive(Default)]
struct Dropped {
    count: AtomicU64,
}

impl Dropped {
    fn add(&self, count: usize, why: &str) {
        if self.count.fetch_add(count as u64, Ordering::Relaxed) == 0 {
            warn!(why, "spans are dropped; further ones are only counted");
        }
    }
}

impl Telemetry {
    /// Makes the queue of spans, and the exporter that takes spans from it and sends them.
    pub(crate) fn new(settings: TelemetrySettings) -> (Telemetry, Exporter) {
        let (spans, waiting) = channel(WAITING);
        let dropped = Arc::<Dropped>::default();
        let exporter = Exporter { settings, waiting, dropped: Arc::clone(&dropped) };
        (Telemetry { spans, dropped }, exporter)
    }

    pub(crate) fn add(&self, span: Span) {
        if self.spans.try_send(Message::Span(Box::new(span))).is_err() {
            self.dropped.add(1, "too many wait to be sent");
        }
    }

    /// The number of spans that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.count.load(Ordering::Relaxed)
    }

    /// Makes the exporter send the spans that it has, and then end.
    pub(crate) fn end(&self) {
        // If the queue is full, this waits until the exporter takes spans from it.
        self.spans.blocking_send(Message::End).ok();
    }
}

/// Sends spans to a collector.
pub(crate) struct Exporter {
    settings: TelemetrySettings,
    waiting: Receiver<Message>,
    dropped: Arc<Dropped>,
}

impl Exporter {
    /// Starts the exporter in a thread of its own: the end of the proxy does not cut it off.
    pub(crate) fn start(self) -> std::io::Result<JoinHandle<()>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new()
            .name("telemetry".to_owned())
            .spawn(move || runtime.block_on(self.run()))
    }

    async fn run(mut self) {
        let client = match Client::new(Route::One(self.settings.upstream.clone()).proxies()) {
            Ok(client) => client,
            Err(err) => return self.drop_all(&err.to_string()).await,
        };
        loop {
            let Some(first) = self.waiting.recv().await else { return };
            let mut batch = Vec::new();
            let mut is_end = !take(first, &mut batch);
            let full = async {
                while !is_end && batch.len() < BATCH {
                    let Some(message) = self.waiting.recv().await else { return };
                    is_end = !take(message, &mut batch);
                }
            };
            tokio::time::timeout(DELAY, full).await.ok();
            let timeout = if is_end { LAST } else { TIMEOUT };
            if let Err(why) = self.send(&client, &batch, timeout).await {
                self.dropped.add(batch.len(), &why);
            }
            if is_end {
                return;
            }
        }
    }

    /// Drops every span until the proxy ends, because none can be sent.
    async fn drop_all(mut self, why: &str) {
        while let Some(Message::Span(_)) = self.waiting.recv().await {
            self.dropped.add(1, why);
        }
    }

    async fn send(&self, client: &Client, spans: &[Span], limit: Duration) -> Result<(), String> {
        if spans.is_empty() {
            return Ok(());
        }
        let body = Full::new(self.settings.body(spans)).map_err(|never| match never {});
        let mut request = Request::new(body.boxed_unsync());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.settings.url.clone();
        *request.headers_mut() = self.settings.headers.clone();
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        match tokio::time::timeout(limit, client.send(request)).await {
            Ok(Ok(response)) if response.status().is_success() => Ok(()),
            Ok(Ok(response)) => Err(format!("the collector answers {}", response.status())),
            Ok(Err(err)) => Err(describe(&err)),
            Err(_) => Err("the collector does not answer".to_owned()),
        }
    }
}

/// Adds the span of a message to the batch. Returns false if the message is the end.
fn take(message: Message, batch: &mut Vec<Span>) -> bool {
    match message {
        Message::Span(span) => batch.push(*span),
        Message::End => return false,
    }
    true
}

impl TelemetrySettings {
    /// The body of a request to the collector.
    fn body(&self, spans: &[Span]) -> Bytes {
        let attributes: Vec<Attribute> = self
            .resource
            .iter()
            .map(|(key, value)| Attribute::text(key.as_str(), value.as_str()))
            .collect();
        let scope = json!({
            "name": env!("CARGO_PKG_NAME"),
            "version": env!("CARGO_PKG_VERSION"),
        });
        let body = json!({"resourceSpans": [{
            "resource": {"attributes": attributes},
            "scopeSpans": [{"scope": scope, "spans": spans}],
        }]});
        body.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use epitome::wire::ledger::LedgerLine;

    use super::*;
    use crate::span::RequestHead;

    /// The address and the headers that variables with these names after `OTEL_` state, or the
    /// sentence about the variable that cannot be used.
    fn read(variables: &[(&str, &str)]) -> Result<Option<(String, Vec<String>)>, String> {
        let owned = |(name, value): &(&str, &str)| (format!("OTEL_{name}"), (*value).to_owned());
        let settings = TelemetrySettings::from_variables(&variables.iter().map(owned).collect())?;
        Ok(settings.map(|settings| {
            let header = |(name, value): (&HeaderName, &HeaderValue)| {
                format!("{name}: {}", value.to_str().expect("text"))
            };
            (settings.url(), settings.headers.iter().map(header).collect())
        }))
    }

    #[test]
    fn the_standard_variables_say_where_spans_go() {
        let endpoint = ("EXPORTER_OTLP_ENDPOINT", "https://c.example/otlp/");
        let general = "https://c.example/otlp/v1/traces".to_owned();
        let own = ("EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9/t");
        let headers = ("EXPORTER_OTLP_HEADERS", "api-key=a%20b, X-Team = c");
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[endpoint]), Ok(Some((general.clone(), vec![]))));
        assert_eq!(read(&[endpoint, own]), Ok(Some(("http://127.0.0.1:9/t".into(), vec![]))));
        let listed = vec!["api-key: a b".to_owned(), "x-team: c".to_owned()];
        assert_eq!(read(&[endpoint, headers]), Ok(Some((general.clone(), listed))));
        assert_eq!(read(&[endpoint, ("SDK_DISABLED", "TRUE")]), Ok(None));
        assert_eq!(read(&[endpoint, ("SDK_DISABLED", "no")]), Ok(Some((general, vec![]))));
        assert_eq!(read(&[endpoint, ("TRACES_EXPORTER", "none")]), Ok(None));
        assert_eq!(read(&[("EXPORTER_OTLP_ENDPOINT", " ")]), Ok(None));
    }

    #[test]
    fn a_variable_that_cannot_be_used_is_named() {
        let endpoint = ("EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        for (variables, expect) in [
            (
                vec![("EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318")],
                "OTEL_EXPORTER_OTLP_ENDPOINT: it is not a URL",
            ),
            (
                vec![endpoint, ("EXPORTER_OTLP_HEADERS", "a b=c")],
                "OTEL_EXPORTER_OTLP_HEADERS is not a list of headers: write it like \
                 name=value,name=value",
            ),
            (
                vec![endpoint, ("EXPORTER_OTLP_PROTOCOL", "grpc")],
                "OTEL_EXPORTER_OTLP_PROTOCOL is grpc: spans are sent as http/json only",
            ),
        ] {
            assert_eq!(read(&variables), Err(expect.to_owned()));
        }
    }

    #[test]
    fn without_a_client_every_span_is_taken_and_dropped() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        let variables = [endpoint].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let settings = TelemetrySettings::from_variables(&variables).expect("settings");
        let (telemetry, exporter) = Telemetry::new(settings.expect("a collector"));
        let head = RequestHead::new(&HeaderMap::new(), &Uri::default());
        for _ in 0..2 {
            telemetry.add(Span::of_request(&LedgerLine::default(), &head).expect("a span"));
        }
        telemetry.end();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(exporter.drop_all("there are no certificates"));
        assert_eq!(telemetry.dropped(), 2);
    }
}
