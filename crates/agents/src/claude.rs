//! Claude Code: `projects/<folder>/<id>.jsonl`, and the files of its sub-agents in
//! `projects/<folder>/<id>/subagents/agent-<id>.jsonl`. Older versions wrote the files of
//! sub-agents next to the session.
//!
//! `sessions/<pid>.json` exists while Claude Code runs; if it was killed, the file remains.

use std::path::{Path, PathBuf};

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::{Format, claude};
use epitome_store::regular;
use epitome_store::store::User;
use serde::Deserialize;

use crate::agent::{AdditionTarget, AddressTarget, Agent, HookTarget, NewSession, Resume};
use crate::environment::Environment;
use crate::model_address::{self, ModelAddress};
use crate::process::name_of;
use crate::session_file::{SessionFile, is_jsonl, stem};
use crate::unread::UnreadErrors;

/// The maximum number of UTF-16 units in the name of a project's folder. Claude Code shortens a
/// longer name and appends a hash.
const LONGEST: usize = 200;

/// Claude Code, as an [`Agent`].
pub(crate) struct Claude;

impl Agent for Claude {
    fn format(&self) -> &'static Format {
        &claude::FORMAT
    }

    fn variables(&self) -> &'static [&'static str] {
        &["CLAUDE_CONFIG_DIR"]
    }

    fn model_address(&self) -> Option<ModelAddress> {
        Some(model_address::CLAUDE)
    }

    fn address_settings(&self) -> Option<AddressTarget> {
        Some(AddressTarget { settings: &claude::ADDRESS, folder: home })
    }

    fn folder(&self, environment: &Environment) -> PathBuf {
        home(environment).join("projects")
    }

    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let folders = unread.files_in(&self.folder(environment));
        let mut found: Vec<PathBuf> =
            folders.iter().flat_map(|folder| unread.files_in(folder)).collect();
        found.retain(|path| is_jsonl(path) && !self.is_part(path));
        SessionFile::of_files(found, self.name(), |stem| stem, unread)
    }

    fn is_part(&self, file: &Path) -> bool {
        stem(file).starts_with("agent-")
    }

    fn sub_agents(&self, session: &Path, unread: &mut UnreadErrors) -> Vec<PathBuf> {
        let Some(parent) = session.parent() else { return Vec::new() };
        let folder = parent.join(session.file_stem().unwrap_or_default()).join("subagents");
        let mut found = unread.files_in(&folder);
        found.retain(|path| is_jsonl(path) && self.is_part(path));
        found.sort();
        found
    }

    fn users(&self, environment: &Environment, session: &Path) -> Vec<User> {
        let (Ok(real), Ok(projects)) =
            (session.canonicalize(), self.folder(environment).canonicalize())
        else {
            return Vec::new();
        };
        // Claude Code does not use a copy in another folder, although it has the same id.
        if !real.starts_with(projects) {
            return Vec::new();
        }
        let in_folder = real.strip_prefix(home(environment)).unwrap_or(&real);
        let running =
            UnreadErrors::default().files_in(&home(environment).join("sessions")).into_iter();
        running
            .filter_map(|path| serde_json::from_slice::<Running>(&regular::read(&path).ok()?).ok())
            .filter(|it| {
                stem(in_folder) == it.session
                    || in_folder.components().any(|part| part.as_os_str() == &*it.session)
            })
            .filter(|it| it.pid != std::process::id())
            .filter_map(|it| Some(User { pid: it.pid, name: name_of(it.pid)?, writes: true }))
            .collect()
    }

    fn hook(&self) -> Option<HookTarget> {
        Some(HookTarget { hook: &claude::HOOK, settings: home })
    }

    fn mcp(&self) -> Option<AdditionTarget> {
        // `.claude.json` is in the home folder, next to `.claude`. If `CLAUDE_CONFIG_DIR` is set,
        // it is in the folder that this variable names.
        let settings = |environment: &Environment| {
            environment.folder("CLAUDE_CONFIG_DIR", environment.home.clone())
        };
        Some(AdditionTarget { addition: &claude::MCP, settings })
    }

    fn status_line(&self) -> Option<AdditionTarget> {
        Some(AdditionTarget { addition: &claude::STATUS_LINE, settings: home })
    }

    fn command(&self) -> Option<AdditionTarget> {
        Some(AdditionTarget { addition: &claude::COMMAND, settings: home })
    }

    fn kept_days(&self, environment: &Environment) -> Option<u64> {
        // If the settings cannot be read, Claude Code uses its default.
        let settings = regular::read(&home(environment).join("settings.json"));
        Some(claude::kept_days(&settings.unwrap_or_default()))
    }

    fn resume(&self) -> Option<Resume> {
        Some(Resume { command: &["claude", "--resume"], place })
    }
}

/// A process of Claude Code, as its file in `sessions/` describes it.
#[derive(Deserialize)]
struct Running {
    pid: u32,
    #[serde(rename = "sessionId")]
    session: String,
}

fn home(environment: &Environment) -> PathBuf {
    environment.folder("CLAUDE_CONFIG_DIR", environment.home.join(".claude"))
}

fn place(environment: &Environment, new: &NewSession<'_>) -> Result<PathBuf> {
    let folder = dashed(&new.cwd.to_string_lossy());
    if folder.len() > LONGEST {
        let what = "Claude Code shortens the name of a folder as deep as this one";
        return Err(Error::new(ErrorKind::Refused, what)
            .at(new.cwd)
            .with_hint("write the session elsewhere with --out, and resume it by its path"));
    }
    Ok(Claude.folder(environment).join(folder).join(format!("{}.jsonl", new.id)))
}

/// The name that Claude Code gives the folder of a project: each UTF-16 unit that is not an ASCII
/// letter or digit is a dash.
pub(crate) fn dashed(cwd: &str) -> String {
    let units = cwd.chars().map(|c| match c.is_ascii_alphanumeric() {
        true => c.to_string(),
        false => "-".repeat(c.len_utf16()),
    });
    units.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_projects_are_named_as_claude_code_names_them() {
        assert_eq!(dashed("/home/dev/my_app.x"), "-home-dev-my-app-x");
        assert_eq!(dashed("/p/ä🤖"), "-p----");
    }
}
