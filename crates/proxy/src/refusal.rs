//! Responses of the proxy itself, in place of those of a service.

use std::error::Error as StdError;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::json;

/// The body of a response that is passed on as it arrives.
pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, Box<dyn StdError + Send + Sync>>;

/// Why a request is not passed on.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The request does not have the token.
    Token,
    /// The request asks for a WebSocket or another protocol.
    Upgrade,
    /// Nothing says for which service the request is.
    NoService,
    /// The body is too long to be read at once, and has no declared length.
    TooLong,
    /// The client sent less than it announced.
    Incomplete,
    /// The service cannot be reached, for this reason.
    Unreachable(String),
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Refusal::Token => StatusCode::FORBIDDEN,
            // After this status, Codex sends its requests over HTTP.
            Refusal::Upgrade => StatusCode::UPGRADE_REQUIRED,
            Refusal::NoService => StatusCode::NOT_FOUND,
            Refusal::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::Incomplete => StatusCode::BAD_REQUEST,
            Refusal::Unreachable(_) => StatusCode::BAD_GATEWAY,
        }
    }

    fn message(&self) -> String {
        match self {
            Refusal::Token => {
                "use the whole address that `epitome proxy` printed: it has the token of this run"
                    .to_owned()
            }
            Refusal::Upgrade => {
                "epitome proxy passes no WebSocket on: send the request over HTTP".to_owned()
            }
            Refusal::NoService => "epitome proxy cannot tell which service this request is for: \
                 start it with --upstream URL"
                .to_owned(),
            Refusal::TooLong => "a body without a declared length is too long".to_owned(),
            Refusal::Incomplete => "the request ends too early".to_owned(),
            Refusal::Unreachable(why) => {
                format!("epitome proxy cannot reach the model service: {why}")
            }
        }
    }

    /// The response, in the form of errors that clients of all APIs show.
    pub(crate) fn into_response(self) -> Response<ResponseBody> {
        let error = json!({"type": "epitome_proxy", "message": self.message()});
        let body = json!({"type": "error", "error": error}).to_string();
        let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
        let mut response = Response::new(body.boxed_unsync());
        *response.status_mut() = self.status();
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}
