//! epitome itself: the logs in which it records the contexts of running agents.

use std::path::PathBuf;

use epitome_formats::{Format, epitome};

use crate::agent::Agent;
use crate::environment::Environment;
use crate::session_file::{SessionFile, is_jsonl};
use crate::unread::UnreadErrors;

/// epitome itself, as an [`Agent`].
pub(crate) struct Epitome;

impl Agent for Epitome {
    fn format(&self) -> &'static Format {
        &epitome::FORMAT
    }

    fn folder(&self, environment: &Environment) -> PathBuf {
        environment.logs.clone()
    }

    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let mut logs = unread.files_in(&self.folder(environment));
        logs.retain(|path| is_jsonl(path));
        SessionFile::of_files(logs, self.name(), |stem| stem, unread)
    }

    fn resume_command(&self) -> Option<&'static [&'static str]> {
        Some(&["epitome", "chat", "--resume"])
    }
}
