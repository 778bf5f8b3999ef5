//! What epitome can add to an agent's settings, in addition to hooks: an MCP server, a status line,
//! a command.
//!
//! The settings are data here; the caller edits the files.

use serde_json::{Value, json};

/// A value that an agent's settings can hold once.
#[derive(Debug)]
pub struct Addition {
    /// The file that is changed or made, relative to the folder of the agent's settings.
    pub file: &'static str,
    /// The form of the value.
    pub form: AdditionForm,
}

/// The form of a value in an agent's settings.
#[derive(Clone, Copy, Debug)]
pub enum AdditionForm {
    /// A member of an object in a JSON file, with comments if the agent accepts them.
    Member {
        /// The keys that lead to the member, its own last.
        keys: &'static [&'static str],
        /// Makes the value from a program and its arguments.
        value: fn(words: &[&str]) -> Value,
    },
    /// A table of a TOML file.
    Table {
        /// The keys that lead to the table, its own last.
        keys: &'static [&'static str],
        /// Makes the text of the table from a program and its arguments.
        text: fn(words: &[&str]) -> String,
    },
    /// A file of its own.
    File {
        /// What a user of the agent types to use it.
        typed: &'static str,
        /// Makes the content of the file from a program and its arguments.
        text: fn(words: &[&str]) -> String,
    },
}

/// The key of the servers in settings like Claude Code's, and the name of epitome's.
pub(crate) const MCP_SERVER: &[&str] = &["mcpServers", "epitome"];

/// A server in settings like Claude Code's.
pub(crate) fn mcp_server(words: &[&str]) -> Value {
    let (program, arguments) = words.split_first().unwrap_or((&"", &[]));
    json!({ "command": program, "args": arguments })
}

/// The text of a string in TOML. Its basic strings have the escapes of JSON.
pub(crate) fn toml_string(text: &str) -> String {
    Value::from(text).to_string()
}
