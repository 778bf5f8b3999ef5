//! The services that requests are passed on to.

use epitome_api::Api;
use epitome_llm::Provider;
use hyper::header::HeaderMap;
use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

/// Why a text is not the base URL of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadUpstream(pub &'static str);

impl std::fmt::Display for BadUpstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadUpstream {}

/// The base URL of a service: everything before the path of a request.
///
/// ```
/// use epitome_proxy::Upstream;
///
/// let upstream = Upstream::parse("https://gateway.example/team/")?;
/// assert_eq!(upstream.as_str(), "https://gateway.example/team");
/// assert!(Upstream::parse("https://me:secret@gateway.example").is_err());
/// # Ok::<(), epitome_proxy::BadUpstream>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream(String);

impl Upstream {
    /// Parses a base URL.
    ///
    /// # Errors
    ///
    /// If `address` is not a URL of `http` or `https`, contains a user name or a password, or has
    /// anything after its path.
    pub fn parse(address: &str) -> Result<Upstream, BadUpstream> {
        let url = Url::parse(address).map_err(|_| BadUpstream("it is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadUpstream("it must begin with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadUpstream("it must not contain a name or a password"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(BadUpstream("it must end with its path"));
        }
        Ok(Upstream(url.as_str().trim_end_matches('/').to_owned()))
    }

    /// The URL, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the service is on this machine.
    fn is_here(&self) -> bool {
        let url = Url::parse(&self.0).ok();
        let host = url.as_ref().and_then(Url::host_str);
        matches!(host, Some("127.0.0.1" | "localhost" | "[::1]"))
    }

    /// Splits off the path: the host with its scheme, and the path, which is empty or begins with a
    /// slash.
    pub fn split_path(&self) -> (Upstream, &str) {
        let host = self.0.find("://").map_or(0, |at| at + 3);
        let end = self.0[host..].find('/').map_or(self.0.len(), |at| host + at);
        (Upstream(self.0[..end].to_owned()), &self.0[end..])
    }
}

/// Chooses the service of a request.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// Always this service.
    One(Upstream),
    /// The provider's own service; the path or the headers of the request name the provider.
    ByRequest,
}

/// The service of Codex for users who are signed in with ChatGPT, and the header by which their
/// requests are recognised.
const CHATGPT: (&str, &str) = ("https://chatgpt.com/backend-api/codex", "chatgpt-account-id");

impl Route {
    /// The proxies that variables of the environment name; none if the service is on this machine.
    pub(crate) fn proxies(&self) -> Matcher {
        match self {
            Route::One(upstream) if upstream.is_here() => Matcher::builder().build(),
            Route::One(_) | Route::ByRequest => Matcher::from_env(),
        }
    }

    /// The URL for a request; `None` if nothing says which service it is for. `target` is the path
    /// with the query.
    pub(crate) fn url(&self, target: &str, headers: &HeaderMap) -> Option<String> {
        let path = target.split('?').next().unwrap_or_default();
        match self {
            Route::One(upstream) => Some(format!("{}{target}", upstream.as_str())),
            Route::ByRequest if headers.contains_key(CHATGPT.1) => {
                // Codex has a base URL of its own for these users, which does not end in a version.
                let target = target.strip_prefix("/v1").unwrap_or(target);
                Some(format!("{}{target}", CHATGPT.0))
            }
            Route::ByRequest => {
                let address = provider(path, headers)?.address()?;
                let host = Upstream::parse(address).ok()?.split_path().0;
                Some(format!("{}{target}", host.as_str()))
            }
        }
    }
}

/// The provider that a request is for: the provider of the API that its path names, or else the one
/// whose headers it has. `None` if neither is known.
fn provider(path: &str, headers: &HeaderMap) -> Option<Provider> {
    let known = [Provider::Anthropic, Provider::OpenAi, Provider::Google];
    if let Some((api, _)) = Api::from_path(path) {
        let is_of_openai = api.name.starts_with("openai");
        return match known.into_iter().find(|provider| provider.api().name == api.name) {
            None if is_of_openai => Some(Provider::OpenAi),
            found => found,
        };
    }
    known.into_iter().find(|provider| {
        let endpoint = provider.api().endpoint;
        let has = |name: &str| name != "authorization" && headers.contains_key(name);
        has(endpoint.key.0) || endpoint.headers.iter().any(|(name, _)| has(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str, headers: &[(&'static str, &str)]) -> Option<String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a value"));
        }
        Route::ByRequest.url(path, &map)
    }

    #[test]
    fn a_request_goes_to_the_service_of_its_path_or_of_its_headers() {
        let key = [("authorization", "Bearer k")];
        let chatgpt = [("authorization", "Bearer k"), ("chatgpt-account-id", "a")];
        for (path, headers, expect) in [
            ("/v1/messages?beta=true", &[][..], "https://api.anthropic.com/v1/messages?beta=true"),
            ("/v1/responses", &key, "https://api.openai.com/v1/responses"),
            ("/v1/responses", &chatgpt, "https://chatgpt.com/backend-api/codex/responses"),
            ("/v1/chat/completions", &key, "https://api.openai.com/v1/chat/completions"),
            ("/v1/models", &[("x-api-key", "k")], "https://api.anthropic.com/v1/models"),
            (
                "/v1/models",
                &[("anthropic-version", "2023-06-01")],
                "https://api.anthropic.com/v1/models",
            ),
            (
                "/v1beta/models/g:generateContent",
                &[],
                "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent",
            ),
            (
                "/v1beta/models",
                &[("x-goog-api-key", "k")],
                "https://generativelanguage.googleapis.com/v1beta/models",
            ),
        ] {
            assert_eq!(url(path, headers).as_deref(), Some(expect), "{path} {headers:?}");
        }
        assert_eq!(url("/v1/models", &key), None);
    }

    #[test]
    fn a_path_is_split_from_its_host() {
        for (address, host, path) in [
            ("https://a.example/api/v1/", "https://a.example", "/api/v1"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", ""),
        ] {
            let upstream = Upstream::parse(address).expect("an address");
            let (base, rest) = upstream.split_path();
            assert_eq!((base.as_str(), rest), (host, path));
        }
    }
}
