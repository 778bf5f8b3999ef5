//! What epitome can add to Codex's settings.

use crate::addition::{Addition, AdditionForm, toml_string};
use crate::command::{Prompt, SessionSource};

/// An MCP server for all projects of the user.
pub const MCP: Addition = Addition {
    file: "config.toml",
    form: AdditionForm::Table { keys: &["mcp_servers", "epitome"], text: server },
};

/// A skill for all projects of the user. Since 0.117 users cannot define commands in Codex: it no
/// longer reads `prompts/` (<https://github.com/openai/codex/pull/14987>).
pub const COMMAND: Addition = Addition {
    file: "skills/epitome/SKILL.md",
    form: AdditionForm::File {
        typed: "$epitome",
        text: |words| PROMPT.markdown("name: epitome\n", words),
    },
};

const PROMPT: Prompt = Prompt {
    agent: "codex",
    name: "Codex",
    session: SessionSource::Variable("CODEX_THREAD_ID"),
    resume: "codex resume",
};

fn server(words: &[&str]) -> String {
    let (program, arguments) = words.split_first().unwrap_or((&"", &[]));
    let program = toml_string(program);
    let arguments: Vec<String> = arguments.iter().map(|word| toml_string(word)).collect();
    let arguments = arguments.join(", ");
    format!("[mcp_servers.epitome]\ncommand = {program}\nargs = [{arguments}]\n")
}
