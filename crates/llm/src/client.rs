//! A model that a provider runs. The only module of this crate that uses the network.

mod answer;
mod key_filter;

use std::sync::{Arc, Once};
use std::time::Duration;

use epitome_api::{Api, Auth, Delta, Endpoint, HttpRequest, Options, Outgoing, Response, Stream};
use epitome_model::{Block, Part, Tokens};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Url, tls};

use self::key_filter::KeyFilter;
use crate::catalogue::{Catalogue, ListedModel, THOUGHT};
use crate::failure::Failure;
use crate::key::Key;
use crate::name::{ModelName, Provider};
use crate::stop::Stop;
use crate::{Model, Request, Sink};

/// The default timeout of a whole response, or of each chunk of a streamed one: 10,000 tokens at 50
/// per second take 200 s.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The timeout for making a connection.
const CONNECT: Duration = Duration::from_secs(15);
/// Maximum size of a response, in bytes.
const LONGEST: usize = 16 << 20;

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct ClientSetup {
    name: ModelName,
    known: Option<ListedModel>,
    key: Option<Key>,
    auth: Option<Arc<dyn Auth>>,
    endpoint: Option<Endpoint>,
    address: Option<String>,
    timeout: Duration,
}

impl ClientSetup {
    /// Settings for a model, with its limits from the table if the table has it.
    pub fn new(name: ModelName, catalogue: &Catalogue) -> ClientSetup {
        let known = catalogue.look_up(&name).cloned();
        let key = None;
        let auth = None;
        let endpoint = None;
        let address = None;
        ClientSetup { name, known, key, auth, endpoint, address, timeout: TIMEOUT }
    }

    /// Authenticates with something other than a key in a header, such as a signature. If a key is
    /// set as well, it is not sent, but it is still removed from returned responses and error
    /// texts.
    #[must_use]
    pub fn with_auth(mut self, auth: impl Auth + 'static) -> ClientSetup {
        self.auth = Some(Arc::new(auth));
        self
    }

    /// Sets the endpoint, for a service that is not called as the API's own service is.
    #[must_use]
    pub fn with_endpoint(mut self, endpoint: Endpoint) -> ClientSetup {
        self.endpoint = Some(endpoint);
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: Option<Key>) -> ClientSetup {
        self.key = key;
        self
    }

    /// Sets a base URL to use instead of the provider's own.
    #[must_use]
    pub fn with_address(mut self, address: impl Into<String>) -> ClientSetup {
        self.address = Some(address.into());
        self
    }

    /// Sets the timeout of a whole response, or of each chunk of a streamed one. The default is
    /// five minutes.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> ClientSetup {
        self.timeout = timeout;
        self
    }
}

/// A model that a provider runs. Requests are independent: the client keeps nothing between them.
#[derive(Debug)]
pub struct Client {
    setup: ClientSetup,
    api: &'static Api,
    endpoint: Endpoint,
    auth: Option<Arc<dyn Auth>>,
    /// The base URL that paths are joined to.
    base: Url,
    http: reqwest::Client,
}

impl Client {
    /// Makes a client. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Failure::NoKey`] if the provider requires a key and neither a key nor another
    /// authentication is set. [`Failure::Setup`] if the base URL is missing or invalid, if it has
    /// no TLS and a key or another authentication would be sent to another machine, or if no HTTP
    /// client can be made.
    pub fn new(setup: ClientSetup) -> Result<Client, Failure> {
        let ClientSetup { name, key, auth, endpoint, address, .. } = &setup;
        let provider = name.provider;
        let address = address.as_deref().or(provider.address());
        let address = address.ok_or_else(|| Failure::Setup(no_address(provider)))?;
        let base = base(address, provider)?;
        let is_here = matches!(base.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        let api = provider.api();
        let proves = key.is_some() || auth.is_some();
        if !proves && !provider.is_open() {
            return Err(Failure::NoKey(provider.to_string()));
        }
        if proves && base.scheme() == "http" && !is_here {
            let what = "a key is sent over https only, except to this machine";
            return Err(Failure::Setup(what.into()));
        }
        let endpoint = endpoint.unwrap_or(api.endpoint);
        let auth = auth.clone().or_else(|| {
            let (name, prefix) = endpoint.key;
            Some(Arc::new(KeyHeader { key: key.clone()?, name, prefix }) as Arc<dyn Auth>)
        });
        let http = http(is_here, base.scheme() == "https")?;
        base.join(&(endpoint.path)(&name.model, false))
            .map_err(|err| Failure::Setup(err.to_string()))?;
        Ok(Client { setup, api, endpoint, auth, base, http })
    }

    async fn exchange(
        &self,
        request: &Request<'_>,
        sink: &mut Option<Sink<'_>>,
    ) -> Result<Response, Failure> {
        let key = self.setup.key.as_ref();
        let mut response = self.answer(self.post(request, sink.is_some())?).await?;
        let streamed = response.headers().get(CONTENT_TYPE).is_some_and(is_stream);
        let body = match sink {
            Some(sink) if streamed => self.receive(&mut response, &mut **sink).await?,
            Some(_) | None => self.whole(&mut response).await?,
        };
        // A service may repeat the key anywhere in its response.
        let body = match key {
            Some(key) => key.hide_whole(body),
            None => body,
        };
        let response = self.api.response(body.as_bytes()).map_err(|it| answer::bad(it, key))?;
        let response = answer::checked(response, text_bytes(&request.outgoing), key)?;
        if let (Some(sink), false) = (sink, streamed) {
            // Some services ignore a request to stream.
            sink(Delta::Text(&response.text()));
        }
        Ok(response)
    }

    /// Builds the HTTP request for a request to the model, authentication included.
    fn post(&self, request: &Request<'_>, stream: bool) -> Result<HttpRequest, Failure> {
        let ClientSetup { name, known, .. } = &self.setup;
        let options = Options {
            model: &name.model,
            max_tokens: self.limit(request.max_tokens),
            tools: request.tools,
            stream,
            reasons: known.as_ref().is_some_and(|known| known.thinks),
        };
        let made = self.api.request(&self.endpoint, &request.outgoing, &options);
        if made.messages == 0 {
            return Err(Failure::Setup("there is nothing to send".into()));
        }
        let url = self.base.join(&(self.endpoint.path)(&name.model, stream));
        let url = url.map_err(|err| Failure::Setup(err.to_string()))?;
        let fixed = [("content-type", "application/json")];
        let headers = fixed.iter().chain(self.endpoint.headers);
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let body = made.body.into_bytes();
        let mut http = HttpRequest { method: "POST", url: url.into(), headers, body };
        if let Some(auth) = &self.auth {
            auth.authorize(&mut http).map_err(Failure::Setup)?;
        }
        Ok(http)
    }

    /// Sends the request, and waits for the headers of the response. A response without a success
    /// status is a failure.
    async fn answer(&self, http: HttpRequest) -> Result<reqwest::Response, Failure> {
        let HttpRequest { url, headers, body, .. } = http;
        let mut request = self.http.post(url).body(body);
        for (name, value) in headers {
            let value = HeaderValue::try_from(value);
            let mut value =
                value.map_err(|_| Failure::Setup(format!("`{name}` cannot be sent")))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let mut response = self.in_time(request.send()).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let body = self.whole(&mut response).await?;
        let status = response.status().as_u16();
        let key = self.setup.key.as_ref();
        Err(answer::refused(status, &body, Some(response.headers()), key))
    }

    /// Waits for the headers of a response, or for the next chunk of a stream, at most as long as
    /// the timeout. A stream as a whole may take longer.
    async fn in_time<T>(
        &self,
        next: impl Future<Output = reqwest::Result<T>>,
    ) -> Result<T, Failure> {
        let timeout = self.setup.timeout;
        let next = tokio::time::timeout(timeout, next).await;
        next.map_err(|_| Failure::TimedOut(timeout))?.map_err(|err| self.on_the_way(&err))
    }

    fn on_the_way(&self, err: &reqwest::Error) -> Failure {
        answer::on_the_way(err, self.setup.timeout, self.setup.key.as_ref())
    }

    /// Reads the whole body of a response. Fails if the body is longer than [`LONGEST`].
    async fn whole(&self, response: &mut reqwest::Response) -> Result<String, Failure> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|err| self.on_the_way(&err))? {
            if body.len() + chunk.len() > LONGEST {
                return Err(endless());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Receives a streamed response: passes its pieces to `sink`, without the key, and returns the
    /// body that the service would have sent without streaming.
    async fn receive(
        &self,
        response: &mut reqwest::Response,
        sink: Sink<'_>,
    ) -> Result<String, Failure> {
        let key = self.setup.key.as_ref();
        let mut stream = Stream::new(self.api, self.endpoint.framing);
        let mut filter = KeyFilter::new(key);
        let mut length = 0;
        while let Some(chunk) = self.in_time(response.chunk()).await? {
            length += chunk.len();
            if length > LONGEST {
                return Err(endless());
            }
            let mut on = |delta: Delta<'_>| filter.push(delta, &mut *sink);
            stream.push(&chunk, &mut on).map_err(|it| answer::bad(it, key))?;
        }
        let mut on = |delta: Delta<'_>| filter.push(delta, &mut *sink);
        let body = stream.finish(&mut on).map_err(|it| answer::bad(it, key))?;
        filter.finish(sink);
        Ok(body)
    }

    /// The output limit to request. For a model that reasons, this is `max_tokens` and [`THOUGHT`]
    /// together, because every API counts reasoning as output. It is at most the model's own
    /// maximum, if that is known.
    fn limit(&self, max_tokens: u64) -> u64 {
        match &self.setup.known {
            Some(known) if known.thinks => (max_tokens + THOUGHT).min(known.output.0),
            Some(known) => max_tokens.min(known.output.0),
            None => max_tokens,
        }
    }

    /// Runs the request on a runtime of its own. [`Model::send`] calls this on a new thread,
    /// because a thread that runs async tasks cannot start a second runtime.
    fn wait(
        &self,
        request: &Request<'_>,
        mut sink: Option<Sink<'_>>,
        stop: &Stop,
    ) -> Result<Response, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|err| Failure::Setup(err.to_string()))?;
        let timeout = self.setup.timeout;
        let streams = sink.is_some();
        let answer = runtime.block_on(async {
            let exchange = self.exchange(request, &mut sink);
            let in_time = async {
                if streams {
                    return exchange.await;
                }
                let answer = tokio::time::timeout(timeout, exchange).await;
                answer.unwrap_or(Err(Failure::TimedOut(timeout)))
            };
            tokio::select! {
                biased;
                () = stop.stopped() => Err(Failure::Stopped),
                answer = in_time => answer,
            }
        });
        // This does not wait for a DNS lookup that is still running.
        runtime.shutdown_background();
        answer
    }
}

impl Model for Client {
    fn name(&self) -> &ModelName {
        &self.setup.name
    }

    fn window(&self) -> Option<Tokens> {
        self.setup.known.as_ref().map(ListedModel::usable_window)
    }

    fn send(
        &self,
        request: &Request<'_>,
        sink: Option<Sink<'_>>,
        stop: &Stop,
    ) -> Result<Response, Failure> {
        let response =
            std::thread::scope(|scope| scope.spawn(|| self.wait(request, sink, stop)).join());
        response.unwrap_or_else(|_| Err(Failure::BadAnswer("the client panicked".into())))
    }
}

/// Whether a response is streamed, according to its content type.
fn is_stream(value: &HeaderValue) -> bool {
    value.to_str().is_ok_and(|kind| kind.contains("event-stream") || kind.contains("ndjson"))
}

fn endless() -> Failure {
    Failure::BadAnswer("it is too large".into())
}

fn no_address(provider: Provider) -> String {
    format!("{provider} needs an address (--base-url)")
}

/// Parses a base URL. Its path gets a slash at the end. A URL without a path gets the path that the
/// provider usually has.
fn base(address: &str, provider: Provider) -> Result<Url, Failure> {
    let mut url = Url::parse(address).map_err(|err| wrong_address(&err.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong_address("it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong_address("it must not contain a name or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong_address("it must end with its path"));
    }
    let path = match url.path() {
        "" | "/" => format!("/{}", provider.path()),
        path if path.ends_with('/') => path.to_owned(),
        path => format!("{path}/"),
    };
    url.set_path(&path);
    Ok(url)
}

fn wrong_address(what: &str) -> Failure {
    Failure::Setup(format!("invalid service address: {what}"))
}

/// Installs the TLS implementation that clients of the crate `reqwest` use in this process. Later
/// calls do nothing.
pub fn prepare_tls() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // The result is ignored: the program that uses this crate may have installed a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// An HTTP client that follows no redirects: a redirect could send the key to another address.
fn http(is_here: bool, is_safe: bool) -> Result<reqwest::Client, Failure> {
    prepare_tls();
    let builder = reqwest::Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT)
        // Idle connections are not kept: a connection belongs to a runtime, and each request has
        // its own runtime.
        .pool_max_idle_per_host(0)
        .min_tls_version(tls::Version::TLS_1_2)
        .https_only(is_safe);
    let builder = if is_here { builder.no_proxy() } else { builder };
    builder.build().map_err(|err| Failure::Setup(err.to_string()))
}

/// A key in the header that an API requires.
#[derive(Debug)]
struct KeyHeader {
    key: Key,
    /// The name of the header.
    name: &'static str,
    /// The text before the key.
    prefix: &'static str,
}

impl Auth for KeyHeader {
    fn authorize(&self, request: &mut HttpRequest) -> Result<(), String> {
        let value = format!("{}{}", self.prefix, self.key.reveal());
        request.headers.push((self.name.to_owned(), value));
        Ok(())
    }
}

/// The number of bytes of text in a request: in messages, summaries and results. Other blocks, such
/// as calls and reasoning, are not counted.
fn text_bytes(outgoing: &Outgoing<'_>) -> u64 {
    let mut bytes = 0;
    for block in outgoing.transcript.context().flat_map(|(_, entry)| &entry.blocks) {
        match block {
            Block::Text(text) | Block::Summary(text) => bytes += text.read(outgoing.source).len(),
            Block::Output(output) => {
                for part in &output.parts {
                    if let Part::Text(text) = part {
                        bytes += text.read(outgoing.source).len();
                    }
                }
            }
            _ => {}
        }
    }
    bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_the_path_of_their_wire() {
        let cases = [
            ("http://127.0.0.1:1", Provider::Anthropic, "http://127.0.0.1:1/v1/"),
            ("http://127.0.0.1:1/", Provider::Google, "http://127.0.0.1:1/v1beta/"),
            ("http://127.0.0.1:1", Provider::Ollama, "http://127.0.0.1:1/"),
            ("https://a.example/x/v2", Provider::Compatible, "https://a.example/x/v2/"),
            ("ftp://a.example", Provider::OpenAi, "it must begin with"),
            ("https://me:secret@a.example", Provider::OpenAi, "a name or a password"),
            ("https://a.example/?key=1", Provider::OpenAi, "must end with its path"),
            ("a.example", Provider::OpenAi, "invalid service address"),
        ];
        for (address, provider, expect) in cases {
            let result = base(address, provider).map_or_else(|err| err.to_string(), String::from);
            assert!(result.contains(expect), "{address}: {result}");
            assert!(!result.contains("secret"), "{result}");
        }
    }

    #[test]
    fn a_client_wants_a_key_and_a_safe_way_for_it() {
        let catalogue = Catalogue::built_in();
        let key = Key::new("sk-0123456789");
        let cases = [
            ("openai/gpt-6-luna", None, None, "there is no key for openai"),
            ("openai/gpt-6-luna", key.clone(), None, "none"),
            ("openai/gpt-6-luna", key.clone(), Some("http://10.0.0.1"), "over https only"),
            ("openai/gpt-6-luna", key, Some("http://localhost:1"), "none"),
            ("ollama/x", None, None, "none"),
            ("compatible/x", None, None, "needs an address"),
            ("compatible/x", None, Some("http://10.0.0.1"), "none"),
        ];
        for (name, key, address, expect) in cases {
            let mut setup = ClientSetup::new(name.parse().expect("a name"), &catalogue);
            setup = setup.with_key(key);
            if let Some(address) = address {
                setup = setup.with_address(address);
            }
            let result = Client::new(setup).map_or_else(|err| err.to_string(), |_| "none".into());
            assert!(result.contains(expect), "{name} {address:?}: {result}");
        }
    }

    #[test]
    fn reasoning_has_room_of_its_own() {
        let catalogue = Catalogue::built_in();
        let cases = [
            ("anthropic/claude-haiku-5-5", 2_000, 10_000),
            ("openai/gpt-4.1-mini", 2_000, 2_000),
            ("groq/openai/gpt-oss-120b", 100_000, 65_536),
            ("groq/unknown", 2_000, 2_000),
        ];
        for (name, max_tokens, expect) in cases {
            let name: ModelName = name.parse().expect("a name");
            let setup = ClientSetup::new(name, &catalogue).with_key(Key::new("k-0123456789"));
            let client = Client::new(setup).expect("a client");
            assert_eq!(client.limit(max_tokens), expect, "{}", client.setup.name);
        }
    }
}
