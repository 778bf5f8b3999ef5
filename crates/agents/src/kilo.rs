//! Kilo Code's program `kilo`, a fork of OpenCode with its own databases.

use std::path::PathBuf;

use epitome_formats::{Format, opencode};

use crate::agent::Agent;
use crate::environment::Environment;
use crate::opencode::databases;
use crate::session_file::SessionFile;
use crate::unread::UnreadErrors;

/// The variable that names one database, relative to the folder of all databases.
const DATABASE: &str = "KILO_DB";

/// Kilo Code, as an [`Agent`].
pub(crate) struct Kilo;

impl Agent for Kilo {
    fn format(&self) -> &'static Format {
        &opencode::KILO
    }

    fn variables(&self) -> &'static [&'static str] {
        &["XDG_DATA_HOME", DATABASE]
    }

    fn folder(&self, environment: &Environment) -> PathBuf {
        environment.xdg_data().join("kilo")
    }

    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let databases = databases(self, DATABASE, environment, unread);
        databases.iter().flat_map(|database| SessionFile::roots(database, unread)).collect()
    }

    fn resume_command(&self) -> Option<&'static [&'static str]> {
        Some(&["kilo", "--session"])
    }
}
