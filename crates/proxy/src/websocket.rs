//! WebSockets: once both sides have agreed to one, bytes are copied in both directions, unread.

use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use crate::meter::Observer;

/// Whether a request asks for a WebSocket. Other protocols that it asks for are ignored, as a
/// server may do.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let protocols = headers.get_all(UPGRADE).iter().filter_map(|value| value.to_str().ok());
    let mut names = protocols.flat_map(|value| value.split(','));
    names.any(|name| name.trim().eq_ignore_ascii_case("websocket"))
}

/// Adds the headers that ask for a WebSocket in a request, and that agree to one in a response.
pub(crate) fn add_headers(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
}

/// Connects the two sides of a WebSocket that the service has agreed to. `observer` counts it when
/// it ends.
pub(crate) fn join(
    response: &mut Response<Incoming>,
    client: OnUpgrade,
    observer: Option<Observer>,
) {
    let service = hyper::upgrade::on(response);
    tokio::spawn(async move {
        let (Ok(client), Ok(service)) = tokio::join!(client, service) else { return };
        let copied =
            copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(service)).await;
        if let (Ok(_), Some(observer)) = (copied, observer) {
            observer.complete();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_websocket_is_one_of_the_protocols() {
        for (value, expect) in [
            ("websocket", true),
            ("WebSocket", true),
            ("h2c, websocket", true),
            ("h2c", false),
            ("websocket/2", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(UPGRADE, value.parse().expect("a value"));
            assert_eq!(is_wanted(&headers), expect, "{value}");
        }
        assert!(!is_wanted(&HeaderMap::new()));
    }
}
