//! Which model is asked.

use epitome_model::Tokens;
use epitome_passes::TokenUsage;
use serde::Serialize;

use crate::catalogue::{Catalogue, Known};
use crate::name::{ModelName, NameError, Provider};

/// What somebody wants a model for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// What the user set: `provider/model`, or the name of a model that is in the table.
    pub configured: Option<&'a str>,
    /// Whoever is to be asked, if that is not whoever runs the session's model.
    pub provider: Option<Provider>,
    /// The session's model, as the session calls it.
    pub session: Option<&'a str>,
    /// Tokens of the longest question.
    pub input: Tokens,
    /// Tokens of its answer.
    pub output: Tokens,
}

/// The model that is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// Which one.
    pub name: ModelName,
    /// Why it.
    pub because: Because,
}

/// Why a model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Because {
    /// The user said so.
    Configured,
    /// It is the cheapest of the provider that is good enough and takes the question.
    Cheapest,
    /// It is the session's own.
    Session,
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoModel {
    /// What was set is no name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Nothing is set, and the session says nothing that helps.
    #[error("no model is set, and the session does not say which one would do")]
    Unsaid,
    /// A provider is set, and nothing is known of it that would do.
    #[error("no model of {0} that is in the table would do")]
    NoneOf(Provider),
}

impl Catalogue {
    /// The model that is asked: what the user set, the cheapest of the session's provider that is
    /// good enough for summaries and takes so much, or the session's own.
    ///
    /// # Errors
    ///
    /// When what is set is no name of a model, and when nothing is known that could be asked.
    ///
    /// ```
    /// use epitome_llm::{Because, Catalogue, Wanted};
    /// use epitome_model::Tokens;
    ///
    /// let catalogue = Catalogue::built_in();
    /// let session = Some("claude-opus-4-6");
    /// let input = Tokens(120_000);
    /// let choice = catalogue.choose(&Wanted { session, input, ..Wanted::default() })?;
    /// assert_eq!(choice.name.to_string(), "anthropic/claude-haiku-5-5");
    /// assert_eq!(choice.because, Because::Cheapest);
    /// # Ok::<(), epitome_llm::NoModel>(())
    /// ```
    pub fn choose(&self, wanted: &Wanted<'_>) -> Result<Choice, NoModel> {
        if let Some(text) = wanted.configured {
            return Ok(Choice { name: self.resolve(text)?, because: Because::Configured });
        }
        let session = wanted.session.and_then(|name| self.session(name, wanted.provider));
        let provider = wanted.provider.or(session.as_ref().map(|name| name.provider));
        let cheapest = provider.and_then(|provider| self.cheapest(provider, wanted));
        let choice = |name: ModelName, because| Choice { name, because };
        cheapest
            .map(|known| choice(known.name.clone(), Because::Cheapest))
            .or_else(|| session.map(|name| choice(name, Because::Session)))
            .ok_or(wanted.provider.map_or(NoModel::Unsaid, NoModel::NoneOf))
    }

    /// A model by what a user calls it.
    ///
    /// # Errors
    ///
    /// When it has no provider and is not in the table.
    pub fn resolve(&self, text: &str) -> Result<ModelName, NameError> {
        text.parse().or_else(|err| self.named(text).map(|known| known.name.clone()).ok_or(err))
    }

    fn session(&self, model: &str, provider: Option<Provider>) -> Option<ModelName> {
        let other = self.named(model).map(|known| known.name.provider);
        match provider {
            // What somebody else runs is not to be had there.
            Some(provider) if other.is_some_and(|other| other != provider) => None,
            Some(provider) => format!("{provider}/{model}").parse().ok(),
            None => self.resolve(model).ok(),
        }
    }

    /// The cheapest for this very question; of equals the one with the larger window.
    fn cheapest(&self, provider: Provider, wanted: &Wanted<'_>) -> Option<&Known> {
        let used =
            TokenUsage { input: wanted.input, output: wanted.output, ..TokenUsage::default() };
        let fits = |known: &&Known| {
            known.name.provider == provider
                && known.summaries
                && known.room() >= wanted.input + wanted.output
                && known.output >= wanted.output
        };
        let of_provider = self.models().filter(fits);
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
            // Nothing of this provider takes it: the session's model did, until now.
            ((None, Some("claude-opus-5"), (2_000_000, 1)), "anthropic/claude-opus-5 Session"),
            ((None, Some("mock-model"), small), "error"),
            ((None, Some("ollama/qwen3:8b"), small), "ollama/qwen3:8b Session"),
            ((None, None, small), "error"),
        ];
        let catalogue = Catalogue::built_in();
        for ((configured, session, (input, output)), expect) in cases {
            let (input, output) = (Tokens(input), Tokens(output));
            let wanted = Wanted { configured, session, input, output, provider: None };
            let choice = catalogue.choose(&wanted);
            let told = choice.map(|it| format!("{} {:?}", it.name, it.because));
            assert_eq!(told.unwrap_or("error".into()), expect, "{configured:?} {session:?}");
        }
    }

    #[test]
    fn a_named_provider_counts_more_than_the_name_of_the_session() {
        let wanted = |session| Wanted {
            provider: Some(Provider::OpenRouter),
            session: Some(session),
            input: Tokens(10),
            ..Wanted::default()
        };
        let name = Catalogue::built_in().choose(&wanted("openai/gpt-5.5")).map(|it| it.name);
        let name = name.expect("there is one").to_string();
        assert_eq!(name, "openrouter/anthropic/claude-haiku-4.5");
    }
}
