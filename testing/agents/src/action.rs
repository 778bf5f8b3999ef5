//! The actions of the scripted model.

use serde::Deserialize;

/// An action of the scripted model, independent of any agent's tool names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Read a file of the project.
    Read {
        /// The path, relative to the project's folder.
        path: String,
    },
    /// Write a file of the project.
    Write {
        /// The path, relative to the project's folder.
        path: String,
        /// The whole content.
        content: String,
    },
    /// Replace one text in a file.
    Edit {
        /// The path, relative to the project's folder.
        path: String,
        /// The text that is replaced.
        old: String,
        /// The new text.
        new: String,
    },
    /// Run a command in the project's folder.
    Shell {
        /// The command line.
        command: String,
        /// A description of the purpose of the command.
        why: String,
    },
    /// Search files for a pattern.
    Search {
        /// A regular expression.
        pattern: String,
        /// The folder, relative to the project's folder.
        path: String,
    },
    /// Delegate a task to a sub-agent, if the agent has sub-agents.
    Delegate {
        /// A short name of the task.
        task: String,
        /// The prompt of the sub-agent; it contains the mark by which the model server finds the
        /// sub-agent's track of the script.
        prompt: String,
        /// The command that answers the same question, for an agent without sub-agents.
        instead: String,
    },
}
