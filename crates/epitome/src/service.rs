//! Installs a service that keeps every version of every session: `epitome keep --all`, from the
//! moment when the user logs in.
//!
//! On Linux it is a unit of the user's systemd, on macOS an agent of launchd. A change is planned
//! as a [`ServiceInstall`] or a [`ServiceRemoval`], which can be shown to the user, and is then
//! carried out. Starting and stopping is a [`ServiceCommand`] of the system, which the caller runs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use epitome_agents::{AGENTS, Environment};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::hooks::{FileChange, missing_above, purge, read, replace, unchanged};
use crate::regular;
use crate::store::{disk, write_over};

/// The name of the service.
const NAME: &str = "epitome-keep";
/// The comment in the service's file that says which program wrote the file.
const MADE_BY: &str = "Written by `epitome install --keep`; `epitome uninstall --keep` removes it.";

/// The system that runs services of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceManager {
    /// The user's systemd.
    Systemd,
    /// The launchd of macOS.
    Launchd,
}

/// A planned installation of the service. Nothing is changed yet.
#[derive(Clone, Debug)]
pub struct ServiceInstall {
    /// The service's file, which is made or changed.
    pub file: PathBuf,
    /// The text of the file now; `None` if the file does not exist.
    pub before: Option<String>,
    /// The text of the file after the installation.
    pub after: String,
    /// The command that starts the service, now and at each login.
    pub start: ServiceCommand,
    folders: Vec<PathBuf>,
}

/// A planned removal of the service. Nothing is changed yet.
#[derive(Clone, Debug)]
pub struct ServiceRemoval {
    /// How the service's file changes.
    pub change: FileChange,
    /// The command that stops the service, which must be run before the file is removed.
    pub stop: ServiceCommand,
    folders: Vec<PathBuf>,
}

/// A command of the system that starts or stops a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceCommand(Vec<String>);

/// What was installed, as stored in `service.json` in epitome's folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    /// The version of the record's format: 1.
    epitome_service: u64,
    file: PathBuf,
    /// The text of the service's file, as it was installed.
    text: String,
    /// Folders that were made for the service's file, the outermost first.
    folders: Vec<PathBuf>,
}

impl ServiceManager {
    /// The service manager of this system.
    ///
    /// # Errors
    ///
    /// `Unsupported` if there is none that epitome knows.
    pub fn of_system() -> Result<ServiceManager> {
        if cfg!(target_os = "linux") {
            Ok(ServiceManager::Systemd)
        } else if cfg!(target_os = "macos") {
            Ok(ServiceManager::Launchd)
        } else {
            let what = "a service can be installed on Linux and macOS only";
            Err(Error::new(ErrorKind::Unsupported, what)
                .with_hint("run `epitome keep --all` at log-in, with what this system has for it"))
        }
    }

    fn file(self, config: &Config) -> PathBuf {
        let Environment { home, config: settings, .. } = &config.agents;
        match self {
            ServiceManager::Systemd => settings.join(format!("systemd/user/{NAME}.service")),
            ServiceManager::Launchd => home.join(format!("Library/LaunchAgents/{NAME}.plist")),
        }
    }

    /// The text of the file of a service that runs a command with these variables.
    fn text(self, words: &[String], variables: &[(String, String)]) -> String {
        match self {
            ServiceManager::Systemd => unit(words, variables),
            ServiceManager::Launchd => property_list(words, variables),
        }
    }

    /// The command that starts the service whose file is `file`.
    pub fn start(self, file: &Path) -> ServiceCommand {
        match self {
            ServiceManager::Systemd => {
                let unit = format!("{NAME}.service");
                ServiceCommand::new(&["systemctl", "--user", "enable", "--now", &unit])
            }
            ServiceManager::Launchd => {
                let file = file.to_string_lossy();
                ServiceCommand::new(&["launchctl", "load", "-w", &file])
            }
        }
    }

    /// The command that stops the service whose file is `file`.
    pub fn stop(self, file: &Path) -> ServiceCommand {
        match self {
            ServiceManager::Systemd => {
                let unit = format!("{NAME}.service");
                ServiceCommand::new(&["systemctl", "--user", "disable", "--now", &unit])
            }
            ServiceManager::Launchd => {
                let file = file.to_string_lossy();
                ServiceCommand::new(&["launchctl", "unload", "-w", &file])
            }
        }
    }
}

/// A unit of systemd. The service starts again after an error, such as a full disk.
fn unit(words: &[String], variables: &[(String, String)]) -> String {
    let words: Vec<String> = words.iter().map(|word| unit_word(word)).collect();
    let mut environment = String::new();
    for (name, value) in variables {
        environment.push_str(&format!("Environment={}\n", unit_word(&format!("{name}={value}"))));
    }
    format!(
        "# {MADE_BY}\n\
         [Unit]\n\
         Description=epitome keep: every version of the sessions of coding agents\n\
         \n\
         [Service]\n\
         ExecStart={}\n\
         {environment}StandardOutput=null\n\
         Restart=on-failure\n\
         RestartSec=60\n\
         Nice=10\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        words.join(" ")
    )
}

/// A word of a unit, in quotes, and escaped so that systemd substitutes nothing in it.
fn unit_word(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('%', "%%").replace('$', "$$"))
}

/// A property list of launchd. The service starts again after an error, such as a full disk.
fn property_list(words: &[String], variables: &[(String, String)]) -> String {
    let string = |text: &str| format!("<string>{}</string>", xml(text));
    let words: String = words.iter().map(|word| format!("    {}\n", string(word))).collect();
    let variables: String = variables
        .iter()
        .map(|(name, value)| format!("    <key>{}</key>{}\n", xml(name), string(value)))
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!-- {MADE_BY} -->\n\
         <plist version=\"1.0\">\n\
         <dict>\n\
         \x20 <key>Label</key><string>{NAME}</string>\n\
         \x20 <key>ProgramArguments</key>\n\
         \x20 <array>\n{words}  </array>\n\
         \x20 <key>EnvironmentVariables</key>\n\
         \x20 <dict>\n{variables}  </dict>\n\
         \x20 <key>RunAtLoad</key><true/>\n\
         \x20 <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n\
         \x20 <key>ThrottleInterval</key><integer>60</integer>\n\
         \x20 <key>LowPriorityIO</key><true/>\n\
         </dict>\n\
         </plist>\n"
    )
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl ServiceCommand {
    fn new(words: &[&str]) -> ServiceCommand {
        ServiceCommand(words.iter().map(|&word| word.to_owned()).collect())
    }

    /// The command as a line for a shell.
    pub fn line(&self) -> String {
        let words: Vec<String> =
            self.0.iter().map(|word| epitome_agents::shell_word(word).to_string()).collect();
        words.join(" ")
    }

    /// Runs the command. Its program is looked for in the folders of `path`, a value of `PATH`.
    ///
    /// # Errors
    ///
    /// `NotFound` if this system has no such program; `Refused` if it cannot be run or fails, with
    /// the first line of its error output.
    pub fn run(&self, path: Option<&OsStr>) -> Result<()> {
        let (name, arguments) =
            self.0.split_first().map_or(("", &[][..]), |(name, rest)| (name.as_str(), rest));
        let mut folders = path.into_iter().flat_map(std::env::split_paths);
        let program = folders.find_map(|folder| {
            let program = folder.join(name);
            program.is_file().then_some(program)
        });
        let Some(program) = program else {
            let what = format!("this system has no {name}");
            return Err(Error::new(ErrorKind::NotFound, what));
        };
        let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
        let output = output.map_err(|err| {
            Error::new(ErrorKind::Refused, format!("{name} cannot be run")).because(err)
        })?;
        if output.status.success() {
            return Ok(());
        }
        let printed = String::from_utf8_lossy(&output.stderr);
        let line = printed.lines().next().unwrap_or_default();
        Err(Error::new(ErrorKind::Refused, format!("{name} failed: {line}")))
    }
}

impl ServiceInstall {
    /// Plans to install the service. `program` is the path of epitome, which the service will run.
    /// The variables that say where agents keep sessions are passed on to it.
    ///
    /// # Errors
    ///
    /// `Unsupported` if this system has no services that epitome knows; `Exists` if there is a file
    /// of that name which epitome did not write, or which was changed since; `Unreadable` if the
    /// record of an earlier installation cannot be parsed; `NewerFormat` if a newer epitome wrote
    /// it; the errors of reading the file or the record.
    pub fn plan(config: &Config, program: &Path) -> Result<ServiceInstall> {
        let manager = ServiceManager::of_system()?;
        let file = manager.file(config);
        let before = read(&file)?;
        let known = Record::load(config)?.filter(|record| record.file == file);
        let is_ours = known.as_ref().is_some_and(|it| Some(&it.text) == before.as_ref());
        if before.is_some() && !is_ours {
            let what = "a file of that name is there already";
            let hint = "epitome changes only what it added itself: remove it first";
            return Err(Error::new(ErrorKind::Exists, what).at(&file).with_hint(hint));
        }
        let mut words = vec![program.to_string_lossy().into_owned()];
        words.extend(["keep", "--all"].map(str::to_owned));
        if config.home_is_given {
            words.extend(["--home".to_owned(), config.home.to_string_lossy().into_owned()]);
        }
        let after = manager.text(&words, &variables(config));
        let folders = known.map_or_else(|| missing_above(&file), |known| known.folders);
        Ok(ServiceInstall { before, after, start: manager.start(&file), folders, file })
    }

    /// Writes the file, and the record by which it is removed again.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the file or the record cannot be written; `HardLinked` if the
    /// file has several names. The file is unchanged then.
    pub fn carry_out(&self, config: &Config) -> Result<()> {
        let record = Record {
            epitome_service: 1,
            file: self.file.clone(),
            text: self.after.clone(),
            folders: self.folders.clone(),
        };
        record.store(config)?;
        if self.before.as_deref() == Some(&self.after) {
            return Ok(());
        }
        replace(&self.file, &self.after)
    }
}

/// The variables that say where agents keep sessions. A service does not get them from the user's
/// shell.
fn variables(config: &Config) -> Vec<(String, String)> {
    let names = AGENTS.iter().flat_map(|agent| agent.variables());
    let mut found: Vec<(String, String)> = names
        .filter_map(|name| {
            let value = config.agents.variable(name)?;
            Some(((*name).to_owned(), value.to_str()?.to_owned()))
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

impl ServiceRemoval {
    /// Plans to remove the service; `None` if it is not installed.
    ///
    /// # Errors
    ///
    /// `Unreadable` if the record of the installation cannot be parsed; `NewerFormat` if a newer
    /// epitome wrote it; `Unsupported` if this system has no services that epitome knows; the
    /// errors of reading the file or the record.
    pub fn plan(config: &Config) -> Result<Option<ServiceRemoval>> {
        let Some(Record { file, text, folders, .. }) = Record::load(config)? else {
            return Ok(None);
        };
        let manager = ServiceManager::of_system()?;
        let stop = manager.stop(&file);
        let change = match read(&file)? {
            None => FileChange::Nothing { file },
            Some(before) if before == text => FileChange::Gone { file, before },
            Some(_) => FileChange::Kept { file },
        };
        Ok(Some(ServiceRemoval { change, stop, folders }))
    }

    /// Removes the file, the folders that were made for it if they are empty, and the record. A
    /// file that the user has changed is kept.
    ///
    /// # Errors
    ///
    /// `Changed` if the file changed since the plan; `Disk` or `NoPermission` if the file or the
    /// record cannot be removed.
    pub fn carry_out(&self, config: &Config) -> Result<()> {
        if let FileChange::Gone { file, before } = &self.change {
            unchanged(file, before)?;
            fs::remove_file(file).map_err(|err| Error::writing(err, "the service", file))?;
            purge::empty(&self.folders);
        }
        Record::remove(config)
    }
}

/// The file of the service, and whether its content is still what was installed. `None` if the
/// service is not installed.
///
/// # Errors
///
/// The errors of [`ServiceRemoval::plan`].
pub fn installed_service(config: &Config) -> Result<Option<(PathBuf, bool)>> {
    let Some(removal) = ServiceRemoval::plan(config)? else { return Ok(None) };
    Ok(Some(match removal.change {
        FileChange::Gone { file, .. } => (file, true),
        FileChange::Text { file, .. }
        | FileChange::Kept { file }
        | FileChange::Nothing { file } => (file, false),
    }))
}

impl Record {
    fn path(config: &Config) -> PathBuf {
        config.home.join("service.json")
    }

    fn load(config: &Config) -> Result<Option<Record>> {
        let path = Record::path(config);
        let text = match regular::read(&path) {
            Ok(text) => text,
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(Error::reading(err, "what was installed", &path)),
        };
        let record: Record = serde_json::from_slice(&text).map_err(|err| {
            let what = "what was installed cannot be read";
            Error::new(ErrorKind::Unreadable, what).at(&path).because(err)
        })?;
        if record.epitome_service > 1 {
            let what = "it was written by a newer epitome";
            return Err(Error::new(ErrorKind::NewerFormat, what).at(&path));
        }
        Ok(Some(record))
    }

    fn store(&self, config: &Config) -> Result<()> {
        disk::private_folder(&config.home)?;
        let broken = |err| {
            Error::new(ErrorKind::Broken, "what was installed cannot be written").because(err)
        };
        let text = serde_json::to_string_pretty(self).map_err(broken)?;
        write_over(&Record::path(config), |out| Ok(writeln!(out, "{text}")?))
    }

    fn remove(config: &Config) -> Result<()> {
        let path = Record::path(config);
        match fs::remove_file(&path) {
            Err(err) if err.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::writing(err, "what was installed", &path));
            }
            Ok(()) | Err(_) => {}
        }
        // Epitome's folder is removed if it is empty. An error is ignored: usually the folder is
        // not empty.
        fs::remove_dir(&config.home).ok();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 3] = ["/opt/a b/epitome", "keep", "--all"];

    fn text(manager: ServiceManager) -> String {
        let words = WORDS.map(str::to_owned);
        manager.text(&words, &[("CODEX_HOME".to_owned(), "/c & \"d\" $e 5%".to_owned())])
    }

    #[test]
    fn the_files_of_both_systems_run_the_command_with_the_variables() {
        insta::assert_snapshot!(text(ServiceManager::Systemd), @r#"
        # Written by `epitome install --keep`; `epitome uninstall --keep` removes it.
        [Unit]
        Description=epitome keep: every version of the sessions of coding agents

        [Service]
        ExecStart="/opt/a b/epitome" "keep" "--all"
        Environment="CODEX_HOME=/c & \"d\" $$e 5%%"
        StandardOutput=null
        Restart=on-failure
        RestartSec=60
        Nice=10

        [Install]
        WantedBy=default.target
        "#);
        insta::assert_snapshot!(text(ServiceManager::Launchd), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <!-- Written by `epitome install --keep`; `epitome uninstall --keep` removes it. -->
        <plist version="1.0">
        <dict>
          <key>Label</key><string>epitome-keep</string>
          <key>ProgramArguments</key>
          <array>
            <string>/opt/a b/epitome</string>
            <string>keep</string>
            <string>--all</string>
          </array>
          <key>EnvironmentVariables</key>
          <dict>
            <key>CODEX_HOME</key><string>/c &amp; "d" $e 5%</string>
          </dict>
          <key>RunAtLoad</key><true/>
          <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
          <key>ThrottleInterval</key><integer>60</integer>
          <key>LowPriorityIO</key><true/>
        </dict>
        </plist>
        "#);
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    fn what_was_installed_is_removed_to_the_byte_unless_it_was_changed() {
        let home = tempfile::tempdir().expect("a folder");
        let mut config = Config::from_home(home.path());
        config.home = home.path().join("epitome");
        let program = Path::new("/opt/epitome");
        assert!(ServiceRemoval::plan(&config).expect("a plan").is_none());
        let plan = ServiceInstall::plan(&config, program).expect("a plan");
        plan.carry_out(&config).expect("it is installed");
        assert_eq!(fs::read_to_string(&plan.file).expect("a file"), plan.after);
        // A second installation, here with the path of another program, replaces the first.
        let again = ServiceInstall::plan(&config, Path::new("/usr/bin/epitome")).expect("a plan");
        assert_eq!(again.before.as_deref(), Some(&*plan.after));
        again.carry_out(&config).expect("it is installed");
        let installed = installed_service(&config).expect("a record");
        assert_eq!(installed, Some((plan.file.clone(), true)));
        let removal = ServiceRemoval::plan(&config).expect("a plan").expect("it is installed");
        removal.carry_out(&config).expect("it is removed");
        assert_eq!(fs::read_dir(home.path()).expect("a folder").count(), 0);

        plan.carry_out(&config).expect("it is installed");
        fs::write(&plan.file, "mine").expect("a file");
        let err = ServiceInstall::plan(&config, program).expect_err("it is the user's");
        assert_eq!(err.kind(), ErrorKind::Exists);
        let removal = ServiceRemoval::plan(&config).expect("a plan").expect("it is installed");
        assert_eq!(removal.change, FileChange::Kept { file: plan.file.clone() });
        removal.carry_out(&config).expect("it is removed");
        assert_eq!(fs::read_to_string(&plan.file).expect("a file"), "mine");
    }

    #[test]
    fn a_command_that_is_not_there_or_fails_is_named() {
        let command = ServiceCommand::new(&["no-such-program", "a b"]);
        assert_eq!(command.line(), "no-such-program 'a b'");
        for path in [None, Some(OsStr::new("/"))] {
            let err = command.run(path).expect_err("there is none");
            assert_eq!(err.to_string(), "this system has no no-such-program");
        }
    }
}
