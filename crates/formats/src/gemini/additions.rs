//! What epitome can add to Gemini CLI's settings.

use crate::addition::{Addition, AdditionForm, MCP_SERVER, mcp_server};
use crate::command::{Prompt, SessionSource};

/// An MCP server for all projects of the user.
pub const MCP: Addition = Addition {
    file: "settings.json",
    form: AdditionForm::Member { keys: MCP_SERVER, value: mcp_server },
};

/// A command for all projects of the user
/// (<https://geminicli.com/docs/cli/custom-commands/>).
pub const COMMAND: Addition = Addition {
    file: "commands/epitome.toml",
    form: AdditionForm::File { typed: "/epitome", text: |words| PROMPT.toml(words) },
};

const PROMPT: Prompt = Prompt {
    agent: "gemini",
    name: "Gemini CLI",
    session: SessionSource::Newest,
    resume: "gemini --resume",
};
