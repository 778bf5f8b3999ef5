//! The headers of a message that is passed on.

use hyper::Version;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;

/// A request with this header passes unchanged. The header itself is not passed on.
pub const BYPASS: HeaderName = HeaderName::from_static("x-epitome-bypass");

/// Headers that are about one connection and not about the message (RFC 9110, 7.6.1).
const OF_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The headers of a message that are passed on, in their order. Left out are those about the
/// connection, and those that the header `connection` names.
pub(crate) fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let is_passed = |name: &HeaderName| !OF_CONNECTION.contains(name) && !named.contains(name);
    let kept = headers.iter().filter(|(name, _)| is_passed(name));
    // Removing from a map would change the order of the others.
    let mut passed = HeaderMap::with_capacity(headers.len());
    for (name, value) in kept {
        passed.append(name, value.clone());
    }
    passed
}

/// The headers of a request that are passed on. Left out are those about the connection to the
/// proxy, and those that are meant for the proxy. Several `cookie` headers of HTTP/2 become one.
pub(crate) fn of_request(head: &Parts) -> HeaderMap {
    const FOR_THE_PROXY: [HeaderName; 3] = [header::HOST, header::EXPECT, BYPASS];
    let mut passed = HeaderMap::with_capacity(head.headers.len());
    for (name, value) in &passed_on(&head.headers) {
        if !FOR_THE_PROXY.contains(name) {
            passed.append(name, value.clone());
        }
    }
    if head.version == Version::HTTP_2 {
        join_cookies(&mut passed);
    }
    passed
}

/// Joins all `cookie` headers into one. A request over HTTP/2 may have several, over HTTP/1.1 only
/// one (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let lines: Vec<&[u8]> =
        headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if lines.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&lines.join(b"; ".as_slice()))
    {
        headers.insert(header::COOKIE, joined);
    }
}

/// The name by which a client calls itself in its header `user-agent`, for example `claude-cli` of
/// `claude-cli/2.1 (external)`. `None` unless the name consists of 1 to 40 ASCII letters, digits,
/// `-`, `_` and `.`.
pub(crate) fn client(headers: &HeaderMap) -> Option<String> {
    const LONGEST: usize = 40;
    let agent = headers.get(header::USER_AGENT)?.to_str().ok()?;
    let name = agent.split(['/', ' ']).next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_plain = !name.is_empty() && name.len() <= LONGEST && name.chars().all(is_name);
    is_plain.then(|| name.to_owned())
}

/// Whether the headers state no encoding of the body, or `identity`.
pub(crate) fn is_plain(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_ENCODING).is_none_or(|value| value == "identity")
}

/// The length of the body that the headers declare; `None` if they declare no valid one.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_called_as_it_says() {
        for (agent, expect) in [
            ("claude-cli/2.1.331 (external, cli)", Some("claude-cli")),
            ("codex_cli_rs", Some("codex_cli_rs")),
            ("", None),
            ("<b>/1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, agent.parse().expect("a value"));
            assert_eq!(client(&headers).as_deref(), expect, "{agent}");
        }
        assert_eq!(client(&HeaderMap::new()), None);
    }

    #[test]
    fn only_headers_of_the_connection_are_removed() {
        let lines = [
            ("host", "127.0.0.1:4000"),
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("x-epitome-bypass", "1"),
            ("x-api-key", "sk-secret"),
            ("anthropic-beta", "a"),
            ("anthropic-beta", "b"),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, value.parse().expect("a value"));
        }
        let mut head = hyper::Request::new(()).into_parts().0;
        head.headers = headers;
        let passed = of_request(&head);
        let left: Vec<(&str, &str)> = passed
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().expect("text")))
            .collect();
        let expect = [("x-api-key", "sk-secret"), ("anthropic-beta", "a"), ("anthropic-beta", "b")];
        assert_eq!(left, expect);
    }
}
