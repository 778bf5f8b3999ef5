//! Amp: `threads/<id>.json` in Amp's data folder.

use std::path::PathBuf;

use epitome_formats::{Format, amp};

use crate::agent::Agent;
use crate::environment::Environment;
use crate::session_file::SessionFile;
use crate::unread::UnreadErrors;

/// Amp, as an [`Agent`].
pub(crate) struct Amp;

impl Agent for Amp {
    fn format(&self) -> &'static Format {
        &amp::FORMAT
    }

    fn variables(&self) -> &'static [&'static str] {
        &["XDG_DATA_HOME"]
    }

    fn folder(&self, environment: &Environment) -> PathBuf {
        environment.xdg_data().join("amp/threads")
    }

    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let mut found = unread.files_in(&self.folder(environment));
        found.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        SessionFile::of_files(found, self.name(), |stem| stem, unread)
    }
}
