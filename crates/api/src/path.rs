//! Recognises the API that a request is for by the path of its URL.

use crate::{APIS, Api};

/// What a request asks a service for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A response of a model.
    Answer,
    /// The number of tokens of the request.
    Count,
}

impl Api {
    /// The API that has an endpoint at `path`, and what a request to this endpoint asks for; `None`
    /// if there is no such API. `path` has no query; it may begin with the base path of any
    /// service.
    ///
    /// ```
    /// use epitome_api::{Api, Purpose};
    ///
    /// let (api, purpose) = Api::from_path("/v1/messages/count_tokens").expect("an endpoint");
    /// assert_eq!((api.name, purpose), ("anthropic", Purpose::Count));
    /// assert!(Api::from_path("/v1/models").is_none());
    /// ```
    pub fn from_path(path: &str) -> Option<(&'static Api, Purpose)> {
        // The path of Gemini's API names a model: `models/MODEL:generateContent`.
        let (path, model) = match path.rsplit_once("/models/") {
            Some((before, named)) => (before, Some(named)),
            None => (path, None),
        };
        APIS.iter().find_map(|api| Some((api, api.purpose(path, model)?)))
    }

    /// The model that a path names; `None` if the path names none, or if the bodies of this API
    /// name the model.
    ///
    /// ```
    /// let gemini = epitome_api::find_api("gemini-api").expect("an API");
    /// let path = "/v1beta/models/gemini-3-pro:generateContent";
    /// assert_eq!(gemini.model_in_path(path), Some("gemini-3-pro"));
    /// ```
    pub fn model_in_path<'p>(&self, path: &'p str) -> Option<&'p str> {
        if self.endpoint.model_in_body {
            return None;
        }
        let (_, named) = path.rsplit_once("/models/")?;
        named.split_once(':').map(|(model, _)| model)
    }

    /// What a request to a path asks for; `None` if it is not a path of this API. If the path
    /// contains `/models/`, `path` is the part before it and `model` the part after it.
    fn purpose(&self, path: &str, model: Option<&str>) -> Option<Purpose> {
        if let Some((model, method)) = model.and_then(|named| named.split_once(':')) {
            let is_method = |stream| {
                let path = (self.endpoint.path)(model, stream);
                let path = path.split('?').next().unwrap_or_default();
                path.rsplit_once(':').is_some_and(|(_, known)| known == method)
            };
            let is_count =
                method == "countTokens" && (self.endpoint.path)(model, false).contains(':');
            let is_answer = is_method(false) || is_method(true);
            return is_answer.then_some(Purpose::Answer).or(is_count.then_some(Purpose::Count));
        }
        let own = (self.endpoint.path)("", false);
        let ends_with = |end: &str| path.strip_suffix(end).is_some_and(|it| it.ends_with('/'));
        if model.is_some() || own.contains(':') {
            return None;
        }
        if ends_with(&own) {
            return Some(Purpose::Answer);
        }
        ends_with(&format!("{own}/count_tokens")).then_some(Purpose::Count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_their_api_behind_any_prefix() {
        let cases = [
            ("/v1/messages", Some(("anthropic", Purpose::Answer))),
            ("/api/anthropic/v1/messages", Some(("anthropic", Purpose::Answer))),
            ("/v1/messages/count_tokens", Some(("anthropic", Purpose::Count))),
            ("/v1/messages/batches", None),
            ("/v1/chat/completions", Some(("openai-chat", Purpose::Answer))),
            ("/openai/v1/chat/completions", Some(("openai-chat", Purpose::Answer))),
            ("/v1/responses", Some(("openai-responses", Purpose::Answer))),
            ("/backend-api/codex/responses", Some(("openai-responses", Purpose::Answer))),
            ("/v1/responses/compact", None),
            ("/v1beta/models/gemini-3:generateContent", Some(("gemini-api", Purpose::Answer))),
            ("/v1beta/models/g:streamGenerateContent", Some(("gemini-api", Purpose::Answer))),
            ("/v1beta/models/g:countTokens", Some(("gemini-api", Purpose::Count))),
            ("/v1beta/models/g:embedContent", None),
            ("/v1beta/models/g", None),
            ("/v1/models", None),
            ("/xmessages", None),
            ("/", None),
            ("", None),
        ];
        for (path, expect) in cases {
            let found = Api::from_path(path).map(|(api, purpose)| (api.name, purpose));
            assert_eq!(found, expect, "{path}");
        }
    }
}
