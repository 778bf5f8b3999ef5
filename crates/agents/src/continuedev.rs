//! Continue: `sessions/<id>.json` in Continue's folder, for the program `cn` and the extensions.

use std::path::PathBuf;

use epitome_formats::{Format, continuedev};

use crate::agent::Agent;
use crate::environment::Environment;
use crate::session_file::{SessionFile, stem};
use crate::unread::UnreadErrors;

/// The variable that sets the folder of Continue.
const FOLDER: &str = "CONTINUE_GLOBAL_DIR";

/// Continue, as an [`Agent`].
pub(crate) struct Continue;

impl Agent for Continue {
    fn format(&self) -> &'static Format {
        &continuedev::FORMAT
    }

    fn variables(&self) -> &'static [&'static str] {
        &[FOLDER]
    }

    fn folder(&self, environment: &Environment) -> PathBuf {
        environment.folder(FOLDER, environment.home.join(".continue")).join("sessions")
    }

    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let mut found = unread.files_in(&self.folder(environment));
        // `sessions.json` is the list of all sessions.
        found.retain(|path| {
            path.extension().is_some_and(|it| it == "json") && stem(path) != "sessions"
        });
        SessionFile::of_files(found, self.name(), |stem| stem, unread)
    }
}
