//! What happens to one request: it is read, changed if that is worth it, and passed on.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant, SystemTime};

use bytes::{Bytes, BytesMut};
use epitome::wire::ledger::Ledger;
use epitome_api::{Api, Purpose};
use epitome_error::sentence;
use epitome_llm::Catalogue;
use epitome_model::{Counter, MicroDollars};
use epitome_passes::Recipe;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_LENGTH, HeaderMap};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use tracing::{info, warn};

use crate::account::Origin;
use crate::body::Messages;
use crate::client::{Client, describe};
use crate::effect::Effect;
use crate::explain::Explainer;
use crate::guard::{names_an_address, without_token};
use crate::headers::{self, BYPASS};
use crate::holdout::Holdout;
use crate::meter::{Meter, Observed, Observer, Totals};
use crate::metrics;
use crate::refusal::{AnyBody, Refusal, text_response};
use crate::rewrite::{NextCut, Rewriter, Rewritten};
use crate::span::RequestHead;
use crate::telemetry::{Exporter, Telemetry, TelemetrySettings};
use crate::upstream::{Route, Upstream};
use crate::websocket;

/// Maximum bytes of a body that is read at once; services take 32 MB. A body whose declared length
/// is larger passes unread; a larger body without a declared length is refused.
const LONGEST: usize = 48 << 20;

/// How long the memo of a conversation is kept after something was added to it.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The settings of a proxy.
#[derive(Clone)]
pub struct Options {
    /// The service that all requests go to. `None`: each request goes to the provider that its path
    /// or its headers name.
    pub upstream: Option<Upstream>,
    /// The token that a request needs as the first part of its path.
    pub token: Option<String>,
    /// How requests are shortened.
    pub recipe: Recipe,
    /// The tokenizer.
    pub counter: &'static dyn Counter,
    /// The folder in which decisions, removed texts and the ledger are kept.
    pub folder: PathBuf,
    /// Whether all requests pass unchanged, and what would be changed is only counted.
    pub dry_run: bool,
    /// The prices of models.
    pub prices: Catalogue,
    /// The agent whose requests these are, if it is known.
    pub agent: Option<String>,
    /// The name of this run in the ledger, the list of finished requests.
    pub run: String,
    /// The share of conversations that pass unchanged, for comparison.
    pub holdout: Holdout,
    /// What the run may cost at list prices. Requests for responses of models are refused once it
    /// is spent.
    pub budget: Option<MicroDollars>,
    /// Whether WebSockets of model APIs pass unread instead of being refused. With a budget they
    /// are refused in any case.
    pub websockets: bool,
    /// Takes the explanations of changed requests. `None`: no explanations are made.
    pub explainer: Option<Explainer>,
    /// The collector to which spans of requests are sent. `None`: no spans are made.
    pub telemetry: Option<TelemetrySettings>,
}

impl Options {
    /// Settings without a token, for the providers' own services.
    pub fn new(recipe: Recipe, counter: &'static dyn Counter, folder: PathBuf) -> Options {
        let prices = Catalogue::built_in();
        Options {
            upstream: None,
            token: None,
            recipe,
            counter,
            folder,
            dry_run: false,
            prices,
            agent: None,
            run: String::new(),
            holdout: Holdout::default(),
            budget: None,
            websockets: false,
            explainer: None,
            telemetry: None,
        }
    }
}

/// Passes requests on to model services.
pub struct Proxy {
    token: Option<String>,
    route: Route,
    client: Client,
    rewriter: Arc<Rewriter>,
    meter: Arc<Meter>,
    explainer: Option<Explainer>,
    is_dry_run: bool,
    passes_websockets: bool,
    /// Logs once that WebSockets pass unread.
    websocket_log: Once,
}

impl Proxy {
    /// Makes a proxy, and the exporter that sends its spans if the options name a collector.
    ///
    /// # Errors
    ///
    /// If the system has no certificates.
    pub(crate) fn new(options: Options) -> Result<(Proxy, Option<Exporter>), rustls::Error> {
        let route = match options.upstream {
            Some(upstream) => Route::One(upstream),
            None => Route::ByRequest,
        };
        let client = Client::new(route.proxies())?;
        let Options { token, recipe, counter, folder, dry_run: is_dry_run, prices, .. } = options;
        // A dry run writes nothing to disk.
        let folder = Some(folder).filter(|_| !is_dry_run);
        if let Some(folder) = &folder {
            remove_old_memos(folder);
        }
        let ledger = folder.as_deref().map(Ledger::new);
        let origin = Origin { run: options.run, agent: options.agent };
        let rewriter = Rewriter::new(folder, recipe, counter, prices.clone());
        let explainer = options.explainer;
        let passes_websockets = options.websockets;
        let rewriter =
            rewriter.with_holdout(options.holdout).with_explanations(explainer.is_some());
        let rewriter = Arc::new(rewriter);
        let (telemetry, exporter) = options.telemetry.map(Telemetry::new).unzip();
        let meter = Meter::new(prices, origin, ledger)
            .with_budget(options.budget)
            .with_telemetry(telemetry);
        let meter = Arc::new(meter);
        let proxy = Proxy {
            token,
            route,
            client,
            rewriter,
            meter,
            explainer,
            is_dry_run,
            passes_websockets,
            websocket_log: Once::new(),
        };
        Ok((proxy, exporter))
    }

    /// What was sent so far, and what it cost.
    pub fn totals(&self) -> Totals {
        self.meter.totals()
    }

    /// Makes the exporter of telemetry send the spans that still wait, and then end.
    pub(crate) fn end(&self) {
        self.meter.end();
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Answers a request: with the response of the service, or the reason why there is none.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<AnyBody> {
        let answered = self.forward(request).await;
        answered.unwrap_or_else(Refusal::into_response)
    }

    async fn forward(&self, mut request: Request<Incoming>) -> Result<Response<AnyBody>, Refusal> {
        let upgrade = hyper::upgrade::on(&mut request);
        let (head, body) = request.into_parts();
        let path_and_query = head.uri.path_and_query().map_or("/", |it| it.as_str());
        let target = without_token(self.token(), path_and_query).ok_or(Refusal::Token)?;
        let path = target.split('?').next().unwrap_or_default();
        if head.method == Method::GET && path == metrics::PATH {
            return self.metrics(&head.headers);
        }
        let url = self.route.url(target, &head.headers).ok_or(Refusal::NoService)?;
        let url: Uri = url.parse().map_err(|_| Refusal::BadUrl)?;
        if Api::from_path(path).is_some_and(|(_, purpose)| purpose == Purpose::Answer) {
            self.meter.check_budget().map_err(Refusal::Budget)?;
        }
        if websocket::is_wanted(&head.headers) {
            return self.pass_websocket(path, url, &head, upgrade).await;
        }
        let readable = readable(&head.method, path, &head.headers);
        let request_head = RequestHead::new(&head.headers, &url);
        let mut request = Request::new(());
        *request.headers_mut() = headers::of_request(&head);
        // The extensions hold the upper and lower case in which the client wrote the names of
        // headers.
        *request.extensions_mut() = head.extensions;
        let mut observer = None;
        let body = match readable {
            Some((api, purpose)) => {
                let (body, mut rewritten) = self.rewritten(api, whole(body).await?).await;
                if purpose == Purpose::Answer {
                    let model = api.model_in_path(path).map(str::to_owned);
                    rewritten.effect.model = rewritten.effect.model.take().or(model);
                    observer = Some(self.begin(api, rewritten, request_head)?);
                }
                request.headers_mut().insert(CONTENT_LENGTH, body.len().into());
                Full::new(body).map_err(|never| match never {}).boxed_unsync()
            }
            None => body.map_err(Into::into).boxed_unsync(),
        };
        *request.method_mut() = head.method;
        *request.uri_mut() = url;
        let response = self.send(request.map(|()| body)).await?;
        let observer = observer.map(|it| it.of_response(response.status(), response.headers()));
        Ok(passed_on(response, observer))
    }
}

impl Proxy {
    async fn send(&self, request: Request<AnyBody>) -> Result<Response<Incoming>, Refusal> {
        let address = address(request.uri());
        let sent = self.client.send(request).await;
        sent.map_err(|err| Refusal::Unreachable { address, why: describe(&err) })
    }

    /// Passes a WebSocket on. A WebSocket of a model API is refused unless the options or a header
    /// of the request allow it, and always if there is a budget. After a refusal agents send their
    /// requests over HTTP, where they are shortened and counted.
    async fn pass_websocket(
        &self,
        path: &str,
        url: Uri,
        head: &Parts,
        upgrade: OnUpgrade,
    ) -> Result<Response<AnyBody>, Refusal> {
        let api = Api::from_path(path).map(|(api, _)| api);
        let is_wanted = self.passes_websockets || head.headers.contains_key(BYPASS);
        if api.is_some() && (!is_wanted || self.meter.has_budget()) {
            return Err(Refusal::WebSocket);
        }
        let request_head = RequestHead::new(&head.headers, &url);
        let observer = api.map(|api| self.meter.begin(api, Rewritten::default(), request_head));
        let mut request = Request::new(Empty::new().map_err(|never| match never {}).boxed_unsync());
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = url;
        *request.headers_mut() = headers::of_request(head);
        *request.extensions_mut() = head.extensions.clone();
        websocket::add_headers(request.headers_mut());
        let mut response = self.send(request).await?;
        let observer = observer.map(|it| it.of_response(response.status(), response.headers()));
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(passed_on(response, observer));
        }
        self.websocket_log.call_once(|| {
            warn!(path, "WebSockets pass unread: nothing in them is shortened or counted");
        });
        self.meter.add_websocket();
        websocket::join(&mut response, upgrade, observer);
        let mut response = passed_on(response, None);
        websocket::add_headers(response.headers_mut());
        Ok(response)
    }

    /// Answers a request for the metrics. Refuses it if the proxy has no token and the `host`
    /// header names neither an IP address nor `localhost`.
    fn metrics(&self, headers: &HeaderMap) -> Result<Response<AnyBody>, Refusal> {
        if self.token.is_none() && !names_an_address(headers) {
            return Err(Refusal::Host);
        }
        Ok(text_response(metrics::MEDIA_TYPE, self.meter.metrics()))
    }

    /// Counts a request that is about to be sent, and gives its explanation, if it has one, to the
    /// explainer. Refuses the request if there is a budget and the model's price is unknown.
    fn begin(
        &self,
        api: &'static Api,
        request: Rewritten,
        head: RequestHead,
    ) -> Result<Observer, Refusal> {
        let model = request.effect.model.as_deref();
        self.meter.check_price(model).map_err(Refusal::Budget)?;
        if let (Some(take), Some(explanation)) = (&self.explainer, &request.explanation) {
            take(explanation);
        }
        Ok(self.meter.begin(api, request, head))
    }

    /// Plans a cut for the next request of a conversation, while this one is under way.
    fn prepare(&self, api: &'static Api, body: Bytes, next: NextCut) {
        let rewriter = Arc::clone(&self.rewriter);
        // No request waits for the plan. After an error no cut is prepared.
        drop(tokio::task::spawn_blocking(move || {
            if let Err(err) = rewriter.prepare(api, &body, next) {
                tracing::warn!(api = api.name, "no cut is prepared: {}", sentence(&err));
            }
        }));
    }

    /// The body as it is sent, and what was done to it. It is the original body in a dry run, and
    /// if the rewriter returns an error or panics.
    async fn rewritten(&self, api: &'static Api, original: Bytes) -> (Bytes, Rewritten) {
        let rewriter = Arc::clone(&self.rewriter);
        let body = original.clone();
        let rewritten =
            tokio::task::spawn_blocking(move || rewriter.rewrite(api, &body, Instant::now())).await;
        let failure = match rewritten {
            Ok(Ok(mut rewritten)) => {
                if let Some(failure) = &rewritten.effect.failure {
                    self.report(api, failure.clone());
                }
                if rewritten.effect.has_own_compaction {
                    info!(api = api.name, "the agent has compacted this conversation by itself");
                }
                let body = rewritten.body.take().filter(|_| !self.is_dry_run);
                if let Some(next) = rewritten.next_cut {
                    self.prepare(api, original.clone(), next);
                }
                let body = body.unwrap_or(original);
                rewritten.effect.bytes = body.len() as u64;
                return (body, rewritten);
            }
            Ok(Err(err)) => sentence(&err),
            Err(_) => "a panic".to_owned(),
        };
        self.report(api, failure.clone());
        let bytes = original.len() as u64;
        // The model is also read after an error, because a budget needs its price.
        let model = Messages::find(&original, api.list).and_then(|messages| messages.model);
        let effect = Effect { bytes, model, failure: Some(failure), ..Effect::default() };
        (original, Rewritten { effect, ..Rewritten::default() })
    }
}

impl Proxy {
    /// Logs and counts an error of epitome, because of which something passes unchanged.
    fn report(&self, api: &Api, failure: String) {
        warn!(api = api.name, failure, "something passes unchanged");
        self.meter.add_failure(failure);
    }
}

/// Removes the memos to which nothing was added for the time [`KEPT`].
fn remove_old_memos(folder: &Path) {
    let Some(before) = SystemTime::now().checked_sub(KEPT) else { return };
    if let Err(err) = epitome::wire::remove_old_memos(folder, before) {
        let failure = sentence(&err);
        warn!(failure, "old memos are not removed");
    }
}

/// The API of a request whose body is read, and what the request asks for. `None` if it passes
/// unread: it is no POST to the API of a model, its body is compressed, the length that it declares
/// exceeds [`LONGEST`], or it has the header [`BYPASS`].
fn readable(method: &Method, path: &str, headers: &HeaderMap) -> Option<(&'static Api, Purpose)> {
    let is_short = headers::content_length(headers).is_none_or(|length| length <= LONGEST as u64);
    let is_wanted = !headers.contains_key(BYPASS);
    let is_read = method == Method::POST && is_wanted && is_short && headers::is_plain(headers);
    Api::from_path(path).filter(|_| is_read)
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

/// The response of a service, without the headers about the connection to the service. `observer`
/// reads the body as it passes.
fn passed_on(response: Response<Incoming>, observer: Option<Observer>) -> Response<AnyBody> {
    let (mut head, body) = response.into_parts();
    head.headers = headers::passed_on(&head.headers);
    head.version = Version::HTTP_11;
    let body = Observed { body, observer };
    Response::from_parts(head, body.map_err(Into::into).boxed_unsync())
}

/// The scheme, the name and the port of a URL, without its query, which may contain a key.
fn address(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or_default();
    let authority = url.authority().map_or("", |authority| authority.as_str());
    format!("{scheme}://{authority}")
}
