//! What epitome can add to Claude Code's settings.

use serde_json::json;

use crate::addition::{Addition, AdditionForm, MCP_SERVER, mcp_server};
use crate::command::{Prompt, SessionSource};
use crate::hook::command;

/// An MCP server for all projects of the user (<https://code.claude.com/docs/en/mcp>). The file is
/// next to the folder of settings, or in it if `CLAUDE_CONFIG_DIR` names the folder.
pub const MCP: Addition = Addition {
    file: ".claude.json",
    form: AdditionForm::Member {
        keys: MCP_SERVER,
        value: |words| {
            let mut server = mcp_server(words);
            server["type"] = json!("stdio");
            server
        },
    },
};

/// A command that prints Claude Code's status line, which is shown below the prompt
/// (<https://code.claude.com/docs/en/statusline>).
pub const STATUS_LINE: Addition = Addition {
    file: "settings.json",
    form: AdditionForm::Member {
        keys: &["statusLine"],
        value: |words| json!({ "type": "command", "command": command(words) }),
    },
};

/// A command for all projects of the user (<https://code.claude.com/docs/en/slash-commands>). Only
/// the user can call it: the model does not learn of the command.
pub const COMMAND: Addition = Addition {
    file: "commands/epitome.md",
    form: AdditionForm::File {
        typed: "/epitome",
        text: |words| PROMPT.markdown("disable-model-invocation: true\n", words),
    },
};

const PROMPT: Prompt = Prompt {
    agent: "claude",
    name: "Claude Code",
    session: SessionSource::Placeholder("${CLAUDE_SESSION_ID}"),
    resume: "claude --resume",
};
