//! Copilot CLI: `session-state/<id>/events.jsonl`; older versions: `session-state/<id>.jsonl`.

use std::path::PathBuf;

use epitome_formats::{Format, copilot};

use crate::agent::Agent;
use crate::environment::Environment;
use crate::session_file::{SessionFile, is_jsonl, stem};
use crate::unread::UnreadErrors;

/// Copilot CLI, as an [`Agent`].
pub(crate) struct Copilot;

impl Agent for Copilot {
    fn format(&self) -> &'static Format {
        &copilot::FORMAT
    }

    fn variables(&self) -> &'static [&'static str] {
        &["COPILOT_HOME"]
    }

    fn folder(&self, environment: &Environment) -> PathBuf {
        environment.folder("COPILOT_HOME", environment.home.join(".copilot")).join("session-state")
    }

    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let entries = unread.files_in(&self.folder(environment)).into_iter();
        let found = entries.filter_map(|path| {
            let id = stem(&path).into_owned();
            let file = if is_jsonl(&path) { path } else { path.join("events.jsonl") };
            SessionFile::of_file(file, self.name(), id, unread)
        });
        found.collect()
    }
}
