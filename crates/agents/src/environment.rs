//! The environment from which the folders of agents are computed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The folders and variables from which agents derive their own folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The user's home folder.
    pub home: PathBuf,
    /// The platform's folder for settings.
    pub config: PathBuf,
    /// The folder of the logs that epitome keeps of running agents' contexts.
    pub logs: PathBuf,
    /// Those variables of [`Agent::variables`](crate::Agent::variables) and of
    /// [`Agent::model_address`](crate::Agent::model_address) that are set.
    pub variables: BTreeMap<String, OsString>,
}

impl Environment {
    /// The environment of a user whose home is `home`, with no variable set.
    pub fn from_home(home: &Path) -> Environment {
        Environment {
            home: home.to_owned(),
            config: home.join(".config"),
            logs: home.join(".local/share/epitome/live"),
            variables: BTreeMap::new(),
        }
    }

    /// The value of a variable, if it is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The folder that a variable names, or `or` if the variable is not set or is empty. A leading
    /// `~` is replaced by the home folder, as agents do it.
    pub fn folder(&self, variable: &str, or: PathBuf) -> PathBuf {
        let Some(value) = self.variable(variable) else { return or };
        let path = Path::new(value);
        match path.strip_prefix("~") {
            Ok(rest) => self.home.join(rest),
            Err(_) => path.to_owned(),
        }
    }

    /// The user's data folder by the XDG specification, which some agents follow on every system.
    pub fn xdg_data(&self) -> PathBuf {
        self.folder("XDG_DATA_HOME", self.home.join(".local/share"))
    }
}
