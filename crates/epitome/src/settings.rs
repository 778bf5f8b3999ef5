//! Settings: from the user's file, a project's file, the environment and the command line. If
//! several of these set the same key, the last of them in this order has priority. See
//! `docs/config.md`.
//!
//! A project's file is not the user's own: it comes with any repository that the user clones.
//! Unless the user's own file trusts the project, those settings of the project that could harm the
//! user (see [`Key::user_only`]) are ignored, and the paths in its file must stay inside of the
//! project.

mod file;
mod foreign;
mod keys;
mod nearest;
mod recipe;
mod sanity;
mod trust;
pub mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::config::{Config, OTHER_VARIABLES};
use crate::error::{Error, ErrorKind, Result};

pub use file::import;
pub use keys::{KEYS, Key, PathKind};
pub(crate) use nearest::nearest;
use trust::Ground;
pub(crate) use values::schema_of;
pub use values::{McpServer, Values, schema};

/// The beginning of the names of environment variables that are settings.
const VARIABLES: &str = "EPITOME_";

/// The settings, and where each was set.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The effective values.
    pub values: Values,
    /// For each key that is set: the value in effect, and then the values that it overrides, those
    /// with the most priority first.
    pub set: BTreeMap<String, Vec<SetValue>>,
    /// The files that were read.
    pub files: Vec<SettingsFile>,
    /// What was ignored, and why, as sentences for the user.
    pub notes: Vec<String>,
}

/// A file of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The owner of the file.
    pub scope: Scope,
}

/// The owner of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The user: for all projects.
    User,
    /// A project that the user does not trust.
    Project,
    /// A project that the user trusts.
    TrustedProject,
}

/// A value, and where it was set.
#[derive(Clone, Debug, PartialEq)]
pub struct SetValue {
    /// The parsed value.
    pub value: Value,
    /// Where the value was set.
    pub place: SettingSource,
    /// The name that another program has for this key, if the setting uses that name:
    /// `anthropic.keep`.
    pub by: Option<String>,
}

/// Where a setting was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// In this file, at this line and column, both from 1.
    File(PathBuf, u64, u64),
    /// In this environment variable.
    Variable(String),
    /// On the command line.
    Flag,
}

impl Settings {
    /// Reads all settings. `flags` are texts `key=value`, as on the command line.
    ///
    /// ```
    /// use epitome::{Config, ErrorKind, Settings};
    ///
    /// let home = tempfile::tempdir().expect("a folder");
    /// let config = Config::from_home(home.path());
    /// let settings = Settings::load(&config, &["compaction.recipe=s06".to_owned()])?;
    /// assert_eq!(settings.recipe(), Some("s06"));
    /// let misspelt = Settings::load(&config, &["compaction.recipee=s06".to_owned()]);
    /// assert_eq!(misspelt.expect_err("no such key").kind(), ErrorKind::Settings);
    /// # Ok::<(), epitome::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Settings` for an unknown name or an invalid value, with its place; `NoPermission` or
    /// `Unreadable` for a file that exists and cannot be read.
    pub fn load(config: &Config, flags: &[String]) -> Result<Settings> {
        let mut settings = Settings::default();
        let own = config.settings_file();
        if own.is_file() {
            settings.take_file(config, &own, Scope::User)?;
        }
        let project = trust::project_file(&config.here, &config.user, &mut settings.notes);
        if let Some(path) = project {
            // Only the user's own file was read so far, so only that file can make a project
            // trusted.
            let scope = trust::scope_of(&path, &settings.effective_values()?.trust);
            settings.take_file(config, &path, scope)?;
        }
        settings.take_variables(config)?;
        for flag in flags {
            let (name, text) = flag.split_once('=').unwrap_or((flag, ""));
            let key = find_key(name.trim(), &SettingSource::Flag)?;
            settings.take_text(config, key, text.trim(), SettingSource::Flag)?;
        }
        sanity::together(&settings)?;
        settings.values = settings.effective_values()?;
        Ok(settings)
    }

    /// Adds the settings of the environment. An unknown variable that begins with `EPITOME_` is an
    /// error, because a misspelt setting would be ignored.
    fn take_variables(&mut self, config: &Config) -> Result<()> {
        // The list of keys is made only where it is needed: it takes a tenth of the time in which a
        // program starts.
        if config.variables.keys().all(|name| OTHER_VARIABLES.contains(&name.as_str())) {
            return Ok(());
        }
        for key in KEYS.iter() {
            if let Some(text) = config.variables.get(&key.variable()) {
                let place = SettingSource::Variable(key.variable());
                self.take_text(config, key, text, place)?;
            }
        }
        let of_keys: Vec<String> = KEYS.iter().map(Key::variable).collect();
        let mut known = of_keys.iter().map(String::as_str).chain(OTHER_VARIABLES);
        for name in config.variables.keys() {
            if known.clone().any(|it| it == name) {
                continue;
            }
            // The common prefix is removed, and `_` becomes `.`, so that names are compared word by
            // word.
            let all: Vec<String> = known.by_ref().map(key_of_variable).collect();
            let near = nearest(&key_of_variable(name), all.iter().map(String::as_str));
            let err = Error::new(
                ErrorKind::Settings,
                format!("there is no setting for the variable {name}"),
            );
            return Err(match near {
                Some(near) => {
                    let near = near.to_uppercase().replace('.', "_");
                    err.with_hint(format!("did you mean {VARIABLES}{near}?"))
                }
                None => err.with_hint("`epitome config --explain` lists what can be set"),
            });
        }
        Ok(())
    }

    /// Adds the settings of a file, except those that its scope does not allow.
    fn take_file(&mut self, config: &Config, path: &Path, scope: Scope) -> Result<()> {
        self.files.push(SettingsFile { path: path.to_owned(), scope });
        let folder = path.parent().unwrap_or(Path::new("."));
        let ground = Ground { folder, home: &config.user, scope };
        let mut found = file::read(path)?;
        // Of two values for one key, the later one is in effect. So settings under epitome's own
        // names are sorted last: they have priority over names of other programs.
        found.sort_by_key(|(_, set)| set.by.is_none());
        for (key, mut set) in found {
            if scope == Scope::Project && key.user_only {
                self.notes.push(format!(
                    "{} sets {}, which only your own settings can: it is ignored",
                    set.place, key.name
                ));
                continue;
            }
            trust::settle(&mut set, key, ground)?;
            self.add(config, key, set)?;
        }
        Ok(())
    }

    /// Adds a setting from the environment or the command line.
    fn take_text(
        &mut self,
        config: &Config,
        key: &Key,
        text: &str,
        place: SettingSource,
    ) -> Result<()> {
        let mut set = SetValue { value: file::value_of(key, text), place, by: None };
        let ground = Ground { folder: &config.here, home: &config.user, scope: Scope::User };
        trust::settle(&mut set, key, ground)?;
        self.add(config, key, set)
    }

    /// Checks a value, and adds it in front of the earlier values for the same key, which it
    /// overrides.
    fn add(&mut self, config: &Config, key: &Key, set: SetValue) -> Result<()> {
        sanity::alone(config, key, &set)?;
        self.set.entry(key.name.clone()).or_default().insert(0, set);
        Ok(())
    }

    /// The values in effect, from everything that is set so far.
    fn effective_values(&self) -> Result<Values> {
        if self.set.is_empty() {
            return Ok(Values::default());
        }
        let mut table = Table::new();
        for (name, sets) in &self.set {
            put(&mut table, name, sets[0].value.clone());
        }
        table.try_into().map_err(|err: toml::de::Error| {
            Error::new(ErrorKind::Broken, "settings that were checked do not fit").because(err)
        })
    }
}

fn key_of_variable(name: &str) -> String {
    name.trim_start_matches(VARIABLES).to_lowercase().replace('_', ".")
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingSource::File(path, line, _) => write!(f, "{}:{line}", path.display()),
            SettingSource::Variable(name) => f.write_str(name),
            SettingSource::Flag => f.write_str("--set"),
        }
    }
}

fn find_key(name: &str, place: &SettingSource) -> Result<&'static Key> {
    keys::find(name).ok_or_else(|| {
        let near = nearest(name, KEYS.iter().map(|key| key.name.as_str()));
        unknown(place, name, near)
    })
}

fn unknown(place: &SettingSource, name: &str, near: Option<&str>) -> Error {
    let err = wrong(place, &format!("unknown setting `{name}`"));
    match near {
        Some(near) => err.with_hint(format!("did you mean `{near}`?")),
        None => err.with_hint("`epitome config --explain` lists them"),
    }
}

fn wrong(place: &SettingSource, what: &str) -> Error {
    let place = match place {
        SettingSource::File(path, line, column) => format!("{}:{line}:{column}", path.display()),
        SettingSource::Variable(_) | SettingSource::Flag => place.to_string(),
    };
    Error::new(ErrorKind::Settings, format!("{place}: {what}"))
}

/// Inserts a value into nested tables: each dot in the name separates two levels.
fn put(table: &mut Table, name: &str, value: Value) {
    match name.split_once('.') {
        None => {
            table.insert(name.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}
