//! Access control: if the proxy has a token, each request must have it as the first part of its
//! path. A proxy that other machines can reach must have a token.

use std::net::IpAddr;

use hyper::header::{HOST, HeaderMap};
use subtle::ConstantTimeEq as _;

/// The path of a request without the token: with its query, and beginning with a slash.
///
/// `None` if the proxy has a token and the request has another one or none.
pub(crate) fn without_token<'p>(token: Option<&str>, path_and_query: &'p str) -> Option<&'p str> {
    let Some(token) = token else { return Some(path_and_query) };
    let path = path_and_query.strip_prefix('/')?;
    let end = path.find(['/', '?']).unwrap_or(path.len());
    let (found, rest) = path.split_at(end);
    let is_same = bool::from(found.as_bytes().ct_eq(token.as_bytes()));
    let rest = if rest.is_empty() { "/" } else { rest };
    (is_same && rest.starts_with('/')).then_some(rest)
}

/// Whether a request has one `host` header, and it names an IP address or `localhost`. A web page
/// whose site name was made to resolve to this machine (DNS rebinding) sends the name of its site
/// instead.
pub(crate) fn names_an_address(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Ok(host) = host.to_str() else { return false };
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        Some(_) | None => host,
    };
    let name = name.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_name_this_machine() {
        for (host, expect) in [
            ("127.0.0.1:4000", true),
            ("127.0.0.1", true),
            ("localhost:80", true),
            ("[::1]:4000", true),
            ("192.168.0.7:4000", true),
            ("evil.example:4000", false),
            ("127.0.0.1.evil.example", false),
            ("localhost:evil", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().expect("a value"));
            assert_eq!(names_an_address(&headers), expect, "{host}");
        }
        assert!(!names_an_address(&HeaderMap::new()));
    }

    #[test]
    fn a_token_is_the_first_part_of_the_path() {
        for (path, expect) in [
            ("/00ff/v1/messages?beta=true", Some("/v1/messages?beta=true")),
            ("/00ff", Some("/")),
            ("/00ff?a", None),
            ("/00fe/v1/messages", None),
            ("/v1/messages", None),
            ("//00ff/", None),
        ] {
            assert_eq!(without_token(Some("00ff"), path), expect, "{path}");
        }
        assert_eq!(without_token(None, "/v1/messages"), Some("/v1/messages"));
    }
}
