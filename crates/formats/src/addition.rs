//! What epitome can add to an agent's settings, in addition to hooks: an MCP server, a status line,
//! a command.
//!
//! The settings are data here; the caller edits the files.

use serde_json::{Value, json};

/// A value that epitome adds to an agent's settings, at most once.
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
    /// A member of an object in a JSON file. The file may contain comments if the agent accepts
    /// them.
    Member {
        /// The keys that lead to the member. The last one is the key of the member itself.
        keys: &'static [&'static str],
        /// Makes the value from a program and its arguments.
        value: fn(words: &[&str]) -> Value,
    },
    /// A table of a TOML file.
    Table {
        /// The keys that lead to the table. The last one is the key of the table itself.
        keys: &'static [&'static str],
        /// Makes the text of the table from a program and its arguments.
        text: fn(words: &[&str]) -> String,
    },
    /// A separate file.
    File {
        /// What a user types in the agent to call the command in the file: `/epitome`.
        typed: &'static str,
        /// Makes the content of the file from a program and its arguments.
        text: fn(words: &[&str]) -> String,
    },
}

/// The keys that lead to epitome's MCP server in settings that have the form of Claude Code's.
pub(crate) const MCP_SERVER: &[&str] = &["mcpServers", "epitome"];

/// The value of an MCP server in settings that have the form of Claude Code's.
pub(crate) fn mcp_server(words: &[&str]) -> Value {
    let (program, arguments) = words.split_first().unwrap_or((&"", &[]));
    json!({ "command": program, "args": arguments })
}

/// A text as a string of TOML. TOML's basic strings accept the escapes of JSON.
pub(crate) fn toml_string(text: &str) -> String {
    Value::from(text).to_string()
}
