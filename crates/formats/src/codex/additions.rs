//! What epitome can add to Codex's settings.

use crate::addition::{Addition, AdditionForm, toml_string};

/// An MCP server for all projects of the user.
pub const MCP: Addition = Addition {
    file: "config.toml",
    form: AdditionForm::Table { keys: &["mcp_servers", "epitome"], text: server },
};

fn server(words: &[&str]) -> String {
    let (program, arguments) = words.split_first().unwrap_or((&"", &[]));
    let program = toml_string(program);
    let arguments: Vec<String> = arguments.iter().map(|word| toml_string(word)).collect();
    let arguments = arguments.join(", ");
    format!("[mcp_servers.epitome]\ncommand = {program}\nargs = [{arguments}]\n")
}
