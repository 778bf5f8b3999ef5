//! Access control: a request is answered only if it comes from this machine, has the token, and was
//! not sent by another site's page. But a link on another site may open a page of the viewer.
//!
//! The token is the first part of every path. It is not a cookie, because a browser would also send
//! the cookie to every other server on 127.0.0.1, whatever its port: `docs/why.md`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq as _;

use crate::connection::Connection;

/// The number of random bytes in a token.
const TOKEN: usize = 32;

/// The content security policy: style and scripts only from files of this server, images only
/// embedded, requests and forms only to this server.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The headers of every response. The referrer policy is not `no-referrer`, because with it a
/// browser does not tell which origin sent a form.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The token that a request must have, and the port that its host must name.
pub(crate) struct Guard {
    token: String,
    port: u16,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// The request comes from another machine.
    Peer,
    /// The host in the request is not a name of this machine. Either an attacker made this name
    /// resolve to this machine, or the client uses the viewer as a proxy for another server.
    Host,
    /// The request does not have the token.
    Token,
    /// The request was sent by another site, or it writes and does not say from which site it
    /// comes.
    Origin,
    /// The method of the request is none of `GET`, `HEAD` and `POST`.
    Method,
}

impl Guard {
    /// Creates a guard with a new random token.
    ///
    /// # Errors
    ///
    /// When the system has no randomness.
    pub(crate) fn new(port: u16) -> std::io::Result<Guard> {
        let mut bytes = [0; TOKEN];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Guard { token, port })
    }

    /// The address to open, with the token.
    pub(crate) fn root(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, self.path())
    }

    /// The path of the address to open: the token between slashes.
    pub(crate) fn path(&self) -> String {
        format!("/{}/", self.token)
    }

    /// Checks a request. The order of the checks reveals the least to clients without the token.
    fn check(
        &self,
        peer: SocketAddr,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        if !peer.ip().is_loopback() {
            return Err(Refusal::Peer);
        }
        let here = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let host = only(headers, &header::HOST).ok_or(Refusal::Host)?;
        if !here.iter().any(|it| it == host) {
            return Err(Refusal::Host);
        }
        // The first line of a request may contain a whole URL.
        let is_here = uri.scheme_str().is_none_or(|scheme| scheme == "http")
            && uri.authority().is_none_or(|authority| authority == host);
        if !is_here {
            return Err(Refusal::Host);
        }
        let path_token = uri.path().strip_prefix('/').and_then(|path| path.split('/').next());
        if !bool::from(path_token.unwrap_or_default().as_bytes().ct_eq(self.token.as_bytes())) {
            return Err(Refusal::Token);
        }
        let is_write = method == Method::POST;
        if !is_write && method != Method::GET && method != Method::HEAD {
            return Err(Refusal::Method);
        }
        match only(headers, &header::ORIGIN) {
            Some(origin) if origin.strip_prefix("http://") == Some(host) => {}
            // Only a request that reads may have no `Origin` header: a browser sends the header
            // with every form that writes.
            None if !is_write && !headers.contains_key(header::ORIGIN) => {}
            Some(_) | None => return Err(Refusal::Origin),
        }
        match headers.get("sec-fetch-site").map(HeaderValue::as_bytes) {
            None | Some(b"same-origin") => Ok(()),
            // The user typed the address, or opened it from another program.
            Some(b"none") if !is_write => Ok(()),
            // A link on another site opens the page. The other site cannot read the page, because
            // the page is not displayed inside of it.
            Some(_) if !is_write && is_navigation(headers) => Ok(()),
            Some(_) => Err(Refusal::Origin),
        }
    }
}

/// Passes a request on, or refuses it with the reason. Adds [`HEADERS`] to every response.
pub(crate) async fn guard(
    State(guard): State<Arc<Guard>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let allowed = guard.check(peer, request.method(), request.uri(), request.headers());
    let mut response = match allowed {
        Ok(()) => {
            if let Some(connection) = request.extensions().get::<Arc<Connection>>() {
                connection.know();
            }
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The value of a header. `None` unless the header occurs exactly once and its value is text.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

fn is_navigation(headers: &HeaderMap) -> bool {
    let mode = headers.get("sec-fetch-mode").map(HeaderValue::as_bytes);
    let destination = headers.get("sec-fetch-dest").map(HeaderValue::as_bytes);
    mode == Some(b"navigate") && destination == Some(b"document")
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, why) = match self {
            Refusal::Peer => (StatusCode::FORBIDDEN, "only this machine is answered\n"),
            Refusal::Host => {
                (StatusCode::MISDIRECTED_REQUEST, "this is not the address of the viewer\n")
            }
            Refusal::Token => (
                StatusCode::FORBIDDEN,
                "open the whole address that `epitome serve` printed: it ends in a token of this \
                 run\n",
            ),
            Refusal::Origin => (StatusCode::FORBIDDEN, "another site may not ask for this\n"),
            Refusal::Method => (StatusCode::METHOD_NOT_ALLOWED, "only GET, HEAD and POST\n"),
        };
        (status, why).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "127.0.0.1:4000";
    const CROSS: Said = ("sec-fetch-site", "cross-site");
    const US: &str = "http://127.0.0.1:4000";

    /// Columns: peer, method, path, headers, and the result.
    type Case = (&'static str, Method, &'static str, &'static [Said], &'static str);
    type Said = (&'static str, &'static str);

    fn check(peer: &str, method: Method, path: &str, said: &[(&'static str, &str)]) -> String {
        let guard = Guard { token: "00ff".to_owned(), port: 4000 };
        let mut headers = HeaderMap::new();
        for (name, value) in said {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let uri = path.parse().unwrap();
        let done = guard.check(peer.parse().unwrap(), &method, &uri, &headers);
        done.map_or_else(|refusal| format!("{refusal:?}"), |()| "answered".to_owned())
    }

    fn check_all(cases: &[Case]) {
        for (peer, method, path, said, expect) in cases {
            let done = check(peer, method.clone(), path, said);
            assert_eq!(&done, expect, "{peer} {method} {path} {said:?}");
        }
    }

    #[test]
    fn only_a_page_of_ours_in_a_browser_of_this_machine_is_answered() {
        let cases: &[Case] = &[
            ("127.0.0.1:9", Method::GET, "/00ff/", &[("host", HERE)], "answered"),
            ("127.0.0.1:9", Method::GET, "/00ff/", &[("host", "localhost:4000")], "answered"),
            ("192.168.0.7:9", Method::GET, "/00ff/", &[("host", HERE)], "Peer"),
            ("127.0.0.1:9", Method::GET, "/00ff/", &[], "Host"),
            ("127.0.0.1:9", Method::GET, "/00ff/", &[("host", "evil.example:4000")], "Host"),
            ("127.0.0.1:9", Method::GET, "/00ff/", &[("host", "127.0.0.1:4001")], "Host"),
            ("127.0.0.1:9", Method::GET, "/00ff/", &[("host", HERE), ("host", HERE)], "Host"),
            (
                "127.0.0.1:9",
                Method::GET,
                "http://127.0.0.1:4000/00ff/",
                &[("host", HERE)],
                "answered",
            ),
            ("127.0.0.1:9", Method::GET, "http://localhost:4000/00ff/", &[("host", HERE)], "Host"),
            ("127.0.0.1:9", Method::GET, "http://evil.example/00ff/", &[("host", HERE)], "Host"),
            ("127.0.0.1:9", Method::GET, "https://127.0.0.1:4000/00ff/", &[("host", HERE)], "Host"),
            ("127.0.0.1:9", Method::GET, "/", &[("host", HERE)], "Token"),
            ("127.0.0.1:9", Method::GET, "/00fe/", &[("host", HERE)], "Token"),
            ("127.0.0.1:9", Method::GET, "/00f/", &[("host", HERE)], "Token"),
            ("127.0.0.1:9", Method::GET, "/00ff0/", &[("host", HERE)], "Token"),
            ("127.0.0.1:9", Method::GET, "//00ff/", &[("host", HERE)], "Token"),
            ("127.0.0.1:9", Method::GET, "/00ff/", &[("host", HERE), ("origin", US)], "answered"),
            ("127.0.0.1:9", Method::GET, "/00ff/", &[("host", HERE), ("origin", "null")], "Origin"),
            ("127.0.0.1:9", Method::GET, "/00ff/", &[("host", HERE), CROSS], "Origin"),
            (
                "127.0.0.1:9",
                Method::GET,
                "/00ff/",
                &[
                    ("host", HERE),
                    CROSS,
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "document"),
                ],
                "answered",
            ),
        ];
        check_all(cases);
    }

    #[test]
    fn only_a_page_of_ours_changes_anything() {
        check_all(&[
            ("127.0.0.1:9", Method::PUT, "/00ff/", &[("host", HERE), ("origin", US)], "Method"),
            ("127.0.0.1:9", Method::POST, "/00ff/", &[("host", HERE), ("origin", US)], "answered"),
            ("127.0.0.1:9", Method::POST, "/00ff/", &[("host", HERE)], "Origin"),
            (
                "127.0.0.1:9",
                Method::POST,
                "/00ff/",
                &[("host", HERE), ("origin", "null")],
                "Origin",
            ),
            (
                "127.0.0.1:9",
                Method::POST,
                "/00ff/",
                &[("host", HERE), ("origin", "http://evil.example")],
                "Origin",
            ),
            (
                "127.0.0.1:9",
                Method::POST,
                "/00ff/",
                &[("host", HERE), ("origin", "https://127.0.0.1:4000")],
                "Origin",
            ),
            (
                "127.0.0.1:9",
                Method::POST,
                "/00ff/",
                &[("host", HERE), ("origin", US), CROSS],
                "Origin",
            ),
        ]);
    }

    #[test]
    fn every_run_has_a_token_of_its_own() {
        let (one, other) = (Guard::new(1).unwrap(), Guard::new(1).unwrap());
        assert_eq!(one.token.len(), 2 * TOKEN);
        assert_ne!(one.token, other.token);
    }
}
