//! Whom somebody named.

use std::time::Duration;

use epitome_llm::{
    Catalogue, CatalogueError, Choice, ModelNeeds, NoModel, Provider, RetryingModel,
};
#[cfg(feature = "models")]
use epitome_llm::{Client, ClientSetup, Failure, ModelName, RetryPolicy};
use epitome_model::Tokens;

use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
#[cfg(feature = "models")]
use crate::keyring::{KeyPlace, key_of, keyring};
use crate::regular;

/// What somebody said of the models that are to be asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelSelection<'a> {
    /// The model: `provider/model`, or a name in the table. A provider alone stands for its
    /// cheapest that will do, or else the session's. Without it one that fits the session.
    pub model: Option<&'a str>,
    /// Where it is, if not where its provider is.
    pub address: Option<&'a str>,
    /// Models that are asked when it has no answer, in turn.
    pub fallback: &'a [String],
    /// The session's model, as the session calls it.
    pub session: Option<&'a str>,
    /// Tokens of the longest question, and of its answer.
    pub tokens: (Tokens, Tokens),
    /// What a whole answer may take, if not five minutes.
    pub timeout: Option<Duration>,
    /// How often each model is asked, if not three times.
    pub tries: Option<u32>,
}

/// The table of models, with the user's own before it.
///
/// # Errors
///
/// `Settings` if the user's own is none.
pub fn catalogue(config: &Config) -> Result<Catalogue> {
    let path = config.models();
    let text = match regular::read_to_string(&path) {
        Ok(text) => text,
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(Catalogue::built_in()),
        Err(err) => {
            let what = "your table of models cannot be read";
            return Err(Error::new(ErrorKind::Unreadable, what).at(&path).because(err));
        }
    };
    let own = Catalogue::parse(&text).map_err(|err: CatalogueError| {
        Error::new(ErrorKind::Settings, "your table of models is not understood")
            .at(&path)
            .because(err)
    })?;
    Ok(Catalogue::built_in().with(own))
}

/// The models that somebody named, ready to be asked. Nothing is sent yet.
///
/// # Errors
///
/// `Settings` if there is no such model, no key for it, or no address; `Unsupported` without the
/// feature `models`.
#[cfg(feature = "models")]
pub fn named_models(config: &Config, naming: &ModelSelection<'_>) -> Result<RetryingModel> {
    let (choice, catalogue) = chosen_model(config, naming)?;
    let provider = choice.name.provider;
    let first = client(config, &catalogue, choice.name, naming.address, naming)?;
    let tries = naming.tries.unwrap_or(RetryPolicy::default().tries);
    let mut patient = RetryingModel::new(first, catalogue.clone())
        .with_policy(RetryPolicy { tries, ..RetryPolicy::default() });
    for name in naming.fallback {
        let name = catalogue.resolve(name);
        let name = name.map_err(|err| Error::new(ErrorKind::Settings, err.to_string()))?;
        // Whoever runs both runs them in one place.
        let address = naming.address.filter(|_| name.provider == provider);
        patient = patient.or(client(config, &catalogue, name, address, naming)?);
    }
    Ok(patient)
}

/// Fails, because nothing that calls a provider is built in.
///
/// # Errors
///
/// `Settings` if there is no such model; `Unsupported`.
#[cfg(not(feature = "models"))]
pub fn named_models(config: &Config, naming: &ModelSelection<'_>) -> Result<RetryingModel> {
    let name = chosen_model(config, naming)?.0.name;
    let what = format!("{name} cannot be called: epitome was built without the feature `models`");
    Err(Error::new(ErrorKind::Unsupported, what))
}

/// The model that is asked first, with the table in which it was looked up. It needs no key yet.
///
/// # Errors
///
/// `Settings` if there is no such model.
pub fn chosen_model(config: &Config, naming: &ModelSelection<'_>) -> Result<(Choice, Catalogue)> {
    let catalogue = catalogue(config)?;
    let (input, output) = naming.tokens;
    let provider = naming.model.and_then(Provider::named);
    let configured = naming.model.filter(|_| provider.is_none());
    let wanted = ModelNeeds { configured, session: naming.session, input, output, provider };
    let choice = catalogue.choose(&wanted).map_err(|err: NoModel| {
        let err = Error::new(ErrorKind::Settings, err.to_string());
        err.with_hint("name one: anthropic/claude-haiku-4-5, ollama/qwen3:8b, …")
    })?;
    Ok((choice, catalogue))
}

#[cfg(feature = "models")]
fn client(
    config: &Config,
    catalogue: &Catalogue,
    name: ModelName,
    address: Option<&str>,
    naming: &ModelSelection<'_>,
) -> Result<Client> {
    let provider = name.provider;
    let (key, place) = key_of(config, provider, keyring(config));
    let mut setup = ClientSetup::new(name, catalogue).with_key(key);
    if let Some(address) = address {
        setup = setup.at(address);
    }
    if let Some(timeout) = naming.timeout {
        setup = setup.within(timeout);
    }
    Client::new(setup).map_err(|failure| {
        let err = Error::new(ErrorKind::Settings, failure.to_string());
        if !matches!(failure, Failure::NoKey(_)) {
            return err;
        }
        let variables = Config::key_variables(provider).join(" or ");
        match place {
            KeyPlace::Nowhere(Some(why)) => {
                err.with_hint(format!("set {variables}; cannot use the keyring: {why}"))
            }
            KeyPlace::Variable(_)
            | KeyPlace::Keyring
            | KeyPlace::Nowhere(None)
            | KeyPlace::Unneeded => {
                err.with_hint(format!("set {variables}, or `epitome key set {provider}`"))
            }
        }
    })
}
