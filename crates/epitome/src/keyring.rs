//! API keys of model providers in the platform's keyring, which is read for keys that are not in
//! the environment.

mod platform;

use epitome_llm::{Key, Provider};

use crate::config::Config;

/// A store of keys.
pub trait Keyring {
    /// The key of a provider, if one is stored.
    ///
    /// # Errors
    ///
    /// [`NoKeyring`] if there is no keyring, or if it cannot be used.
    fn get(&self, provider: Provider) -> Result<Option<Key>, NoKeyring>;

    /// Stores a key. An earlier key of the same provider is replaced.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Keyring::get).
    fn set(&self, provider: Provider, key: &Key) -> Result<(), NoKeyring>;

    /// Removes a key. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Keyring::get).
    fn remove(&self, provider: Provider) -> Result<bool, NoKeyring>;
}

/// Why a keyring cannot be used. The text is usually the platform's, and contains no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoKeyring(String);

/// The platform's keyring: the Secret Service (GNOME's keyring, KWallet), macOS's Keychain, or
/// Windows' Credential Manager.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlatformKeyring;

impl Keyring for PlatformKeyring {
    fn get(&self, provider: Provider) -> Result<Option<Key>, NoKeyring> {
        match platform::get(provider.name())? {
            Some(bytes) => key(bytes),
            None => Ok(None),
        }
    }

    fn set(&self, provider: Provider, key: &Key) -> Result<(), NoKeyring> {
        platform::set(provider.name(), key.reveal())
    }

    fn remove(&self, provider: Provider) -> Result<bool, NoKeyring> {
        platform::remove(provider.name())
    }
}

/// A keyring that the user has switched off: each function returns an error.
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

/// Where the key of a provider was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// In the environment variable with this name.
    Variable(&'static str),
    /// In the keyring.
    Keyring,
    /// No key was found. If the keyring could not be read, this contains the reason.
    Nowhere(Option<NoKeyring>),
    /// The provider needs no key.
    Unneeded,
}

/// The key of a provider, and where it was found: in the environment, or else in the keyring.
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

/// The keyring to use: the platform's, or one that returns only errors if `EPITOME_KEYRING` is
/// `off`.
pub fn keyring(config: &Config) -> &'static dyn Keyring {
    if is_off(config) { &Off } else { &PlatformKeyring }
}

fn is_off(config: &Config) -> bool {
    config.variables.get("EPITOME_KEYRING").is_some_and(|it| it == "off")
}

/// A secret of epitome itself, such as the key of the remote archive, if one is stored under this
/// name.
#[cfg(feature = "remote")]
pub(crate) fn secret(config: &Config, name: &str) -> Result<Option<String>, NoKeyring> {
    if is_off(config) {
        return Err(off());
    }
    match platform::get(name)? {
        Some(bytes) => {
            String::from_utf8(bytes).map(Some).map_err(|_| NoKeyring(NOT_TEXT.to_owned()))
        }
        None => Ok(None),
    }
}

/// Stores a secret of epitome itself. An earlier one of this name is replaced.
#[cfg(feature = "remote")]
pub(crate) fn set_secret(config: &Config, name: &str, secret: &str) -> Result<(), NoKeyring> {
    if is_off(config) { Err(off()) } else { platform::set(name, secret) }
}

/// Removes a secret of epitome itself. Returns whether there was one.
#[cfg(feature = "remote")]
pub(crate) fn remove_secret(config: &Config, name: &str) -> Result<bool, NoKeyring> {
    if is_off(config) { Err(off()) } else { platform::remove(name) }
}

/// The message for a stored password that is not text. It does not contain the password.
const NOT_TEXT: &str = "the stored password is not text";

/// The key that a keyring stores as a password; `None` if the text is not a valid key. An error if
/// the password is not Unicode.
fn key(password: Vec<u8>) -> Result<Option<Key>, NoKeyring> {
    match String::from_utf8(password) {
        Ok(text) => Ok(Key::new(text)),
        Err(_) => Err(NoKeyring(NOT_TEXT.to_owned())),
    }
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

    /// A keyring in memory.
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
        Config::from_folders("/u".as_ref(), "/d".as_ref(), "/c".as_ref(), find)
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
    fn a_keyring_that_is_switched_off_is_not_asked() {
        let mut config = config(&[]);
        config.variables.insert("EPITOME_KEYRING".to_owned(), "off".to_owned());
        assert_eq!(keyring(&config).get(Provider::Groq), Err(off()));
        assert_eq!(keyring(&config).remove(Provider::Groq), Err(off()));
    }

    #[test]
    fn a_stored_password_is_a_key_or_an_error_without_its_bytes() {
        assert_eq!(key(KEY.into()), Ok(Key::new(KEY)));
        assert_eq!(key(Vec::new()), Ok(None));
        let mut bytes = KEY.as_bytes().to_vec();
        bytes.push(0xff);
        let err = key(bytes).expect_err("not text");
        assert_eq!(format!("{err:?}"), "NoKeyring(\"the stored password is not text\")");
    }
}
