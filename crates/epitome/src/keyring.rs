//! Keys of those who run models, in the platform's keyring: where one is looked for that the
//! environment does not have.

use epitome_llm::{Key, Provider};

use crate::config::Config;

/// What keys are kept under, beside the name of the provider.
const SERVICE: &str = "epitome";

/// Somewhere keys are kept.
pub trait Keyring {
    /// The key of a provider, if there is one.
    ///
    /// # Errors
    ///
    /// If there is no keyring, or it does not answer.
    fn get(&self, provider: Provider) -> Result<Option<Key>, NoKeyring>;

    /// Keeps a key in place of any other of this provider.
    ///
    /// # Errors
    ///
    /// As [`get`](Keyring::get).
    fn set(&self, provider: Provider, key: &Key) -> Result<(), NoKeyring>;

    /// Forgets a key; says whether there was one.
    ///
    /// # Errors
    ///
    /// As [`get`](Keyring::get).
    fn remove(&self, provider: Provider) -> Result<bool, NoKeyring>;
}

/// Why a keyring cannot be asked, in the platform's words. They hold no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoKeyring(String);

/// The platform's: the Secret Service (GNOME's keyring, KWallet), macOS's Keychain, or Windows'
/// Credential Manager.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlatformKeyring;

impl Keyring for PlatformKeyring {
    fn get(&self, provider: Provider) -> Result<Option<Key>, NoKeyring> {
        match entry(provider)?.get_password() {
            // What is no key is none.
            Ok(text) => Ok(Key::new(text)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(err) => Err(told(&err)),
        }
    }

    fn set(&self, provider: Provider, key: &Key) -> Result<(), NoKeyring> {
        entry(provider)?.set_password(key.reveal()).map_err(|err| told(&err))
    }

    fn remove(&self, provider: Provider) -> Result<bool, NoKeyring> {
        match entry(provider)?.delete_credential() {
            Ok(()) => Ok(true),
            Err(keyring::Error::NoEntry) => Ok(false),
            Err(err) => Err(told(&err)),
        }
    }
}

/// One that is switched off.
#[derive(Clone, Copy, Debug)]
struct Off;

impl Keyring for Off {
    fn get(&self, _: Provider) -> Result<Option<Key>, NoKeyring> {
        Err(off())
    }

    fn set(&self, _: Provider, _: &Key) -> Result<(), NoKeyring> {
        Err(off())
    }

    fn remove(&self, _: Provider) -> Result<bool, NoKeyring> {
        Err(off())
    }
}

/// Where a provider's key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// In this variable of the environment.
    Variable(&'static str),
    /// In the keyring.
    Keyring,
    /// Nowhere, and this is why the keyring does not say so.
    Nowhere(Option<NoKeyring>),
    /// The provider takes none.
    Unneeded,
}

/// The key of a provider, and where it is: in the environment, or else in the keyring.
pub fn key_of(config: &Config, provider: Provider, ring: &dyn Keyring) -> (Option<Key>, KeyPlace) {
    let Some(variable) = Config::key_variables(provider).first() else {
        return (None, KeyPlace::Unneeded);
    };
    if let Some(key) = config.keys.get(&provider) {
        return (
            Some(key.clone()),
            KeyPlace::Variable(config.key_variable(provider).unwrap_or(variable)),
        );
    }
    match ring.get(provider) {
        Ok(Some(key)) => (Some(key), KeyPlace::Keyring),
        Ok(None) => (None, KeyPlace::Nowhere(None)),
        Err(err) => {
            tracing::debug!(%provider, "the keyring was not asked: {err}");
            (None, KeyPlace::Nowhere(Some(err)))
        }
    }
}

/// The keyring that is asked: the platform's, unless `EPITOME_KEYRING=off`.
pub fn keyring(config: &Config) -> &'static dyn Keyring {
    let is_off = config.variables.get("EPITOME_KEYRING").is_some_and(|it| it == "off");
    if is_off { &Off } else { &PlatformKeyring }
}

fn entry(provider: Provider) -> Result<keyring::Entry, NoKeyring> {
    if let Err(err) = keyring::Entry::store_status() {
        return Err(told(err));
    }
    keyring::Entry::new(SERVICE, provider.name()).map_err(|err| told(&err))
}

/// Some errors carry what was stored: they are told by their kind alone.
fn told(err: &keyring::Error) -> NoKeyring {
    NoKeyring(match err {
        keyring::Error::BadEncoding(_) | keyring::Error::BadDataFormat(..) => {
            "what it holds is no text".to_owned()
        }
        keyring::Error::PlatformFailure(err) | keyring::Error::NoStorageAccess(err) => {
            err.to_string()
        }
        other => other.to_string(),
    })
}

fn off() -> NoKeyring {
    NoKeyring("EPITOME_KEYRING=off".to_owned())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

    const KEY: &str = "sk-test-0123456789abcdefghij";

    /// One that is made of nothing but memory.
    #[derive(Default)]
    struct Memory(RefCell<BTreeMap<Provider, Key>>);

    impl Keyring for Memory {
        fn get(&self, provider: Provider) -> Result<Option<Key>, NoKeyring> {
            Ok(self.0.borrow().get(&provider).cloned())
        }

        fn set(&self, provider: Provider, key: &Key) -> Result<(), NoKeyring> {
            self.0.borrow_mut().insert(provider, key.clone());
            Ok(())
        }

        fn remove(&self, provider: Provider) -> Result<bool, NoKeyring> {
            Ok(self.0.borrow_mut().remove(&provider).is_some())
        }
    }

    fn config(variables: &[(&str, &str)]) -> Config {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).into())
        };
        Config::of("/u".as_ref(), "/d".as_ref(), "/c".as_ref(), find)
    }

    #[test]
    fn the_environment_comes_before_the_keyring() {
        let ring = Memory::default();
        let place =
            |config: &Config, provider, ring: &dyn Keyring| key_of(config, provider, ring).1;
        let (bare, google) = (config(&[]), config(&[("GOOGLE_API_KEY", KEY)]));
        assert_eq!(place(&bare, Provider::Google, &ring), KeyPlace::Nowhere(None));
        ring.set(Provider::Google, &Key::new(KEY).expect("a key")).expect("memory");
        let (key, place_of_it) = key_of(&bare, Provider::Google, &ring);
        assert_eq!((key, place_of_it), (Key::new(KEY), KeyPlace::Keyring));
        assert_eq!(
            place(&google, Provider::Google, &ring),
            KeyPlace::Variable("GOOGLE_API_KEY"),
            "the variable that has it is named"
        );
        assert_eq!(place(&bare, Provider::OpenAi, &ring), KeyPlace::Nowhere(None));
        assert_eq!(place(&bare, Provider::Ollama, &ring), KeyPlace::Unneeded);
        assert_eq!(ring.remove(Provider::Google), Ok(true));
        assert_eq!(ring.remove(Provider::Google), Ok(false));
        assert_eq!(place(&bare, Provider::Google, &ring), KeyPlace::Nowhere(None));
    }

    #[test]
    fn without_a_keyring_there_is_no_key_and_a_reason() {
        let (key, place) = key_of(&config(&[]), Provider::Groq, &Off);
        assert_eq!((key, place), (None, KeyPlace::Nowhere(Some(off()))));
    }

    #[test]
    fn what_the_platform_says_holds_no_key() {
        let bytes = KEY.as_bytes().to_vec();
        let err = keyring::Error::BadEncoding(bytes);
        let told = told(&err);
        assert!(!format!("{told} {told:?}").contains("115, 107"), "{told:?}");
        assert_eq!(told.to_string(), "what it holds is no text");
    }
}
