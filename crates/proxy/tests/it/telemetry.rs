//! Spans of requests at a collector of OpenTelemetry.

use std::collections::BTreeMap;
use std::path::Path;

use epitome_proxy::{Options, TelemetrySettings};
use serde_json::{Value, json};

use crate::change::request;
use crate::exchange::{Running, Service};

const ANSWER: &str = r#"{"type":"message","role":"assistant","content":[{"type":"text",
    "text":"Hi"}],"usage":{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":5}}"#;

/// Settings for a collector, with these further variables.
fn settings(collector: &str, more: &[(&str, &str)]) -> TelemetrySettings {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    let variables = [&[endpoint], more].concat();
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let variables: BTreeMap<String, String> = variables.into_iter().map(owned).collect();
    let settings = TelemetrySettings::from_variables(&variables).expect("good variables");
    settings.expect("a collector")
}

/// Starts a proxy that reports to a collector.
fn start(service: &str, folder: &Path, telemetry: TelemetrySettings) -> Running {
    Running::start(service, folder, |options| Options {
        agent: Some("claude".into()),
        telemetry: Some(telemetry),
        ..options
    })
}

/// An attribute as OTLP spells it.
fn attribute(key: &str, kind: &str, value: impl Into<Value>) -> Value {
    json!({"key": key, "value": {kind: value.into()}})
}

/// Returns the value of an attribute that differs from run to run, and puts `varies` in its place.
fn take_value(attributes: &mut Value, key: &str) -> Value {
    let all = attributes.as_array_mut().expect("a list");
    let found = all.iter_mut().find(|attribute| attribute["key"] == key).expect("it is there");
    std::mem::replace(&mut found["value"], json!("varies"))
}

/// The attributes of the span of [`request`] that was shortened.
fn expected_attributes(port: u16) -> Value {
    let text = |key: &str, value: &str| attribute(key, "stringValue", value);
    let number = |key: &str, value: u64| attribute(key, "intValue", value.to_string());
    let varies = |key: &str| json!({"key": key, "value": "varies"});
    json!([
        text("gen_ai.operation.name", "chat"),
        text("gen_ai.provider.name", "anthropic"),
        text("gen_ai.system", "anthropic"),
        text("server.address", "127.0.0.1"),
        number("server.port", port.into()),
        text("gen_ai.request.model", "claude-sonnet-4-6"),
        text("gen_ai.agent.name", "claude"),
        varies("gen_ai.conversation.id"),
        number("gen_ai.usage.input_tokens", 110),
        number("gen_ai.usage.cache_read.input_tokens", 100),
        number("gen_ai.usage.cache_creation.input_tokens", 0),
        number("gen_ai.usage.output_tokens", 5),
        number("http.response.status_code", 200),
        text("epitome.treatment", "shortened"),
        text("epitome.group", "treated"),
        varies("epitome.saved_tokens"),
        number("epitome.shortened_results", 1),
        number("epitome.recalled_texts", 0),
        varies("epitome.cost_dollars"),
        varies("epitome.unchanged_cost_dollars"),
    ])
}

#[test]
fn a_span_says_what_a_request_took_and_what_was_done_to_it() {
    let service = Service::answering(200, ANSWER);
    let collector = Service::answering(200, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=secret%20key");
    let name = ("OTEL_SERVICE_NAME", "my agents");
    let more = ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.name=other");
    let telemetry = settings(&collector.url(), &[headers, name, more]);
    let proxy = start(&service.url(), folder.path(), telemetry);
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let (body, _) = request();
    proxy.post("/v1/messages", &[("traceparent", traceparent), ("x-api-key", "sk-1")], &body);
    drop(proxy);
    assert_eq!(service.requests()[0].header("traceparent"), Some(traceparent));

    let requests = collector.requests();
    let [sent] = requests.as_slice() else { panic!("one batch: {requests:?}") };
    assert_eq!(sent.first, "POST /v1/traces HTTP/1.1");
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.header("x-team"), Some("secret key"));
    let mut body: Value = serde_json::from_slice(&sent.body).expect("JSON");
    let span = &mut body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    let id = span["spanId"].take();
    assert_eq!(id.as_str().map(str::len), Some(16), "{id}");
    let time = |value: Value| value.as_str().expect("text").parse::<u64>().expect("a number");
    let start = time(span["startTimeUnixNano"].take());
    let end = time(span["endTimeUnixNano"].take());
    assert!(start <= end && start > 1_700_000_000_000_000_000, "{start} {end}");
    for (key, kind) in [
        ("gen_ai.conversation.id", "stringValue"),
        ("epitome.saved_tokens", "intValue"),
        ("epitome.cost_dollars", "doubleValue"),
        ("epitome.unchanged_cost_dollars", "doubleValue"),
    ] {
        let value = take_value(&mut span["attributes"], key);
        assert!(value.get(kind).is_some(), "{key}: {value}");
    }
    let span = json!({
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": null,
        "parentSpanId": "b7ad6b7169203331",
        "name": "chat claude-sonnet-4-6",
        "kind": 3,
        "startTimeUnixNano": null,
        "endTimeUnixNano": null,
        "attributes": expected_attributes(service.address.port()),
        "status": {},
    });
    let version = env!("CARGO_PKG_VERSION");
    let text = |key: &str, value: &str| attribute(key, "stringValue", value);
    let resource = json!([
        text("deployment.environment", "test"),
        text("service.name", "my agents"),
        text("service.version", version),
    ]);
    let scope = json!({"name": "epitome-proxy", "version": version});
    let expect = json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": scope, "spans": [span]}],
    }]});
    assert_eq!(body, expect);
}

#[test]
fn what_failed_is_in_its_span_and_unrecorded_traces_have_none() {
    let service = Service::answering(529, "{}");
    let collector = Service::answering(200, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = start(&service.url(), folder.path(), settings(&collector.url(), &[]));
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}).to_string();
    let path = "/v1beta/models/gemini-3.5-flash:generateContent";
    proxy.post(path, &[], &body);
    let unrecorded = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    proxy.post(path, &[("traceparent", unrecorded)], &body);
    drop(proxy);
    let sent: Value = serde_json::from_str(&collector.bodies()[0]).expect("JSON");
    let spans = sent["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("a list");
    let [span] = spans.as_slice() else { panic!("one span: {spans:?}") };
    assert_eq!(span["name"], "generate_content gemini-3.5-flash");
    assert_eq!(span["status"], json!({"code": 2}));
    assert_eq!(span["traceId"].as_str().map(str::len), Some(32));
    assert_eq!(span.get("parentSpanId"), None);
    let attributes = span["attributes"].as_array().expect("a list");
    for expect in [
        attribute("error.type", "stringValue", "529"),
        attribute("gen_ai.provider.name", "stringValue", "gcp.gemini"),
        attribute("epitome.treatment", "stringValue", "passed"),
    ] {
        assert!(attributes.contains(&expect), "{expect}: {attributes:?}");
    }
}

#[test]
fn spans_that_no_collector_takes_are_dropped_and_counted() {
    let service = Service::answering(200, ANSWER);
    let refusing = Service::answering(401, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let (body, _) = request();
    for collector in [refusing.url(), "http://127.0.0.1:1".to_owned()] {
        let proxy = start(&service.url(), folder.path(), settings(&collector, &[]));
        for _ in 0..3 {
            let response = proxy.post("/v1/messages", &[], &body);
            assert!(response.first.starts_with("HTTP/1.1 200"), "{}", response.first);
        }
        let inner = std::sync::Arc::clone(&proxy.proxy);
        drop(proxy);
        assert_eq!(inner.totals().dropped_spans, 3, "{collector}");
    }
}
