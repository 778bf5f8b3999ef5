//! Responses of the proxy itself, in place of those of a service.

use std::error::Error as StdError;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::json;

use crate::budget::OverBudget;

/// Any error of a connection.
pub(crate) type AnyError = Box<dyn StdError + Send + Sync>;

/// The body of a request or of a response, whether it is passed on as it arrives or was made here.
pub(crate) type AnyBody = UnsyncBoxBody<Bytes, AnyError>;

/// Why a request is not passed on.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The request does not have the token.
    Token,
    /// The `host` header of the request is neither an IP address nor `localhost`.
    Host,
    /// The request asks for a WebSocket, in which nothing would be shortened or counted.
    WebSocket,
    /// Neither the path nor the headers of the request name a service.
    NoService,
    /// The body is too long to be read at once, and has no declared length.
    TooLong,
    /// The body of the request could not be read to its end.
    Incomplete,
    /// The path of the request does not make a valid URL of a service.
    BadUrl,
    /// The service cannot be reached, or it ended the connection before it answered.
    Unreachable {
        /// The scheme, name and port of the service.
        address: String,
        /// The error of the connection.
        why: String,
    },
    /// The budget of the run is spent, or the run has a budget and the price of the model is not
    /// known.
    Budget(OverBudget),
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Refusal::Token | Refusal::Host => StatusCode::FORBIDDEN,
            // After this status, agents send their requests over HTTP.
            Refusal::WebSocket => StatusCode::UPGRADE_REQUIRED,
            Refusal::NoService => StatusCode::NOT_FOUND,
            Refusal::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::Incomplete | Refusal::BadUrl => StatusCode::BAD_REQUEST,
            Refusal::Unreachable { .. } => StatusCode::BAD_GATEWAY,
            // After this status, clients do not try again.
            Refusal::Budget(_) => StatusCode::PAYMENT_REQUIRED,
        }
    }

    fn message(&self) -> String {
        match self {
            Refusal::Token => {
                "use the whole address that `epitome proxy` printed: it has the token of this run"
                    .to_owned()
            }
            Refusal::Host => "name this machine by its address".to_owned(),
            Refusal::WebSocket => {
                "epitome proxy shortens nothing in a WebSocket: send the request \
                 over HTTP, or start it with --websockets and no --budget"
                    .to_owned()
            }
            Refusal::NoService => "epitome proxy cannot tell which service this request is for: \
                 start it with --upstream URL"
                .to_owned(),
            Refusal::TooLong => "a body without a declared length is too long".to_owned(),
            Refusal::Incomplete => "the request ends too early".to_owned(),
            Refusal::BadUrl => "the path of the request is in no URL of a service".to_owned(),
            Refusal::Unreachable { address, why } => {
                format!("epitome proxy cannot reach the model service {address}: {why}")
            }
            Refusal::Budget(why) => format!("epitome proxy: {why}"),
        }
    }

    /// The response. Its JSON has what the clients of each API need to show an error: Anthropic's
    /// `type`, OpenAI's `error`, Google's `code`.
    pub(crate) fn into_response(self) -> Response<AnyBody> {
        let code = self.status().as_u16();
        let error = json!({"type": "epitome_proxy", "message": self.message(), "code": code});
        let body = json!({"type": "error", "error": error}).to_string();
        let mut response = text_response("application/json", body);
        *response.status_mut() = self.status();
        response
    }
}

/// A response with a text of this media type.
pub(crate) fn text_response(media_type: &'static str, text: String) -> Response<AnyBody> {
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
