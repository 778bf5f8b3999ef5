//! What a scripted model wants done.

use serde::Deserialize;

/// Something the scripted model wants done, free of any agent's names for it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Read a file of the project.
    Read {
        /// The path, from the project's folder.
        path: String,
    },
    /// Write a file of the project.
    Write {
        /// The path, from the project's folder.
        path: String,
        /// All of its content.
        content: String,
    },
    /// Replace one text in a file.
    Edit {
        /// The path, from the project's folder.
        path: String,
        /// The text that stands there.
        old: String,
        /// The text that shall stand there.
        new: String,
    },
    /// Run a command in the project's folder.
    Shell {
        /// The command line.
        command: String,
        /// What it is for.
        why: String,
    },
    /// Search files for a pattern.
    Search {
        /// A regular expression.
        pattern: String,
        /// The folder, from the project's.
        path: String,
    },
    /// Let a sub-agent do it, where there are any.
    Delegate {
        /// A few words for the list of tasks.
        task: String,
        /// What the sub-agent is told; holds the mark of its track.
        prompt: String,
        /// The command that answers the same, for an agent without sub-agents.
        instead: String,
    },
}
