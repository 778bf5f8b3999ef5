//! The sessions of this machine, and the ids by which a model names them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use epitome::Config;
use epitome::agents::{self, SessionFile, SessionMatch};
use epitome::list::short_ids;

use crate::error::ToolError;

/// The sessions that were found.
pub(crate) struct Sessions<'c> {
    config: &'c Config,
    pub(crate) files: Vec<SessionFile>,
    short: HashMap<PathBuf, String>,
}

impl<'c> Sessions<'c> {
    /// Finds the sessions of all agents. Folders that cannot be read are left out.
    pub(crate) fn find(config: &'c Config) -> Sessions<'c> {
        let files = agents::sessions(&config.agents, None);
        let ids: Vec<&str> = files.iter().map(|file| &*file.id).collect();
        let paths = files.iter().map(|file| file.path.clone());
        let short = paths.zip(short_ids(&ids)).collect();
        Sessions { config, files, short }
    }

    /// The short id of the session in the file at `path`. Returns `id`, the whole id, if the
    /// session is not among the sessions that were found.
    pub(crate) fn short_id<'a>(&'a self, path: &Path, id: &'a str) -> &'a str {
        self.short.get(path).map_or(id, String::as_str)
    }

    /// The path of the session that `id` names: its id, the beginning of its id, or its path.
    ///
    /// # Errors
    ///
    /// If no session or more than one fits. A path is accepted only if it is the path of a session,
    /// so that a model cannot read other files of this machine.
    pub(crate) fn path(&self, id: &str) -> Result<PathBuf, ToolError> {
        let is_path = id.contains(['/', '\\']) || Path::new(id).exists();
        let known = self.files.iter().find(|file| is_path && file.path == Path::new(id));
        if let Some(file) = known {
            return Ok(file.path.clone());
        }
        if !is_path {
            match agents::find_session(&self.config.agents, id, None) {
                SessionMatch::File(path) if path != Path::new(id) => return Ok(path),
                SessionMatch::AnyOf(found) => {
                    let ids: Vec<&str> = found.iter().take(10).map(|file| &*file.id).collect();
                    let what = format!("several sessions begin like this: {}", ids.join(", "));
                    return Err(ToolError::new(what));
                }
                SessionMatch::File(_) | SessionMatch::Nothing => {}
            }
        }
        Err(ToolError::new(format!("no session is called `{id}`; `sessions` lists them")))
    }
}
