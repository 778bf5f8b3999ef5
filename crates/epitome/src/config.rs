//! The folders, keys and variables of this machine. In this crate, only this module reads
//! environment variables.

mod handover;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use epitome_agents::{AGENTS, Environment};
use epitome_llm::{Key, Provider};
use epitome_redact::Person;
use etcetera::BaseStrategy;
use jiff::Timestamp;

use crate::archive::{Archive, Run, SessionKey};
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::store::disk;
use epitome_store::Vault;

/// Variables named `EPITOME_…` that are not settings: first those that the program itself reads,
/// then those of its tests and tools.
pub(crate) const OTHER_VARIABLES: [&str; 21] = [
    "EPITOME_API_KEY",
    "EPITOME_CONFIG",
    "EPITOME_HOME",
    handover::VARIABLE,
    "EPITOME_KEYRING",
    "EPITOME_LOG",
    "EPITOME_NOW",
    "EPITOME_AGENTS",
    "EPITOME_BROWSER",
    "EPITOME_CHROMIUM",
    "EPITOME_FORMAT",
    "EPITOME_FUZZ",
    "EPITOME_NODE",
    "EPITOME_PICTURES",
    "EPITOME_PROGRAM",
    "EPITOME_SESSIONS",
    "EPITOME_SKIPS",
    "EPITOME_TEST_KILL_HOME",
    "EPITOME_WASM",
    "EPITOME_WHEEL",
    "EPITOME_WHOLE_CORPUS",
];

/// The folders of the current user, and what epitome takes from the environment: variables, API
/// keys and, in tests, the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The folder in which epitome stores its data, such as the archive: `EPITOME_HOME`, or
    /// `epitome` in the platform's data folder.
    pub home: PathBuf,
    /// The folder of the user's own settings: `EPITOME_CONFIG`, or `epitome` in the platform's
    /// config folder.
    pub settings: PathBuf,
    /// Whether `EPITOME_HOME` is set.
    pub home_is_given: bool,
    /// The environment from which the folders of agents are computed.
    pub agents: Environment,
    /// The user's names, home folder and host name, as far as the machine knows them. Rules of
    /// redaction find them in texts.
    pub person: Person,
    /// The user's home folder.
    pub user: PathBuf,
    /// The folder in which epitome was started.
    pub here: PathBuf,
    /// The variables of the environment that begin with `EPITOME_`, except `EPITOME_API_KEY`, which
    /// is a key.
    pub variables: BTreeMap<String, String>,
    /// The variables of the environment that begin with `OTEL_`: they configure where
    /// `epitome proxy` reports its requests.
    pub telemetry: BTreeMap<String, String>,
    /// The API keys of model providers, as far as the environment contains them.
    pub keys: BTreeMap<Provider, Key>,
    /// For each provider, the name of the variable in which its key was found.
    key_variables: BTreeMap<Provider, &'static str>,
    /// All variables that contain a key. Of several variables of one provider, `keys` has only the
    /// first.
    keyed: BTreeMap<&'static str, Key>,
    /// Additional files with rules for secrets, which are used in every search for secrets.
    pub rules: Vec<PathBuf>,
    /// The fixed time in `EPITOME_NOW`, which tests set. `None`: the current time is used.
    now: Option<Timestamp>,
}

/// The variables of the environment whose names begin with `prefix`. Variables that are empty or
/// not Unicode are left out.
fn variables(prefix: &str) -> BTreeMap<String, String> {
    let text = |value: OsString| value.into_string().ok().filter(|text| !text.is_empty());
    let all = std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
    all.filter(|(name, _)| name.starts_with(prefix)).collect()
}

impl Config {
    /// Reads the environment. The names of the user and the host also come from git's settings and
    /// `/etc/hostname`.
    ///
    /// # Errors
    ///
    /// `NotFound` if the system does not name the user's home folder; `Settings` if `EPITOME_HOME`
    /// is a relative path, which would mean a different archive in each folder, and if
    /// `EPITOME_CONFIG` is a file: the settings in it would be ignored.
    pub fn from_env() -> Result<Config> {
        let base = etcetera::choose_base_strategy().map_err(|err| {
            Error::new(ErrorKind::NotFound, "no home folder found")
                .because(err)
                .with_hint("set HOME")
        })?;
        let handed_over = handover::handed_over();
        let var = |name: &str| {
            let value = handed_over.get(name).cloned().or_else(|| std::env::var_os(name));
            value.filter(|value| !value.is_empty())
        };
        let mut config =
            Config::from_folders(base.home_dir(), &base.data_dir(), &base.config_dir(), var);
        config.person.names.extend(full_name(&base.home_dir().join(".gitconfig")));
        if config.person.host.is_none() {
            let host = regular::read_to_string(Path::new("/etc/hostname")).unwrap_or_default();
            config.person.host = Some(host.trim().to_owned()).filter(|host| !host.is_empty());
        }
        config.here = std::env::current_dir().unwrap_or_default();
        config.check_home()?;
        if var("EPITOME_CONFIG").is_some() {
            config.check_settings_folder()?;
        }
        config.variables = variables("EPITOME_");
        config.variables.remove("EPITOME_API_KEY");
        config.telemetry = variables("OTEL_");
        Ok(config)
    }

    /// The configuration of a machine on which no environment variable is set, and neither the name
    /// of the user nor that of the host is known. The user's home and the current folder are
    /// `home`, and all folders are below it. The environment is not read. This is for programs and
    /// tests that work only in the given home.
    ///
    /// ```
    /// let config = epitome::Config::from_home("/home/ada".as_ref());
    /// let claude = epitome::agents::find_agent("claude").expect("a known agent");
    /// assert!(claude.folder(&config.agents).ends_with("ada/.claude/projects"));
    /// assert!(config.home.ends_with("ada/.local/share/epitome"));
    /// ```
    pub fn from_home(home: &Path) -> Config {
        let data = home.join(".local/share");
        let settings = home.join(".config");
        Config { here: home.to_owned(), ..Config::from_folders(home, &data, &settings, |_| None) }
    }

    /// Begins a run of `command`. The run's id is derived from the time and the process id; if
    /// tests fix the time, from the time alone, so that the same input gives the same archive.
    pub fn begin_run(&self, command: &str) -> Run {
        let process = if self.is_time_given() { 0 } else { std::process::id() };
        Run::begin(self.now(), process, command)
    }

    fn check_home(&self) -> Result<()> {
        if !self.home_is_given || self.home.is_absolute() {
            return Ok(());
        }
        let what = format!("EPITOME_HOME is relative to a folder: {}", self.home.display());
        let whole = self.here.join(&self.home);
        Err(Error::new(ErrorKind::Settings, what)
            .with_hint(format!("give the whole path, for example {}", whole.display())))
    }

    fn check_settings_folder(&self) -> Result<()> {
        if !self.settings.is_file() {
            return Ok(());
        }
        let what =
            format!("EPITOME_CONFIG is a file: {}; it takes a folder", self.settings.display());
        let hint = match self.settings.parent() {
            Some(folder) if self.settings.ends_with("epitome.toml") => {
                format!("give the folder of the file: {}", folder.display())
            }
            Some(_) | None => "the settings are `epitome.toml` in that folder".to_owned(),
        };
        Err(Error::new(ErrorKind::Settings, what).with_hint(hint))
    }

    /// The configuration with these folders. `var` returns the value of an environment variable;
    /// `EPITOME_HOME` and `EPITOME_CONFIG` take precedence over the given folders.
    pub(crate) fn from_folders(
        user: &Path,
        data: &Path,
        config: &Path,
        var: impl Fn(&str) -> Option<OsString>,
    ) -> Config {
        let folder = |name: &str, or: PathBuf| match var(name) {
            Some(value) => below_home(PathBuf::from(value), user),
            None => or,
        };
        let key = |provider: Provider| {
            let mut names = Config::key_variables(provider).iter();
            let found = names.find_map(|name| Some((*name, Key::new(var(name)?.to_str()?)?)));
            found.map(|(name, key)| (provider, name, key))
        };
        let keys: Vec<(Provider, &'static str, Key)> =
            Provider::ALL.into_iter().filter_map(key).collect();
        let names = Provider::ALL.into_iter().flat_map(Config::key_variables);
        let keyed = names.filter_map(|name| Some((*name, Key::new(var(name)?.to_str()?)?)));
        let keyed = keyed.collect();
        let text = |name: &str| Some(var(name)?.to_string_lossy().into_owned());
        let person = Person {
            home: Some(user.to_string_lossy().into_owned()),
            names: ["USER", "LOGNAME", "USERNAME"].into_iter().filter_map(text).collect(),
            host: text("HOSTNAME").or_else(|| text("COMPUTERNAME")),
        };
        let home = folder("EPITOME_HOME", data.join("epitome"));
        let folders = AGENTS.iter().flat_map(|agent| agent.variables()).copied();
        let addresses = AGENTS.iter().filter_map(|agent| agent.model_address()?.variable);
        let variables = folders.chain(addresses);
        let variables = variables.filter_map(|name| Some((name.to_owned(), var(name)?)));
        Config {
            person,
            home_is_given: var("EPITOME_HOME").is_some(),
            agents: Environment {
                home: user.to_owned(),
                config: config.to_owned(),
                logs: home.join("live"),
                variables: variables.collect(),
            },
            home,
            settings: folder("EPITOME_CONFIG", config.join("epitome")),
            user: user.to_owned(),
            here: PathBuf::new(),
            variables: BTreeMap::new(),
            telemetry: BTreeMap::new(),
            key_variables: keys.iter().map(|(provider, name, _)| (*provider, *name)).collect(),
            keyed,
            keys: keys.into_iter().map(|(provider, _, key)| (provider, key)).collect(),
            rules: Vec::new(),
            now: var("EPITOME_NOW").and_then(|now| now.to_str()?.parse().ok()),
        }
    }

    /// The fixed time if `EPITOME_NOW` is set, otherwise the current time. If the system's clock is
    /// before the year -9999 or after 9999, the first or the last possible timestamp is returned.
    pub fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(|| timestamp_of(SystemTime::now()))
    }

    /// Whether the time is fixed by `EPITOME_NOW`, as in tests.
    pub(crate) fn is_time_given(&self) -> bool {
        self.now.is_some()
    }

    /// The names of the variables in which a provider's key is looked for, in this order.
    pub fn key_variables(provider: Provider) -> &'static [&'static str] {
        match provider {
            Provider::Anthropic => &["ANTHROPIC_API_KEY"],
            Provider::OpenAi => &["OPENAI_API_KEY"],
            Provider::Google => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Provider::Groq => &["GROQ_API_KEY"],
            Provider::OpenRouter => &["OPENROUTER_API_KEY"],
            Provider::Ollama => &[],
            Provider::Compatible => &["EPITOME_API_KEY"],
        }
    }

    /// Removes the API keys of providers from the environment of this program, by starting the
    /// program again without them. After that, the programs that it starts find the keys neither in
    /// their environment nor in the file in `/proc` with this program's environment. Call this
    /// before anything else. It returns `Ok` only if there are no keys to remove, or if the system
    /// is not Unix: otherwise the program that was started again replaces this one.
    ///
    /// # Errors
    ///
    /// The errors of the operating system; an error if the keys are together longer than 4 KiB. The
    /// environment is unchanged then.
    pub fn take_keys_from_environment() -> std::io::Result<()> {
        let names = Provider::ALL.into_iter().flat_map(Config::key_variables);
        handover::take_from_environment(&names.copied().collect::<Vec<_>>())
    }

    /// The names of the variables that contain keys of providers, and of the variable that names
    /// the pipe from which the keys are read. They must be removed from the environment of every
    /// program that a model starts.
    pub fn hidden_variables() -> impl Iterator<Item = &'static str> {
        let names = Provider::ALL.into_iter().flat_map(Config::key_variables);
        names.copied().chain([handover::VARIABLE])
    }

    /// The value of an environment variable. A key is returned even if its variable was removed
    /// from the environment. `None` if the variable is not set or not Unicode.
    pub fn variable(&self, name: &str) -> Option<String> {
        let key = self.keyed.get(name).map(|key| key.reveal().to_owned());
        key.or_else(|| std::env::var(name).ok())
    }

    /// The name of the variable in which a provider's key was found, if one was found.
    pub fn key_variable(&self, provider: Provider) -> Option<&'static str> {
        self.key_variables.get(&provider).copied()
    }

    /// The variables that the tools of storage services read: `AWS_…`, `AZURE_…`, `GOOGLE_…`. Some
    /// of them contain keys.
    pub fn cloud_variables(&self) -> Vec<(String, String)> {
        ["AWS_", "AZURE_", "GOOGLE_"].into_iter().flat_map(variables).collect()
    }

    /// The path of the user's own table of models.
    pub fn models(&self) -> PathBuf {
        self.settings.join("models.toml")
    }

    /// The archive in [`home`](Config::home).
    pub fn archive(&self) -> Archive {
        Archive::new(&self.home)
    }

    /// Opens the vault of session versions in [`home`](Config::home). A missing vault is not
    /// created.
    ///
    /// # Errors
    ///
    /// The errors of [`Vault::open`].
    pub fn vault(&self) -> Result<Vault> {
        Vault::open(&self.home)
    }

    /// Opens the vault in [`home`](Config::home) to add versions to it. Creates a missing vault.
    ///
    /// # Errors
    ///
    /// The errors of [`Vault::create`].
    pub fn create_vault(&self) -> Result<Vault> {
        let process = if self.is_time_given() { 0 } else { std::process::id() };
        let host = self.person.host.as_deref().unwrap_or_default();
        let seed = format!("{host} {} {} {process}", self.home.display(), self.now());
        Vault::create(&self.home, &seed)
    }

    /// The path of the user's settings file.
    pub fn settings_file(&self) -> PathBuf {
        self.settings.join("epitome.toml")
    }

    /// Which spans and events are logged on standard error: the value of `EPITOME_LOG`, in the
    /// syntax of `tracing_subscriber::EnvFilter`.
    pub fn log_filter(&self) -> Option<&str> {
        self.variables.get("EPITOME_LOG").map(String::as_str)
    }

    /// The folder of the user's own recipes, one TOML file each.
    pub fn recipes(&self) -> PathBuf {
        self.settings.join("recipes")
    }

    /// The user's folders of skills. A skill is a folder that contains a `SKILL.md`.
    pub fn skills(&self) -> [PathBuf; 3] {
        let of_agents = [".claude/skills", ".agents/skills"].map(|place| self.user.join(place));
        let [claude, agents] = of_agents;
        [self.settings.join("skills"), claude, agents]
    }

    /// The folder of the logs in which epitome records the contexts of running agents.
    pub fn logs(&self) -> PathBuf {
        self.agents.logs.clone()
    }

    /// The folder in which `epitome proxy` stores its list of requests, what it decided about them,
    /// and the texts that it removed from them.
    pub fn wire_memo(&self) -> PathBuf {
        self.home.join("proxy")
    }

    /// The path of the user's own rules for secrets.
    pub fn redaction_rules(&self) -> PathBuf {
        self.settings.join("rules.toml")
    }

    /// The folder that contains the record of installed hooks, and the log that hooks write.
    pub(crate) fn hooks(&self) -> PathBuf {
        self.home.join("hooks")
    }

    /// The file in which `list` caches its results.
    pub(crate) fn list_cache(&self) -> PathBuf {
        self.home.join("cache/list.json")
    }

    /// A cache folder, which on Unix only its owner can read. It is created if it does not exist.
    /// Its content can be computed again at any time.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the folder cannot be created.
    pub fn cache(&self, name: &str) -> Result<PathBuf> {
        let folder = self.home.join("cache").join(name);
        disk::private_folder(&folder)?;
        Ok(folder)
    }

    /// The folder in the archive that contains the packs of a session.
    pub(crate) fn archived(&self, key: &SessionKey) -> PathBuf {
        Archive::folder_in(&self.home).join(key.folder())
    }
}

/// The user's name in git's settings, if it has at least two words: a single word might occur in
/// any text.
fn full_name(settings: &Path) -> Option<String> {
    let text = regular::read_to_string(settings).ok()?;
    let of_user = text.lines().skip_while(|line| line.trim() != "[user]").skip(1);
    let mut lines = of_user.take_while(|line| !line.trim_start().starts_with('['));
    let name = lines.find_map(|line| line.trim().strip_prefix("name")?.trim().strip_prefix('='))?;
    let name = name.trim().trim_matches('"');
    name.contains(' ').then(|| name.to_owned())
}

/// The path, with a `~` at its beginning replaced by the home folder.
fn below_home(path: PathBuf, user: &Path) -> PathBuf {
    match path.strip_prefix("~") {
        Ok(rest) => user.join(rest),
        Err(_) => path,
    }
}

/// A time of the system as a timestamp; the first or the last possible timestamp if the year is
/// before -9999 or after 9999.
fn timestamp_of(time: SystemTime) -> Timestamp {
    match Timestamp::try_from(time) {
        Ok(time) => time,
        Err(_) if time < UNIX_EPOCH => Timestamp::MIN,
        Err(_) => Timestamp::MAX,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_outside_of_all_years_gives_the_first_or_the_last_moment() {
        let far = Duration::from_secs(400_000_000_000);
        assert_eq!(timestamp_of(UNIX_EPOCH), Timestamp::UNIX_EPOCH);
        assert_eq!(timestamp_of(UNIX_EPOCH + far), Timestamp::MAX);
        assert_eq!(timestamp_of(UNIX_EPOCH - far), Timestamp::MIN);
    }

    #[test]
    fn variables_override_folders() {
        let of = |vars: &[(&str, &str)]| {
            let vars: Vec<(String, OsString)> =
                vars.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect();
            let (user, data, config) = ("/u".as_ref(), "/u/data".as_ref(), "/u/config".as_ref());
            Config::from_folders(user, data, config, move |name| {
                vars.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            })
        };
        let plain = of(&[]);
        assert_eq!(plain.home, Path::new("/u/data/epitome"));
        assert_eq!(plain.recipes(), Path::new("/u/config/epitome/recipes"));
        assert_eq!(
            (plain.home_is_given, of(&[("EPITOME_HOME", "/e")]).home_is_given),
            (false, true)
        );
        assert_eq!(of(&[("CODEX_HOME", "/x")]).agents.variables["CODEX_HOME"], "/x");
        assert_eq!(of(&[("PATH", "/bin")]).agents.variables.len(), 0);
        assert_eq!(of(&[("EPITOME_HOME", "/e")]).home, Path::new("/e"));
        let keyed = of(&[("GOOGLE_API_KEY", "k-0123456789"), ("OPENAI_API_KEY", " ")]);
        assert_eq!(keyed.keys.keys().collect::<Vec<_>>(), [&Provider::Google]);
        assert!(!format!("{keyed:?}").contains("0123456789"), "{keyed:?}");
        let now = of(&[("EPITOME_NOW", "2026-11-21T00:00:00Z")]).now();
        assert_eq!(now.to_string(), "2026-11-21T00:00:00Z");
    }
}
