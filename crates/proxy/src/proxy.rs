//! What happens to one request: it is read, changed if that is worth it, and passed on.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use epitome_api::{Api, Purpose};
use epitome_llm::Catalogue;
use epitome_model::Counter;
use epitome_passes::Recipe;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_LENGTH, HeaderMap};
use hyper::{Method, Request, Response};
use tracing::warn;

use crate::guard::without_token;
use crate::headers::{self, BYPASS};
use crate::meter::{Meter, Observed, Observer, Totals};
use crate::refusal::{Refusal, ResponseBody};
use crate::rewrite::{Rewriter, Rewritten};
use crate::upstream::{Route, Upstream, client};

/// Maximum bytes of a body that is read at once; services take 32 MB. A longer one passes
/// unchanged as it arrives.
const LONGEST: usize = 48 << 20;

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
    /// The prices of models.
    pub prices: Catalogue,
}

impl Options {
    /// Settings without a token, for the providers' own services.
    pub fn new(recipe: Recipe, counter: &'static dyn Counter, folder: PathBuf) -> Options {
        let prices = Catalogue::built_in();
        Options { upstream: None, token: None, recipe, counter, folder, dry_run: false, prices }
    }
}

/// Passes requests on to model services.
pub struct Proxy {
    token: Option<String>,
    route: Route,
    client: reqwest::Client,
    rewriter: Arc<Rewriter>,
    meter: Arc<Meter>,
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
        let rewriter = Arc::new(Rewriter::new(
            folder,
            options.recipe,
            options.counter,
            options.prices.clone(),
        ));
        let meter = Arc::new(Meter::new(options.prices));
        let Options { token, dry_run: is_dry_run, .. } = options;
        Ok(Proxy { token, route, client, rewriter, meter, is_dry_run })
    }

    /// What was sent so far, and what it cost.
    pub fn totals(&self) -> Totals {
        self.meter.totals()
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
        let url = self.route.url(target, &head.headers).ok_or(Refusal::NoService)?;
        let readable = readable(&head.method, path, &head.headers);
        let mut headers = headers::of_request(&head.headers);
        let mut observer = None;
        let body = match readable {
            Some((api, purpose)) => {
                let (body, rewritten) = self.rewritten(api, whole(body).await?).await;
                if purpose == Purpose::Answer {
                    observer = Some(self.meter.begin(api, rewritten));
                }
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
        Ok(passed_on(response, observer))
    }
}

impl Proxy {
    /// The body as it is sent, and what that saves. After any error of ours it is the original.
    async fn rewritten(&self, api: &'static Api, original: Bytes) -> (Bytes, Rewritten) {
        let rewriter = Arc::clone(&self.rewriter);
        let body = original.clone();
        let rewritten =
            tokio::task::spawn_blocking(move || rewriter.rewrite(api, &body, Instant::now())).await;
        let failure = match rewritten {
            Ok(Ok(mut rewritten)) => {
                if let Some(failure) = rewritten.effect.failure.take() {
                    self.report(api, failure);
                }
                let body = rewritten.body.take().filter(|_| !self.is_dry_run);
                return (body.unwrap_or(original), rewritten);
            }
            Ok(Err(err)) => epitome_error::sentence(&err),
            Err(_) => "a panic".to_owned(),
        };
        self.report(api, failure);
        (original, Rewritten::default())
    }
}

impl Proxy {
    /// Reports an error of ours: what it is about passes unchanged.
    fn report(&self, api: &Api, failure: String) {
        warn!(api = api.name, failure, "something passes unchanged");
        self.meter.add_failure(failure);
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

/// The response of a service, without the headers of its connection. What it reports of the tokens
/// it counted is read as it passes.
fn passed_on(response: reqwest::Response, observer: Option<Observer>) -> Response<ResponseBody> {
    let response: Response<reqwest::Body> = response.into();
    let (mut head, body) = response.into_parts();
    let observer = observer.and_then(|it| it.of_response(head.status, &head.headers));
    head.headers = headers::passed_on(&head.headers);
    let body = Observed { body, observer };
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
