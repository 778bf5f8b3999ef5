//! A model that a provider runs. The one place of this house that speaks with a network.

mod answer;
mod wire;

use std::sync::Once;
use std::time::Duration;

use epitome_model::Tokens;
use epitome_passes::{Ask, Reply};
use reqwest::header::HeaderValue;
use reqwest::redirect::Policy;
use reqwest::{Url, tls};
use wire::Wire;

use crate::Model;
use crate::catalogue::{Catalogue, Known, THOUGHT};
use crate::failure::Failure;
use crate::key::Key;
use crate::name::{ModelName, Provider};
use crate::stop::Stop;

/// What a whole answer may take. Ten thousand tokens at 50 a second are 200 s.
const TIMEOUT: Duration = Duration::from_secs(300);
/// What reaching the service may take.
const CONNECT: Duration = Duration::from_secs(15);
/// Bytes that an answer has at most.
const LONGEST: usize = 16 << 20;

/// What a client is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSetup {
    name: ModelName,
    known: Option<Known>,
    key: Option<Key>,
    address: Option<String>,
    timeout: Duration,
}

impl ClientSetup {
    /// For a model, with what is known of it.
    pub fn new(name: ModelName, catalogue: &Catalogue) -> ClientSetup {
        let known = catalogue.known(&name).cloned();
        ClientSetup { name, known, key: None, address: None, timeout: TIMEOUT }
    }

    /// With a key.
    #[must_use]
    pub fn with_key(mut self, key: Option<Key>) -> ClientSetup {
        self.key = key;
        self
    }

    /// At another address than its provider's own.
    #[must_use]
    pub fn at(mut self, address: impl Into<String>) -> ClientSetup {
        self.address = Some(address.into());
        self
    }

    /// With another time for a whole answer than five minutes.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> ClientSetup {
        self.timeout = timeout;
        self
    }
}

/// A model that a provider runs. Questions are sent one by one, with nothing kept in between.
#[derive(Debug)]
pub struct Client {
    setup: ClientSetup,
    wire: Wire,
    url: Url,
    http: reqwest::Client,
}

impl Client {
    /// A client. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// `NoKey` and `Setup`, when the model cannot be asked like this.
    pub fn new(setup: ClientSetup) -> Result<Client, Failure> {
        let ClientSetup { name, key, address, .. } = &setup;
        let provider = name.provider;
        let address = address.as_deref().or(provider.address());
        let address = address.ok_or_else(|| Failure::Setup(no_address(provider)))?;
        let url = base(address, provider)?;
        let is_here = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        match key {
            None if !provider.is_open() => return Err(Failure::NoKey(provider.to_string())),
            Some(_) if url.scheme() == "http" && !is_here => {
                let what = "a key is sent over https only, but to this machine";
                return Err(Failure::Setup(what.into()));
            }
            Some(_) | None => {}
        }
        let http = http(is_here, url.scheme() == "https")?;
        let wire = Wire::of(provider);
        let url = url.join(&wire.path(&name.model));
        let url = url.map_err(|err| Failure::Setup(err.to_string()))?;
        Ok(Client { setup, wire, url, http })
    }

    async fn exchange(&self, ask: &Ask) -> Result<Reply, Failure> {
        let ClientSetup { name, key, timeout, .. } = &self.setup;
        let key = key.as_ref();
        let on_the_way = |err: reqwest::Error| answer::on_the_way(&err, *timeout, key);
        let body = self.wire.body(name, ask, self.limit(ask)).to_string();
        let mut request = self.http.post(self.url.clone()).body(body);
        request = request.header("content-type", "application/json");
        for (name, value) in self.wire.headers(key) {
            let mut value = HeaderValue::try_from(value).expect("a key is printable ASCII");
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let mut response = request.send().await.map_err(on_the_way)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(on_the_way)? {
            if body.len() + chunk.len() > LONGEST {
                return Err(Failure::BadAnswer("it has no end".into()));
            }
            body.extend_from_slice(&chunk);
        }
        if !response.status().is_success() {
            let (status, text) = (response.status().as_u16(), String::from_utf8_lossy(&body));
            return Err(answer::refused(status, &text, Some(response.headers()), key));
        }
        answer::reply(self.wire, &body, ask, key)
    }

    /// Tokens of the whole answer: reasoning counts as part of it on every wire.
    fn limit(&self, ask: &Ask) -> u64 {
        match &self.setup.known {
            Some(known) if known.thinks => (ask.max_tokens + THOUGHT).min(known.output.0),
            Some(known) => ask.max_tokens.min(known.output.0),
            None => ask.max_tokens,
        }
    }

    /// Runs the exchange on a thread of its own, so that callers may themselves be tasks.
    fn wait(&self, ask: &Ask, stop: &Stop) -> Result<Reply, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|err| Failure::Setup(err.to_string()))?;
        let timeout = self.setup.timeout;
        let answer = runtime.block_on(async {
            tokio::select! {
                biased;
                () = stop.stopped() => Err(Failure::Stopped),
                answer = tokio::time::timeout(timeout, self.exchange(ask)) => {
                    answer.unwrap_or(Err(Failure::TimedOut(timeout)))
                }
            }
        });
        // A name that is still being looked up is nobody's business any more.
        runtime.shutdown_background();
        answer
    }
}

impl Model for Client {
    fn name(&self) -> &ModelName {
        &self.setup.name
    }

    fn window(&self) -> Option<Tokens> {
        self.setup.known.as_ref().map(Known::room)
    }

    fn ask(&self, ask: &Ask, stop: &Stop) -> Result<Reply, Failure> {
        let answer = std::thread::scope(|scope| scope.spawn(|| self.wait(ask, stop)).join());
        answer.unwrap_or_else(|_| Err(Failure::BadAnswer("it breaks the client".into())))
    }
}

fn no_address(provider: Provider) -> String {
    format!("{provider} needs an address (--base-url)")
}

/// An address with a path, which ends in a slash.
fn base(address: &str, provider: Provider) -> Result<Url, Failure> {
    let wrong = |what: &str| Failure::Setup(format!("this is no address of a service: {what}"));
    let mut url = Url::parse(address).map_err(|err| wrong(&err.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it begins with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("names and passwords do not belong into it"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it ends with its path"));
    }
    let path = match url.path() {
        "" | "/" => format!("/{}", provider.path()),
        path if path.ends_with('/') => path.to_owned(),
        path => format!("{path}/"),
    };
    url.set_path(&path);
    Ok(url)
}

/// A client that follows no redirection, which would carry the key elsewhere.
fn http(is_here: bool, is_safe: bool) -> Result<reqwest::Client, Failure> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Whoever embeds this may have chosen one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let builder = reqwest::Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT)
        // Each question has a runtime of its own, and a connection belongs to one.
        .pool_max_idle_per_host(0)
        .min_tls_version(tls::Version::TLS_1_2)
        .https_only(is_safe);
    let builder = if is_here { builder.no_proxy() } else { builder };
    builder.build().map_err(|err| Failure::Setup(err.to_string()))
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
            ("ftp://a.example", Provider::OpenAi, "it begins with"),
            ("https://me:secret@a.example", Provider::OpenAi, "do not belong"),
            ("https://a.example/?key=1", Provider::OpenAi, "ends with its path"),
            ("a.example", Provider::OpenAi, "no address"),
        ];
        for (address, provider, expect) in cases {
            let told = base(address, provider).map_or_else(|err| err.to_string(), String::from);
            assert!(told.contains(expect), "{address}: {told}");
            assert!(!told.contains("secret"), "{told}");
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
                setup = setup.at(address);
            }
            let told = Client::new(setup).map_or_else(|err| err.to_string(), |_| "none".into());
            assert!(told.contains(expect), "{name} {address:?}: {told}");
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
            let ask = Ask { system: String::new(), prompt: String::new(), max_tokens };
            assert_eq!(client.limit(&ask), expect, "{}", client.setup.name);
        }
    }
}
