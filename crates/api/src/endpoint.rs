//! The addresses and headers of requests to an API, and their authentication.

use std::fmt;

use super::Framing;

/// How an API is called at a service: the path, the headers, and what the service requires in the
/// body. The base URL is not part of it.
///
/// Some services offer the API of another service at their own paths; their endpoint is a copy of
/// that API's endpoint with a few fields replaced.
///
/// ```
/// use epitome_api::{Endpoint, anthropic};
///
/// // Claude on Amazon Bedrock: the path names the model, the body names the version.
/// let bedrock = Endpoint {
///     path: |model, _| format!("model/{model}/invoke"),
///     headers: &[],
///     model_in_body: false,
///     members: r#""anthropic_version":"bedrock-2023-05-31","#,
///     ..anthropic::ENDPOINT
/// };
/// assert_eq!((bedrock.path)("claude", false), "model/claude/invoke");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// Returns the path after the base URL, for the name of a model and for a streamed response or
    /// one that is not streamed.
    pub path: fn(model: &str, stream: bool) -> String,
    /// Headers that every request has, each a name and a value.
    pub headers: &'static [(&'static str, &'static str)],
    /// The name of the header that carries the API key, and the text before the key in this header.
    pub key: (&'static str, &'static str),
    /// Whether the body names the model.
    pub model_in_body: bool,
    /// Further members that every body has: JSON that ends with a comma, or nothing.
    pub members: &'static str,
    /// How a streamed response is divided into events.
    pub framing: Framing,
}

/// An HTTP request to be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method, in capitals.
    pub method: &'static str,
    /// The complete URL.
    pub url: String,
    /// The headers: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Does not print headers, which may contain secrets, nor the body, which is long.
impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HttpRequest { method, url, .. } = self;
        f.debug_struct("HttpRequest")
            .field("method", method)
            .field("url", url)
            .finish_non_exhaustive()
    }
}

/// Authenticates requests to a service.
///
/// An implementation receives the complete request, body included: an API key is a header, and so
/// is a token that expires (Vertex AI), but a signature (AWS SigV4) is computed from method, URL,
/// headers and body.
pub trait Auth: Send + Sync + fmt::Debug {
    /// Adds the authentication to a request. Called once per request, immediately before it is
    /// sent.
    ///
    /// # Errors
    ///
    /// A sentence for the user that says why the request cannot be authenticated. It must not
    /// contain the secret.
    fn authorize(&self, request: &mut HttpRequest) -> Result<(), String>;
}
