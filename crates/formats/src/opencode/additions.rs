//! What epitome can add to OpenCode's settings.

use serde_json::json;

use crate::addition::{Addition, AdditionForm};
use crate::command::{Prompt, SessionSource};

/// An MCP server for all projects of the user (<https://opencode.ai/docs/mcp-servers/>).
pub const MCP: Addition = Addition {
    file: "opencode.json",
    form: AdditionForm::Member {
        keys: &["mcp", "epitome"],
        value: |words| json!({ "type": "local", "command": words, "enabled": true }),
    },
};

/// A command for all projects of the user (<https://opencode.ai/docs/commands/>).
pub const COMMAND: Addition = Addition {
    file: "commands/epitome.md",
    form: AdditionForm::File { typed: "/epitome", text: |words| PROMPT.markdown("", words) },
};

const PROMPT: Prompt = Prompt {
    agent: "opencode",
    name: "OpenCode",
    session: SessionSource::Newest,
    resume: "opencode --session",
};
