//! Selects a model and its fallbacks, and prepares them to be called.

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

/// The options that select a model and its fallbacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelSelection<'a> {
    /// The model: `provider/model`, or a name in the table of models. If this is only the name of a
    /// provider, usually its cheapest model that can write the summary is selected. `None`: the
    /// same, with the provider of the session's model.
    pub model: Option<&'a str>,
    /// The address of the API. `None`: the provider's own address.
    pub address: Option<&'a str>,
    /// The models that are called if the model fails, in this order.
    pub fallback: &'a [String],
    /// The model of the session, as the session names it.
    pub session: Option<&'a str>,
    /// The tokens of the longest question, and the maximum tokens of the answer to it.
    pub tokens: (Tokens, Tokens),
    /// The time limit for a whole answer. `None`: five minutes.
    pub timeout: Option<Duration>,
    /// The number of attempts with each model. `None`: three.
    pub tries: Option<u32>,
}

/// The table of models: the entries of the user's own table, if there is one, then the built-in
/// ones.
///
/// # Errors
///
/// `Settings` if the user's table cannot be parsed; `Unreadable` if it cannot be read.
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

/// The selected model with its fallbacks, ready to be called. Nothing is sent yet.
///
/// # Errors
///
/// The errors of [`chosen_model`]; `Settings` if a fallback does not exist, or if a model has no
/// key or no address; `Unsupported` in a build without the feature `models`.
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
        // A given address is used for fallbacks of the same provider, too.
        let address = naming.address.filter(|_| name.provider == provider);
        patient = patient.or(client(config, &catalogue, name, address, naming)?);
    }
    Ok(patient)
}

/// Always returns an error: this build has no clients for providers.
///
/// # Errors
///
/// The errors of [`chosen_model`]; otherwise `Unsupported`.
#[cfg(not(feature = "models"))]
pub fn named_models(config: &Config, naming: &ModelSelection<'_>) -> Result<RetryingModel> {
    let name = chosen_model(config, naming)?.0.name;
    let what = format!("{name} cannot be called: epitome was built without the feature `models`");
    Err(Error::new(ErrorKind::Unsupported, what))
}

/// The model that would be called first, and the table of models. Needs no key.
///
/// # Errors
///
/// `Settings` if no model fits the selection; the errors of [`catalogue`].
pub fn chosen_model(config: &Config, naming: &ModelSelection<'_>) -> Result<(Choice, Catalogue)> {
    let catalogue = catalogue(config)?;
    let (input, output) = naming.tokens;
    let provider = naming.model.and_then(Provider::find);
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
        setup = setup.with_address(address);
    }
    if let Some(timeout) = naming.timeout {
        setup = setup.with_timeout(timeout);
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
