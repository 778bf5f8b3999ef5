//! What the folders of agents depend on.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The folders and variables from which agents derive where they keep things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The user's home.
    pub home: PathBuf,
    /// The platform's folder for settings.
    pub config: PathBuf,
    /// The logs of epitome's own live contexts.
    pub logs: PathBuf,
    /// The variables that are set, of those that [`Agent::variables`](crate::Agent::variables)
    /// names.
    pub variables: BTreeMap<String, OsString>,
}

impl Environment {
    /// The environment of a user whose home is `home`, with no variable set.
    pub fn of_home(home: &Path) -> Environment {
        Environment {
            home: home.to_owned(),
            config: home.join(".config"),
            logs: home.join(".local/share/epitome/live"),
            variables: BTreeMap::new(),
        }
    }

    /// The value of a variable, if it is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The folder that a variable names, or else `or`. Agents take `~` for the home folder.
    pub fn folder(&self, variable: &str, or: PathBuf) -> PathBuf {
        let Some(value) = self.variable(variable) else { return or };
        let path = Path::new(value);
        match path.strip_prefix("~") {
            Ok(rest) => self.home.join(rest),
            Err(_) => path.to_owned(),
        }
    }

    /// The user's data folder by the XDG specification, which some agents follow on every system.
    pub fn xdg_data(&self) -> PathBuf {
        self.folder("XDG_DATA_HOME", self.home.join(".local/share"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AGENTS, named};

    /// The folder of sessions of an agent when these variables are set.
    fn folder(agent: &str, variables: &[(&str, &str)]) -> PathBuf {
        let mut environment = Environment::of_home("/u".as_ref());
        let agent = named(agent).expect("a known agent");
        for (name, value) in variables {
            assert!(agent.variables().contains(name), "{name} is not declared");
            environment.variables.insert((*name).to_owned(), value.into());
        }
        agent.folder(&environment)
    }

    #[test]
    fn agents_keep_sessions_where_their_variables_say() {
        type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);
        let cases: &[Case] = &[
            ("pi", &[], "/u/.pi/agent/sessions"),
            ("pi", &[("PI_CODING_AGENT_DIR", "~/p")], "/u/p/sessions"),
            ("pi", &[("PI_CODING_AGENT_SESSION_DIR", "/s")], "/s"),
            ("claude", &[], "/u/.claude/projects"),
            ("claude", &[("CLAUDE_CONFIG_DIR", "/c")], "/c/projects"),
            ("codex", &[], "/u/.codex"),
            ("codex", &[("CODEX_HOME", "/x")], "/x"),
            ("codex", &[("CODEX_HOME", "")], "/u/.codex"),
            ("copilot", &[], "/u/.copilot/session-state"),
            ("copilot", &[("COPILOT_HOME", "/g")], "/g/session-state"),
            ("cursor", &[], "/u/.cursor"),
            ("gemini", &[], "/u/.gemini/tmp"),
            ("gemini", &[("GEMINI_CLI_HOME", "/g")], "/g/.gemini/tmp"),
            ("opencode", &[], "/u/.local/share/opencode"),
            ("opencode", &[("XDG_DATA_HOME", "/d")], "/d/opencode"),
            ("amp", &[("XDG_DATA_HOME", "/d")], "/d/amp/threads"),
            ("qwen", &[], "/u/.qwen/projects"),
            ("qwen", &[("QWEN_HOME", "/q")], "/q/projects"),
            ("qwen", &[("QWEN_HOME", "/q"), ("QWEN_RUNTIME_DIR", "/r")], "/r/projects"),
            ("epitome", &[], "/u/.local/share/epitome/live"),
        ];
        for (agent, variables, expect) in cases {
            assert_eq!(folder(agent, variables), Path::new(expect), "{agent} {variables:?}");
        }
        for agent in AGENTS {
            assert!(cases.iter().any(|(name, ..)| *name == agent.name()), "{}", agent.name());
        }
    }
}
