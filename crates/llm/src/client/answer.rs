//! Turns a service's HTTP response into a [`Response`] or a [`Failure`]. The key is removed from
//! the texts of a failure and from the reason why the model stopped.

use std::error::Error as _;
use std::time::Duration;

use epitome_api::{BadResponse, Response};
use epitome_engine::overflow;
use epitome_model::StopReason;
use jiff::fmt::rfc2822;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::failure::Failure;
use crate::key::Key;

type Answer = Result<Response, Failure>;

/// The maximum number of characters of a service's message that are reported.
const MESSAGE_CHARS: usize = 300;

/// More bytes than a token of text has on average, with any model. If a service counted fewer
/// tokens than the bytes of the request's text divided by this number, it read only a part of the
/// text.
const BYTES_OF_A_TOKEN: u64 = 16;

/// Checks whether the service has read the whole request. `response` was sent with a success
/// status. Returns a failure if the service has read only a part of the request.
///
/// `sent` is the number of bytes of text in the request.
pub(super) fn checked(mut response: Response, sent: u64, key: Option<&Key>) -> Answer {
    let used = response.usage;
    let read = used.map(|used| used.all_input());
    if let Some(read) = read.filter(|read| read.0 > 0 && read.0 * BYTES_OF_A_TOKEN < sent) {
        let message = format!("only {read} tokens of it were read");
        return Err(Failure::TooLong { limit: Some(read), message, used });
    }
    if let StopReason::Other(reason) = &response.stop {
        response.stop = StopReason::Other(plain(reason, key));
    }
    Ok(response)
}

/// The failure for a response with a success status whose body is not a valid response.
pub(super) fn bad(bad: BadResponse, key: Option<&Key>) -> Failure {
    match bad {
        BadResponse::Cut(why) => Failure::Half(plain(&why, key)),
        BadResponse::Unreadable(why) => Failure::BadAnswer(plain(&why, key)),
        BadResponse::Error(json) => failed(&json, key),
    }
}

/// The failure for an error in the body of a response with status 200. OpenAI sends such an error
/// for a failed response, proxies send it, and any service may send it in the middle of a stream.
fn failed(json: &str, key: Option<&Key>) -> Failure {
    let parsed: Value = serde_json::from_str(json).unwrap_or(Value::Null);
    let code = parsed["error"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let kind = parsed["error"]["type"].as_str().and_then(status_of);
    let code = code.filter(|code| *code >= 400).or(kind);
    if let (None | Some(400), Some(found)) = (code, overflow(Some(200), json)) {
        let limit = found.limit;
        let message = message(200, json, key);
        return Failure::TooLong { limit, message, used: None };
    }
    match code {
        Some(status) => refused(status, json, None, key),
        None => Failure::BadAnswer(message(200, json, key)),
    }
}

/// The status that Anthropic sends with an error of this type outside of a stream:
/// <https://docs.claude.com/en/api/errors>.
fn status_of(kind: &str) -> Option<u16> {
    match kind {
        "invalid_request_error" => Some(400),
        "authentication_error" => Some(401),
        "permission_error" => Some(403),
        "not_found_error" => Some(404),
        "request_too_large" => Some(413),
        "rate_limit_error" => Some(429),
        "api_error" => Some(500),
        "timeout_error" => Some(504),
        "overloaded_error" => Some(529),
        _ => None,
    }
}

/// The failure of a request whose connection failed, or whose response did not arrive in time.
pub(super) fn on_the_way(err: &reqwest::Error, timeout: Duration, key: Option<&Key>) -> Failure {
    match () {
        () if err.is_connect() => Failure::Unreachable(root(err, key)),
        () if err.is_timeout() => Failure::TimedOut(timeout),
        () if err.is_body() || err.is_decode() => Failure::Half(root(err, key)),
        () => Failure::Unreachable(root(err, key)),
    }
}

/// The text of the innermost cause of an error: the texts of the outer causes and of the error
/// itself may contain the whole URL.
fn root(err: &reqwest::Error, key: Option<&Key>) -> String {
    let mut cause = err.source();
    let mut last = None;
    while let Some(err) = cause {
        last = Some(err.to_string());
        cause = err.source();
    }
    plain(&last.unwrap_or_else(|| "the connection broke".into()), key)
}

/// The failure of a response with an error status.
pub(super) fn refused(
    status: u16,
    body: &str,
    headers: Option<&HeaderMap>,
    key: Option<&Key>,
) -> Failure {
    let message = message(status, body, key);
    let after = headers.and_then(retry_after).or_else(|| retry_delay(body));
    let lower = body.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if let Some(found) = overflow(Some(status), body) {
        return Failure::TooLong { limit: found.limit, message, used: None };
    }
    match status {
        300..=399 => Failure::Setup(format!("the service redirects to another address: {message}")),
        401 | 403 => Failure::Auth(message),
        402 => Failure::Rejected(message),
        404 => Failure::NoSuchModel(message),
        // A request that alone has more tokens than the limit per minute gets the same status as a
        // request that is too long. To wait would not help.
        413 => Failure::TooLong { limit: None, message, used: None },
        429 if has(&["insufficient_quota", "billing"]) => Failure::Rejected(message),
        429 => Failure::Rate { after, message },
        // 498: Groq has no capacity.
        408 | 425 | 498 | 500..=599 => Failure::Overloaded { status, after, message },
        _ if has(&["content_filter", "content policy", "usage polic", "prompt_blocked"]) => {
            Failure::Refused(message)
        }
        _ if has(&["api key not valid", "api_key_invalid", "invalid api key"]) => {
            Failure::Auth(message)
        }
        _ => Failure::Rejected(message),
    }
}

/// The message in the body of an error, shortened. If there is none, the body itself; for HTML, the
/// words `an HTML page`; for an empty body, the status.
fn message(status: u16, body: &str, key: Option<&Key>) -> String {
    let parsed: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    // Google responds with a list of one object.
    let object = if parsed.is_array() { &parsed[0] } else { &parsed };
    let places = ["/error/message", "/message", "/error", "/detail"];
    let found = places.iter().find_map(|place| object.pointer(place)?.as_str());
    let text = match found {
        Some(text) => text,
        None if body.trim_start().starts_with('<') => "an HTML page",
        None => body,
    };
    let text = plain(text, key);
    if text.is_empty() { format!("status {status}") } else { text }
}

/// A service's text as one short line, without the key.
fn plain(text: &str, key: Option<&Key>) -> String {
    // The key is removed before the text is cut, so that no part of the key remains at the end.
    let text = key.map_or_else(|| text.to_owned(), |key| key.hide(text));
    let printable = text.replace(|c: char| c.is_control(), " ");
    let words: Vec<&str> = printable.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MESSAGE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    if let Some(millis) = header(headers, "retry-after-ms").and_then(|it| it.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1_000.0).ok();
    }
    let value = header(headers, RETRY_AFTER.as_str())?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    // The value is a date. It is compared with the date header of the same response, because the
    // service's clock may differ from ours.
    let parser = rfc2822::DateTimeParser::new();
    let then = parser.parse_timestamp(value).ok()?;
    let now = parser.parse_timestamp(header(headers, DATE.as_str())?).ok()?;
    Duration::try_from(then.duration_since(now)).ok()
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// The wait that Google states in the body:
/// <https://cloud.google.com/apis/design/errors#error_details>.
fn retry_delay(body: &str) -> Option<Duration> {
    let parsed: Value = serde_json::from_str(body).ok()?;
    let object = if parsed.is_array() { &parsed[0] } else { &parsed };
    let details = object.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (reqwest::header::HeaderName::from_static(name), value.parse().expect("a value"))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn how_long_to_wait_is_said_in_several_ways() {
        let date = ("date", "Sat, 21 Nov 2026 22:00:00 GMT");
        type Pairs<'a> = &'a [(&'static str, &'a str)];
        let cases: &[(Pairs<'_>, Option<u64>)] = &[
            (&[("retry-after", "7")], Some(7_000)),
            (&[("retry-after", " 1.5 ")], Some(1_500)),
            (&[("retry-after-ms", "250"), ("retry-after", "9")], Some(250)),
            (&[date, ("retry-after", "Sat, 21 Nov 2026 22:00:30 GMT")], Some(30_000)),
            (&[date, ("retry-after", "Sat, 21 Nov 2026 21:00:00 GMT")], None),
            (&[("retry-after", "Sat, 21 Nov 2026 22:00:30 GMT")], None),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "soon")], None),
            (&[], None),
        ];
        for (pairs, expect) in cases {
            let after = retry_after(&headers(pairs));
            assert_eq!(after, expect.map(Duration::from_millis), "{pairs:?}");
        }
        let body = r#"[{"error":{"details":[{"a":1},{"retryDelay":"34s"}]}}]"#;
        assert_eq!(retry_delay(body), Some(Duration::from_secs(34)));
    }

    #[test]
    fn refusals_are_sorted_by_whose_fault_they_are() {
        let cases = [
            (401, r#"{"error":{"message":"invalid x-api-key"}}"#, "Auth"),
            (403, "", "Auth"),
            (400, r#"[{"error":{"message":"API key not valid."}}]"#, "Auth"),
            (404, r#"{"error":"model 'x' not found"}"#, "NoSuchModel"),
            (422, "Input validation error: `inputs` must have less than 1024 tokens.", "TooLong"),
            (413, "Request too large: tokens per minute (TPM): Limit 6000", "TooLong"),
            (400, "prompt is too long: 9000 tokens > 8000 maximum", "TooLong"),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, "Rejected"),
            (429, "slow down", "Rate"),
            (500, "", "Overloaded"),
            (529, r#"{"error":{"type":"overloaded_error"}}"#, "Overloaded"),
            (498, "", "Overloaded"),
            (302, "", "Setup"),
            (400, r#"{"error":{"code":"content_filter"}}"#, "Refused"),
            (400, r#"{"error":{"message":"no such parameter"}}"#, "Rejected"),
            (418, "teapot", "Rejected"),
        ];
        for (status, body, expect) in cases {
            let failure = format!("{:?}", refused(status, body, None, None));
            assert!(failure.starts_with(expect), "{status} {body}: {failure}");
        }
    }

    #[test]
    fn a_response_that_failed_is_a_failure_though_its_status_is_200() {
        let api = epitome_api::find_api("openai-responses").expect("an API");
        let failed = |error: &str| {
            let body = format!(r#"{{"status":"failed","output":[],"error":{error}}}"#);
            let failure = api.response(body.as_bytes()).map_err(|it| bad(it, None));
            format!("{:?}", failure.map(|response| response.text()))
        };
        for (error, expect) in [
            (r#"{"code":"context_length_exceeded","message":"Too much."}"#, "Err(TooLong"),
            (r#"{"code":"server_error","message":"prompt is too long"}"#, "Err(TooLong"),
            (r#"{"code":"server_error","message":"It broke."}"#, "Err(BadAnswer(\"It broke.\"))"),
            (r#"{"code":503,"message":"It broke."}"#, "Err(Overloaded"),
        ] {
            assert!(failed(error).starts_with(expect), "{error}: {}", failed(error));
        }
    }

    #[test]
    fn an_event_that_is_cut_off_is_reported_without_the_key() {
        let key = Key::new("sk-live-0123456789abcdef").expect("a key");
        let api = epitome_api::find_api("anthropic").expect("an API");
        let kind = "sk-live-0123456789abcdef".repeat(20);
        let start = r#"{"type":"message_start","message":{"content":[]}}"#;
        let block = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text"}}"#;
        let delta = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"{kind}{}"}}}}"#,
            "x".repeat(MESSAGE_CHARS)
        );
        // The last event has no end, and its delta has an unknown type.
        let body = format!("data: {start}\n\ndata: {block}\n\ndata: {delta}");
        let mut stream = epitome_api::Stream::new(api, api.endpoint.framing);
        stream.push(body.as_bytes(), &mut |_| ()).expect("whole events");
        let failure = stream.finish(&mut |_| ()).map_err(|err| bad(err, Some(&key)));
        let Err(Failure::Half(why)) = failure else { panic!("{failure:?}") };
        let begin = format!("a delta of the unknown type `{}x", "[key]".repeat(20));
        assert!(why.starts_with(&begin), "{why}");
        assert_eq!(why.chars().count(), MESSAGE_CHARS + 1, "{why}");
    }

    #[test]
    fn words_of_a_service_are_one_short_line_without_a_key() {
        let key = Key::new("sk-live-0123456789abcdef").expect("a key");
        let long = format!("{}sk-live-0123456789abcdef", "x".repeat(MESSAGE_CHARS - 10));
        let cases = [
            (r#"{"error":{"message":"a\n\u001b[31mb"}}"#.to_owned(), "a [31mb".to_owned()),
            ("key sk-live-0123456789abcdef".to_owned(), "key [key]".to_owned()),
            (long, format!("{}[key]", "x".repeat(MESSAGE_CHARS - 10))),
            ("y".repeat(MESSAGE_CHARS + 1), format!("{}…", "y".repeat(MESSAGE_CHARS))),
            (
                r#"{"error":{"message":"Incorrect API key provided: sk-live-****cdef."}}"#
                    .to_owned(),
                "Incorrect API key provided: [key]****[key].".to_owned(),
            ),
            ("<html>".to_owned(), "an HTML page".to_owned()),
            (String::new(), "status 500".to_owned()),
        ];
        for (body, expect) in cases {
            assert_eq!(message(500, &body, Some(&key)), expect, "{body}");
        }
    }
}
