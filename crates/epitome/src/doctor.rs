//! Examines the agents on this machine, what epitome installed for them, and whether versions of
//! their sessions are kept.

use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use epitome_agents::{self as agents, AGENTS, AddressTarget, Agent, SessionFile};
use jiff::Timestamp;
use serde::Serialize;

use crate::additions::{self, AdditionKind};
use crate::config::Config;
use crate::error::{Result, sentence};
use crate::{hooks, keep, regular, service};

/// How long a program may take to print its version.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum number of bytes of a program's output in which the version is looked for.
const PRINTED: u64 = 4 << 10;
/// If a session is deleted within this many days, the finding is [`FindingKind::DeletesSoon`].
const SOON: u64 = 7;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The state of the agents on this machine. Its serde form is the JSON of `epitome doctor --json`
/// (`docs/json.md`): members are added to it, never changed or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checkup {
    /// The agents that were found on this machine, in the order of [`AGENTS`].
    pub agents: Vec<AgentState>,
    /// Whether versions of sessions are kept.
    pub keep: KeepState,
    /// Errors of reading folders or databases with sessions, as sentences.
    pub unread: Vec<String>,
}

/// Whether versions of sessions are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KeepState {
    /// Whether a process, such as `epitome keep`, keeps versions now and waits for changes.
    pub is_running: bool,
    /// Whether the vault has versions of sessions.
    pub has_versions: bool,
    /// The service that was installed to keep versions, if there is one.
    pub service: Option<InstalledState>,
    /// What deserves attention.
    pub findings: Vec<Finding>,
}

/// The state of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentState {
    /// The name of the agent.
    pub agent: &'static str,
    /// The first line with text that the agent's program prints for `--version`. `None` if there is
    /// no such line, for example because the program is not installed or fails.
    pub version: Option<String>,
    /// The folder of the agent's sessions.
    #[serde(serialize_with = "epitome_model::lossy_path")]
    pub folder: PathBuf,
    /// The number of the agent's sessions.
    pub sessions: u64,
    /// What epitome installed for the agent: a hook, or an addition to its settings.
    pub installed: Vec<InstalledState>,
    /// What running the agent behind a proxy would change. `None` if epitome cannot make the agent
    /// use a proxy.
    pub proxy: Option<ProxyState>,
    /// What deserves attention: first about sessions that are deleted, then about what epitome
    /// installed, then about a missing MCP server.
    pub findings: Vec<Finding>,
}

/// What running an agent behind `epitome proxy` would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProxyState {
    /// The command that runs the agent behind the proxy.
    pub command: String,
    /// The names of the variables and options that the agent would be given behind the proxy.
    pub sets: Vec<String>,
    /// The setting of the agent because of which its requests would not go to the proxy, if there
    /// is one.
    pub overridden_by: Option<OverridingSetting>,
}

/// A setting of an agent that takes precedence over the address of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OverridingSetting {
    /// The keys that lead to the setting, with dots between them.
    pub setting: String,
    /// The file that contains the setting.
    #[serde(serialize_with = "epitome_model::lossy_path")]
    pub file: PathBuf,
}

/// Something that epitome installed: in an agent's settings, or as a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstalledState {
    /// `hook`, `mcp`, `status-line`, `command` or `service`.
    pub what: &'static str,
    /// The file that was changed or created: the agent's settings, or the file of the command or of
    /// the service.
    #[serde(serialize_with = "epitome_model::lossy_path")]
    pub file: PathBuf,
    /// Whether the file still contains what was installed.
    pub is_there: bool,
}

/// Something that deserves attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The kind of the finding, as a short name for programs.
    pub kind: FindingKind,
    /// The finding, as a sentence.
    pub what: String,
    /// The command that mends the problem, or a sentence if there is no such command.
    pub mend: String,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// The agent will delete sessions within the next seven days.
    DeletesSoon,
    /// The agent deletes sessions after less than a year without use, and no hook keeps a page of
    /// them. No session is deleted within the next seven days.
    Deletes,
    /// Something that epitome installed was later changed or removed by another program or the
    /// user.
    Changed,
    /// The agent is installed, and could search past sessions with epitome's MCP server, but
    /// epitome did not add the server to its settings.
    NoMcp,
    /// The service that keeps versions is installed, but no process keeps versions.
    NotRunning,
}

impl FindingKind {
    /// Whether the finding is a problem that should be mended. The others only say what could be
    /// improved.
    pub fn is_problem(self) -> bool {
        match self {
            FindingKind::DeletesSoon | FindingKind::Changed | FindingKind::NotRunning => true,
            FindingKind::Deletes | FindingKind::NoMcp => false,
        }
    }
}

impl Checkup {
    /// The number of findings that are problems, as [`FindingKind::is_problem`] says.
    pub fn problems(&self) -> usize {
        let findings = self.agents.iter().flat_map(|agent| &agent.findings);
        findings.chain(&self.keep.findings).filter(|finding| finding.kind.is_problem()).count()
    }
}

/// Examines the agents on this machine. The program of each agent is run to print its version.
/// Nothing is changed.
///
/// # Errors
///
/// The errors of reading the agents' settings, the records of what epitome installed, the file of
/// the service, and the vault; the error of looking up the system's service manager.
pub fn checkup(config: &Config) -> Result<Checkup> {
    checkup_with(config, version)
}

fn checkup_with(
    config: &Config,
    version: impl Fn(&dyn Agent) -> Option<String> + Sync,
) -> Result<Checkup> {
    let found = agents::all(&config.agents, None);
    let hooks = hooks::list_installed(config)?;
    let additions = additions::list_installed(config)?;
    // Programs take a moment to start: they are run at the same time.
    let versions: Vec<Option<String>> = thread::scope(|scope| {
        let version = &version;
        let running: Vec<_> =
            AGENTS.iter().map(|agent| scope.spawn(move || version(*agent))).collect();
        running.into_iter().map(|it| it.join().unwrap_or_default()).collect()
    });
    let mut states = Vec::new();
    for (agent, version) in AGENTS.iter().zip(versions) {
        let name = agent.name();
        let sessions: Vec<&SessionFile> =
            found.sessions.iter().filter(|session| session.agent == name).collect();
        let mut installed: Vec<InstalledState> = Vec::new();
        installed.extend(hooks.iter().filter(|it| it.agent == name).map(|it| InstalledState {
            what: "hook",
            file: it.file.clone(),
            is_there: it.is_there,
        }));
        installed.extend(additions.iter().filter(|it| it.agent == name).map(|it| {
            let what = match it.kind {
                AdditionKind::Mcp => "mcp",
                AdditionKind::StatusLine => "status-line",
                AdditionKind::Command => "command",
            };
            InstalledState { what, file: it.file.clone(), is_there: it.is_there }
        }));
        if version.is_none() && sessions.is_empty() && installed.is_empty() {
            continue;
        }
        let folder = agent.folder(&config.agents);
        let mut state = AgentState {
            agent: name,
            version,
            folder,
            sessions: sessions.len() as u64,
            installed,
            proxy: proxy(config, *agent),
            findings: Vec::new(),
        };
        state.find(config, *agent, &sessions);
        states.push(state);
    }
    let unread = found.unread.iter().map(|err| sentence(err)).collect();
    Ok(Checkup { agents: states, keep: KeepState::read(config)?, unread })
}

impl KeepState {
    fn read(config: &Config) -> Result<KeepState> {
        let mut state = KeepState {
            is_running: keep::is_running(config),
            has_versions: config.vault()?.files().next().is_some(),
            ..KeepState::default()
        };
        let Some((file, is_there)) = service::installed_service(config)? else { return Ok(state) };
        if !is_there {
            state.findings.push(Finding {
                kind: FindingKind::Changed,
                what: "the service is not as it was installed".to_owned(),
                mend: "epitome uninstall --keep && epitome install --keep".to_owned(),
            });
        } else if !state.is_running {
            state.findings.push(Finding {
                kind: FindingKind::NotRunning,
                what: "the service does not run: no version is kept".to_owned(),
                mend: service::ServiceManager::of_system()?.start(&file).line(),
            });
        }
        state.service = Some(InstalledState { what: "service", file, is_there });
        Ok(state)
    }
}

impl AgentState {
    /// Adds the findings about this agent.
    fn find(&mut self, config: &Config, agent: &dyn Agent, sessions: &[&SessionFile]) {
        let name = self.agent;
        self.findings.extend(deletions(config, agent, sessions, self.has("hook")));
        for installed in &self.installed {
            if !installed.is_there {
                let what = installed.what;
                let file = installed.file.display();
                let option = match what {
                    "mcp" => " --mcp",
                    "status-line" => " --statusline",
                    "command" => " --command",
                    _ => "",
                };
                self.findings.push(Finding {
                    kind: FindingKind::Changed,
                    what: format!("the {what} in {file} is not as it was installed"),
                    mend: format!(
                        "epitome uninstall{option} --agent {name} && \
                         epitome install{option} --agent {name}"
                    ),
                });
            }
        }
        if self.version.is_some() && agent.mcp().is_some() && !self.has("mcp") {
            self.findings.push(Finding {
                kind: FindingKind::NoMcp,
                what: "it cannot look into past sessions".to_owned(),
                mend: format!("epitome install --mcp --agent {name}"),
            });
        }
    }

    fn has(&self, what: &str) -> bool {
        self.installed.iter().any(|installed| installed.what == what)
    }
}

/// What a proxy would change for an agent.
fn proxy(config: &Config, agent: &dyn Agent) -> Option<ProxyState> {
    let address = agent.model_address()?;
    let launch = (address.launch)("http://127.0.0.1");
    Some(ProxyState {
        command: format!("epitome wrap {}", agent.name()),
        sets: launch.setting_names(),
        overridden_by: overriding_setting(config, agent),
    })
}

/// The setting that takes precedence over the address of a proxy, if there is one. `None` also if
/// the settings cannot be read or parsed.
fn overriding_setting(config: &Config, agent: &dyn Agent) -> Option<OverridingSetting> {
    let AddressTarget { settings, folder } = agent.address_settings()?;
    let file = folder(&config.agents).join(settings.file);
    let text = regular::read_to_string(&file).ok()?;
    let is_toml = file.extension().is_some_and(|extension| extension == "toml");
    let value = if is_toml { toml::from_str(&text).ok() } else { hooks::settings::value(&text) };
    let setting = (settings.overriding)(&value?)?;
    Some(OverridingSetting { setting, file })
}

/// [`FindingKind::DeletesSoon`] if the agent deletes at least one session within [`SOON`] days;
/// otherwise [`FindingKind::Deletes`] if it deletes sessions after less than a year without use and
/// no hook keeps a page of them (`is_kept` is false); otherwise `None`.
fn deletions(
    config: &Config,
    agent: &dyn Agent,
    sessions: &[&SessionFile],
    is_kept: bool,
) -> Option<Finding> {
    let days = agent.kept_days(&config.agents)?;
    let name = agent.name();
    let now = SystemTime::from(config.now());
    let age = |session: &&SessionFile| now.duration_since(session.modified).unwrap_or_default();
    let soon = DAY * u32::try_from(days.saturating_sub(SOON)).unwrap_or(u32::MAX);
    let old = sessions.iter().filter(|session| age(session) >= soon).count();
    let oldest = sessions.iter().map(|session| session.modified).min();
    let mend = if is_kept {
        let setting = "set cleanupPeriodDays to 3650 in its settings.json";
        format!("{setting}: pages are kept of sessions, not the sessions")
    } else {
        format!(
            "set cleanupPeriodDays to 3650 in its settings.json; \
             epitome install --agent {name} --all keeps a page of each"
        )
    };
    if old > 0 {
        let first = oldest.and_then(|time| Timestamp::try_from(time).ok());
        let first = first.map(|time| time.strftime("%Y-%m-%d").to_string());
        let what = format!(
            "it deletes {} soon: those not used for {days} days (the oldest: {})",
            epitome_model::plural(old as u64, "session"),
            first.unwrap_or_default()
        );
        return Some(Finding { kind: FindingKind::DeletesSoon, what, mend });
    }
    let what = format!("it deletes sessions that were not used for {days} days");
    (days < 365 && !is_kept).then_some(Finding { kind: FindingKind::Deletes, what, mend })
}

/// The first line with text that the program of an agent prints for `--version`, shortened to 60
/// characters. `None` if the agent's program is unknown, or if it cannot be started, fails, prints
/// nothing, or takes longer than ten seconds.
fn version(agent: &dyn Agent) -> Option<String> {
    first_line(Command::new(agent.program()?).arg("--version"))
}

/// The first line with text that a program prints, as [`version`] returns it.
fn first_line(command: &mut Command) -> Option<String> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let begin = Instant::now();
    let mut stdout = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    // The output is read while the program runs, and to its end: otherwise a program that prints
    // more than a pipe holds would never exit.
    thread::spawn(move || {
        let mut printed = Vec::new();
        if stdout.by_ref().take(PRINTED).read_to_end(&mut printed).is_ok() {
            sender.send(printed).ok();
        }
        io::copy(&mut stdout, &mut io::sink()).ok();
    });
    let is_done = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.success(),
            Ok(None) if begin.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(20)),
            Ok(None) | Err(_) => break false,
        }
    };
    if !is_done {
        child.kill().ok();
        child.wait().ok();
        return None;
    }
    let printed = receiver.recv_timeout(PATIENCE.saturating_sub(begin.elapsed())).ok()?;
    let printed = String::from_utf8_lossy(&printed);
    let line = printed.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(epitome_model::short(line, 60))
}

#[cfg(test)]
mod tests;
