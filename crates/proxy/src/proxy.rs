//! What happens to one request: it is read, changed if that is worth it, and passed on.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use epitome_api::{Api, Purpose};
use epitome_model::Counter;
use epitome_passes::Recipe;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_LENGTH, HeaderMap};
use hyper::{Method, Request, Response};
use tracing::warn;

use crate::guard::without_token;
use crate::headers::{self, BYPASS};
use crate::refusal::Refusal;
use crate::rewrite::{Rewriter, Rewritten};
use crate::upstream::{Route, Upstream, client};

/// Maximum bytes of a body that is read at once; services take 32 MB. A longer one passes
/// unchanged as it arrives.
const LONGEST: usize = 48 << 20;

/// The body of a response that is passed on as it arrives.
pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, Box<dyn StdError + Send + Sync>>;

/// The settings of a proxy.
#[derive(Clone)]
pub struct Options {
    /// The service that all requests go to. Without one it is the provider that the path of a
    /// request names.
    pub upstream: Option<Upstream>,
    /// The token that a request needs as the first part of its path.
    pub token: Option<String>,
    /// How requests are shortened.
    pub recipe: Recipe,
    /// The tokenizer.
    pub counter: &'static dyn Counter,
    /// The folder of decisions and removed texts.
    pub folder: PathBuf,
    /// Whether requests are changed, or only what would be changed is counted.
    pub dry_run: bool,
}

impl Options {
    /// Settings without a token, for the providers' own services.
    pub fn new(recipe: Recipe, counter: &'static dyn Counter, folder: PathBuf) -> Options {
        Options { upstream: None, token: None, recipe, counter, folder, dry_run: false }
    }
}

/// Passes requests on to model services.
pub struct Proxy {
    token: Option<String>,
    route: Route,
    client: reqwest::Client,
    rewriter: Arc<Rewriter>,
    is_dry_run: bool,
}

impl Proxy {
    /// Makes a proxy.
    ///
    /// # Errors
    ///
    /// If the system has no certificates.
    pub(crate) fn new(options: Options) -> reqwest::Result<Proxy> {
        let route = match options.upstream {
            Some(upstream) => Route::One(upstream),
            None => Route::ByRequest,
        };
        let client = client(&route)?;
        // A dry run leaves nothing behind.
        let folder = Some(options.folder).filter(|_| !options.dry_run);
        let rewriter = Arc::new(Rewriter::new(folder, options.recipe, options.counter));
        let Options { token, dry_run: is_dry_run, .. } = options;
        Ok(Proxy { token, route, client, rewriter, is_dry_run })
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Answers a request: with the response of the service, or the reason why there is none.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        let answered = self.pass(request).await;
        answered.unwrap_or_else(Refusal::into_response)
    }

    async fn pass(&self, request: Request<Incoming>) -> Result<Response<ResponseBody>, Refusal> {
        let (head, body) = request.into_parts();
        let path_and_query = head.uri.path_and_query().map_or("/", |it| it.as_str());
        let target = without_token(self.token(), path_and_query).ok_or(Refusal::Token)?;
        if headers::wants_upgrade(&head.headers) {
            return Err(Refusal::Upgrade);
        }
        let path = target.split('?').next().unwrap_or_default();
        let base = self.route.base(path, &head.headers).ok_or(Refusal::NoService)?;
        let url = format!("{}{target}", base.as_str());
        let readable = readable(&head.method, path, &head.headers);
        let mut headers = headers::of_request(&head.headers);
        let body = match readable {
            Some((api, _)) => {
                let body = self.rewritten(api, whole(body).await?).await;
                // The client of the service writes it again.
                headers.remove(CONTENT_LENGTH);
                Some(reqwest::Body::from(body))
            }
            None if body.is_end_stream() => None,
            None => Some(reqwest::Body::wrap(body)),
        };
        let mut request = self.client.request(head.method, url).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.map_err(unreachable)?;
        Ok(passed_on(response))
    }
}

impl Proxy {
    /// The body as it is sent. After any error of ours it is the original.
    async fn rewritten(&self, api: &'static Api, original: Bytes) -> Bytes {
        let (rewriter, body) = (Arc::clone(&self.rewriter), original.clone());
        let rewritten = tokio::task::spawn_blocking(move || rewriter.rewrite(api, &body)).await;
        match rewritten {
            Ok(Ok(Rewritten { body: Some(body), .. })) if !self.is_dry_run => body,
            Ok(Ok(_)) => original,
            Ok(Err(err)) => {
                warn!(api = api.name, error = %epitome_error::sentence(&err), "a request passes unchanged");
                original
            }
            Err(panicked) => {
                warn!(api = api.name, error = %panicked, "a request passes unchanged");
                original
            }
        }
    }
}

/// The API of a request whose body is read, and what the request asks for. `None` if it passes
/// unread: it is of another kind, is compressed, is too long, or the client says so.
fn readable(method: &Method, path: &str, headers: &HeaderMap) -> Option<(&'static Api, Purpose)> {
    let is_short = headers::content_length(headers).is_none_or(|length| length <= LONGEST as u64);
    let is_wanted = !headers.contains_key(BYPASS);
    let is_read = method == Method::POST && is_wanted && is_short && headers::is_plain(headers);
    Api::of_path(path).filter(|_| is_read)
}

/// The whole body of a request.
async fn whole(mut body: Incoming) -> Result<Bytes, Refusal> {
    let mut bytes = BytesMut::with_capacity(body.size_hint().lower().min(LONGEST as u64) as usize);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::Incomplete)?;
        let Some(data) = frame.data_ref() else { continue };
        if bytes.len() + data.len() > LONGEST {
            return Err(Refusal::TooLong);
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes.freeze())
}

/// The response of a service, without the headers of its connection.
fn passed_on(response: reqwest::Response) -> Response<ResponseBody> {
    let response: Response<reqwest::Body> = response.into();
    let (mut head, body) = response.into_parts();
    head.headers = headers::passed_on(&head.headers);
    Response::from_parts(head, body.map_err(Into::into).boxed_unsync())
}

/// The URL is left out: its query may contain a key.
fn unreachable(err: reqwest::Error) -> Refusal {
    let err = err.without_url();
    let mut message = err.to_string();
    let mut cause = StdError::source(&err);
    while let Some(err) = cause {
        message = format!("{message}: {err}");
        cause = err.source();
    }
    Refusal::Unreachable(message)
}
