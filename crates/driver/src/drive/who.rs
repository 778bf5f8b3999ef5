//! Whom somebody named.

use epitome_llm::{
    Catalogue, CatalogueError, Client, ClientSetup, Failure, ModelName, NoModel, Patient, Wanted,
};
use epitome_model::Tokens;

use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};

/// What somebody said of the models that are to be asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Naming<'a> {
    /// The model: `provider/model`, or a name in the table. Without it one that fits the session.
    pub model: Option<&'a str>,
    /// Where it is, if not where its provider is.
    pub address: Option<&'a str>,
    /// Models that are asked when it has no answer, in turn.
    pub fallback: &'a [String],
    /// The session's model, as the session calls it.
    pub session: Option<&'a str>,
    /// Tokens of the longest question, and of its answer.
    pub tokens: (Tokens, Tokens),
}

/// The table of models, with the user's own before it.
///
/// # Errors
///
/// `Settings` if the user's own is none.
pub fn catalogue(config: &Config) -> Result<Catalogue> {
    let path = config.models();
    let text = match std::fs::read_to_string(&path) {
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
/// `Settings` if there is no such model, no key for it, or no address.
pub fn named_models(config: &Config, naming: &Naming<'_>) -> Result<Patient> {
    let catalogue = catalogue(config)?;
    let (input, output) = naming.tokens;
    let wanted =
        Wanted { configured: naming.model, session: naming.session, input, output, provider: None };
    let choice = catalogue.choose(&wanted).map_err(|err: NoModel| {
        let err = Error::new(ErrorKind::Settings, err.to_string());
        err.with_hint("name one: anthropic/claude-haiku-4-5, ollama/qwen3:8b, …")
    })?;
    let first = client(config, &catalogue, choice.name, naming.address)?;
    let mut patient = Patient::new(first, catalogue.clone());
    for name in naming.fallback {
        let name = catalogue.resolve(name);
        let name = name.map_err(|err| Error::new(ErrorKind::Settings, err.to_string()))?;
        patient = patient.or(client(config, &catalogue, name, None)?);
    }
    Ok(patient)
}

fn client(
    config: &Config,
    catalogue: &Catalogue,
    name: ModelName,
    address: Option<&str>,
) -> Result<Client> {
    let provider = name.provider;
    let key = config.keys.get(&provider).cloned();
    let mut setup = ClientSetup::new(name, catalogue).with_key(key);
    if let Some(address) = address {
        setup = setup.at(address);
    }
    Client::new(setup).map_err(|failure| {
        let err = Error::new(ErrorKind::Settings, failure.to_string());
        match (failure, Config::key_variables(provider)) {
            (Failure::NoKey(_), [name, ..]) => err.with_hint(format!("set {name}")),
            _ => err,
        }
    })
}
