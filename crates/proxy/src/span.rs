//! A finished request as a span of OpenTelemetry, in the JSON encoding of OTLP.
//!
//! Names are those of the semantic conventions for generative AI, version 1.41
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>), and `epitome.*` for what they lack.

use std::time::SystemTime;

use epitome::wire::ledger::{End, LedgerLine, MadeCut, Treatment};
use epitome_model::MicroDollars;
use hyper::Uri;
use hyper::header::HeaderMap;
use serde::Serialize;

use crate::headers;

/// The member `kind` of a span for a request to another service.
const CLIENT: u8 = 3;
/// The member `code` of the status of a span that failed.
const ERROR: u8 = 2;

/// What is recorded about a request, apart from its body, for its span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestHead {
    /// The name by which the client calls itself.
    pub(crate) client: Option<String>,
    /// The host name of the service.
    server: String,
    port: Option<u16>,
    /// The span of the client, if it names one.
    parent: Option<TraceParent>,
    started: SystemTime,
}

impl RequestHead {
    /// A request that starts now, to `url`.
    pub(crate) fn new(headers: &HeaderMap, url: &Uri) -> RequestHead {
        let default_port = match url.scheme_str() {
            Some("https") => Some(443),
            Some("http") => Some(80),
            Some(_) | None => None,
        };
        let parent = headers.get("traceparent").and_then(|value| value.to_str().ok());
        RequestHead {
            client: headers::client(headers),
            server: url.host().unwrap_or_default().to_owned(),
            port: url.port_u16().or(default_port),
            parent: parent.and_then(TraceParent::parse),
            started: SystemTime::now(),
        }
    }
}

/// The span of a client, as the header `traceparent` states it:
/// <https://www.w3.org/TR/trace-context/#traceparent-header>.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TraceParent {
    trace: String,
    span: String,
    is_sampled: bool,
}

impl TraceParent {
    fn parse(header: &str) -> Option<TraceParent> {
        let mut parts = header.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str, length: usize| {
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            text.len() == length && text.bytes().all(is_digit)
        };
        let is_id = |text: &str, length| is_hex(text, length) && text.bytes().any(|it| it != b'0');
        if !is_hex(version, 2) || version == "ff" || !is_id(trace, 32) || !is_id(span, 16) {
            return None;
        }
        let flags = u8::from_str_radix(flags, 16).ok().filter(|_| is_hex(flags, 2))?;
        let is_sampled = flags & 1 == 1;
        Some(TraceParent { trace: trace.to_owned(), span: span.to_owned(), is_sampled })
    }
}

/// A span.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Span {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: String,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Attribute>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
    status: Status,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    time_unix_nano: String,
    name: &'static str,
    attributes: Vec<Attribute>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
}

/// A name with a value.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Attribute {
    key: String,
    value: Value,
}

#[derive(Clone, Debug, Serialize)]
enum Value {
    #[serde(rename = "stringValue")]
    Text(String),
    #[serde(rename = "boolValue")]
    Flag(bool),
    /// A number of 64 bits is text in OTLP's JSON.
    #[serde(rename = "intValue")]
    Number(String),
    #[serde(rename = "doubleValue")]
    Dollars(f64),
}

impl Attribute {
    pub(crate) fn text(key: impl Into<String>, text: impl Into<String>) -> Attribute {
        Attribute { key: key.into(), value: Value::Text(text.into()) }
    }

    fn number(key: &str, number: u64) -> Attribute {
        Attribute { key: key.to_owned(), value: Value::Number(number.to_string()) }
    }

    fn flag(key: &str, flag: bool) -> Attribute {
        Attribute { key: key.to_owned(), value: Value::Flag(flag) }
    }

    fn dollars(key: &str, amount: MicroDollars) -> Attribute {
        Attribute { key: key.to_owned(), value: Value::Dollars(amount.0 as f64 / 1e6) }
    }
}

impl Span {
    /// The span of a request. `None` if the client's header `traceparent` says that its trace is
    /// not recorded.
    pub(crate) fn of_request(line: &LedgerLine, head: &RequestHead) -> Option<Span> {
        let parent = head.parent.as_ref();
        if parent.is_some_and(|parent| !parent.is_sampled) {
            return None;
        }
        let random = |count: usize| -> String {
            (0..count).map(|_| format!("{:016x}", fastrand::u64(1..))).collect()
        };
        let operation = operation(&line.api);
        let name = line.model.as_ref().map(|model| format!("{operation} {model}"));
        let end = unix_nanos(line.time.into());
        let error = error(line);
        let mut attributes = of_conventions(line, head);
        attributes.extend(error.clone().map(|error| Attribute::text("error.type", error)));
        attributes.extend(of_epitome(line));
        Some(Span {
            trace_id: parent.map_or_else(|| random(2), |parent| parent.trace.clone()),
            span_id: random(1),
            parent_span_id: parent.map(|parent| parent.span.clone()),
            name: name.unwrap_or_else(|| operation.to_owned()),
            kind: CLIENT,
            start_time_unix_nano: unix_nanos(head.started),
            events: line.cut.iter().map(|cut| Event::of_cut(cut, head.started)).collect(),
            end_time_unix_nano: end,
            attributes,
            status: Status { code: error.map(|_| ERROR) },
        })
    }
}

impl Event {
    /// The event of a cut. `time` is when the request started, because a cut is made before the
    /// request is sent.
    fn of_cut(cut: &MadeCut, time: SystemTime) -> Event {
        let mut attributes = vec![
            Attribute::text("epitome.cut.id", cut.id.to_string()),
            Attribute::number("epitome.cut.rewritten_tokens", cut.rewritten.0),
        ];
        let price = cut.price.map(|price| Attribute::dollars("epitome.cut.price_dollars", price));
        attributes.extend(price);
        Event { time_unix_nano: unix_nanos(time), name: "epitome.cut", attributes }
    }
}

/// The attributes that have names in the semantic conventions.
fn of_conventions(line: &LedgerLine, head: &RequestHead) -> Vec<Attribute> {
    let provider = provider(&line.api);
    let mut attributes = vec![
        Attribute::text("gen_ai.operation.name", operation(&line.api)),
        Attribute::text("gen_ai.provider.name", provider),
        // The older name of the attribute above.
        Attribute::text("gen_ai.system", provider),
        Attribute::text("server.address", head.server.as_str()),
    ];
    let port = head.port.map(|port| Attribute::number("server.port", port.into()));
    attributes.extend(port);
    let texts = [
        ("gen_ai.request.model", line.model.clone()),
        ("gen_ai.agent.name", line.agent.clone()),
        ("gen_ai.conversation.id", line.session.map(|session| session.to_string())),
    ];
    for (key, text) in texts {
        attributes.extend(text.map(|text| Attribute::text(key, text)));
    }
    if line.cut.is_some() || !line.cuts.is_empty() {
        attributes.push(Attribute::flag("gen_ai.conversation.compacted", true));
    }
    if let Some(usage) = line.usage {
        // As the conventions want it, the input includes what was read from a cache or written to
        // one.
        for (key, tokens) in [
            ("gen_ai.usage.input_tokens", usage.all_input()),
            ("gen_ai.usage.cache_read.input_tokens", usage.cached),
            ("gen_ai.usage.cache_creation.input_tokens", usage.cache_written),
            ("gen_ai.usage.output_tokens", usage.output),
        ] {
            attributes.push(Attribute::number(key, tokens.0));
        }
    }
    let status = line.status.map(u64::from);
    attributes.extend(status.map(|it| Attribute::number("http.response.status_code", it)));
    attributes
}

/// The attributes for what the proxy did, for which the conventions have no names.
fn of_epitome(line: &LedgerLine) -> Vec<Attribute> {
    let treatment = match line.treatment {
        Treatment::Passed => "passed",
        Treatment::Known => "known",
        Treatment::Shortened => "shortened",
        Treatment::Cut => "cut",
    };
    let mut attributes = vec![
        Attribute::text("epitome.treatment", treatment),
        Attribute::text("epitome.group", line.group.name()),
        Attribute::number("epitome.saved_tokens", line.saved.0),
        Attribute::number("epitome.shortened_results", line.shortened),
        Attribute::number("epitome.recalled_texts", line.recalled.len() as u64),
    ];
    let costs = [
        ("epitome.cost_dollars", line.cost),
        ("epitome.unchanged_cost_dollars", line.unchanged_cost),
    ];
    for (key, cost) in costs {
        attributes.extend(cost.map(|cost| Attribute::dollars(key, cost)));
    }
    attributes
}

fn operation(api: &str) -> &'static str {
    if api == "gemini-api" { "generate_content" } else { "chat" }
}

fn provider(api: &str) -> &str {
    match api {
        "openai-chat" | "openai-responses" => "openai",
        "gemini-api" => "gcp.gemini",
        other => other,
    }
}

/// Why a request failed: `unreachable`, `interrupted`, or its HTTP status if that is 400 or more.
/// `None` if it did not fail.
fn error(line: &LedgerLine) -> Option<String> {
    let status = line.status.filter(|status| *status >= 400);
    match line.end {
        End::Unreachable => Some("unreachable".to_owned()),
        End::Interrupted => Some("interrupted".to_owned()),
        End::Complete => status.map(|status| status.to_string()),
    }
}

fn unix_nanos(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().to_string()
}

#[cfg(test)]
mod tests {
    use epitome::wire::Chain;
    use epitome::wire::ledger::UsedCut;
    use epitome_model::Tokens;
    use hyper::header::HeaderMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cut_is_an_event_of_its_request() {
        let id = Chain::from_bytes([7; 16]);
        let price = Some(MicroDollars(12_500));
        let line = LedgerLine {
            treatment: Treatment::Cut,
            cut: Some(MadeCut { id, rewritten: Tokens(40_000), price }),
            cuts: vec![UsedCut { id, tokens: Tokens(9), saved: None }],
            ..LedgerLine::default()
        };
        let url = Uri::from_static("https://api.anthropic.com/v1/messages");
        let head = RequestHead {
            started: SystemTime::UNIX_EPOCH,
            ..RequestHead::new(&HeaderMap::new(), &url)
        };
        let span = Span::of_request(&line, &head).expect("a span");
        let attributes = json!([
            {"key": "epitome.cut.id", "value": {"stringValue": id.to_string()}},
            {"key": "epitome.cut.rewritten_tokens", "value": {"intValue": "40000"}},
            {"key": "epitome.cut.price_dollars", "value": {"doubleValue": 0.0125}},
        ]);
        let event = json!({"timeUnixNano": "0", "name": "epitome.cut", "attributes": attributes});
        assert_eq!(json!(span.events), json!([event]));
        let compacted =
            json!({"key": "gen_ai.conversation.compacted", "value": {"boolValue": true}});
        let port = json!({"key": "server.port", "value": {"intValue": "443"}});
        let attributes = json!(span.attributes);
        let has = |expect| attributes.as_array().expect("a list").contains(expect);
        assert!(has(&compacted) && has(&port), "{attributes}");
        let known = Span::of_request(&LedgerLine { cut: None, ..line }, &head).expect("a span");
        assert!(known.events.is_empty());
    }

    #[test]
    fn a_trace_of_the_client_is_continued() {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        const SPAN: &str = "b7ad6b7169203331";
        let zeros = "0".repeat(32);
        for (header, expect) in [
            (format!("00-{TRACE}-{SPAN}-01"), Some(true)),
            (format!("00-{TRACE}-{SPAN}-00"), Some(false)),
            (format!("01-{TRACE}-{SPAN}-03-more"), Some(true)),
            (format!("ff-{TRACE}-{SPAN}-01"), None),
            (format!("00-{zeros}-{SPAN}-01"), None),
            (format!("00-{TRACE}-{SPAN}"), None),
            (format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), None),
            (String::new(), None),
        ] {
            let parsed = TraceParent::parse(&header);
            assert_eq!(parsed.as_ref().map(|parent| parent.is_sampled), expect, "{header}");
            let ids = parsed.map(|parent| (parent.trace, parent.span));
            assert!(ids.is_none_or(|ids| ids == (TRACE.to_owned(), SPAN.to_owned())), "{header}");
        }
    }
}
