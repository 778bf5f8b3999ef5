//! OpenCode: its databases, and the files of releases before 1.2.

use std::collections::HashSet;
use std::path::PathBuf;

use epitome_formats::{Format, opencode};
use epitome_store::file_tree::FileTreeSession;

use crate::agent::{AdditionTarget, AddressTarget, Agent, HookTarget};
use crate::environment::Environment;
use crate::model_address::{self, ModelAddress};
use crate::session_file::{SessionFile, stem};
use crate::unread::UnreadErrors;

/// The variable that names one database, relative to the folder of all databases.
const DATABASE: &str = "OPENCODE_DB";

/// OpenCode, as an [`Agent`].
pub(crate) struct OpenCode;

impl Agent for OpenCode {
    fn format(&self) -> &'static Format {
        &opencode::FORMAT
    }

    fn variables(&self) -> &'static [&'static str] {
        &["XDG_DATA_HOME", "XDG_CONFIG_HOME", DATABASE]
    }

    fn model_address(&self) -> Option<ModelAddress> {
        Some(model_address::OPENCODE)
    }

    fn address_settings(&self) -> Option<AddressTarget> {
        Some(AddressTarget { settings: &opencode::ADDRESS, folder: settings })
    }

    fn folder(&self, environment: &Environment) -> PathBuf {
        environment.xdg_data().join("opencode")
    }

    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let databases = databases(self, DATABASE, environment, unread);
        let mut found: Vec<SessionFile> =
            databases.iter().flat_map(|it| SessionFile::roots(it, unread)).collect();
        // Releases with a database do not remove the files of earlier releases, so a session may be
        // in both.
        let moved: HashSet<String> = found.iter().map(|it| it.id.clone()).collect();
        let files = self.files(environment, unread).into_iter();
        found.extend(files.filter(|it| !moved.contains(&it.id)));
        found
    }

    fn hook(&self) -> Option<HookTarget> {
        Some(HookTarget { hook: &opencode::HOOK, settings })
    }

    fn mcp(&self) -> Option<AdditionTarget> {
        Some(AdditionTarget { addition: &opencode::MCP, settings })
    }

    fn command(&self) -> Option<AdditionTarget> {
        Some(AdditionTarget { addition: &opencode::COMMAND, settings })
    }

    fn resume_command(&self) -> Option<&'static [&'static str]> {
        Some(&["opencode", "--session"])
    }
}

/// The folder of OpenCode's settings, which is the same on every system.
fn settings(environment: &Environment) -> PathBuf {
    let config = environment.folder("XDG_CONFIG_HOME", environment.home.join(".config"));
    config.join("opencode")
}

impl OpenCode {
    /// The sessions in the files of releases before 1.2.
    fn files(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let storage = self.folder(environment).join("storage");
        let spread = FileTreeSession::all(&storage, self.name()).into_iter();
        let found = spread.filter_map(|spread| {
            let path = spread.session().to_owned();
            let file = SessionFile::of_file(path, self.name(), spread.id(), unread)?;
            Some(SessionFile { size: spread.size(), ..file })
        });
        found.collect()
    }
}

/// The databases of OpenCode or of a fork: the one that `variable` names, or else all `.db` files
/// in the agent's folder whose names begin with the agent's name, because each release channel has
/// a database of its own. If the value of `variable` is `:memory:`, it is ignored.
pub(crate) fn databases(
    agent: &dyn Agent,
    variable: &str,
    environment: &Environment,
    unread: &mut UnreadErrors,
) -> Vec<PathBuf> {
    let folder = agent.folder(environment);
    if let Some(database) = environment.variable(variable).filter(|it| *it != ":memory:") {
        return vec![folder.join(database)];
    }
    let mut found = unread.files_in(&folder);
    found.retain(|path| {
        stem(path).starts_with(agent.name()) && path.extension().is_some_and(|it| it == "db")
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_that_the_user_chose_is_the_only_one() {
        for (value, expect) in [
            ("a.db", &["/u/.local/share/opencode/a.db"][..]),
            ("/o.db", &["/o.db"]),
            (":memory:", &[]),
        ] {
            let mut environment = Environment::from_home("/u".as_ref());
            environment.variables.insert(DATABASE.to_owned(), value.into());
            let found = databases(&OpenCode, DATABASE, &environment, &mut UnreadErrors::default());
            assert_eq!(found, expect.iter().map(PathBuf::from).collect::<Vec<_>>(), "{value}");
        }
    }

    #[test]
    fn every_release_channel_has_a_database_of_its_own() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join(".local/share/opencode");
        std::fs::create_dir_all(&folder).expect("a folder");
        for name in ["opencode.db", "opencode-dev.db", "opencode.db-wal", "other.db"] {
            std::fs::write(folder.join(name), "").expect("a file");
        }
        let environment = Environment::from_home(home.path());
        let mut found = databases(&OpenCode, DATABASE, &environment, &mut UnreadErrors::default());
        found.sort();
        assert_eq!(found, ["opencode-dev.db", "opencode.db"].map(|name| folder.join(name)));
    }
}
