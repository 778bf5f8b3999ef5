//! Qwen Code: `projects/<folder>/chats/<id>.jsonl`.

use std::path::PathBuf;

use epitome_formats::{Format, qwen};

use crate::agent::{AdditionTarget, AddressTarget, Agent};
use crate::environment::Environment;
use crate::model_address::{self, ModelAddress};
use crate::session_file::{SessionFile, is_jsonl};
use crate::unread::UnreadErrors;

/// Qwen Code, as an [`Agent`].
pub(crate) struct Qwen;

impl Agent for Qwen {
    fn format(&self) -> &'static Format {
        &qwen::FORMAT
    }

    fn variables(&self) -> &'static [&'static str] {
        &["QWEN_HOME", "QWEN_RUNTIME_DIR"]
    }

    fn model_address(&self) -> Option<ModelAddress> {
        Some(model_address::QWEN)
    }

    fn address_settings(&self) -> Option<AddressTarget> {
        Some(AddressTarget { settings: &qwen::ADDRESS, folder: home })
    }

    fn folder(&self, environment: &Environment) -> PathBuf {
        environment.folder("QWEN_RUNTIME_DIR", home(environment)).join("projects")
    }

    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let projects = unread.files_in(&self.folder(environment));
        let chats = projects.iter().flat_map(|project| unread.files_in(&project.join("chats")));
        let found = chats.filter(|path| is_jsonl(path)).collect();
        SessionFile::of_files(found, self.name(), |stem| stem, unread)
    }

    fn command(&self) -> Option<AdditionTarget> {
        Some(AdditionTarget { addition: &qwen::COMMAND, settings: home })
    }

    fn resume_command(&self) -> Option<&'static [&'static str]> {
        Some(&["qwen", "--resume"])
    }
}

/// The folder of Qwen Code's settings.
fn home(environment: &Environment) -> PathBuf {
    environment.folder("QWEN_HOME", environment.home.join(".qwen"))
}
