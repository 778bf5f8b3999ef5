//! Passwords in the platform's secret store, by account name.
//!
//! On Linux and the BSDs this is the Secret Service (GNOME's keyring, KWallet), which is called
//! over D-Bus without a system library; on macOS the Keychain; on Windows the Credential Manager.
//! An account is stored as the crate `keyring` stores it, on every platform.

#[cfg(not(feature = "keyring"))]
pub(super) use absent::{get, remove, set};
#[cfg(all(feature = "keyring", any(target_os = "macos", windows)))]
pub(super) use native::{get, remove, set};
#[cfg(all(feature = "keyring", not(any(target_os = "macos", windows))))]
pub(super) use service::{get, remove, set};

/// The name under which this program's accounts are stored.
#[cfg(feature = "keyring")]
const SERVICE: &str = "epitome";

/// Functions for builds without the feature `keyring`: each returns an error.
#[cfg(not(feature = "keyring"))]
mod absent {
    use crate::keyring::NoKeyring;

    pub(in crate::keyring) fn get(_: &str) -> Result<Option<Vec<u8>>, NoKeyring> {
        Err(reason())
    }

    pub(in crate::keyring) fn set(_: &str, _: &str) -> Result<(), NoKeyring> {
        Err(reason())
    }

    pub(in crate::keyring) fn remove(_: &str) -> Result<bool, NoKeyring> {
        Err(reason())
    }

    fn reason() -> NoKeyring {
        NoKeyring("epitome was built without the feature `keyring`".to_owned())
    }
}

#[cfg(all(feature = "keyring", any(target_os = "macos", windows)))]
mod native {
    use keyring::{Entry, Error};

    use super::SERVICE;
    use crate::keyring::NoKeyring;

    /// The password of an account, if one is stored.
    pub(in crate::keyring) fn get(account: &str) -> Result<Option<Vec<u8>>, NoKeyring> {
        stored(entry(account)?.inner.get_secret())
    }

    /// Stores the password of an account. An earlier password is replaced.
    pub(in crate::keyring) fn set(account: &str, password: &str) -> Result<(), NoKeyring> {
        entry(account)?.set_password(password).map_err(|err| reason(&err))
    }

    /// Removes the password of an account; returns whether there was one.
    pub(in crate::keyring) fn remove(account: &str) -> Result<bool, NoKeyring> {
        Ok(stored(entry(account)?.delete_credential())?.is_some())
    }

    fn entry(account: &str) -> Result<Entry, NoKeyring> {
        if let Err(err) = Entry::store_status() {
            return Err(reason(err));
        }
        Entry::new(SERVICE, account).map_err(|err| reason(&err))
    }

    fn stored<T>(result: Result<T, Error>) -> Result<Option<T>, NoKeyring> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Error::NoEntry) => Ok(None),
            Err(err) => Err(reason(&err)),
        }
    }

    /// The text of an error. For errors that contain the stored password, a fixed text is used
    /// instead.
    fn reason(err: &Error) -> NoKeyring {
        NoKeyring(match err {
            Error::BadEncoding(_) | Error::BadDataFormat(..) => super::super::NOT_TEXT.to_owned(),
            Error::PlatformFailure(err) | Error::NoStorageAccess(err) => err.to_string(),
            other => other.to_string(),
        })
    }
}

#[cfg(all(feature = "keyring", not(any(target_os = "macos", windows))))]
mod service {
    use std::collections::HashMap;

    use secret_service::blocking::{Item, SecretService};
    use secret_service::{EncryptionType, Error};

    use super::SERVICE;
    use crate::keyring::NoKeyring;

    /// The password of an account, if one is stored.
    pub(in crate::keyring) fn get(account: &str) -> Result<Option<Vec<u8>>, NoKeyring> {
        connected(|service| match item(service, account)? {
            Some(item) => Ok(Some(item.get_secret()?)),
            None => Ok(None),
        })
    }

    /// Stores the password of an account. An earlier password is replaced.
    pub(in crate::keyring) fn set(account: &str, password: &str) -> Result<(), NoKeyring> {
        const TYPE: &str = "application/octet-stream";
        connected(|service| {
            if let Some(item) = item(service, account)? {
                return Ok(item.set_secret(password.as_bytes(), TYPE)?);
            }
            let collection = service.get_default_collection()?;
            if collection.is_locked()? {
                collection.unlock()?;
            }
            let label = format!("keyring:{account}@{SERVICE}");
            let password = password.as_bytes();
            collection.create_item(&label, attributes(account), password, true, TYPE)?;
            Ok(())
        })
    }

    /// Removes the password of an account; returns whether there was one.
    pub(in crate::keyring) fn remove(account: &str) -> Result<bool, NoKeyring> {
        connected(|service| match item(service, account)? {
            Some(item) => Ok(item.delete().map(|()| true)?),
            None => Ok(false),
        })
    }

    /// Why a call of the Secret Service failed.
    #[derive(Debug, thiserror::Error)]
    enum Failed {
        #[error(transparent)]
        Service(#[from] Error),
        #[error("the keyring has several entries for {SERVICE} {0}: remove all but one")]
        Several(String),
    }

    /// Calls the Secret Service on a new thread. The connection blocks on an async runtime, which
    /// is forbidden on a thread that belongs to another runtime.
    fn connected<T: Send>(
        call: impl FnOnce(&SecretService<'_>) -> Result<T, Failed> + Send,
    ) -> Result<T, NoKeyring> {
        let done = std::thread::scope(|scope| {
            scope.spawn(|| call(&SecretService::connect(EncryptionType::Dh)?)).join()
        });
        match done {
            Ok(done) => done.map_err(|err| NoKeyring(err.to_string())),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// The entry of an account, unlocked; `None` if there is none. Several entries are an error.
    /// The system may ask the user for the password of the keyring.
    fn item<'a>(service: &'a SecretService<'_>, account: &str) -> Result<Option<Item<'a>>, Failed> {
        let found = service.search_items(attributes(account))?;
        if !found.locked.is_empty() {
            service.unlock_all(&found.locked.iter().collect::<Vec<_>>())?;
        }
        let mut items = found.unlocked.into_iter().chain(found.locked);
        match (items.next(), items.next()) {
            (item, None) => Ok(item),
            (_, Some(_)) => Err(Failed::Several(account.to_owned())),
        }
    }

    fn attributes(account: &str) -> HashMap<&str, &str> {
        HashMap::from([("service", SERVICE), ("username", account)])
    }
}
