//! Responses of model services: any bytes, whole and as a stream.

use epitome_api::{APIS, Api, BadResponse, Delta, Response, Stream, ollama};
use epitome_model::{Item, Transcript};

use crate::sessions::stand_inside;

/// Reads any bytes as a response of every API and of Ollama, in one piece and streamed. Streamed
/// bytes must give the same response whatever pieces they arrive in.
///
/// # Panics
///
/// If a property does not hold.
pub fn response(bytes: &[u8]) {
    for api in APIS.iter().chain([&ollama::API]) {
        check(api, &api.response(bytes));
        let whole = streamed(api, bytes, bytes.len().max(1));
        check(api, &whole.0);
        for length in [1, 3, 100] {
            let pieces = streamed(api, bytes, length);
            assert!(pieces == whole, "{api:?}: pieces of {length} bytes make no difference");
        }
    }
}

/// A response, or why there is none; and all text that deltas reported.
type Received = (Result<Response, BadResponse>, String);

fn streamed(api: &Api, bytes: &[u8], length: usize) -> Received {
    let mut seen = String::new();
    let mut on = |delta: Delta<'_>| match delta {
        Delta::Text(text) | Delta::Thinking(text) | Delta::Call(text) => seen.push_str(text),
        Delta::Restart | Delta::Retry(_) => {}
    };
    let mut stream = Stream::new(api, api.endpoint.framing);
    let pushed = bytes.chunks(length).try_for_each(|piece| stream.push(piece, &mut on));
    let body = pushed.and_then(|()| stream.finish(&mut on));
    (body.and_then(|body| api.response(body.as_bytes())), seen)
}

/// Checks that the spans of a response are in its source, that what is sent back of it is JSON, and
/// that a request with it is JSON.
fn check(api: &Api, response: &Result<Response, BadResponse>) {
    let Ok(response) = response else { return };
    let items = vec![Item::Entry(Box::new(response.entry.clone()))];
    let transcript = Transcript { items, context: vec![0], ..Transcript::default() };
    stand_inside(&transcript, &response.source);
    for message in response.messages() {
        let sent: Result<serde_json::Value, _> = serde_json::from_str(message);
        assert!(sent.is_ok(), "{api:?}: what is sent back is JSON: {message}");
    }
    assert!(response.text().len() <= response.source.len(), "{api:?}: no text is made up");
    let made = (api.make)(&transcript, &response.source);
    let json: Result<serde_json::Value, _> = serde_json::from_str(&made.body);
    assert!(json.is_ok() || made.body.is_empty(), "{api:?}: a request is JSON: {}", made.body);
}
