//! Coding agents: where each agent keeps its sessions, which processes use a session, and the hook
//! with which the agent calls a program when a session ends.
//!
//! Each [`Agent`] is in a file of its own in this crate, and is an element of [`AGENTS`]. An
//! [`Agent`] says in which folders the agent keeps its sessions, which files belong to a session,
//! how the agent locks a session ([`AgentLock`]) and resumes one ([`Resume`]), and how a hook is
//! installed in the agent's settings ([`HookTarget`]).
//!
//! [`sessions`] finds the sessions of all agents, each as a [`SessionFile`]. A [`Census`] searches
//! the sessions that epitome can edit for references to removed text. [`UnreadErrors`] collects the
//! errors of what could not be read.
//!
//! The folders of an agent depend on the user's home and on variables. These are passed in as an
//! [`Environment`], so that this crate reads neither.
//!
//! ```
//! use epitome_agents::{AGENTS, Environment, find_agent, sessions};
//!
//! let environment = Environment::from_home("/home/ada".as_ref());
//! let claude = find_agent("claude").expect("a known agent");
//! assert!(claude.folder(&environment).ends_with("ada/.claude/projects"));
//! assert!(sessions(&environment, Some("claude")).is_empty(), "Ada has no sessions here");
//! assert!(AGENTS.iter().any(|agent| agent.name() == "codex"));
//! ```
//!
//! # Absent
//!
//! - Agents' JSON keys: `epitome-formats`.
//! - The process environment: the caller reads it.
//! - Writing sessions: this crate finds them, and takes and releases agents' own locks.
//!   `epitome-store` writes.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod agent;
mod amp;
mod below;
mod census;
mod claude;
mod codex;
mod continuedev;
mod copilot;
mod cursor;
mod environment;
mod epitome;
mod find;
mod gemini;
mod kilo;
mod model_address;
mod opencode;
mod pi;
mod process;
mod qwen;
mod resume;
mod session_file;
mod unread;

pub use agent::{AdditionTarget, AddressTarget, Agent, AgentLock, HookTarget, NewSession, Resume};
pub use below::sessions_below;
pub use census::{Census, Presence, places};
pub use environment::Environment;
pub use find::{
    FoundSessions, SessionMatch, agent_of, agents_with_hooks, all, check_places, companions,
    companions_at, companions_of, files_of, find_session, folders, forget, lock, resumable_agents,
    sessions, sub_agents, users, users_at,
};
pub use model_address::{Launch, LaunchFile, McpArguments, ModelAddress};
pub use process::is_running;
pub use resume::{resume_line, shell_word};
pub use session_file::SessionFile;
pub use unread::UnreadErrors;

/// Every known agent.
pub static AGENTS: &[&dyn Agent] = &[
    &claude::Claude,
    &codex::Codex,
    &pi::Pi,
    &opencode::OpenCode,
    &gemini::Gemini,
    &cursor::Cursor,
    &epitome::Epitome,
    &qwen::Qwen,
    &amp::Amp,
    &copilot::Copilot,
    &kilo::Kilo,
    &continuedev::Continue,
];

/// The name that Claude Code gives the folder with the sessions of a project: each UTF-16 unit of
/// its path that is not an ASCII letter or digit is a dash. (Claude Code shortens names of more
/// than 200 characters; this function does not.)
///
/// ```
/// assert_eq!(epitome_agents::project_folder_name("/home/dev/my_app"), "-home-dev-my-app");
/// ```
pub fn project_folder_name(path: &str) -> String {
    claude::dashed(path)
}

/// The agent with this name, such as `claude`; `None` if there is no such agent.
pub fn find_agent(name: &str) -> Option<&'static dyn Agent> {
    AGENTS.iter().copied().find(|agent| agent.name() == name)
}

#[cfg(test)]
mod places_tests;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use epitome_formats::{FORMATS, Setting};

    use super::*;

    /// Formats of which no agent keeps sessions in a folder: those of exported sessions and of
    /// requests.
    const WITHOUT_A_FOLDER: [&str; 6] =
        ["mini-swe", "swe-agent", "anthropic", "openai-chat", "openai-responses", "gemini-request"];

    #[test]
    fn every_format_is_of_one_agent_or_of_none() {
        for format in FORMATS {
            let of = AGENTS.iter().filter(|agent| agent.name() == format.name).count();
            let expect = usize::from(!WITHOUT_A_FOLDER.contains(&format.name));
            assert_eq!(of, expect, "{}", format.name);
        }
        let known: BTreeSet<&str> = FORMATS.iter().map(|format| format.name).collect();
        assert!(AGENTS.iter().all(|agent| known.contains(agent.name())));
    }

    #[test]
    fn no_two_agents_share_a_folder_of_sessions_or_of_settings() {
        let environment = Environment::from_home("/home/ada".as_ref());
        let folders: BTreeSet<PathBuf> =
            AGENTS.iter().map(|agent| agent.folder(&environment)).collect();
        assert_eq!(folders.len(), AGENTS.len(), "{folders:?}");
        let settings: BTreeSet<PathBuf> = agents_with_hooks()
            .map(|(_, target)| (target.settings)(&environment).join(target.hook.file))
            .collect();
        assert_eq!(settings.len(), agents_with_hooks().count(), "{settings:?}");
    }

    #[test]
    fn what_a_session_is_made_for_can_be_resumed() {
        for agent in AGENTS {
            let is_made = agent.format().make.is_some();
            assert_eq!(agent.resume().is_some(), is_made, "{}", agent.name());
        }
    }

    #[test]
    fn every_hook_is_written_in_the_words_of_its_agent() {
        let mut written = String::new();
        for (agent, HookTarget { hook, .. }) in agents_with_hooks() {
            let text = match hook.setting {
                Setting::Listed { list, entry } => {
                    format!("{} += {}\n", list.join("."), entry("/bin/epitome hook"))
                }
                Setting::Own(text) => text(&["/bin/epitome", "hook"]),
            };
            written.push_str(&format!("== {} {}\n{text}", agent.name(), hook.file));
        }
        insta::assert_snapshot!(written);
    }
}
