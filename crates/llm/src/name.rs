//! Providers, and the names of their models.

use std::fmt;
use std::str::FromStr;

use epitome_api::{Api, anthropic, gemini_api, ollama, openai_chat, openai_responses};
use serde::{Deserialize, Serialize};

/// A provider of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Anthropic, with its Messages API.
    Anthropic,
    /// OpenAI, with its Responses API.
    OpenAi,
    /// Google, with its Gemini API.
    Google,
    /// Groq, with OpenAI's Chat Completions API.
    Groq,
    /// OpenRouter, with OpenAI's Chat Completions API.
    OpenRouter,
    /// Ollama, on this machine unless an address is set.
    Ollama,
    /// Any service with the Chat Completions API at a given address.
    Compatible,
}

impl Provider {
    /// All providers.
    pub const ALL: [Provider; 7] = [
        Provider::Anthropic,
        Provider::OpenAi,
        Provider::Google,
        Provider::Groq,
        Provider::OpenRouter,
        Provider::Ollama,
        Provider::Compatible,
    ];

    /// The name of the provider in settings.
    pub fn name(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::Google => "google",
            Provider::Groq => "groq",
            Provider::OpenRouter => "openrouter",
            Provider::Ollama => "ollama",
            Provider::Compatible => "compatible",
        }
    }

    /// The provider with this name; `gemini` is another name of Google. `None` if there is no such
    /// provider.
    pub fn find(name: &str) -> Option<Provider> {
        let name = if name == "gemini" { "google" } else { name };
        Provider::ALL.into_iter().find(|provider| provider.name() == name)
    }

    /// The base URL of the provider; `None` if the user has to set it.
    pub fn address(self) -> Option<&'static str> {
        match self {
            Provider::Anthropic => Some("https://api.anthropic.com/v1/"),
            Provider::OpenAi => Some("https://api.openai.com/v1/"),
            Provider::Google => Some("https://generativelanguage.googleapis.com/v1beta/"),
            Provider::Groq => Some("https://api.groq.com/openai/v1/"),
            Provider::OpenRouter => Some("https://openrouter.ai/api/v1/"),
            Provider::Ollama => Some("http://127.0.0.1:11434/"),
            Provider::Compatible => None,
        }
    }

    /// Whether the provider needs no key.
    pub fn is_open(self) -> bool {
        matches!(self, Provider::Ollama | Provider::Compatible)
    }

    /// The API that the provider offers.
    pub fn api(self) -> &'static Api {
        match self {
            Provider::Anthropic => &anthropic::API,
            Provider::OpenAi => &openai_responses::API,
            Provider::Google => &gemini_api::API,
            Provider::Groq | Provider::OpenRouter | Provider::Compatible => &openai_chat::API,
            Provider::Ollama => &ollama::API,
        }
    }

    /// The path to use when the base URL has none.
    #[cfg(feature = "client")]
    pub(crate) fn path(self) -> &'static str {
        match self {
            Provider::Google => "v1beta/",
            Provider::Ollama => "",
            Provider::Anthropic
            | Provider::OpenAi
            | Provider::Groq
            | Provider::OpenRouter
            | Provider::Compatible => "v1/",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A model of a provider: `anthropic/claude-haiku-4-5`.
///
/// ```
/// use epitome_llm::{ModelName, Provider};
///
/// let name: ModelName = "openrouter/openai/gpt-oss-120b".parse().expect("a name");
/// assert_eq!((name.provider, &*name.model), (Provider::OpenRouter, "openai/gpt-oss-120b"));
/// assert_eq!(name.to_string(), "openrouter/openai/gpt-oss-120b");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelName {
    /// The provider.
    pub provider: Provider,
    /// The name of the model, as the provider writes it.
    pub model: String,
}

/// The error for a text that is not a model name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no model: PROVIDER/MODEL, with {known} as provider", known = providers())]
pub struct NameError(pub String);

impl FromStr for ModelName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<ModelName, NameError> {
        let wrong = || NameError(text.to_owned());
        let (provider, model) = text.split_once('/').ok_or_else(wrong)?;
        let provider = Provider::find(provider).ok_or_else(wrong)?;
        if model.is_empty()
            || !model.chars().all(may_be_in_name)
            || model.contains("..")
            || model.contains("::")
        {
            return Err(wrong());
        }
        Ok(ModelName { provider, model: model.to_owned() })
    }
}

fn may_be_in_name(c: char) -> bool {
    c.is_ascii_graphic() && !matches!(c, '?' | '#' | '"' | '\\' | '<')
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

impl Serialize for ModelName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn providers() -> String {
    Provider::ALL.map(Provider::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_or_refused() {
        let cases = [
            ("anthropic/claude-haiku-4-5", Some(Provider::Anthropic)),
            ("gemini/gemini-3.8-flash", Some(Provider::Google)),
            ("groq/openai/gpt-oss-20b", Some(Provider::Groq)),
            ("ollama/qwen3:8b", Some(Provider::Ollama)),
            ("claude-haiku-4-5", None),
            ("nobody/x", None),
            ("openai/", None),
            ("google/../../x", None),
            ("google/x?key=y", None),
            ("google/a b", None),
            ("openai/groq::x", None),
        ];
        for (text, provider) in cases {
            let name = text.parse::<ModelName>().ok();
            assert_eq!(name.map(|name| name.provider), provider, "{text}");
        }
    }
}
