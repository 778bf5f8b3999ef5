//! Chooses the model to call.

use epitome_model::Tokens;
use epitome_passes::TokenUsage;
use serde::Serialize;

use crate::catalogue::{Catalogue, ListedModel};
use crate::name::{ModelName, NameError, Provider};

/// What the choice of a model depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelNeeds<'a> {
    /// The model that the user set: `provider/model`, or the name of a model in the table.
    pub configured: Option<&'a str>,
    /// The provider to use. `None` means the provider of the session's model.
    pub provider: Option<Provider>,
    /// The session's model, as the session names it.
    pub session: Option<&'a str>,
    /// Tokens of the longest request that the model must accept.
    pub input: Tokens,
    /// Maximum tokens of the response to that request.
    pub output: Tokens,
}

/// The chosen model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The name of the chosen model.
    pub name: ModelName,
    /// The reason for the choice.
    pub because: ChoiceReason,
}

/// Why a model was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChoiceReason {
    /// The user set the model.
    Configured,
    /// The model is the provider's cheapest that is good enough and accepts the request.
    Cheapest,
    /// The model is the session's own.
    Session,
}

/// Why no model was chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoModel {
    /// The setting is not a model name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Neither a model nor a provider is set, and the session names no model that can be used.
    #[error("no model is set, and the session does not name one that can be used")]
    Unsaid,
    /// A provider is set, but the table has no suitable model of it, and the session's model cannot
    /// be called there either, for example because it belongs to another provider.
    #[error("no model of {0} in the model table is suitable")]
    NoneOf(Provider),
}

impl Catalogue {
    /// Chooses the user's model; or else the cheapest model of the given provider (`None`: of the
    /// session's provider) that is good enough for summaries and accepts the request; or else the
    /// session's own model.
    ///
    /// # Errors
    ///
    /// [`NoModel`] if the setting is not the name of a model, or if no suitable model is known.
    ///
    /// ```
    /// use epitome_llm::{Catalogue, ChoiceReason, ModelNeeds};
    /// use epitome_model::Tokens;
    ///
    /// let catalogue = Catalogue::built_in();
    /// let session = Some("claude-opus-4-6");
    /// let input = Tokens(120_000);
    /// let choice = catalogue.choose(&ModelNeeds { session, input, ..ModelNeeds::default() })?;
    /// assert_eq!(choice.name.to_string(), "anthropic/claude-haiku-5-5");
    /// assert_eq!(choice.because, ChoiceReason::Cheapest);
    /// # Ok::<(), epitome_llm::NoModel>(())
    /// ```
    pub fn choose(&self, wanted: &ModelNeeds<'_>) -> Result<Choice, NoModel> {
        if let Some(text) = wanted.configured {
            return Ok(Choice { name: self.resolve(text)?, because: ChoiceReason::Configured });
        }
        let session = wanted.session.and_then(|name| self.session(name, wanted.provider));
        let provider = wanted.provider.or(session.as_ref().map(|name| name.provider));
        let cheapest = provider.and_then(|provider| self.cheapest(provider, wanted));
        if let Some(known) = cheapest {
            return Ok(Choice { name: known.name.clone(), because: ChoiceReason::Cheapest });
        }
        match session {
            Some(name) => Ok(Choice { name, because: ChoiceReason::Session }),
            None => Err(wanted.provider.map_or(NoModel::Unsaid, NoModel::NoneOf)),
        }
    }

    /// Resolves a model name that a user typed: `provider/model`, or a name in the table.
    ///
    /// # Errors
    ///
    /// [`NameError`] if the text is neither.
    pub fn resolve(&self, text: &str) -> Result<ModelName, NameError> {
        text.parse().or_else(|err| self.find(text).map(|known| known.name.clone()).ok_or(err))
    }

    fn session(&self, model: &str, provider: Option<Provider>) -> Option<ModelName> {
        let other = self.find(model).map(|known| known.name.provider);
        match provider {
            // The session's model belongs to another provider.
            Some(provider) if other.is_some_and(|other| other != provider) => None,
            Some(provider) => format!("{provider}/{model}").parse().ok(),
            None => self.resolve(model).ok(),
        }
    }

    /// The cheapest model of the provider that suffices for this request; of equally cheap ones,
    /// the one with the largest window.
    fn cheapest(&self, provider: Provider, wanted: &ModelNeeds<'_>) -> Option<&ListedModel> {
        let used =
            TokenUsage { input: wanted.input, output: wanted.output, ..TokenUsage::default() };
        let of_provider = self.models().filter(|known| {
            known.name.provider == provider
                && known.summaries
                && known.usable_window() >= wanted.input + wanted.output
                && known.output >= wanted.output
        });
        of_provider.min_by_key(|known| (known.cost(&used), std::cmp::Reverse(known.window)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_comes_first_then_the_cheapest_then_the_sessions_own() {
        let small = (1_000, 1_000);
        let cases = [
            ((Some("groq/x"), Some("claude-opus-5"), small), "groq/x Configured"),
            ((Some("gpt-5.4-mini"), None, small), "openai/gpt-5.4-mini Configured"),
            ((Some("what"), Some("claude-opus-5"), small), "error"),
            ((None, Some("claude-opus-5"), small), "anthropic/claude-haiku-5-5 Cheapest"),
            ((None, Some("gpt-5.5"), small), "openai/gpt-6-luna Cheapest"),
            ((None, Some("gpt-5.5"), (300_000, 9_000)), "openai/gpt-4.1-mini Cheapest"),
            (
                (None, Some("gemini-3.1-pro-preview"), small),
                "google/gemini-3.1-flash-lite Cheapest",
            ),
            // No model of this provider in the table accepts so long a request: the session's own
            // model is chosen, because it accepted the session.
            ((None, Some("claude-opus-5"), (2_000_000, 1)), "anthropic/claude-opus-5 Session"),
            ((None, Some("mock-model"), small), "error"),
            ((None, Some("ollama/qwen3:8b"), small), "ollama/qwen3:8b Session"),
            ((None, None, small), "error"),
        ];
        let catalogue = Catalogue::built_in();
        for ((configured, session, (input, output)), expect) in cases {
            let (input, output) = (Tokens(input), Tokens(output));
            let wanted = ModelNeeds { configured, session, input, output, provider: None };
            let choice = catalogue.choose(&wanted);
            let chosen = choice.map(|it| format!("{} {:?}", it.name, it.because));
            assert_eq!(chosen.unwrap_or("error".into()), expect, "{configured:?} {session:?}");
        }
    }

    #[test]
    fn a_named_provider_counts_more_than_the_name_of_the_session() {
        let wanted = |session| ModelNeeds {
            provider: Some(Provider::OpenRouter),
            session: Some(session),
            input: Tokens(10),
            ..ModelNeeds::default()
        };
        let name = Catalogue::built_in().choose(&wanted("openai/gpt-5.5")).map(|it| it.name);
        let name = name.expect("there is one").to_string();
        assert_eq!(name, "openrouter/anthropic/claude-haiku-4.5");
    }
}
